//! Limits of the results of captures: connections whose content cannot be read, and packets that
//! are missing.

use super::quic::Quic;
use super::tcp_connection::EndedConnection;
use crate::event_writer::{EventWriter, agreeing};
use intact_ledger::Event;
use intact_observe::{LowerBounds, Opaque, Sealed};
use intact_wire::tls::suite_name;
use std::collections::BTreeMap;

/// Counts over all files.
#[derive(Clone, Debug, Default)]
pub(super) struct CaptureLimits {
    pub(super) unseen: u64,
    pub(super) let_go: u64,
    pub(super) too_late: u64,
    /// Single SYNs in captures without a packet from a server.
    pub(super) unheard: u64,
    /// Connections with TLS that was not decrypted, by reason.
    pub(super) sealed: BTreeMap<Sealed, u64>,
    /// The packets come from a ring of `intact`, while the connections run.
    pub(super) is_live: bool,
    /// There is a key log, or the captures hold secrets.
    pub(super) has_keys: bool,
    pub(super) blind_unknown: u64,
    /// Connections that end, or are cut, within the header section of their first request.
    pub(super) partial_requests: u64,
    pub(super) joined: u64,
    /// Connections with only one direction in the capture.
    pub(super) one_direction: u64,
    /// The same, where the responses show all requests.
    pub(super) responses_only: u64,
    /// Connections with missing packets.
    pub(super) with_missing: u64,
    /// Connections that were not read to their end, because a side broke a rule of HTTP/2.
    pub(super) broken_off: u64,
    pub(super) cut_packets: u64,
    /// Lookups without a response, of clients without any response.
    pub(super) lookups_without_response: u64,
    /// Lookups whose response was cut off.
    pub(super) lookups_cut: u64,
    /// Connections that were captured under two pairs of addresses.
    pub(super) translated: u64,
    /// Connections of HTTP/2 whose requests may be more.
    pub(super) lower_bounds: LowerBounds,
    /// Largest number of bytes kept of a packet that was cut off: the snap length.
    pub(super) snap_len: usize,
}

impl CaptureLimits {
    /// Counts the limits of an ended connection.
    pub(super) fn count(&mut self, over: &EndedConnection) {
        let lacks = over.lacks;
        // packets that were cut off explain the missing responses
        self.unseen += if lacks.cut_packets > 0 {
            0
        } else {
            over.unseen
        };
        self.one_direction += u64::from(lacks.direction && !over.shows_requests);
        self.responses_only += u64::from(lacks.direction && over.shows_requests);
        self.with_missing += u64::from(lacks.packets);
        self.broken_off += u64::from(over.is_broken_off && lacks.is_nothing());
        self.cut_packets += lacks.cut_packets;
        match over.blind {
            Some(Opaque::Encrypted(why)) => *self.sealed.entry(why).or_default() += 1,
            Some(Opaque::PartialRequest) => self.partial_requests += 1,
            Some(Opaque::Unknown) => self.blind_unknown += 1,
            None => {}
        }
    }

    /// Records a caveat for each limit with a count.
    pub(super) fn record(&self, quic: &Quic, writer: &mut EventWriter<'_>) {
        self.record_sealed(writer);
        self.record_unreadable(quic, writer);
        self.record_missing(quic, writer);
    }

    /// Records TLS that was not decrypted, with the remedy.
    fn record_sealed(&self, writer: &mut EventWriter<'_>) {
        self.record_suites(writer);
        for (why, &count) in &self.sealed {
            let (id, words) = match why {
                Sealed::Suite(_) => continue,
                Sealed::NoSecrets if self.is_live => (
                    "tls-without-keys",
                    "connections are encrypted, and their keys were neither logged nor found in the memory of the process: a key log that the service writes shows them (`--keylog FILE`)".to_owned(),
                ),
                Sealed::NoSecrets if self.has_keys => (
                    "tls-without-keys",
                    "connections are encrypted, and the key log lacks the secrets: set SSLKEYLOGFILE before the program starts".to_owned(),
                ),
                Sealed::NoSecrets => (
                    "tls-without-keys",
                    "connections are encrypted and cannot be seen inside: record with SSLKEYLOGFILE and pass --keylog FILE".to_owned(),
                ),
                Sealed::WrongSecrets => (
                    "tls-wrong-keys",
                    "connections are encrypted, and the secrets of the key log do not decrypt the data".to_owned(),
                ),
                Sealed::Version(version) => (
                    "tls-version-not-decrypted",
                    format!("connections use the version 0x{version:04x} of TLS, which is not decrypted here"),
                ),
                Sealed::Compressed => (
                    "tls-compressed",
                    "connections use the compression of TLS, which is not read here".to_owned(),
                ),
                Sealed::NoHandshake => (
                    "tls-joined-late",
                    "connections are encrypted, and the capture lacks the handshake: without it no key log helps".to_owned(),
                ),
                Sealed::BytesMissing => {
                    let remedy = match self.has_keys {
                        true => "",
                        false => ", and for what comes before, pass --keylog FILE",
                    };
                    let words = "connections are encrypted, with packets that are missing or cut off: data after these packets cannot be decrypted";
                    ("tls-bytes-missing", format!("{words}{remedy}"))
                }
            };
            writer.caveat(id, agreeing(count, &words));
        }
    }

    /// Records the cipher suites that are not decrypted, all in one caveat.
    fn record_suites(&self, writer: &mut EventWriter<'_>) {
        let suites = self.sealed.iter().filter_map(|(why, count)| match why {
            Sealed::Suite(suite) => Some((suite_name(*suite), *count)),
            _ => None,
        });
        let (names, counts): (Vec<_>, Vec<u64>) = suites.unzip();
        if names.is_empty() {
            return;
        }
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let (the, are) = match names.len() {
            1 => ("the cipher suite", "which is"),
            _ => ("cipher suites", "which are"),
        };
        let words = format!(
            "connections use {the} {}, {are} not decrypted here",
            names.join(", ")
        );
        writer.caveat(
            "tls-suite-not-decrypted",
            agreeing(counts.iter().sum(), &words),
        );
    }

    /// Records connections that are counted, but whose content cannot be read.
    fn record_unreadable(&self, quic: &Quic, writer: &mut EventWriter<'_>) {
        let limits = [
            (
                quic.recorded,
                "quic",
                "connections are QUIC (HTTP/3), whose requests a capture does not show: audit a HAR or a NetLog of the client for these",
            ),
            (
                self.blind_unknown,
                "not-http",
                "connections carry something that is not HTTP and was not read",
            ),
            (
                self.partial_requests,
                "request-cut",
                "connections have a part of a request whose header section does not end in the capture: it is not counted",
            ),
            (
                self.responses_only,
                "responses-only",
                "connections are in the capture in one direction only, that of the server: each response shows its request. Times and who closed are unknown",
            ),
            (
                self.translated,
                "address-translated",
                "connections are in the capture twice, before and after a NAT or a load balancer changed the addresses. Each counts once, under the addresses of its first packet",
            ),
            (
                self.joined,
                "joined-late",
                "connections were open before the capture began: their earlier exchanges are not counted",
            ),
            (
                self.unseen,
                "end-not-captured",
                "requests have no complete response in the capture: packets are missing, or it ends before them",
            ),
            (
                self.lookups_without_response,
                "dns-without-responses",
                "lookups have no response in the capture, like all lookups of the same client: their result and duration are unknown. Capture both directions of UDP port 53",
            ),
            (
                self.lookups_cut,
                "dns-cut",
                "lookups have a response that was cut off: its addresses are unknown. Record whole packets with `tcpdump -s 0`",
            ),
            (
                self.unheard + quic.unheard,
                "dials-without-answers",
                "dials have no response in the capture, like all packets of clients: their result is unknown, so they are not counted. Capture both directions",
            ),
            (
                self.too_late + quic.too_late,
                "dial-at-the-end",
                "connections were about to be opened when the capture ended; they are not counted",
            ),
            (
                self.let_go,
                "too-many-connections",
                "connections were dropped to limit memory: later exchanges on them count as other connections",
            ),
        ];
        writer.caveats("", &limits);
    }

    /// Records traffic that is not in the ledger.
    fn record_missing(&self, quic: &Quic, writer: &mut EventWriter<'_>) {
        let one_direction = self.one_direction + quic.one_direction;
        if one_direction > 0 {
            let words = agreeing(
                one_direction,
                "connections are in the capture in one direction only: what the other side sent is not counted. Capture where both directions pass",
            );
            writer.incomplete_requests("one-direction", words);
        }
        for caveat in self.lower_bounds.caveats() {
            writer.record(Event::Caveat(&caveat));
        }
        if self.broken_off > 0 {
            let words = agreeing(
                self.broken_off,
                "connections carry HTTP that breaks a rule, or whose header compression cannot be followed: what came after it is not read",
            );
            writer.incomplete_requests("http-not-read", words);
        }
        if self.cut_packets > 0 {
            let words = format!(
                "packets were cut off at {} bytes (snap length): a request or response counts if its first bytes are present; its size and further messages in such a packet are unknown. Record whole packets with `tcpdump -s 0`",
                self.snap_len
            );
            let words = agreeing(self.cut_packets, &words);
            writer.incomplete_requests("packets-cut", words);
        }
        let buffer = match self.is_live {
            true => "`--buffer` makes room for more",
            false => "Capture with a larger buffer, e.g. `tcpdump -B 65536`",
        };
        let with_missing = format!(
            "connections lack packets that their receivers acknowledged: requests in these packets are not counted. {buffer}"
        );
        let limits = [
            (self.with_missing, "packets-missing", &*with_missing),
            (
                quic.other_versions.len() as u64,
                "quic-version-not-read",
                "connections use a version of QUIC that is not read here, such as a draft: these connections are not counted",
            ),
            (
                quic.joined,
                "quic-joined-late",
                "packets on UDP port 443 look like QUIC, but the capture lacks the start of their connections: these connections are not counted",
            ),
            (
                quic.untracked,
                "too-many-quic-connections",
                "first packets of QUIC connections came while memory for more of these was exhausted: these connections are not counted",
            ),
        ];
        writer.incompletes("", &limits);
    }
}
