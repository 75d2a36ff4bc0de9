//! The formats of inputs. Knows none of their readers.

/// A format that is read here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A capture as tcpdump writes it.
    Pcap,
    /// A capture as Wireshark writes it.
    Pcapng,
    /// A capture as Solaris' `snoop` writes it (RFC 1761).
    Snoop,
    /// An archive of HTTP requests as browsers and proxies export it.
    Har,
    /// What a server or a proxy writes of each request.
    AccessLog,
    /// What Chromium's network stack writes of itself.
    NetLog,
    /// What a load generator writes of each request.
    Tool(LoadGenerator),
    /// What Zeek writes of connections, TLS handshakes or requests.
    Zeek(Log),
    /// What `intact` recorded with `--ledger`.
    Ledger,
}

impl Format {
    /// Whether it holds packets.
    pub(crate) fn is_capture(self) -> bool {
        matches!(self, Format::Pcap | Format::Pcapng | Format::Snoop)
    }

    /// Its name, for a person.
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

/// Who wrote the rows, and how.
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
    /// Its name, for a person.
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

/// One of Zeek's logs.
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
    /// Its name, for a person.
    pub fn as_str(self) -> &'static str {
        match self {
            Log::Connections => "Zeek conn.log",
            Log::Tls => "Zeek ssl.log",
            Log::Requests => "Zeek http.log",
        }
    }

    /// Its place among those that are read together: connections are known before what went on them is told.
    pub(crate) fn turn(self) -> u8 {
        self as u8
    }
}
