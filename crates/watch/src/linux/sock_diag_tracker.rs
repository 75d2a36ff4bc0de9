//! Connections that are left to the kernel and followed from outside: that they were opened, how
//! much they carried, when they were gone. What they carried cannot be seen from there.

use crate::Clock;
use crate::platform::supervisor::origin;
use intact_ledger::{
    Caveat, Certainty, Close, CloseKind, Closed, Connection, ConnectionBytes, DialFailure, Failure,
    Nanos, Probes, Row, SetupPhase, Side,
};
use intact_sys::address::unmapped;
use intact_sys::sock_diag::{self, Destroyed, SocketReport};
use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::time::{Duration, Instant};

/// Why such a connection is inferred.
const WHY: &str = "followed from outside: what it carried cannot be seen";
/// Ends that are remembered between two looks.
const MAX_ENDED: usize = 1 << 16;
/// How long we wait for the kernel's last words, once the program is gone.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// Connections that are followed from outside.
pub(crate) struct SockDiagTracker {
    destroyed: Destroyed,
    open: HashMap<u64, Followed>,
    /// The cookies of sockets by process and descriptor.
    places: HashMap<ProcessSocket, u64>,
    /// Cookies of those that have ended since somebody began to look around.
    ended: HashSet<u64>,
    count: u64,
    /// A destination that is not recorded.
    excluded: Option<SocketAddr>,
    /// Connections whose socket was connected again before the kernel reported their end.
    replaced: u64,
}

/// A process, and a descriptor of its.
type ProcessSocket = (u32, i32);

/// A connection whose end the kernel has not reported.
struct Followed {
    about: Connection,
    place: Option<ProcessSocket>,
    /// When its process had closed it at the latest, where that is known: the kernel reports
    /// later, on a busy machine much later.
    closed: Option<Nanos>,
}

impl SockDiagTracker {
    /// `excluded`: a destination that is not recorded.
    pub(crate) fn new(excluded: Option<SocketAddr>) -> io::Result<SockDiagTracker> {
        Ok(SockDiagTracker {
            destroyed: Destroyed::subscribe()?,
            open: HashMap::new(),
            places: HashMap::new(),
            ended: HashSet::new(),
            count: 0,
            excluded,
            replaced: 0,
        })
    }

    /// Follows the socket with this cookie, which is about to connect, by this descriptor of its
    /// process where that is known.
    pub(crate) fn follow(&mut self, cookie: u64, mut about: Connection, descriptor: Option<i32>) {
        about.certainty = Certainty::Inferred(WHY.into());
        let place = about.owner.as_ref().map(|owner| owner.pid).zip(descriptor);
        // who has another socket in that place has closed the one before
        if let Some(before) = place.and_then(|place| self.places.insert(place, cookie))
            && before != cookie
            && let Some(before) = self.open.get_mut(&before)
        {
            before.closed = Some(about.at.max(before.about.at));
        }
        let followed = Followed {
            about,
            place,
            closed: None,
        };
        self.open.insert(cookie, followed);
    }

    /// Records a connection that had ended by then, and was never followed.
    pub(crate) fn record_ended(
        &mut self,
        mut about: Connection,
        report: SocketReport,
        at: Nanos,
        record_row: &mut dyn FnMut(Row),
    ) {
        about.certainty = Certainty::Inferred(WHY.into());
        self.count += u64::from(record(about, report, self.excluded, true, at, record_row));
    }

    /// A followed socket was disconnected and connects again. The kernel will report its end once,
    /// with the figures of the last connection.
    pub(crate) fn replace(&mut self, cookie: u64) {
        self.replaced += u64::from(self.open.remove(&cookie).is_some());
    }

    /// Takes what the kernel has reported of sockets, all of which had ended by then. Those that
    /// are not followed go to `stranger`.
    pub(crate) fn take_ends(
        &mut self,
        at: Nanos,
        record_row: &mut dyn FnMut(Row),
        stranger: &mut dyn FnMut(&SocketReport),
    ) {
        let SockDiagTracker {
            destroyed,
            open,
            places,
            ended,
            count,
            excluded,
            ..
        } = self;
        destroyed.read(|report| match open.remove(&report.cookie) {
            Some(one) => {
                if ended.len() < MAX_ENDED {
                    ended.insert(report.cookie);
                }
                if let Some(place) = one.place
                    && places.get(&place) == Some(&report.cookie)
                {
                    places.remove(&place);
                }
                let at = one.closed.map_or(at, |closed| closed.min(at));
                *count += u64::from(record(one.about, report, *excluded, true, at, record_row));
            }
            None => stranger(&report),
        });
    }

    /// Somebody looks around: those that end from now on are known still.
    pub(crate) fn remember_ends(&mut self) {
        self.ended.clear();
    }

    /// Whether the socket with this cookie is followed, or was when somebody began to look around.
    pub(crate) fn knows(&self, cookie: u64) -> bool {
        self.follows(cookie) || self.ended.contains(&cookie)
    }

    /// Whether the socket with this cookie is followed.
    pub(crate) fn follows(&self, cookie: u64) -> bool {
        self.open.contains_key(&cookie)
    }

    /// How often the kernel dropped reports of sockets that ended.
    pub(crate) fn overruns(&self) -> u64 {
        self.destroyed.overruns
    }

    /// The program is gone: waits for what the kernel still reports, then asks for the rest.
    pub(crate) fn finish_after_end(mut self, clock: Clock, record_row: &mut dyn FnMut(Row)) {
        self.await_ends(clock, record_row);
        self.finish(clock, record_row);
    }

    /// Asks for what is still open, and reports what was missed.
    pub(crate) fn finish(mut self, clock: Clock, record_row: &mut dyn FnMut(Row)) {
        let at = clock.now();
        let SockDiagTracker {
            open,
            count,
            excluded,
            ..
        } = &mut self;
        if !open.is_empty() {
            // what a failed list leaves out counts as missed
            let _ = sock_diag::list(|report| {
                if let Some(one) = open.remove(&report.cookie) {
                    *count +=
                        u64::from(record(one.about, report, *excluded, false, at, record_row));
                }
            });
        }
        // those that are not there have ended just now
        self.await_ends(clock, record_row);
        let missed = self.open.len() as u64 + self.replaced;
        if missed > 0 {
            let words = format!(
                "connections whose end the kernel did not report, and which are not counted: {missed}"
            );
            record_row(Row::Caveat(Caveat::incomplete("outside-missed", words)));
        }
        if self.count > 0 {
            let words = format!(
                "connections followed from outside: {}; the kernel counts them and their bytes, requests cannot be seen",
                self.count
            );
            record_row(Row::Caveat(Caveat::new("outside", words)));
        }
    }

    /// Waits for the ends of what is followed.
    fn await_ends(&mut self, clock: Clock, record_row: &mut dyn FnMut(Row)) {
        let deadline = Instant::now() + LAST_WORDS;
        while !self.open.is_empty() && Instant::now() < deadline {
            self.take_ends(clock.now(), record_row, &mut |_| {});
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl AsRawFd for SockDiagTracker {
    fn as_raw_fd(&self) -> RawFd {
        self.destroyed.as_raw_fd()
    }
}

/// Records a connection; returns whether it was one. Its peer may be unknown until now.
fn record(
    mut about: Connection,
    report: SocketReport,
    excluded: Option<SocketAddr>,
    is_gone: bool,
    at: Nanos,
    record_row: &mut dyn FnMut(Row),
) -> bool {
    // a connect takes a port before anything is sent
    let was_refused_here = report.local.port() == 0;
    if about.peer.is_none() {
        let peer = unmapped(report.peer);
        if was_refused_here || excluded == Some(peer) {
            return false;
        }
        // a reset clears the port of the peer
        if peer.port() != 0 {
            about.peer = Some(peer);
            about.origin = Some(origin(peer));
        }
    }
    if was_refused_here || !report.was_established {
        let (kind, detail) = if was_refused_here {
            (Failure::Unreachable, "the kernel refused the connect")
        } else {
            match report.was_answered {
                Some(true) => (
                    Failure::Refused,
                    "something answered, and there was no connection",
                ),
                Some(false) => (Failure::ConnectTimeout, "nothing answered"),
                // nearly always; the time would depend on the load of the machine
                None => (
                    Failure::Refused,
                    "the connect failed: a destination refused it, or did not answer",
                ),
            }
        };
        about.failed = Some(DialFailure {
            phase: SetupPhase::Connect,
            kind,
            detail: Some(detail.into()),
        });
    }
    let closed = Closed {
        connection: about.id,
        variant: about.variant,
        round: about.round,
        close: Close {
            at,
            by: report.was_reset.then_some(Side::Client),
            how: report.was_reset.then_some(CloseKind::Rst),
            other_end: None,
            announced_by: None,
            moment: None,
            exchanges: None,
            bytes: ConnectionBytes {
                sent: report.sent,
                received: report.received,
                ..ConnectionBytes::default()
            },
            probes: Probes::default(),
        },
    };
    let was_established = about.failed.is_none();
    record_row(Row::Opened(Box::new(about)));
    if was_established && is_gone {
        record_row(Row::Closed(closed));
    }
    true
}
