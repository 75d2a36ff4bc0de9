//! Responds to the program's calls: one loop, no thread per connection, nothing that blocks.
//!
//! Every call gets a response: a call that cannot be followed continues untouched, and a panic is
//! caught for the one call that caused it. The relay carries the data.
//!
//! Each component owns its state. [`CallContext`] has the state that all of them share.
//!
//! A new system call needs three places: `platform::filter` asks the kernel for it,
//! [`Supervisor::take_call`] names its component, and that component responds.

mod address_table;
mod call_context;
mod connect_calls;
mod connect_request;
mod delayed_exits;
mod lookups;
mod made_sockets;
mod named_counts;
mod node_notes;
mod notifications;
mod opening_places;
mod own_rules;
mod passthrough;
mod receipts;
mod run_record;
mod udp_peers;
mod unix_sockets;
mod unseen_scan;
mod watched_program;

pub(crate) use node_notes::NodeNotes;
pub(crate) use run_record::{RunRecord, origin};
pub(crate) use watched_program::WatchedProgram;

use crate::platform::inspection::Inspection;
use crate::platform::secrets::ExitHolds;
use crate::platform::wait_readable;
use crate::{Config, Mode, Outcome, Unwatched};
use address_table::{AddressTable, report_address};
use call_context::CallContext;
use connect_calls::ConnectCalls;
use connect_request::{NarrowCall, take_narrow_call};
use delayed_exits::DelayedExits;
use intact_ledger::Row;
use intact_sys::process::{raise_descriptor_limit, taken_socket};
use intact_sys::seccomp::{Notification, NotificationResponse};
use intact_sys::timer::Timer;
use lookups::Lookups;
use mio::event::Event;
use mio::{Events, Poll, Token, Waker};
use notifications::Notifications;
use opening_places::OpeningPlaces;
use own_rules::OwnRules;
use passthrough::Passthrough;
use receipts::Receipts;
use std::io;
use std::os::fd::{OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use unseen_scan::UnseenScan;

const CALLS: Token = Token(0);
const SIGNALS: Token = Token(1);
const LOCAL_LISTENERS: [Token; 2] = [Token(2), Token(3)];
const DEADLINES: Token = Token(4);
const ENDS: Token = Token(5);
/// Another thread has something for us.
const WOKEN: Token = Token(6);
/// Tokens of calls begin here: two a call, the socket to the destination and our end of a pending
/// connect.
const FIRST_CALL: usize = 7;
/// Tokens of sockets that carry lookups begin here.
const LOOKUP: usize = 1 << 62;

/// Tokens of calls begin here that wait for descriptors of other processes: the token has the
/// thread.
const RECEIVED: usize = 1 << 61;

/// Descriptors that are kept free for calls under way and for files.
const RESERVED: u64 = 64;

/// Responds to the program's calls until it and everything that it started has ended.
pub(crate) struct Supervisor {
    poll: Poll,
    timer: Timer,
    /// No process is left that could call.
    orphaned: bool,
    program: WatchedProgram,
    cx: CallContext,
    connects: ConnectCalls,
    passthrough: Passthrough,
    lookups: Lookups,
    exits: DelayedExits,
    unseen: UnseenScan,
    receipts: Receipts,
}

impl Supervisor {
    pub(crate) fn new(
        listener: OwnedFd,
        program: WatchedProgram,
        record: RunRecord,
        holds: ExitHolds,
        inspection: Inspection,
        notes: Option<NodeNotes>,
        config: &Config,
    ) -> io::Result<Supervisor> {
        let mode = inspection.mode(config.mode);
        let poll = Poll::new()?;
        let registry = poll.registry().try_clone()?;
        let notifications = Notifications::new(listener, inspection, &poll, CALLS)?;
        program.register(&registry, SIGNALS)?;
        let mut passthrough = Passthrough::default();
        if mode == Mode::Passthrough {
            notifications.listener.hand_over_on_one_cpu();
            passthrough.subscribe(config.apart, &registry)?;
        }
        let timer = Timer::new()?;
        wait_readable(&registry, &timer, DEADLINES)?;
        let waker = Arc::new(Waker::new(&registry, WOKEN)?);
        holds.wake_by(waker.clone());
        let connects = ConnectCalls::new(config.round_trip);
        let limit = raise_descriptor_limit().saturating_sub(RESERVED);
        let cx = CallContext {
            registry,
            notifications,
            record,
            addresses: AddressTable::default(),
            own_rules: OwnRules::default(),
            places: (config.code.as_ref())
                .map(|code| OpeningPlaces::new(&code.root, &config.numbers, notes)),
            mode,
            excluded: config.apart,
            namespace: connects.namespace(),
            last_descriptor: RawFd::try_from(limit).unwrap_or(RawFd::MAX),
        };
        Ok(Supervisor {
            poll,
            timer,
            orphaned: false,
            program,
            cx,
            connects,
            passthrough,
            lookups: Lookups::default(),
            exits: DelayedExits::new(holds),
            unseen: UnseenScan::new(waker),
            receipts: Receipts::default(),
        })
    }

    /// Responds until no process is left that could call.
    pub(crate) fn run(mut self) -> Outcome {
        let mut events = Events::with_capacity(256);
        // now, so that the record of a run that is killed has them too
        for caveat in self.cx.notifications.inspection.caveats() {
            self.cx.record.row(Row::Caveat(caveat));
        }
        // the program may have ended before its signal was blocked
        self.program.reap(self.cx.record.now());
        let inherited = std::mem::take(&mut self.program.inherited);
        if inherited.has_ring {
            self.cx.record.has_ring();
        }
        self.unseen.look_at(
            inherited.sockets,
            &self.connects,
            &self.passthrough,
            &mut self.cx,
        );
        while !(self.program.is_abandoned() || self.orphaned && self.program.has_ended()) {
            let soonest = [
                self.connects.deadline(),
                self.passthrough.ends_due,
                self.exits.deadline(),
                self.unseen.due(),
                self.receipts.due,
                self.cx.notifications.due(),
                self.cx.record.udp_peers.due,
            ];
            self.timer.set(soonest.into_iter().flatten().min());
            if let Err(error) = self.poll.poll(&mut events, self.lookups.pace())
                && error.kind() != io::ErrorKind::Interrupted
            {
                self.cx.record.unwatched(Unwatched::Fault);
                break;
            }
            for event in &events {
                self.take_event(event);
            }
            let cx = &mut self.cx;
            self.connects.take_deadlines(&mut self.passthrough, cx);
            self.passthrough.take_late_ends(cx);
            self.exits.release(cx);
            self.unseen.begin(&mut self.passthrough, cx);
            for call in self.receipts.interrupted(cx) {
                let response = NotificationResponse::Continue;
                cx.notifications.respond(call, response);
            }
            self.lookups.settle(false, cx);
            cx.notifications.sweep();
            cx.record.udp_peers.look();
        }
        self.finish()
    }

    fn take_event(&mut self, event: &Event) {
        let Supervisor {
            cx,
            connects,
            passthrough,
            ..
        } = self;
        match event.token() {
            CALLS => {
                if event.is_readable() {
                    self.take_next_call();
                }
                // reported as long as it holds, which is until the end
                if event.is_read_closed() && !std::mem::replace(&mut self.orphaned, true) {
                    self.cx.notifications.listener.deregister(&self.poll);
                }
            }
            SIGNALS => self.program.take_signals(cx.record.now()),
            DEADLINES => self.timer.rung(),
            ENDS => passthrough.put_off_ends(&cx.registry),
            WOKEN => self.unseen.take(connects, passthrough, cx),
            token if LOCAL_LISTENERS.contains(&token) => {
                connects.take_arrivals(token.0 - LOCAL_LISTENERS[0].0, cx);
            }
            token if token.0 >= LOOKUP => self.lookups.take_answer(token, cx),
            token if token.0 >= RECEIVED => {
                if let Some((call, sent)) = self.receipts.take(token, cx) {
                    self.unseen.look_at(sent, connects, passthrough, cx);
                    cx.notifications
                        .respond(call, NotificationResponse::Continue);
                }
            }
            token => connects.take_event(token, passthrough, cx),
        }
    }

    fn take_next_call(&mut self) {
        let Ok(Some(notice)) = self.cx.notifications.listener.take() else {
            return;
        };
        let taken = catch_unwind(AssertUnwindSafe(|| self.take_call(&notice)));
        let response = taken.unwrap_or_else(|_| {
            self.cx.record.unwatched(Unwatched::Fault);
            Some(NotificationResponse::Continue)
        });
        if let Some(response) = response {
            self.cx.notifications.respond(notice.id, response);
        }
    }

    /// Hands a call to its component. `None`: the response comes later.
    fn take_call(&mut self, notice: &Notification) -> Option<NotificationResponse> {
        let Supervisor {
            cx,
            connects,
            passthrough,
            lookups,
            exits,
            unseen,
            receipts,
            ..
        } = self;
        match notice.call {
            // their numbers are the same in all tables
            libc::SYS_io_uring_enter | libc::SYS_io_uring_register => cx.record.has_ring(),
            libc::SYS_pidfd_getfd => {
                let taken = taken_socket(notice.thread, notice.arguments);
                unseen.look_at(taken.into_iter().collect(), connects, passthrough, cx);
            }
            _ if notice.is_32 => match take_narrow_call(notice, cx) {
                NarrowCall::Other(response) => return Some(response),
                NarrowCall::Receive(direct, flags) => {
                    let sent = receipts.receive(&direct, flags, cx)?;
                    unseen.look_at(sent, connects, passthrough, cx);
                }
            },
            libc::SYS_recvmsg | libc::SYS_recvmmsg => {
                let flags = if notice.call == libc::SYS_recvmsg {
                    2
                } else {
                    3
                };
                let sent = receipts.receive(notice, flags, cx)?;
                unseen.look_at(sent, connects, passthrough, cx);
            }
            libc::SYS_connect if cx.mode == Mode::Passthrough => {
                return passthrough.connect(notice, lookups, cx);
            }
            libc::SYS_connect => return connects.connect(notice, lookups, passthrough, cx),
            libc::SYS_socket => return made_sockets::make(notice, cx),
            libc::SYS_bind | libc::SYS_listen => return Some(made_sockets::release(notice, cx)),
            libc::SYS_exit_group => return exits.exit(notice, cx),
            libc::SYS_landlock_create_ruleset => {
                cx.own_rules.create(notice, &cx.notifications);
            }
            libc::SYS_landlock_restrict_self => cx.own_rules.restrict(),
            libc::SYS_getpeername => {
                return Some(report_address(notice, |real| real.peer, lookups, cx));
            }
            libc::SYS_getsockname => {
                return Some(report_address(notice, |real| real.local, lookups, cx));
            }
            libc::SYS_sendto => {
                let _ = lookups.see_sendto(notice, cx);
            }
            libc::SYS_sendmmsg => {
                let _ = lookups.see_sendmmsg(notice, cx);
            }
            libc::SYS_recvfrom => {
                let _ = lookups.see_recvfrom(notice, cx);
            }
            _ => {}
        }
        Some(NotificationResponse::Continue)
    }

    /// Ends all components, and returns the outcome of the run.
    fn finish(self) -> Outcome {
        let Supervisor {
            program,
            mut cx,
            connects,
            passthrough,
            mut lookups,
            mut unseen,
            ..
        } = self;
        let abandoned = program.is_abandoned();
        unseen.finish(abandoned, &connects, &passthrough, &mut cx);
        if !abandoned {
            cx.notifications.listener.stop_fallback();
        }
        lookups.settle(true, &mut cx);
        connects.finish(&cx);
        passthrough.finish(&cx);
        for caveat in cx.places.iter().flat_map(OpeningPlaces::caveats) {
            cx.record.row(Row::Caveat(caveat));
        }
        cx.record.finish(&cx.notifications.inspection.refused);
        program.outcome()
    }
}
