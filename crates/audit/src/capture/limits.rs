//! What limits the result of captures: connections that cannot be seen inside, and packets that are missing.

use super::quic::Quic;
use crate::event_writer::EventWriter;

/// Counts of what was met, over all files.
#[derive(Clone, Debug, Default)]
pub(super) struct CaptureLimits {
    pub(super) unseen: u64,
    pub(super) let_go: u64,
    pub(super) too_late: u64,
    pub(super) blind_tls: u64,
    pub(super) blind_unknown: u64,
    pub(super) joined: u64,
    /// Connections of which one direction is in the capture.
    pub(super) one_direction: u64,
    /// Connections of which packets are missing.
    pub(super) with_missing: u64,
    pub(super) cut_packets: u64,
}

impl CaptureLimits {
    /// Records a caveat for each limit that was met.
    pub(super) fn record(&self, quic: &Quic, scope: &mut EventWriter<'_>) {
        self.record_unreadable(quic, scope);
        self.record_missing(quic, scope);
    }

    /// Nothing is missing: the connections are counted, and those that cannot be seen inside are known as such.
    fn record_unreadable(&self, quic: &Quic, scope: &mut EventWriter<'_>) {
        let limits = [
            (
                self.blind_tls,
                "tls-without-keys",
                "connections are encrypted and cannot be seen inside: record with SSLKEYLOGFILE and pass --keylog FILE",
            ),
            (
                quic.told,
                "quic",
                "connections are QUIC (HTTP/3), and what they carry cannot be seen in a capture: a HAR or a NetLog of the client tells more",
            ),
            (
                self.blind_unknown,
                "not-http",
                "connections carry something that is not HTTP and was not read",
            ),
            (
                self.joined,
                "joined-late",
                "connections were open before the capture began: what they carried before is not counted",
            ),
            (
                self.unseen,
                "end-not-captured",
                "requests have no complete answer in the capture: packets are missing, or it ends before them",
            ),
            (
                self.too_late + quic.too_late,
                "dial-at-the-end",
                "connections were about to be opened when the capture ended; they are not counted",
            ),
            (
                self.let_go,
                "too-many-connections",
                "connections were let go to bound memory: what came later on them counts as other connections",
            ),
        ];
        scope.caveats("", &limits);
    }

    /// Traffic that is not in the record.
    fn record_missing(&self, quic: &Quic, scope: &mut EventWriter<'_>) {
        let limits = [
            (
                self.one_direction,
                "one-direction",
                "connections are in the capture in one direction only: what the other side sent is not counted. Capture where both directions pass",
            ),
            (
                self.with_missing,
                "packets-missing",
                "connections lack packets that their receivers acknowledged: requests in these packets are not counted. Capture with a larger buffer, e.g. `tcpdump -B 65536`",
            ),
            (
                self.cut_packets,
                "packets-cut",
                "packets were cut off while capturing (snap length): requests in the rest of them are not counted. Record whole packets with `tcpdump -s 0`",
            ),
            (
                quic.joined,
                "quic-joined-late",
                "packets on UDP port 443 look like QUIC and belong to no connection whose start is in the capture: these connections are not counted",
            ),
            (
                quic.untracked,
                "too-many-quic-connections",
                "first packets of QUIC connections came while memory for more of these was exhausted: these connections are not counted",
            ),
        ];
        scope.incompletes("", &limits);
    }
}
