//! Why an input could not be read at all. Damage in the middle of one is no error: it is told in its [`InputSummary`](crate::InputSummary).

use intact_ledger::Caveat;
use std::path::PathBuf;

/// Why nothing could be learnt from an input.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// What it said.
        source: std::io::Error,
    },
    /// There is nothing in it.
    #[error("{0} is empty")]
    Empty(PathBuf),
    /// It is a folder, but no ledger.
    #[error("{0} is a folder without a ledger or files")]
    Folder(PathBuf),
    /// Its first bytes belong to no format that is read here.
    #[error(
        "{path} starts with \"{start}\", which is none of the formats that audit reads: pcap, pcapng, HAR, NetLog, access logs, Zeek's conn.log, ssl.log and http.log, rows of hey, oha, k6, vegeta (--log-format FORMAT names one of your own; see `intact audit --help`)"
    )]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Its first bytes, escaped.
        start: String,
    },
    /// It holds sums and no requests.
    #[error("{path} is {what}: it holds sums and no requests; `{instead}` writes those")]
    Summary {
        /// The file.
        path: PathBuf,
        /// What it is.
        what: &'static str,
        /// The command that writes requests.
        instead: &'static str,
    },
    /// It is another of Zeek's logs than those that tell of connections.
    #[error("{path} is Zeek's {log}.log: audit reads its conn.log, ssl.log and http.log")]
    OtherLog {
        /// The file.
        path: PathBuf,
        /// What Zeek calls it.
        log: String,
    },
    /// It is a capture, and none of its packets could be decoded to TCP or QUIC.
    #[error(
        "{path}: none of its {packets} packets can be decoded to TCP or QUIC ({why}): {remedy}"
    )]
    Undecoded {
        /// The file.
        path: PathBuf,
        /// How many packets it has.
        packets: u64,
        /// What hides how many of them.
        why: String,
        /// What makes the next capture readable.
        remedy: &'static str,
    },
    /// It claims a format and breaks it from the start.
    #[error("{path} is not the {format} that it seems to be: {why}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// What it seemed to be.
        format: &'static str,
        /// What is wrong with it.
        why: String,
    },
}

impl AuditError {
    /// What could not be read and why. Nothing is missing without those of Zeek's logs that say nothing of connections, which a
    /// folder has many of.
    pub fn caveats(errors: &[AuditError]) -> Vec<Caveat> {
        const ID: &str = "input-not-read";
        let mut others = Vec::new();
        let mut caveats = Vec::new();
        for error in errors {
            match error {
                AuditError::OtherLog { log, .. } => others.push(format!("{log}.log")),
                error => caveats.push(Caveat::incomplete(ID, format!("not read: {error}"))),
            }
        }
        others.sort();
        others.dedup();
        if !others.is_empty() {
            let names = others.join(", ");
            caveats.push(Caveat::new(
                ID,
                format!("not read: Zeek's {names}, which say nothing of connections"),
            ));
        }
        caveats
    }
}
