//! Joins the requests, jobs, sessions and sockets of a NetLog: which request used which socket.
//! State is bounded.

use super::constants::{Constants, Kind, Origin as From};
use super::event::{EventPhase, RawEvent, UsedEvent};
use super::request::Request;
use super::socket::Socket;
use crate::event_writer::EventWriter;
use crate::fields;
use intact_ledger::{Event, Protocol};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// Limit of open requests, jobs and sockets, per kind. Above it, the oldest are dropped.
const MAX_OPEN: usize = 32_768;

/// Caveat for requests or sockets that were dropped.
const LET_GO: &str = "requests or sockets were dropped to limit memory";
/// Caveat for connections that were open when the log began.
const STRAYS: &str = "requests came on sockets that were open before the log began: these connections are not counted";
/// Caveat for requests that were open when the log ended.
const UNDER_WAY: &str = "requests were under way when the log ended: they are not counted";

/// The open items, by the number of their source.
#[derive(Default)]
pub(super) struct Assembler {
    constants: Constants,
    requests: BTreeMap<u64, Request>,
    /// The socket or session that a job found, with the protocol of a session.
    jobs: BTreeMap<u64, (u64, Option<Protocol>)>,
    /// The socket of each HTTP/2 session.
    sessions: BTreeMap<u64, u64>,
    /// Jobs that open a connection: their start and their destination.
    connects: BTreeMap<u64, (u64, Option<intact_ledger::Origin>)>,
    sockets: BTreeMap<u64, Socket>,
    recorded: u64,
    /// Requests on sockets that are not in the log.
    strays: u64,
    let_go: u64,
}

impl Assembler {
    pub(super) fn new(constants: Constants) -> Assembler {
        Assembler {
            constants,
            ..Assembler::default()
        }
    }

    pub(super) fn take(&mut self, event: &RawEvent<'_>, writer: &mut EventWriter<'_>) {
        let (Some(kind), Some(origin), Some(at)) = (
            self.constants.kind(event),
            self.constants.origin(event),
            self.constants.nanos(event),
        ) else {
            return;
        };
        let event = UsedEvent {
            kind,
            phase: event.edge(),
            id: event.source.id,
            at,
            params: event.params(),
        };
        match origin {
            From::Request => self.request(&event, writer),
            From::Job => self.job(&event),
            From::Connect => self.connect(&event),
            From::Http2 => self.session(&event, writer),
            From::Quic => self.quic(&event, writer),
            From::Socket => self.socket(&event, writer),
        }
    }

    fn request(&mut self, event: &UsedEvent, writer: &mut EventWriter<'_>) {
        let UsedEvent { id, at, params, .. } = event;
        let (id, at) = (*id, *at);
        if (event.kind, event.phase) == (Kind::RequestAlive, EventPhase::Begin) {
            let mut request = Request::default();
            request.aim(params);
            self.requests.insert(id, request);
            self.let_go += make_room(&mut self.requests);
            return;
        }
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        match (event.kind, event.phase) {
            // a redirect continues under the same number
            (Kind::StartJob, EventPhase::Begin) => {
                if let Some(request) = self.restart(id, at, writer) {
                    request.aim(params);
                }
            }
            (Kind::StartJob, EventPhase::End) => request.fail(params, &self.constants),
            (Kind::Cancelled, _) => request.cancel(),
            (Kind::StreamRequest, EventPhase::Begin) => {
                if let Some(request) = self.restart(id, at, writer) {
                    request.wanted = Some(at);
                }
            }
            (Kind::BoundToJob, _) => {
                request.job = params.dependency;
                self.give(id, at);
            }
            (Kind::SendRequest, EventPhase::Begin) => {
                request.send_begins(at);
                self.give(id, at);
            }
            (Kind::SendRequest, EventPhase::End) => request.send_ends(at),
            (Kind::RequestHeaders, _) => request.head_out(params, at),
            (Kind::ResponseHeaders, _) => request.head_in(params, at),
            (Kind::ReadBody, EventPhase::Begin) => request.is_reading = true,
            (Kind::ReadBody, EventPhase::End) => request.body_in(params, at),
            (Kind::RequestAlive, EventPhase::End) => {
                request.fail(params, &self.constants);
                self.end_request(id, at, writer);
            }
            _ => {}
        }
    }

    /// Assigns to a request the socket that its job found. A socket that is not in the log was open
    /// before it.
    fn give(&mut self, id: u64, at: u64) {
        let Some(request) = self.requests.get_mut(&id) else {
            return;
        };
        if request.carrier.is_some() {
            return;
        }
        let found = request.job.and_then(|job| self.jobs.get(&job)).copied();
        let Some((found, protocol)) = found else {
            return;
        };
        let carrier = self.sessions.get(&found).copied().unwrap_or(found);
        // a dropped socket looks like one from before the log
        if self.let_go == 0
            && self.sockets.len() < MAX_OPEN
            && let Entry::Vacant(unseen) = self.sockets.entry(carrier)
        {
            unseen.insert(Socket::from_before(request.wanted.unwrap_or(at), protocol));
        }
        if let Some(socket) = self.sockets.get_mut(&carrier) {
            socket.given += 1;
            socket.in_flight += 1;
            if socket.origin.is_none() {
                socket.origin.clone_from(&request.origin);
            }
            request.carrier = Some((carrier, socket.given));
        }
    }

    /// Records what was sent under this number before as an exchange of its own. Returns the
    /// request that continues.
    fn restart(&mut self, id: u64, at: u64, writer: &mut EventWriter<'_>) -> Option<&mut Request> {
        let request = self.requests.get(&id)?;
        if request.has_begun() {
            let next = request.again();
            self.end_request(id, at, writer);
            self.requests.insert(id, next);
        }
        self.requests.get_mut(&id)
    }

    fn end_request(&mut self, id: u64, at: u64, writer: &mut EventWriter<'_>) {
        let Some(request) = self.requests.remove(&id) else {
            return;
        };
        let number = request.carrier.map(|(number, _)| number);
        let socket = number.and_then(|number| self.sockets.get_mut(&number));
        // from a cache, or cancelled before it was sent
        let went_out = request.has_begun() && request.wanted.is_some();
        let mut over_at = at;
        if went_out {
            self.recorded += 1;
            let carrier = match socket {
                Some(socket) => {
                    socket.terms.timeout_s = request.terms.timeout_s.or(socket.terms.timeout_s);
                    socket.terms.max = request.terms.max.or(socket.terms.max);
                    socket.announced_by = socket.announced_by.or(request.close_sent_by);
                    let is_new = socket.agent.is_none() && request.agent.is_some();
                    if is_new {
                        socket.agent.clone_from(&request.agent);
                        socket.server.clone_from(&request.server);
                        socket.revise(writer);
                    }
                    Some((socket.record(writer), &*socket))
                }
                None => None,
            };
            let mut exchange = request.exchange(carrier, at, writer);
            if exchange.connection.is_none() {
                request.record_dial(&mut exchange, writer);
                self.strays += u64::from(exchange.status.is_some());
            }
            over_at = exchange.end.0.saturating_add(writer.run.base);
            writer.record(Event::Exchange(&exchange));
        }
        if let Some(number) = number {
            if let Some(socket) = self.sockets.get_mut(&number) {
                socket.carried(over_at);
            }
            self.bury(number, writer);
        }
    }

    fn job(&mut self, event: &UsedEvent) {
        let protocol = match event.kind {
            Kind::BoundToSocket => None,
            Kind::Http2Session => Some(Protocol::Http2),
            Kind::BoundToQuicSession => Some(Protocol::Http3),
            _ => return,
        };
        if let Some(found) = event.params.dependency {
            // the number of a session leads to its socket, in either order of events
            self.jobs.insert(event.id, (found, protocol));
            make_room(&mut self.jobs);
        }
    }

    fn connect(&mut self, event: &UsedEvent) {
        let params = &event.params;
        let job = self.connects.entry(event.id).or_insert((event.at, None));
        if matches!(event.kind, Kind::ConnectJobCreated | Kind::ConnectJob)
            && let Some(group) = params.group_id.text().or(params.group_name.text())
        {
            // `pm/https://a.example:8443 <https://a.example same_site>`
            let first = group.split(' ').next().unwrap_or_default();
            let url = first.find("http").map_or("", |start| &first[start..]);
            job.1 = fields::split(url)
                .map(|(origin, _)| origin)
                .or(job.1.take());
        }
        make_room(&mut self.connects);
    }

    fn session(&mut self, event: &UsedEvent, writer: &mut EventWriter<'_>) {
        if event.kind == Kind::Http2Initialized
            && let Some(socket) = event.params.dependency
        {
            self.sessions.insert(event.id, socket);
            make_room(&mut self.sessions);
        }
        let socket = self.sessions.get(&event.id);
        let Some(socket) = socket.and_then(|number| self.sockets.get_mut(number)) else {
            return;
        };
        match event.kind {
            Kind::Http2Initialized if socket.protocol != Some(Protocol::Http2) => {
                socket.protocol = Some(Protocol::Http2);
                socket.revise(writer);
            }
            Kind::Http2Goaway => socket.going_away(&event.params, event.at),
            Kind::Http2Setting => {
                let name = event.params.id.text().unwrap_or_default();
                if name.contains("MAX_CONCURRENT_STREAMS") {
                    let value = event.params.value.count();
                    socket.terms.max_streams = value.and_then(|value| u32::try_from(value).ok());
                    socket.revise(writer);
                }
            }
            _ => {}
        }
    }

    fn quic(&mut self, event: &UsedEvent, writer: &mut EventWriter<'_>) {
        if event.kind != Kind::QuicSession {
            return;
        }
        match event.phase {
            EventPhase::Begin => {
                let mut socket = Socket::begin(event.at);
                socket.is_quic = true;
                socket.protocol = Some(Protocol::Http3);
                let host = event.params.host.text().unwrap_or_default();
                socket.origin = fields::split(&format!("https://{host}")).map(|(origin, _)| origin);
                self.insert(event.id, socket, writer);
            }
            EventPhase::End => self.gone(event.id, event.at, writer),
            EventPhase::Point => {}
        }
    }

    fn socket(&mut self, event: &UsedEvent, writer: &mut EventWriter<'_>) {
        let UsedEvent { id, at, params, .. } = event;
        let (id, at) = (*id, *at);
        let step = (event.kind, event.phase);
        if step == (Kind::SocketAlive, EventPhase::Begin) {
            let mut socket = Socket::begin(at);
            let job = params.dependency.and_then(|job| self.connects.get(&job));
            if let Some((began, origin)) = job {
                socket.job_at = Some(*began);
                socket.origin.clone_from(origin);
            }
            self.insert(id, socket, writer);
            return;
        }
        let Some(socket) = self.sockets.get_mut(&id) else {
            return;
        };
        match step {
            (Kind::TcpConnect, EventPhase::Begin) => socket.dial(at),
            (Kind::TcpConnect, EventPhase::End) => socket.dialled(params, at, &self.constants),
            (Kind::SslConnect, EventPhase::Begin) => socket.secure(at),
            (Kind::SslConnect, EventPhase::End) => socket.secured(params, at, &self.constants),
            (Kind::BytesSent, _) => socket.sent(params),
            (Kind::BytesReceived, _) => socket.received(params),
            (Kind::ReadError, _) => socket.broke(params, &self.constants),
            (Kind::ClosingSocket, _) => {
                socket.closing(&params.reason.text().unwrap_or_default());
            }
            (Kind::SocketAlive, EventPhase::End) => self.gone(id, at, writer),
            _ => {}
        }
        if let Some(socket) = self.sockets.get_mut(&id)
            && let (Kind::TcpConnect | Kind::SslConnect, EventPhase::End) = step
            && socket.is_set_up()
        {
            socket.record(writer);
        }
    }

    fn insert(&mut self, id: u64, socket: Socket, writer: &mut EventWriter<'_>) {
        if self.sockets.len() >= MAX_OPEN
            && let Some((_, oldest)) = self.sockets.pop_first()
        {
            self.let_go += 1;
            oldest.record_end(writer);
        }
        if let Some(old) = self.sockets.insert(id, socket) {
            old.record_end(writer);
        }
    }

    fn gone(&mut self, id: u64, at: u64, writer: &mut EventWriter<'_>) {
        if let Some(socket) = self.sockets.get_mut(&id) {
            socket.gone(at);
        }
        self.bury(id, writer);
    }

    /// Records the end of a socket after all its requests ended: their last events may follow the
    /// socket's.
    fn bury(&mut self, id: u64, writer: &mut EventWriter<'_>) {
        let is_over = self
            .sockets
            .get(&id)
            .is_some_and(|socket| socket.is_gone() && socket.in_flight == 0);
        if is_over && let Some(socket) = self.sockets.remove(&id) {
            socket.record_end(writer);
        }
    }

    /// Ends the file. Returns a description of the evidence.
    pub(super) fn finish(mut self, prefix: &str, writer: &mut EventWriter<'_>) -> String {
        let under_way = self.requests.values().filter(|one| one.has_begun());
        let under_way = under_way.count() as u64;
        let missing = [
            (self.let_go, "too-many-connections", LET_GO),
            (self.strays, "netlog-strays", STRAYS),
        ];
        writer.incompletes(prefix, &missing);
        writer.caveats(prefix, &[(under_way, "end-not-captured", UNDER_WAY)]);
        for socket in self.sockets.values_mut() {
            if socket.is_gone() {
                socket.record_end(writer);
            }
        }
        let rest = match under_way {
            0 => String::new(),
            count => format!("; {count} were under way at its end"),
        };
        format!(
            "sockets followed by their numbers; requests over the network: {}{rest}",
            self.recorded
        )
    }
}

/// Drops the oldest items. Returns their number.
fn make_room<T>(open: &mut BTreeMap<u64, T>) -> u64 {
    let over = open.len().saturating_sub(MAX_OPEN);
    for _ in 0..over {
        open.pop_first();
    }
    over as u64
}
