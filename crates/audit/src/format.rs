//! Which format an input has, by its content.

use crate::load_generator::LoadGenerator;
use crate::{capture, har, netlog, zeek};

/// A format that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A capture as tcpdump writes it.
    Pcap,
    /// A capture as Wireshark writes it.
    Pcapng,
    /// An archive of HTTP requests as browsers and proxies export it.
    Har,
    /// What a server or a proxy writes of each request.
    AccessLog,
    /// What Chromium's network stack writes of itself.
    NetLog,
    /// What a load generator writes of each request.
    Tool(LoadGenerator),
    /// What Zeek writes of connections, TLS handshakes or requests.
    Zeek(zeek::Log),
    /// What `intact` recorded with `--ledger`.
    Ledger,
}

impl Format {
    /// The format whose first bytes these are.
    pub(crate) fn tell(prefix: &[u8]) -> Option<Format> {
        if capture::is_pcap(prefix) {
            Some(Format::Pcap)
        } else if capture::is_pcapng(prefix) {
            Some(Format::Pcapng)
        } else if har::is_har(prefix) {
            Some(Format::Har)
        } else if netlog::is_netlog(prefix) {
            Some(Format::NetLog)
        } else if let Some(tool) = LoadGenerator::tell(prefix) {
            Some(Format::Tool(tool))
        } else {
            zeek::tell(prefix).map(Format::Zeek)
        }
    }

    /// When the input begins, in nanoseconds since 1970.
    pub(crate) fn begins_at(self, prefix: &[u8]) -> Option<u64> {
        match self {
            Format::Pcap | Format::Pcapng => capture::begins_at(prefix),
            Format::Har => har::begins_at(prefix),
            Format::NetLog => netlog::begins_at(prefix),
            Format::Tool(tool) => tool.begins_at(prefix),
            Format::Zeek(_) => zeek::begins_at(prefix),
            Format::AccessLog | Format::Ledger => None,
        }
    }

    /// Its name, for a person.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Pcap => "pcap",
            Format::Pcapng => "pcapng",
            Format::Har => "HAR",
            Format::AccessLog => "access log",
            Format::NetLog => "NetLog",
            Format::Tool(tool) => tool.as_str(),
            Format::Zeek(log) => log.as_str(),
            Format::Ledger => "ledger",
        }
    }
}
