//! Captures: files of packets, which `packets` turns into connections and exchanges.
//!
//! [`pcap`], [`pcapng`] and [`snoop`] return packets, and [`reorder`] sorts them by their times.

mod pcap;
mod pcapng;
mod reorder;
mod snoop;

use crate::error::AuditError;
use crate::event_writer::EventWriter;
use crate::format::Format;
use crate::input::{Input, name};
use crate::input_summary::{InputSummary, Unit};
use crate::read_buffer::ReadBuffer;
use intact_packets::{ConnectionTable, Packet, PacketCounts};
use intact_units::number::long_time;
use intact_units::plural::counted;
use intact_wire::pcapng::Reader;
use intact_wire::tls::decrypt::KeyLog;
use pcap::Pcap;
use reorder::{REORDERING, Reorder};
use snoop::Snoop;
use std::io::Read;
use std::time::Duration;

/// Largest accepted length of a packet or block, in bytes.
const LONGEST: u32 = 16 << 20;
/// Number of packets between two calls of `go_on`.
const BREATH: u64 = 1024;

/// The steps back in the times of a capture: its parts are in the wrong order, or its clock was
/// set.
#[derive(Clone, Copy, Debug, Default)]
struct StepsBack {
    latest: u64,
    count: u64,
    largest: u64,
}

impl StepsBack {
    fn note(&mut self, at: u64) {
        let back = self.latest.saturating_sub(at);
        if back < REORDERING {
            self.latest = self.latest.max(at);
            return;
        }
        self.latest = at;
        self.count += 1;
        self.largest = self.largest.max(back);
    }

    fn record(self, name: &str, writer: &mut EventWriter<'_>) {
        if self.count == 0 {
            return;
        }
        let times = counted(self.count, "time");
        let largest = long_time(Duration::from_nanos(self.largest));
        writer.incomplete(
            "input-out-of-order",
            format!(
                "{name}: the clock of the packets goes back {times}, by up to {largest}: which connections and requests were open at the same time is unknown. If its parts are in the wrong order, `reordercap` sorts them"
            ),
        );
    }
}

/// Why the reading of a capture ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The file is complete.
    Whole,
    /// The file ends within a packet.
    Cut,
    /// The file contradicts itself.
    Damaged(String),
}

/// The first `len` bytes of a record, which stay in the buffer. A file may end before them, but not
/// within.
fn record_head<R: Read>(window: &mut ReadBuffer<R>, len: usize) -> Result<&[u8], End> {
    match window.fill(len) {
        Ok(0) => Err(End::Whole),
        Ok(there) if there >= len => Ok(window.available()),
        Ok(_) | Err(_) => Err(End::Cut),
    }
}

/// The next `len` bytes.
fn pull<R: Read>(window: &mut ReadBuffer<R>, len: usize) -> Result<&[u8], End> {
    window.pull(len).ok().flatten().ok_or(End::Cut)
}

/// The reader of one file format.
enum Packets {
    Pcap(Pcap),
    Pcapng(Reader),
    Snoop(Snoop),
}

impl Packets {
    fn open<R: Read>(format: Format, window: &mut ReadBuffer<R>) -> Result<Packets, End> {
        match format {
            Format::Pcapng => Ok(Packets::Pcapng(Reader::default())),
            Format::Snoop => Snoop::open(window).map(Packets::Snoop),
            _ => Pcap::open(window).map(Packets::Pcap),
        }
    }

    fn next<'w, R: Read>(
        &mut self,
        window: &'w mut ReadBuffer<R>,
        keys: &mut KeyLog,
    ) -> Result<Packet<'w>, End> {
        match self {
            Packets::Pcap(pcap) => pcap.next(window),
            Packets::Snoop(snoop) => snoop.next(window),
            Packets::Pcapng(pcapng) => pcapng::next(pcapng, window, keys),
        }
    }

    /// Number of packets that the capturing program dropped, according to the file; 0 if the file
    /// has no count.
    fn dropped(&self) -> u64 {
        match self {
            Packets::Pcap(_) => 0,
            Packets::Pcapng(pcapng) => pcapng.dropped(),
            Packets::Snoop(snoop) => snoop.dropped(),
        }
    }
}

/// The format of a capture with these first bytes.
pub(crate) fn detect(prefix: &[u8]) -> Option<Format> {
    match prefix {
        _ if pcap::magic(prefix).is_some() => Some(Format::Pcap),
        _ if intact_wire::pcapng::is_magic(prefix) => Some(Format::Pcapng),
        _ if prefix.starts_with(snoop::MAGIC) => Some(Format::Snoop),
        _ => None,
    }
}

/// The time of the first packet, in nanoseconds since 1970.
pub(crate) fn begins_at(format: Format, prefix: &[u8]) -> Option<u64> {
    let mut window = ReadBuffer::new(prefix);
    let mut packets = Packets::open(format, &mut window).ok()?;
    let mut keys = KeyLog::default();
    let mut first = packets.next(&mut window, &mut keys).ok()?.at;
    // packets of another interface may be earlier
    while let Ok(packet) = packets.next(&mut window, &mut keys) {
        if first.saturating_sub(packet.at) < REORDERING {
            first = first.min(packet.at);
        }
    }
    Some(first)
}

/// Reads a capture into the connection table that all captures of an audit share.
pub(crate) fn read(
    input: &mut Input,
    network: &mut ConnectionTable,
    writer: &mut EventWriter<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<InputSummary, AuditError> {
    let mut packets = match Packets::open(input.format, &mut input.window) {
        Ok(packets) => packets,
        Err(End::Damaged(why)) => return Err(input.broken(why)),
        Err(End::Cut | End::Whole) => return Err(input.broken("the file ends within its header")),
    };
    let mut count = 0;
    let mut steps_back = StepsBack::default();
    let mut reorder = Reorder::default();
    let end = loop {
        match packets.next(&mut input.window, &mut writer.run.keys) {
            Ok(packet) => {
                count += 1;
                steps_back.note(packet.at);
                reorder.take(&packet, &mut |packet| network.take(packet, writer));
            }
            Err(end) => break Some(end),
        }
        if count % BREATH == 0 && !go_on() {
            break None;
        }
    };
    reorder.finish(&mut |packet| network.take(packet, writer));
    let name = name(&input.path);
    let counts = network.take_counts();
    match end {
        Some(End::Damaged(why)) if count == 0 => return Err(input.broken(why)),
        Some(End::Damaged(why)) => writer.incomplete(
            "input-damaged",
            format!("{name}: {why} after packet {count}; the rest was not read"),
        ),
        Some(End::Cut) => writer.incomplete(
            "input-cut",
            format!("{name} ends within a packet: it was cut off, or is still being written"),
        ),
        Some(End::Whole) | None => {}
    }
    record_opaque(input, &counts, count, writer)?;
    steps_back.record(&name, writer);
    let dropped = packets.dropped();
    if dropped > 0 {
        writer.incomplete(
            "packets-dropped",
            format!(
                "{name}: packets dropped while capturing, as the file says: {dropped}. Capture with a larger buffer, e.g. `dumpcap -B 64`"
            ),
        );
    }
    record_other_ports(input, &counts, count, writer);
    Ok(input.account(Unit::Packets, count, counts.skipped + counts.opaque.total()))
}

/// Records a caveat for the datagrams of UDP that belong to no service that is known here.
fn record_other_ports(
    input: &Input,
    counts: &PacketCounts,
    packets: u64,
    writer: &mut EventWriter<'_>,
) {
    if let Some(ports) = counts.other_ports.words() {
        writer.caveat(
            "udp-not-read",
            format!(
                "{}{} of {packets} packets are on UDP ports that are not known here ({ports}). If a tunnel is among them, the connections in it are not counted",
                input.prefix(),
                counts.other_ports.total()
            ),
        );
    }
}

/// Records a caveat for the packets that could not be decoded.
///
/// # Errors
/// If no packet of the file could be decoded.
fn record_opaque(
    input: &Input,
    counts: &PacketCounts,
    packets: u64,
    writer: &mut EventWriter<'_>,
) -> Result<(), AuditError> {
    if let Some(why) = counts.opaque.words() {
        let remedy = counts.opaque.remedy();
        if counts.transport == 0 {
            return Err(AuditError::Undecoded {
                path: input.path.clone(),
                packets,
                why,
                remedy,
            });
        }
        writer.incomplete(
            "packets-not-decoded",
            format!(
                "{}{} of {packets} packets cannot be decoded ({why}); the connections in them are not counted: {remedy}",
                input.prefix(),
                counts.opaque.total()
            ),
        );
    }
    Ok(())
}
