//! The formats of inputs. Knows none of their readers.

use crate::client::DocumentFormat;
use crate::counters::CounterSyntax;
use crate::load_generator::RowFormat;
use intact_ledger::kinds;

/// The format of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A pcap capture, as tcpdump writes it.
    Pcap,
    /// A pcapng capture, as Wireshark writes it.
    Pcapng,
    /// A capture of Solaris' `snoop` (RFC 1761).
    Snoop,
    /// The requests of a client: an HTTP archive (HAR), or the log of a program.
    Client(&'static DocumentFormat),
    /// The access log of a server or a proxy.
    AccessLog,
    /// The log of Chromium's network stack.
    NetLog,
    /// One row per request of a load generator.
    Tool(&'static RowFormat),
    /// Zeek's log of connections, TLS handshakes or requests.
    Zeek(Log),
    /// Counters of a program that runs.
    Counters(CounterSyntax),
    /// A ledger that `intact` recorded with `--ledger`.
    Ledger,
}

impl Format {
    /// The name that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Pcap => "pcap",
            Format::Pcapng => "pcapng",
            Format::Snoop => "snoop",
            Format::Client(document) => document.name,
            Format::AccessLog => "access log",
            Format::NetLog => "NetLog",
            Format::Tool(tool) => tool.name,
            Format::Zeek(log) => log.as_str(),
            Format::Counters(syntax) => syntax.as_str(),
            Format::Ledger => "ledger",
        }
    }
}

kinds! {
    /// A log of Zeek.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Log, as_str {
        /// `conn.log`.
        Connections = "Zeek conn.log",
        /// `ssl.log`.
        Tls = "Zeek ssl.log",
        /// `http.log`.
        Requests = "Zeek http.log",
    }
}

impl Log {
    /// Position among the logs that are read together: connections come before their content.
    pub(crate) fn turn(self) -> u8 {
        self as u8
    }
}
