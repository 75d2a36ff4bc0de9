//! Carries the data of all connections: one loop, one buffer, what passes is shown to the observers.
//!
//! Ends pass on as they come: a half-close as a half-close, a reset as a reset. A panic of an observer is caught and
//! ends the observation of that one connection, not the connection.

mod delay;
mod way;

use crate::observe::{Books, Keys, Observation};
use crate::order::{Carriage, Order};
use crate::sys::socket;
use crate::sys::timer::Timer;
use crate::{Clock, Config, Observer};
use ledger::{ConnectionId, Ending, Side};
use mio::event::Event;
use mio::net::TcpStream;
use mio::unix::SourceFd;
use mio::{Events, Interest, Poll, Token, Waker};
use std::collections::{BTreeSet, HashMap};
use std::io;
use std::os::fd::AsRawFd;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use way::{Came, Stop, Way};

const ORDERS: Token = Token(usize::MAX);
const ARRIVALS: Token = Token(usize::MAX - 2);
/// How often files are flushed and late keys looked for.
const TICK: Duration = Duration::from_secs(1);
/// How long what the program left behind is passed on after its end.
const DRAIN: Duration = Duration::from_secs(5);
/// The one read buffer, in bytes.
const SCRATCH: usize = 128 * 1024;

/// One connection.
struct Link {
    id: ConnectionId,
    near: TcpStream,
    far: TcpStream,
    out: Way,
    back: Way,
    /// `None` once observing it has failed.
    observation: Option<Observation>,
}

/// Carries the data of all connections.
pub(crate) struct Relay<'a> {
    poll: Poll,
    waker: Arc<Waker>,
    orders: Receiver<Order>,
    clock: Clock,
    books: Books<'a>,
    links: Vec<Option<Box<Link>>>,
    /// Places in `links` by connection.
    numbers: HashMap<ConnectionId, usize>,
    free: Vec<usize>,
    /// Freed in this turn: late events of it may still name them.
    freed: Vec<usize>,
    again: Vec<usize>,
    /// One way of the emulated distance.
    distance: Duration,
    arrivals: BTreeSet<(Instant, usize)>,
    timer: Timer,
    scratch: Vec<u8>,
    finishing: Option<Instant>,
}

impl<'a> Relay<'a> {
    pub(crate) fn new(
        orders: Receiver<Order>,
        clock: Clock,
        observer: &'a mut dyn Observer,
        config: &Config,
        keys: Option<Keys>,
    ) -> io::Result<Relay<'a>> {
        let poll = Poll::new()?;
        let waker = Arc::new(Waker::new(poll.registry(), ORDERS)?);
        let timer = Timer::new()?;
        poll.registry().register(
            &mut SourceFd(&timer.as_raw_fd()),
            ARRIVALS,
            Interest::READABLE,
        )?;
        Ok(Relay {
            poll,
            waker,
            orders,
            clock,
            books: Books::new(observer, config, keys),
            links: Vec::new(),
            numbers: HashMap::new(),
            free: Vec::new(),
            freed: Vec::new(),
            again: Vec::new(),
            distance: config.round_trip / 2,
            arrivals: BTreeSet::new(),
            timer,
            scratch: vec![0; SCRATCH],
            finishing: None,
        })
    }

    /// Wakes the relay when there are orders.
    pub(crate) fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    /// Carries until the program has ended and what it left behind is passed on.
    pub(crate) fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        let mut next_tick = Instant::now() + TICK;
        while !self.is_over() {
            let now = Instant::now();
            if now >= next_tick {
                next_tick = now + TICK;
                self.tick();
            }
            let until = self
                .finishing
                .map_or(next_tick, |finish| finish.min(next_tick));
            let wait = if self.again.is_empty() {
                until.saturating_duration_since(now)
            } else {
                Duration::ZERO
            };
            if let Err(error) = self.poll.poll(&mut events, Some(wait))
                && error.kind() != io::ErrorKind::Interrupted
            {
                break;
            }
            for number in std::mem::take(&mut self.again) {
                self.pump(number);
            }
            for event in &events {
                match event.token() {
                    ARRIVALS => self.timer.rung(),
                    ORDERS => self.take_orders(),
                    _ => self.take_event(event),
                }
            }
            self.take_arrivals();
            self.free.append(&mut self.freed);
        }
        for number in 0..self.links.len() {
            self.close(number);
        }
        self.books.finish();
    }

    fn is_over(&self) -> bool {
        self.finishing.is_some_and(|deadline| {
            let carried = self.links.iter().flatten().all(|link| link.out.has_ended());
            carried || Instant::now() >= deadline
        })
    }

    /// Passes on what has come over the emulated distance.
    fn take_arrivals(&mut self) {
        while let Some(&(due, number)) = self.arrivals.first()
            && due <= Instant::now()
        {
            self.arrivals.pop_first();
            self.pump(number);
        }
        self.timer.set(self.arrivals.first().map(|(due, _)| *due));
    }

    fn tick(&mut self) {
        let now = self.clock.now();
        for link in self.links.iter_mut().flatten() {
            observe(&mut link.observation, &mut self.books, |seen, books| {
                seen.tick(now, books);
            });
        }
        self.books.tick();
    }

    fn take_orders(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::Carry(carriage) => self.carry(*carriage),
                Order::Probe(connection, interval) => {
                    if let Some(number) = self.numbers.get(&connection)
                        && let Some(Some(link)) = self.links.get_mut(*number)
                        && let Some(seen) = &mut link.observation
                    {
                        seen.probe(interval);
                    }
                }
                Order::Record(row) => self.books.record(row.as_event()),
                Order::Finish => self.finishing = Some(Instant::now() + DRAIN),
            }
        }
    }

    fn carry(&mut self, carriage: Carriage) {
        let Carriage {
            mut near,
            mut far,
            about,
            probes,
        } = carriage;
        let number = self.free.pop().unwrap_or(self.links.len());
        let registry = self.poll.registry();
        let both = Interest::READABLE | Interest::WRITABLE;
        let registered = registry
            .register(&mut near, Token(number * 2), both)
            .and_then(|()| registry.register(&mut far, Token(number * 2 + 1), both));
        if registered.is_err() {
            // no descriptors or memory: the program sees a reset, which is what it would see of such a machine
            socket::reset_on_close(&near);
            self.freed.push(number);
            return;
        }
        self.numbers.insert(about.id, number);
        let link = Box::new(Link {
            id: about.id,
            near,
            far,
            out: Way::over(self.distance, false),
            back: Way::over(self.distance, true),
            observation: Some(Observation::new(about, probes)),
        });
        if number == self.links.len() {
            self.links.push(Some(link));
        } else {
            self.links[number] = Some(link);
        }
    }

    fn take_event(&mut self, event: &Event) {
        let Token(token) = event.token();
        let number = token / 2;
        let Some(Some(link)) = self.links.get_mut(number) else {
            return;
        };
        let source = if token % 2 == 0 {
            &mut link.out
        } else {
            &mut link.back
        };
        source.readable |= event.is_readable() || event.is_error();
        source.closing |= event.is_read_closed() || event.is_error();
        self.pump(number);
    }

    /// Passes on what there is, in both directions.
    fn pump(&mut self, number: usize) {
        let Some(Some(link)) = self.links.get_mut(number) else {
            return;
        };
        let Link {
            near,
            far,
            out,
            back,
            observation,
            id: _,
        } = &mut **link;
        let clock = self.clock;
        let books = &mut self.books;
        let mut see = |from: Side, came: Came<'_>| {
            let at = clock.now();
            observe(observation, books, |seen, books| match came {
                Came::Bytes(bytes) => seen.read(from, bytes, at, books),
                Came::Fin => seen.end(from, Ending::Fin, at, books),
            });
        };
        // the answer first: what the program sends now may be its reply to that
        let back_stop = back.pass(far, near, &mut self.scratch, |came| see(Side::Server, came));
        let out_stop = out.pass(near, far, &mut self.scratch, |came| see(Side::Client, came));
        let reset_by = match (back_stop, out_stop) {
            (Stop::SourceReset, _) | (_, Stop::SinkReset) => Some(Side::Server),
            (Stop::SinkReset, _) | (_, Stop::SourceReset) => Some(Side::Client),
            _ => None,
        };
        if let Some(side) = reset_by {
            let at = self.clock.now();
            observe(observation, &mut self.books, |seen, books| {
                seen.end(side, Ending::Rst, at, books);
            });
            socket::reset_on_close(match side {
                Side::Server => near,
                Side::Client => far,
            });
            self.close(number);
        } else if out.has_ended() && back.has_ended() {
            self.close(number);
        } else if back_stop == Stop::Turn || out_stop == Stop::Turn {
            self.again.push(number);
        } else if let Some(due) = out.next().into_iter().chain(back.next()).min() {
            self.arrivals.insert((due, number));
        }
    }

    /// Ends a connection and its observation.
    fn close(&mut self, number: usize) {
        let Some(mut link) = self.links.get_mut(number).and_then(Option::take) else {
            return;
        };
        self.numbers.remove(&link.id);
        let at = self.clock.now();
        observe(&mut link.observation, &mut self.books, |seen, books| {
            seen.finish(at, books);
        });
        self.freed.push(number);
    }
}

/// Shows something to an observation; one that breaks is given up.
fn observe(
    observation: &mut Option<Observation>,
    books: &mut Books<'_>,
    show: impl FnOnce(&mut Observation, &mut Books<'_>),
) {
    if let Some(seen) = observation
        && catch_unwind(AssertUnwindSafe(|| show(seen, books))).is_err()
    {
        *observation = None;
        books.count_fault();
    }
}
