//! Why an input could not be read at all. Damage in the middle of an input is no error: its
//! [`InputSummary`](crate::InputSummary) and a caveat report it.

use intact_ledger::Caveat;
use std::path::PathBuf;

/// Why an input gave no events.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A system call on the file failed.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The file is empty.
    #[error("{0} is empty")]
    Empty(PathBuf),
    /// The file has the content of another one of the same call.
    #[error("{path} has the same content as {first}, which was read")]
    Again {
        /// The file.
        path: PathBuf,
        /// The file that came first.
        first: PathBuf,
    },
    /// The path is a folder that holds no ledger.
    #[error("{0} is a folder without a ledger or files")]
    Folder(PathBuf),
    /// The first bytes match no known format.
    #[error(
        "{path} starts with \"{start}\", which is no format that audit reads: captures, HAR, NetLog, DevTools logs, access logs, Zeek's and Suricata's logs, rows of load generators, counters of proxies. {nearest}; see `intact audit --help`"
    )]
    Unknown {
        /// The file.
        path: PathBuf,
        /// Its first bytes, escaped.
        start: String,
        /// The nearest format, and how to get there: a sentence without its full stop.
        nearest: &'static str,
    },
    /// A kind of file that is known and cannot be read.
    #[error("{path} is {what}, which audit does not read: {remedy}")]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Description of the file.
        what: &'static str,
        /// The conversion.
        remedy: &'static str,
    },
    /// The file holds sums and no requests.
    #[error(
        "{path} is {what}: it has totals but no requests; `{instead}` writes a row per request"
    )]
    Summary {
        /// The file.
        path: PathBuf,
        /// Description of the file.
        what: &'static str,
        /// The command that writes one row per request.
        instead: &'static str,
    },
    /// The CSV of a run of `intact`, which repeats a part of its ledger.
    #[error(
        "{0} is the CSV that intact writes with --csv: audit reads the ledger of a run, which has its connections and their ends; record it with --ledger DIR and pass DIR"
    )]
    OwnCsv(PathBuf),
    /// A log of Zeek that does not describe connections.
    #[error("{path} is Zeek's {log}.log: audit reads its conn.log, ssl.log and http.log")]
    OtherLog {
        /// The file.
        path: PathBuf,
        /// Zeek's name of the log.
        log: String,
    },
    /// A capture without any packet that can be decoded to TCP or QUIC.
    #[error(
        "{path}: none of its {packets} packets can be decoded to TCP or QUIC ({why}): {remedy}"
    )]
    Undecoded {
        /// The file.
        path: PathBuf,
        /// Number of its packets.
        packets: u64,
        /// The reasons, with counts.
        why: String,
        /// How to record a readable capture.
        remedy: &'static str,
    },
    /// The file has the start of a format and breaks its rules right after it.
    #[error("{path} is not the {format} that it seems to be: {why}")]
    Broken {
        /// The file.
        path: PathBuf,
        /// The format that its first bytes show.
        format: &'static str,
        /// The rule that it breaks.
        why: String,
    },
}

impl AuditError {
    /// Caveats for inputs that could not be read. Nothing is missing from the run if these are
    /// empty files, or logs of Zeek without connections, of which a folder has many.
    pub fn caveats(errors: &[AuditError]) -> Vec<Caveat> {
        const ID: &str = "input-not-read";
        let mut others = Vec::new();
        let mut caveats = Vec::new();
        for error in errors {
            match error {
                AuditError::OtherLog { log, .. } => others.push(format!("{log}.log")),
                // an empty file, or a copy, lacks no traffic
                AuditError::Empty(_) | AuditError::Again { .. } => {
                    caveats.push(Caveat::new(ID, format!("not read: {error}")));
                }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_file_is_named_and_lacks_no_traffic() {
        let path = || PathBuf::from("a.log");
        let denied = std::io::ErrorKind::PermissionDenied.into();
        let io = AuditError::Io {
            path: path(),
            source: denied,
        };
        let caveats = AuditError::caveats(&[AuditError::Empty(path()), io]);
        let incomplete: Vec<bool> = caveats.iter().map(|one| one.incomplete).collect();
        assert_eq!(incomplete, [false, true]);
        assert_eq!(caveats[0].message, "not read: a.log is empty");
    }
}
