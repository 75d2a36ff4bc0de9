//! The packets of followed processes: a ring that the kernel fills, the table of connections that
//! reads them, and what went missing on the way.
//!
//! Nothing of a process changes: the kernel copies packets, and memory is only read. What the ring
//! could not hold is counted.

use super::ownership::{Ends, Ownership};
use crate::platform::secrets::{ExitHolds, Keys};
use crate::{AttachConfig, Clock, WatchSink};
use intact_ledger::{Certainty, Close, Connection, Event, FingerprintKey, Row};
use intact_observe::{KnownServers, LowerBounds};
use intact_packets::{ConnectionTable, EventWriter, Packet, RunState, SecretSource};
use intact_sys::address::unmapped;
use intact_sys::packet::{BlockRing, tcp_filter};
use intact_wire::tls::decrypt::{KeyLog, SecretCheck};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The link type of packets that begin with their IP header, as tcpdump numbers it.
const RAW: u32 = 101;
/// How long packets of a connection may be on their way after the kernel has reported its end.
pub(super) const LATE: Duration = Duration::from_secs(1);
/// How long the kernel keeps a block that is not full, with room for a busy machine.
const LAST_BLOCK: Duration = Duration::from_millis(40);
/// How long the search for keys may go on at the end, if one is under way.
const LAST_KEYS: Duration = Duration::from_secs(3);

/// The packets of followed processes.
pub(super) struct ServicePackets {
    /// Absent while nothing is received.
    ring: Option<BlockRing>,
    pub(super) table: ConnectionTable<Ownership>,
    run: RunState,
    /// Connections that the kernel has reported, until it is known whether packets were read.
    reported: VecDeque<Reported>,
    /// Packets that the ring could not hold.
    dropped: u64,
    /// Connections of which no packet was read.
    pub(super) without_packets: u64,
    buffer: usize,
}

/// A connection of a followed process by the kernel's count.
struct Reported {
    since: Instant,
    connection: Connection,
    close: Option<Close>,
}

impl ServicePackets {
    /// Begins to receive packets.
    ///
    /// # Errors
    /// [`io::ErrorKind::PermissionDenied`] without CAP_NET_RAW.
    pub(super) fn open(config: &AttachConfig) -> io::Result<ServicePackets> {
        let keys = config.keys.clone();
        let secrets = keys.map(|logging| {
            let keys = Keys::follow(logging.own_file, ExitHolds::default());
            Box::new(LiveKeys(keys)) as Box<dyn SecretSource>
        });
        Ok(ServicePackets {
            ring: Some(BlockRing::open(&tcp_filter(), config.buffer)?),
            table: ConnectionTable::of(nothing_known(config)),
            run: RunState {
                connections: 0,
                exchanges: 0,
                any_recorded: false,
                servers: KnownServers::default(),
                key: FingerprintKey::new(&config.fingerprint_key),
                keys: KeyLog::default(),
                secrets,
                lower_bounds: LowerBounds::default(),
                base: 0,
            },
            reported: VecDeque::new(),
            dropped: 0,
            without_packets: 0,
            buffer: config.buffer,
        })
    }

    /// Receives packets again, after [`Self::pause`].
    ///
    /// # Errors
    /// Those of [`Self::open`].
    pub(super) fn resume(&mut self) -> io::Result<()> {
        self.ring = Some(BlockRing::open(&tcp_filter(), self.buffer)?);
        Ok(())
    }

    /// Nanosecond 0 of the run is that of this clock.
    pub(super) fn set_clock(&mut self, clock: Clock) {
        self.run.base = wall().saturating_sub(clock.now().0);
    }

    pub(super) fn ownership(&mut self) -> &mut Ownership {
        &mut self.table.selection
    }

    /// Reads what the kernel has filled; `trace` brings what is known of owners up to date first.
    pub(super) fn read(
        &mut self,
        observer: &mut dyn WatchSink,
        mut trace: impl FnMut(&mut Ownership),
    ) {
        let ServicePackets {
            ring,
            table,
            run,
            dropped,
            ..
        } = self;
        let mut writer = EventWriter {
            sink: observer,
            run,
        };
        let Some(ring) = ring else { return };
        trace(&mut table.selection);
        // a service may be faster than we are: what else is to be done is done between
        let most = ring.blocks();
        for _ in 0..most {
            let has_more = ring.read(|packet| {
                let packet = Packet {
                    at: packet.at,
                    link: RAW,
                    bytes: packet.bytes,
                    is_cut: !packet.is_whole,
                };
                table.take(&packet, &mut writer);
            });
            if !has_more {
                break;
            }
            trace(&mut table.selection);
            table.decide(&mut writer);
        }
        table.decide(&mut writer);
        *dropped += ring.dropped().unwrap_or(0);
    }

    /// Lets time pass. Call it about once a second.
    pub(super) fn tick(&mut self, observer: &mut dyn WatchSink) {
        let mut writer = EventWriter {
            sink: observer,
            run: &mut self.run,
        };
        self.table.tick(wall(), &mut writer);
        self.confirm(LATE, observer);
    }

    /// Takes a row of a connection that the kernel has reported. Its packets show more, if there
    /// are any.
    pub(super) fn report(&mut self, row: Row) {
        match row {
            Row::Opened(connection) => self.reported.push_back(Reported {
                since: Instant::now(),
                connection: *connection,
                close: None,
            }),
            Row::Closed(closed) => {
                if let Some(last) = self.reported.back_mut()
                    && last.connection.id == closed.connection
                {
                    last.close = Some(closed.close);
                }
            }
            // they are about connections whose data cannot be seen
            _ => {}
        }
    }

    /// Records connections whose packets should have come and did not, from the kernel's reports.
    fn confirm(&mut self, patience: Duration, observer: &mut dyn WatchSink) {
        while let Some(first) = self.reported.front()
            && first.since.elapsed() >= patience
        {
            let Some(Reported {
                mut connection,
                close,
                ..
            }) = self.reported.pop_front()
            else {
                return;
            };
            let (Some(local), Some(peer)) = (connection.local, connection.peer) else {
                continue;
            };
            let ends: Ends = (unmapped(local), unmapped(peer));
            let was_read = self.table.has_read(ends.0, ends.1);
            self.ownership().end(ends);
            if was_read {
                continue;
            }
            // from before the run, and idle since: what has carried more is counted by looks
            let is_idle = connection.open_before;
            if is_idle {
                connection.certainty = Certainty::default();
            }
            let mut writer = EventWriter {
                sink: &mut *observer,
                run: &mut self.run,
            };
            connection.id = writer.next_connection();
            writer.record(Event::Opened(&connection));
            if connection.failed.is_none() {
                self.without_packets += u64::from(!is_idle);
                if let Some(close) = close {
                    writer.close(connection.id, close);
                }
            }
        }
    }

    /// Reads the rest, and receives nothing until [`Self::resume`].
    pub(super) fn pause(
        &mut self,
        config: &AttachConfig,
        observer: &mut dyn WatchSink,
        trace: impl FnMut(&mut Ownership),
    ) {
        self.read_rest(observer, trace);
        self.ring = None;
        let mut writer = EventWriter {
            sink: observer,
            run: &mut self.run,
        };
        self.table.pause(nothing_known(config), &mut writer);
    }

    /// Reads what is still on its way.
    fn read_rest(&mut self, observer: &mut dyn WatchSink, mut trace: impl FnMut(&mut Ownership)) {
        std::thread::sleep(LAST_BLOCK);
        self.read(observer, &mut trace);
        if let Some(secrets) = &mut self.run.secrets {
            secrets.settle(Instant::now() + LAST_KEYS);
        }
        self.confirm(Duration::ZERO, observer);
        let mut writer = EventWriter {
            sink: observer,
            run: &mut self.run,
        };
        self.table.advance(wall(), &mut writer);
    }

    /// Reads the rest, and records what limits it.
    pub(super) fn finish(
        mut self,
        observer: &mut dyn WatchSink,
        trace: impl FnMut(&mut Ownership),
    ) {
        self.read_rest(observer, trace);
        let undecided = self.table.undecided();
        let mut writer = EventWriter {
            sink: observer,
            run: &mut self.run,
        };
        self.table.finish(&mut writer);
        let words = format!(
            "Observed from its TCP packets (buffer: {} MiB), without a change to the process. Lookups and HTTP/3 are not seen",
            self.buffer >> 20
        );
        writer.caveat("observed-by-packets", words);
        if self.dropped > 0 {
            let remedy = match self.buffer < AttachConfig::MOST_BUFFER {
                true => {
                    let larger = (4 * self.buffer).min(AttachConfig::MOST_BUFFER) >> 20;
                    format!("Repeat it with a larger one: `--buffer {larger}`")
                }
                false => "It is as large as it can be: follow for a shorter time".to_owned(),
            };
            let words = format!(
                "packets that the ring could not hold and the kernel dropped: {}. {remedy}",
                self.dropped
            );
            writer.incomplete("packets-dropped", words);
        }
        if undecided > 0 {
            let words = format!(
                "connections that sent much before their process was known, and were not read: {undecided}"
            );
            writer.incomplete("owner-not-known", words);
        }
        if self.without_packets > 0 {
            let words = format!(
                "connections of which no packet was seen under the addresses of their socket (a NAT of this machine, an eBPF program that passes packets on): {}. The kernel counts them and their bytes, requests cannot be seen",
                self.without_packets
            );
            writer.incomplete_requests("packets-not-seen", words);
        }
    }
}

impl AsRawFd for ServicePackets {
    fn as_raw_fd(&self) -> RawFd {
        self.ring.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

/// Owners of connections before the first look.
fn nothing_known(config: &AttachConfig) -> Ownership {
    let may_grow = config.subjects.may_grow();
    Ownership::new(config.sides, config.keys.is_some(), may_grow)
}

/// Nanoseconds since 1970.
pub(super) fn wall() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos() as u64)
}

/// Keys that are logged or found while connections run.
struct LiveKeys(Keys);

impl SecretSource for LiveKeys {
    fn take(&mut self, client_random: &[u8; 32]) -> Vec<String> {
        self.0.take(client_random)
    }

    fn search(&mut self, process: u32, checks: Vec<SecretCheck>) {
        self.0.seeker.seek(process, checks);
    }

    fn is_searching(&self, client_random: &[u8; 32]) -> bool {
        self.0.seeker.seeks(client_random)
    }

    fn settle(&mut self, until: Instant) {
        self.0.settle(until);
    }
}
