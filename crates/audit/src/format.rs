//! The formats of inputs. Knows none of their readers.

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
    /// An HTTP archive, as browsers and proxies export it.
    Har,
    /// The access log of a server or a proxy.
    AccessLog,
    /// The log of Chromium's network stack.
    NetLog,
    /// One row per request of a load generator.
    Tool(LoadGenerator),
    /// Zeek's log of connections, TLS handshakes or requests.
    Zeek(Log),
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
            Format::Har => "HAR",
            Format::AccessLog => "access log",
            Format::NetLog => "NetLog",
            Format::Tool(tool) => tool.as_str(),
            Format::Zeek(log) => log.as_str(),
            Format::Ledger => "ledger",
        }
    }
}

kinds! {
    /// The program and the format of the rows.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum LoadGenerator, as_str {
        /// `hey -o csv`.
        Hey = "hey's CSV",
        /// `oha --output-format csv`.
        Oha = "oha's CSV",
        /// `k6 run --out csv=FILE`.
        K6Csv = "k6's CSV",
        /// `k6 run --out json=FILE`.
        K6Json = "k6's JSON",
        /// `vegeta encode --to csv`.
        VegetaCsv = "vegeta's CSV",
        /// `vegeta encode --to json`.
        VegetaJson = "vegeta's JSON",
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
