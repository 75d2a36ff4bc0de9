//! The formats of inputs. Knows none of their readers.

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

/// The program and the format of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadGenerator {
    /// `hey -o csv`.
    Hey,
    /// `oha --output-format csv`.
    Oha,
    /// `k6 run --out csv=FILE`.
    K6Csv,
    /// `k6 run --out json=FILE`.
    K6Json,
    /// `vegeta encode --to csv`.
    VegetaCsv,
    /// `vegeta encode --to json`.
    VegetaJson,
}

impl LoadGenerator {
    /// The name that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            LoadGenerator::Hey => "hey's CSV",
            LoadGenerator::Oha => "oha's CSV",
            LoadGenerator::K6Csv => "k6's CSV",
            LoadGenerator::K6Json => "k6's JSON",
            LoadGenerator::VegetaCsv => "vegeta's CSV",
            LoadGenerator::VegetaJson => "vegeta's JSON",
        }
    }
}

/// A log of Zeek.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Log {
    /// `conn.log`.
    Connections,
    /// `ssl.log`.
    Tls,
    /// `http.log`.
    Requests,
}

impl Log {
    /// The name that users see.
    pub fn as_str(self) -> &'static str {
        match self {
            Log::Connections => "Zeek conn.log",
            Log::Tls => "Zeek ssl.log",
            Log::Requests => "Zeek http.log",
        }
    }

    /// Position among the logs that are read together: connections come before their content.
    pub(crate) fn turn(self) -> u8 {
        self as u8
    }
}
