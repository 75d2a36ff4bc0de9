//! The kernel's trace of TCP connects (perf_event_open(2), the tracepoint
//! `sock:inet_sock_set_state`): the process of each, and the addresses of its socket.
//!
//! It includes forks and names of processes, so a process that has ended is still known. Needs
//! root, or CAP_PERFMON and a readable tracefs. Covers all network namespaces of the machine.

use crate::process::online_processors;
use perf_event::data::Record;
use perf_event::events::Tracepoint;
use perf_event::{Builder, Clock, SampleFlag, Sampler};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Where tracefs is usually mounted.
const TRACEFS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const EVENT: &str = "events/sock/inet_sock_set_state";
/// The states of a TCP socket that matter here (linux/tcp_states.h).
const SYN_SENT: i32 = 2;
const TCP_CLOSE: i32 = 7;
/// Bytes of the ring of each processor.
const RING: usize = 1 << 20;
/// `PERF_EVENT_IOC_SET_FILTER` (linux/perf_event.h).
const SET_FILTER: libc::c_ulong = 0x4008_2406;

/// A traced event and its time (CLOCK_MONOTONIC, in nanoseconds).
#[derive(Clone, Debug)]
pub struct Traced {
    /// The time.
    pub at: u64,
    /// The event.
    pub what: TracedEvent,
}

/// An event of the trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TracedEvent {
    /// A process begins to connect a socket.
    Connecting {
        /// The kernel's address of the socket.
        socket: u64,
        /// The process.
        process: u32,
    },
    /// That connect succeeded or failed.
    Decided {
        /// The kernel's address of the socket.
        socket: u64,
        /// The socket's own address.
        local: SocketAddr,
        /// The destination.
        peer: SocketAddr,
    },
    /// A process was forked.
    Forked {
        /// The new process.
        process: u32,
        /// Its parent.
        parent: u32,
    },
    /// A process has a new name.
    Named {
        /// The process.
        process: u32,
        /// Its name.
        name: Arc<str>,
    },
    /// The kernel dropped this number of records, because a ring was full.
    Lost(u64),
}

/// A running trace.
pub struct TcpTrace {
    rings: Vec<Sampler>,
    fields: Fields,
    waiting: Vec<Traced>,
}

impl TcpTrace {
    /// Begins to trace.
    ///
    /// # Errors
    /// tracefs cannot be read; those of perf_event_open(2).
    pub fn start() -> io::Result<TcpTrace> {
        let tracefs = tracefs()?;
        let id = read_file(&tracefs, "id")?;
        let id = id.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
        let fields = Fields::read(&read_file(&tracefs, "format")?)
            .ok_or_else(|| io::Error::from(io::ErrorKind::Unsupported))?;
        let mut rings = Vec::new();
        for processor in online_processors() {
            let mut builder = Builder::new(Tracepoint::with_id(id));
            builder
                .any_pid()
                .one_cpu(processor)
                .exclude_kernel(false)
                .sample_period(1)
                .sample(SampleFlag::TID | SampleFlag::TIME | SampleFlag::RAW)
                .clockid(Clock::MONOTONIC)
                .comm(true)
                .task(true)
                .sample_id_all(true);
            let ring = builder.build()?.sampled(RING)?;
            // the others are dropped here, where the kernel does not drop them
            // SAFETY: the filter ends in a zero; the kernel reads it.
            let _ = unsafe {
                let filter = c"oldstate==2||newstate==2";
                libc::ioctl(ring.as_raw_fd(), SET_FILTER as _, filter.as_ptr())
            };
            rings.push(ring);
        }
        let mut trace = TcpTrace {
            rings,
            fields,
            waiting: Vec::new(),
        };
        for ring in &mut trace.rings {
            ring.enable()?;
        }
        Ok(trace)
    }

    /// What was traced until now, in the order of time.
    pub fn read(&mut self) -> Vec<Traced> {
        self.drain();
        let horizon = self.waiting.iter().map(|traced| traced.at).max();
        // what another processor traced before these is there by now
        self.drain();
        self.waiting.sort_by_key(|traced| traced.at);
        let ripe = self
            .waiting
            .partition_point(|traced| Some(traced.at) <= horizon);
        self.waiting.drain(..ripe).collect()
    }

    fn drain(&mut self) {
        let TcpTrace {
            rings,
            fields,
            waiting,
        } = self;
        for ring in rings {
            while let Some(record) = ring.next_record() {
                // the time is the last of what `sample_id_all` adds
                let bytes = record.to_contiguous();
                let last = bytes
                    .last_chunk()
                    .map_or(0, |last| u64::from_ne_bytes(*last));
                let traced = record.parse_record().ok();
                let traced = traced.and_then(|record| read_record(record, last, fields));
                waiting.extend(traced);
            }
        }
    }
}

fn read_record(record: Record<'_>, last: u64, fields: &Fields) -> Option<Traced> {
    let (at, what) = match record {
        Record::Sample(sample) => {
            let what = fields.event(sample.raw()?, sample.pid()?)?;
            (sample.time()?, what)
        }
        // the others are threads
        Record::Fork(fork) if fork.pid != fork.ppid => {
            let (process, parent) = (fork.pid, fork.ppid);
            (last, TracedEvent::Forked { process, parent })
        }
        Record::Comm(named) if named.pid == named.tid => {
            let name = String::from_utf8_lossy(&named.comm);
            let name = name.trim_end_matches('\0').into();
            let process = named.pid;
            (last, TracedEvent::Named { process, name })
        }
        Record::Lost(lost) => (last, TracedEvent::Lost(lost.lost)),
        Record::LostSamples(lost) => (last, TracedEvent::Lost(lost.lost)),
        _ => return None,
    };
    Some(Traced { at, what })
}

/// The folder of the tracepoint: in a mounted tracefs, else in one that only we see.
fn tracefs() -> io::Result<OwnedFd> {
    let open = |folder: BorrowedFd<'_>, path: &str| {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        openat(folder, path, flags, Mode::empty())
    };
    for mounted in TRACEFS {
        if let Ok(folder) = open(CWD, &format!("{mounted}/{EVENT}")) {
            return Ok(folder);
        }
    }
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(context.as_fd())?;
    let root = fsmount(
        context.as_fd(),
        FsMountFlags::FSMOUNT_CLOEXEC,
        MountAttrFlags::empty(),
    )?;
    Ok(open(root.as_fd(), EVENT)?)
}

fn read_file(folder: &OwnedFd, name: &str) -> io::Result<String> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, name, flags, Mode::empty())?);
    let mut text = String::new();
    file.read_to_string(&mut text)?;
    Ok(text)
}

/// Where the fields of the tracepoint are, in bytes from the beginning of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fields {
    socket: usize,
    old_state: usize,
    new_state: usize,
    ports: [usize; 2],
    family: usize,
    protocol: usize,
    v4: [usize; 2],
    v6: [usize; 2],
}

impl Fields {
    /// Reads a `format` file; `None` where a field is missing.
    fn read(format: &str) -> Option<Fields> {
        let place = |name: &str| -> Option<usize> {
            let mut lines = format.lines();
            let line = lines.find(|line| {
                let declared = line.split(';').next().unwrap_or_default();
                let declared = declared.split('[').next().unwrap_or_default();
                declared.ends_with(&format!(" {name}"))
            })?;
            let offset = line.split_once("offset:")?.1;
            offset.split(';').next()?.parse().ok()
        };
        Some(Fields {
            socket: place("skaddr")?,
            old_state: place("oldstate")?,
            new_state: place("newstate")?,
            ports: [place("sport")?, place("dport")?],
            family: place("family")?,
            protocol: place("protocol")?,
            v4: [place("saddr")?, place("daddr")?],
            v6: [place("saddr_v6")?, place("daddr_v6")?],
        })
    }

    /// A record that the process caused; `None` where it is no connect of TCP.
    fn event(&self, raw: &[u8], process: u32) -> Option<TracedEvent> {
        let state = |at| Some(i32::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        let short = |at| Some(u16::from_ne_bytes(*raw.get(at..)?.first_chunk()?));
        if i32::from(short(self.protocol)?) != libc::IPPROTO_TCP {
            return None;
        }
        let socket = u64::from_ne_bytes(*raw.get(self.socket..)?.first_chunk()?);
        match (state(self.old_state)?, state(self.new_state)?) {
            (TCP_CLOSE, SYN_SENT) => Some(TracedEvent::Connecting { socket, process }),
            (SYN_SENT, _) => {
                let is_v4 = i32::from(short(self.family)?) == libc::AF_INET;
                let address = |end: usize| {
                    let host = if is_v4 {
                        let bytes: &[u8; 4] = raw.get(self.v4[end]..)?.first_chunk()?;
                        Ipv4Addr::from(*bytes).into()
                    } else {
                        let bytes: &[u8; 16] = raw.get(self.v6[end]..)?.first_chunk()?;
                        Ipv6Addr::from(*bytes).into()
                    };
                    Some(SocketAddr::new(host, short(self.ports[end])?))
                };
                let (local, peer) = (address(0)?, address(1)?);
                Some(TracedEvent::Decided {
                    socket,
                    local,
                    peer,
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::timer::monotonic;
    use proptest::prelude::*;
    use std::net::{TcpListener, TcpStream};
    use std::process::Command;

    const FORMAT: &str = "name: inet_sock_set_state
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:const void * skaddr;	offset:8;	size:8;	signed:0;
	field:int oldstate;	offset:16;	size:4;	signed:1;
	field:int newstate;	offset:20;	size:4;	signed:1;
	field:__u16 sport;	offset:24;	size:2;	signed:0;
	field:__u16 dport;	offset:26;	size:2;	signed:0;
	field:__u16 family;	offset:28;	size:2;	signed:0;
	field:__u16 protocol;	offset:30;	size:2;	signed:0;
	field:__u8 saddr[4];	offset:32;	size:4;	signed:0;
	field:__u8 daddr[4];	offset:36;	size:4;	signed:0;
	field:__u8 saddr_v6[16];	offset:40;	size:16;	signed:0;
	field:__u8 daddr_v6[16];	offset:56;	size:16;	signed:0;
";
    const FIELDS: Fields = Fields {
        socket: 8,
        old_state: 16,
        new_state: 20,
        ports: [24, 26],
        family: 28,
        protocol: 30,
        v4: [32, 36],
        v6: [40, 56],
    };

    #[test]
    fn fields_are_found_by_name() {
        assert_eq!(Fields::read(FORMAT), Some(FIELDS));
        assert_eq!(Fields::read(&FORMAT.replace("skaddr", "other")), None);
    }

    #[test]
    fn connects_of_this_process_and_forks_are_traced_where_that_is_permitted() {
        let Ok(mut trace) = TcpTrace::start() else {
            return;
        };
        let before = monotonic();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        Command::new("true").status().unwrap();
        let traced = trace.read();
        let this = std::process::id();
        let mut sockets = traced.iter().filter_map(|traced| match traced.what {
            TracedEvent::Connecting { socket, process } if process == this => Some(socket),
            _ => None,
        });
        let ours = sockets.next().unwrap();
        let decided = TracedEvent::Decided {
            socket: ours,
            local: stream.local_addr().unwrap(),
            peer: stream.peer_addr().unwrap(),
        };
        let decided = traced.iter().find(|traced| traced.what == decided).unwrap();
        assert!(decided.at >= before && decided.at <= monotonic());
        let is_fork = |traced: &Traced| matches!(traced.what, TracedEvent::Forked { parent, .. } if parent == this);
        assert!(traced.iter().any(is_fork), "{traced:?}");
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(raw in prop::collection::vec(any::<u8>(), 0..90), format in "\\PC*") {
            FIELDS.event(&raw, 1);
            Fields::read(&format);
        }
    }
}
