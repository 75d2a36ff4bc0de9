//! What each connection did, in the order of its own times: when it was busy, and how it ended.
//!
//! Rows arrive in the order in which a producer records them, which is not that of their times.
//! Nothing is judged here: [`super::pool_replay`] reads the whole. Bounded memory.

use super::open_connection::{HAND_BACK, OpenConnection, PoolOwner, streams};
use super::open_reason::OpenReason;
use foldhash::HashMap;
use intact_ledger::{
    Caveat, Connection, ConnectionId, Evidence, Nanos, Run, Span, StackId, Vantage,
};
use intact_units::number::count;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Connections that are kept; the oldest that have ended go first.
const LIVES: usize = 8_192;
/// Times of use that are kept of all connections together.
const USES: usize = 1 << 18;
/// Times of use of a connection from which on short rests are left out.
const EXACT: usize = 32;

/// A span without a longer rest in which a connection carried exchanges.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    pub(super) span: Span,
    /// Whether another exchange could follow.
    pub(super) is_reusable: bool,
}

/// The end of a connection.
#[derive(Clone, Copy, Debug)]
pub(super) struct End {
    pub(super) at: Nanos,
    pub(super) why: OpenReason,
}

/// One connection from its opening to its end.
#[derive(Clone, Debug)]
pub(super) struct Life {
    pub(super) id: ConnectionId,
    pub(super) destination: usize,
    pub(super) owner: PoolOwner,
    /// The address that it leads to, where peers are servers.
    pub(super) server: Option<SocketAddr>,
    /// Where in the code it was opened.
    pub(super) stack: Option<StackId>,
    pub(super) at: Nanos,
    /// The end of its setup.
    pub(super) ready: Nanos,
    /// Whether it was open before the recording, or the ends of connections are not recorded.
    pub(super) is_unseen: bool,
    /// Streams that it takes at the same time, where it multiplexes.
    pub(super) streams: Option<u32>,
    /// Exchanges that were recorded.
    pub(super) carried: u64,
    /// When its first request was sent, if that was observed.
    pub(super) first_sent: Option<Nanos>,
    pub(super) uses: Vec<Use>,
    /// Its end was announced: nothing more was sent on it.
    pub(super) announced: Option<End>,
    pub(super) end: Option<End>,
    /// Whether the client closed it without having sent a request.
    pub(super) is_spare: bool,
    /// Whether the client never read its last response to the end.
    pub(super) has_rest: bool,
}

impl Life {
    fn new(live: &OpenConnection, run: &Run) -> Life {
        let connection = &live.connection;
        let mut life = Life {
            id: connection.id,
            destination: live.destination,
            owner: live.owner,
            server: connection.peer.filter(|_| run.vantage != Vantage::Server),
            stack: connection.stack,
            at: connection.at,
            ready: connection.at,
            is_unseen: !run.sees(Evidence::Ends) || connection.open_before,
            streams: None,
            carried: 0,
            first_sent: None,
            uses: Vec::new(),
            announced: None,
            end: None,
            is_spare: false,
            has_rest: false,
        };
        life.revise(connection);
        life
    }

    fn revise(&mut self, connection: &Connection) {
        self.ready = connection.setup.ready().unwrap_or(connection.at);
        self.streams = streams(connection);
    }

    /// The moment from which on it takes no further request.
    pub(super) fn until(&self) -> Nanos {
        let ends = [self.announced, self.end].into_iter().flatten();
        ends.map(|end| end.at).min().unwrap_or(Nanos(u64::MAX))
    }

    /// What ended it for its client: the announcement, or else the close.
    pub(super) fn ended(&self) -> Option<End> {
        self.announced.or(self.end)
    }

    /// Its end, if its client closed it.
    pub(super) fn closed_by_client(&self) -> Option<End> {
        use OpenReason::{ClientAtOnce, ClientIdle, ClientRenewed};
        let is_of_client = |end: &End| matches!(end.why, ClientAtOnce | ClientIdle | ClientRenewed);
        self.ended().filter(is_of_client)
    }

    /// When its client closed it right after a response.
    pub(super) fn closed_after_use(&self) -> Option<Nanos> {
        let end = self.closed_by_client()?;
        (end.why != OpenReason::ClientIdle).then_some(end.at)
    }

    /// The end of its last exchange.
    pub(super) fn last_end(&self) -> Option<Nanos> {
        self.uses.iter().map(|one| one.span.end).max()
    }

    /// Adds a use; returns whether it needs room of its own.
    fn carry(&mut self, one: Use, has_room: bool) -> bool {
        let short = if self.uses.len() < EXACT {
            0
        } else {
            HAND_BACK
        };
        // uses are in the order of their times: those before one that ended long ago are no nearer
        let recent = self.uses.iter_mut().rev();
        let mut recent =
            recent.take_while(|known| !has_room || one.span.start <= known.span.end.after(short));
        let near = recent.find(|known| {
            let is_near = |a: Span, b: Span| a.start <= b.end.after(short);
            !has_room || is_near(one.span, known.span) && is_near(known.span, one.span)
        });
        if let Some(known) = near {
            known.is_reusable = match known.span.end <= one.span.end {
                true => one.is_reusable,
                false => known.is_reusable,
            };
            let (start, end) = (known.span.start, known.span.end);
            known.span = Span::new(start.min(one.span.start), end.max(one.span.end));
            return false;
        }
        if self.uses.is_empty() {
            // most connections of a program that reuses none have one
            self.uses.reserve_exact(1);
        }
        let is_before = |known: &Use| known.span.start <= one.span.start;
        let place = match self.uses.last().is_none_or(is_before) {
            true => self.uses.len(),
            false => self.uses.partition_point(is_before),
        };
        self.uses.insert(place, one);
        true
    }
}

/// The connections of a run.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    lives: HashMap<ConnectionId, Box<Life>>,
    /// In the order of their openings.
    order: VecDeque<ConnectionId>,
    /// Those that have ended, in the order of their ends.
    ended: VecDeque<ConnectionId>,
    uses: usize,
    forgotten: u64,
}

impl History {
    /// A connection of this run, which may have ended.
    pub(super) fn life(&self, id: ConnectionId) -> Option<&Life> {
        self.lives.get(&id).map(Box::as_ref)
    }

    /// Reads what an exchange on a connection needs.
    pub(super) fn touch(&self, id: ConnectionId) -> Option<(u64, Nanos)> {
        let life = self.lives.get(&id)?;
        Some((life.carried, life.uses.last()?.span.end))
    }

    /// The connections that are kept.
    pub(super) fn lives(&self) -> impl Iterator<Item = &Life> {
        self.lives.values().map(Box::as_ref)
    }

    pub(super) fn open(&mut self, live: &OpenConnection, run: &Run) {
        self.make_room();
        let life = Box::new(Life::new(live, run));
        let id = life.id;
        if self.lives.insert(id, life).is_none() {
            self.order.push_back(id);
        }
    }

    /// More is known of a connection.
    pub(super) fn revise(&mut self, live: &OpenConnection) {
        if let Some(life) = self.lives.get_mut(&live.connection.id) {
            life.revise(&live.connection);
            (life.destination, life.owner) = (live.destination, live.owner);
        }
    }

    /// A connection carried an exchange, or had before the recording. `sent` is when the request
    /// left the client, if that was observed.
    pub(super) fn carry(&mut self, id: ConnectionId, one: Use, sent: Option<Nanos>) {
        let has_room = self.uses < USES;
        if let Some(life) = self.lives.get_mut(&id) {
            life.carried += 1;
            life.first_sent = match (life.first_sent, sent) {
                (Some(first), Some(sent)) => Some(first.min(sent)),
                (first, sent) => first.or(sent),
            };
            self.uses += usize::from(life.carry(one, has_room || life.uses.is_empty()));
        }
    }

    pub(super) fn announce(&mut self, id: ConnectionId, end: End) {
        if let Some(life) = self.lives.get_mut(&id) {
            life.announced.get_or_insert(end);
        }
    }

    /// The client closed a connection with an unread rest: from its last response on it was of no
    /// use.
    pub(super) fn leave_rest(&mut self, id: ConnectionId) {
        if let Some(life) = self.lives.get_mut(&id) {
            life.has_rest = true;
            if let Some(last) = life.uses.last_mut() {
                last.is_reusable = false;
            }
        }
    }

    pub(super) fn end(&mut self, live: &OpenConnection, end: End, is_spare: bool) {
        self.revise(live);
        if let Some(life) = self.lives.get_mut(&live.connection.id) {
            life.end = Some(end);
            life.is_spare = is_spare;
            self.ended.push_back(life.id);
        }
    }

    /// The connection is of no use: its dial failed after all.
    pub(super) fn forget(&mut self, id: ConnectionId) {
        if let Some(life) = self.lives.remove(&id) {
            self.uses -= life.uses.len();
        }
    }

    fn make_room(&mut self) {
        while self.lives.len() >= LIVES {
            let oldest = self.ended.pop_front().or_else(|| self.order.pop_front());
            let Some(oldest) = oldest else { break };
            self.forgotten += u64::from(self.lives.contains_key(&oldest));
            self.forget(oldest);
        }
        if self.order.len() > 2 * LIVES {
            self.order.retain(|id| self.lives.contains_key(id));
        }
    }

    /// What the limits left out.
    pub(super) fn caveat(&self) -> Option<Caveat> {
        (self.forgotten > 0).then(|| {
            let message = format!(
                "causes are those of the last {} connections; {} earlier ones are only counted",
                count(LIVES as u64),
                count(self.forgotten)
            );
            Caveat::new("causes-of-part", message)
        })
    }
}
