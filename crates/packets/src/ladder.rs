//! The packets of one connection in order, with the names of their contents: TLS records, HTTP/2
//! frames, requests and responses. A datagram of QUIC has the types of its packets.

use intact_ledger::{ConnectionId, Nanos};
use intact_wire::Side;
use intact_wire::exchange::Exchange as Seen;
use intact_wire::h2::PREFACE;
use intact_wire::quic::{Kind, packets};
use intact_wire::tcp::Segment;
use std::net::SocketAddr;

/// Limit of packets that are kept per connection.
const MAX_STEPS: usize = 400;
/// Limit of names that are kept per packet.
const MAX_NAMES: usize = 24;
/// Name of a record that cannot be decrypted.
const ENCRYPTED: &str = "encrypted record";
const ENCRYPTED_MANY: &str = "encrypted records";
/// Number of packets that a search by time goes back.
const MAX_BACK: usize = 64;

/// Selects one connection of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LadderSelection {
    /// The first connection that carries a request.
    First,
    /// The connection with this number in the ledger.
    Number(u64),
}

/// The packets of one connection.
#[derive(Clone, Debug)]
pub struct Ladder {
    /// The connection's number in the ledger.
    pub connection: ConnectionId,
    /// The client's address.
    pub client: SocketAddr,
    /// The server's address.
    pub server: SocketAddr,
    /// The packets, in the order of the capture.
    pub steps: Vec<LadderStep>,
    /// Number of packets that were not kept.
    pub left_out: u64,
}

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LadderStep {
    /// Nanoseconds since 1970.
    pub at: u64,
    /// The client sent the packet.
    pub by_client: bool,
    /// SYN, FIN, RST or ACK, where the packet is more than acknowledged payload.
    pub flags: Vec<&'static str>,
    /// Length of the payload in bytes.
    pub len: u32,
    /// The connection carried all of the payload before.
    pub again: bool,
    /// Names of the contents. A record or frame that spans packets is named where it begins.
    pub names: Vec<String>,
}

/// A ladder whose connection is open.
#[derive(Debug)]
pub(super) struct LadderBuilder {
    ladder: Ladder,
    /// Nanosecond 0 of the run, in nanoseconds since 1970.
    base: u64,
    records: [Records; 2],
    frames: [Frames; 2],
}

impl LadderBuilder {
    pub(super) fn new(
        connection: ConnectionId,
        client: SocketAddr,
        server: SocketAddr,
        base: u64,
    ) -> LadderBuilder {
        LadderBuilder {
            ladder: Ladder {
                connection,
                client,
                server,
                steps: Vec::new(),
                left_out: 0,
            },
            base,
            records: Default::default(),
            frames: Default::default(),
        }
    }

    pub(super) fn finish(self) -> Ladder {
        self.ladder
    }

    /// Adds a packet of TCP.
    pub(super) fn packet(&mut self, from: Side, segment: &Segment<'_>) {
        let alone = segment.len == 0 && !segment.syn && !segment.fin && !segment.rst;
        let flags = [
            (segment.syn, "SYN"),
            (segment.fin, "FIN"),
            (segment.rst, "RST"),
            ((alone || segment.syn) && segment.ack.is_some(), "ACK"),
        ];
        let set = flags.iter().filter(|(set, _)| *set);
        self.add(LadderStep {
            at: segment.at,
            by_client: from == Side::Client,
            flags: set.map(|(_, name)| *name).collect(),
            len: segment.len,
            again: false,
            names: Vec::new(),
        });
    }

    /// Adds a datagram of QUIC.
    pub(super) fn datagram(&mut self, from: Side, bytes: &[u8], len: u32, at: u64) {
        self.add(LadderStep {
            at,
            by_client: from == Side::Client,
            flags: Vec::new(),
            len,
            again: false,
            names: packet_types(bytes),
        });
    }

    fn add(&mut self, step: LadderStep) {
        if self.ladder.steps.len() < MAX_STEPS {
            self.ladder.steps.push(step);
        } else {
            self.ladder.left_out += 1;
        }
    }

    /// Marks the last packet as a retransmission.
    pub(super) fn was_again(&mut self) {
        if let Some(last) = self
            .ladder
            .steps
            .last_mut()
            .filter(|_| self.ladder.left_out == 0)
        {
            last.again = true;
        }
    }

    /// Names the TLS records that begin in these bytes.
    pub(super) fn read_tls(&mut self, from: Side, bytes: &[u8], at: Nanos) {
        let mut names = Vec::new();
        self.records[from as usize].read(bytes, &mut names);
        self.name(from, self.wall(at.0), names);
    }

    /// Names the HTTP/2 frames that begin in these bytes.
    pub(super) fn read_h2(&mut self, from: Side, bytes: &[u8], at: Nanos) {
        let mut names = Vec::new();
        self.frames[from as usize].read(bytes, &mut names);
        self.name(from, self.wall(at.0), names);
    }

    /// A time of the run, in nanoseconds since 1970.
    fn wall(&self, at: u64) -> u64 {
        self.base + at
    }

    /// Names a request and its response. Times are on the run's clock.
    pub(super) fn read_exchange(&mut self, seen: &Seen) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if let Some(request) = &seen.request {
            let target = intact_ledger::Target::new(&text(&request.target));
            let name = format!("{} {target}", text(&request.method));
            self.name_http(
                Side::Client,
                self.wall(request.started_at),
                self.wall(request.head_at),
                seen.stream,
                name,
            );
        }
        let Some(response) = &seen.response else {
            return;
        };
        let name = match response.status {
            0 => "answer".to_owned(),
            status => status.to_string(),
        };
        self.name_http(
            Side::Server,
            self.wall(response.started_at),
            self.wall(response.head_at),
            seen.stream,
            name,
        );
        if let (Some(body_at), None) = (response.first_body_at, seen.stream)
            && body_at > response.head_at
        {
            self.name(Side::Server, self.wall(body_at), vec!["body".to_owned()]);
        }
    }

    fn name_http(&mut self, from: Side, begun: u64, whole: u64, stream: Option<u32>, name: String) {
        let Some(stream) = stream else {
            self.name(from, begun, vec![name]);
            return;
        };
        let frame = format!("HEADERS[{stream}]");
        for at in [begun, whole] {
            let by_client = from == Side::Client;
            let steps = self.ladder.steps.iter_mut();
            let mut here = steps.filter(|step| step.at == at && step.by_client == by_client);
            let found = here.find_map(|step| {
                let mut names = step.names.iter_mut();
                names.find(|known| **known == frame || **known == format!("{frame} end"))
            });
            if let Some(known) = found {
                *known = format!("{known} {name}");
                return;
            }
        }
    }

    /// Adds names to the packet of that side and time.
    fn name(&mut self, from: Side, at: u64, names: Vec<String>) {
        let by_client = from == Side::Client;
        let steps = self.ladder.steps.iter_mut().rev();
        let wanted =
            |step: &&mut LadderStep| step.at == at && step.by_client == by_client && step.len > 0;
        let far = if names.len() == 1 {
            MAX_STEPS
        } else {
            MAX_BACK
        };
        let Some(step) = steps.take(far).find(wanted).filter(|_| !names.is_empty()) else {
            return;
        };
        // the decrypted content has names of its own
        if !names
            .iter()
            .any(|name| name.ends_with(ENCRYPTED) || name.ends_with(ENCRYPTED_MANY))
        {
            step.names
                .retain(|name| !name.ends_with(ENCRYPTED) && !name.ends_with(ENCRYPTED_MANY));
        }
        for name in names {
            if step.names.len() < MAX_NAMES {
                step.names.push(name);
            }
        }
    }
}

/// The types of the packets in a datagram of QUIC, as their headers show them (RFC 9000 section
/// 17).
fn packet_types(datagram: &[u8]) -> Vec<String> {
    let mut types: Vec<(Kind, usize)> = Vec::new();
    for (kind, _) in packets(datagram) {
        let is_full = types.len() == MAX_NAMES;
        match types.last_mut() {
            Some((last, count)) if *last == kind => *count += 1,
            _ if is_full => break,
            _ => types.push((kind, 1)),
        }
    }
    let name = |(kind, count): (Kind, usize)| {
        let name = match kind {
            Kind::Initial => "Initial",
            Kind::EarlyData => "0-RTT",
            Kind::Handshake => "Handshake",
            Kind::Retry => "Retry",
            Kind::VersionNegotiation => "Version Negotiation",
            Kind::Short => "1-RTT",
        };
        match count {
            1 => name.to_owned(),
            _ => format!("{count} {name}"),
        }
    };
    types.into_iter().map(name).collect()
}

/// Headers of `LEN` bytes with the bodies between them. Both may come in pieces.
#[derive(Debug)]
struct Headers<const LEN: usize> {
    head: [u8; LEN],
    have: usize,
    /// Bytes of the body that follow.
    left: usize,
}

impl<const LEN: usize> Default for Headers<LEN> {
    fn default() -> Headers<LEN> {
        Headers {
            head: [0; LEN],
            have: 0,
            left: 0,
        }
    }
}

impl<const LEN: usize> Headers<LEN> {
    /// Takes bytes of the body.
    fn body<'a>(&mut self, bytes: &mut &'a [u8]) -> &'a [u8] {
        let (body, rest) = bytes.split_at(self.left.min(bytes.len()));
        self.left -= body.len();
        *bytes = rest;
        body
    }

    /// Skips the body and takes the next header; `None` if it is not complete yet.
    fn next(&mut self, bytes: &mut &[u8]) -> Option<[u8; LEN]> {
        self.body(bytes);
        let (more, rest) = bytes.split_at((LEN - self.have).min(bytes.len()));
        self.head[self.have..self.have + more.len()].copy_from_slice(more);
        self.have += more.len();
        *bytes = rest;
        if self.have < LEN {
            return None;
        }
        self.have = 0;
        Some(self.head)
    }
}

/// A length of three bytes.
fn u24(bytes: [u8; 3]) -> usize {
    bytes
        .iter()
        .fold(0, |len, byte| len << 8 | usize::from(*byte))
}

/// TLS records of one direction (RFC 8446 section 5.1).
#[derive(Debug, Default)]
struct Records {
    headers: Headers<5>,
    kind: u8,
    /// A ChangeCipherSpec was read, so handshake messages are encrypted.
    secret: bool,
    messages: Headers<4>,
}

impl Records {
    fn read(&mut self, mut bytes: &[u8], names: &mut Vec<String>) {
        let mut encrypted = 0;
        loop {
            let body = self.headers.body(&mut bytes);
            if self.kind == 22 && !self.secret {
                self.read_messages(body, names);
            }
            let Some([kind, _, _, high, low]) = self.headers.next(&mut bytes) else {
                break;
            };
            self.kind = kind;
            self.headers.left = usize::from(u16::from_be_bytes([high, low]));
            match kind {
                20 => {
                    self.secret = true;
                    names.push("ChangeCipherSpec".to_owned());
                }
                21 => names.push("Alert".to_owned()),
                22 if self.secret => names.push("encrypted handshake".to_owned()),
                22 => {}
                _ => encrypted += 1,
            }
        }
        match encrypted {
            0 => {}
            1 => names.push(format!("1 {ENCRYPTED}")),
            many => names.push(format!("{many} {ENCRYPTED_MANY}")),
        }
    }

    fn read_messages(&mut self, mut bytes: &[u8], names: &mut Vec<String>) {
        while let Some([kind, length @ ..]) = self.messages.next(&mut bytes) {
            self.messages.left = u24(length);
            let name = match kind {
                1 => "ClientHello",
                2 => "ServerHello",
                4 => "NewSessionTicket",
                11 => "Certificate",
                12 => "ServerKeyExchange",
                13 => "CertificateRequest",
                14 => "ServerHelloDone",
                15 => "CertificateVerify",
                16 => "ClientKeyExchange",
                20 => "Finished",
                22 => "CertificateStatus",
                _ => "handshake",
            };
            names.push(name.to_owned());
        }
    }
}

/// HTTP/2 frames of one direction (RFC 9113 section 4.1).
#[derive(Debug, Default)]
struct Frames {
    headers: Headers<9>,
    begun: bool,
}

impl Frames {
    fn read(&mut self, mut bytes: &[u8], names: &mut Vec<String>) {
        if !self.begun {
            self.begun = true;
            if bytes.starts_with(&PREFACE[..9]) {
                names.push("preface".to_owned());
                self.headers.left = PREFACE.len();
            }
        }
        while let Some(head) = self.headers.next(&mut bytes) {
            let [length @ .., kind, flags, one, two, three, four] = head;
            self.headers.left = u24(length);
            let stream = u32::from_be_bytes([one & 0x7f, two, three, four]);
            let name = match kind {
                0 => "DATA",
                1 => "HEADERS",
                2 => "PRIORITY",
                3 => "RST_STREAM",
                4 => "SETTINGS",
                5 => "PUSH_PROMISE",
                6 => "PING",
                7 => "GOAWAY",
                8 => "WINDOW_UPDATE",
                9 => "CONTINUATION",
                _ => "frame",
            };
            let on = match stream {
                0 => String::new(),
                stream => format!("[{stream}]"),
            };
            let mark = match (kind, flags & 1) {
                (0 | 1, 1) => " end",
                (4 | 6, 1) => " ACK",
                _ => "",
            };
            names.push(format!("{name}{on}{mark}"));
        }
    }
}

#[cfg(test)]
mod tests;
