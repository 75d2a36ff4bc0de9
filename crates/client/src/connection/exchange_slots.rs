//! The exchanges in flight on a connection with streams: HTTP/2 and HTTP/3.
//!
//! The first exchange is alone in flight. The others follow its response, so only one waits for the
//! setup. Must not know frames or windows: `S` is what a version knows of each stream.

use super::connection_life::ConnectionLife;
use super::exchange_record::{self, NewExchange};
use super::transport_end::TransportEnd;
use super::{Checked, State};
use crate::{Arrival, BodyCheck, Request, ResponseError, Stopwatch, judge};
use intact_ledger::{ClosePoint, Event, Exchange, Failure, Nanos, Side, Sink};
use intact_wire::h2::ResponseFields;
use intact_wire::h3::ErrorCode;
use intact_wire::http1::Kind;
use std::sync::Arc;

/// Interim (1xx) responses that may precede a final one, as in HTTP/1.
const MOST_INTERIM: u32 = 100;
/// Limit of consecutive frames without a part of a response or room for a request: more are a flood
/// (RFC 9113 section 10.5, RFC 9114 section 10.5).
pub(super) const MOST_IDLE_FRAMES: u32 = 10_000;

/// The stream of a slot without an exchange.
pub(super) const FREE: u64 = u64::MAX;

/// A slot for one exchange in flight.
pub(super) struct ExchangeSlot<S> {
    pub(super) request: Arc<Request>,
    pub(super) exchange: Exchange,
    pub(super) watch: Stopwatch,
    /// Bytes that the connection had accepted before its request.
    sent_before: u64,
    /// The send is not recorded yet.
    pub(super) unsent: bool,
    /// Number of interim (1xx) responses so far.
    interim: u32,
    /// The body so far, where it is checked.
    body: Vec<u8>,
    /// What the version knows of its stream.
    pub(super) stream: S,
}

/// All slots of a connection, and its life.
#[derive(Default)]
pub(super) struct ExchangeSlots<S> {
    /// Stream ids of `slots`; a separate list, so that a search reads little memory.
    pub(super) ids: Vec<u64>,
    pub(super) slots: Vec<ExchangeSlot<S>>,
    blank: Exchange,
    in_flight: usize,
    /// Limit of exchanges in flight.
    pub(super) most: usize,
    pub(super) answered: bool,
    /// Number of consecutive frames without a part of a response.
    pub(super) idle_frames: u32,
    pub(super) life: ConnectionLife,
}

impl<S: Default> ExchangeSlots<S> {
    /// The slots of a new connection with at most `most` exchanges in flight. `blank` holds the
    /// fields that they share.
    pub(super) fn new(blank: Exchange, most: usize, life: ConnectionLife) -> ExchangeSlots<S> {
        ExchangeSlots {
            blank,
            most,
            life,
            ..ExchangeSlots::default()
        }
    }

    /// Begins an exchange on a stream. Returns its place.
    #[inline]
    pub(super) fn begin(&mut self, stream: u64, new: &NewExchange<'_>) -> usize {
        let place = self.free_place(new.request);
        self.ids[place] = stream;
        self.in_flight += 1;
        self.idle_frames = 0;
        self.life.begun += 1;
        self.life.moment = ClosePoint::MidExchange;
        let slot = &mut self.slots[place];
        if !Arc::ptr_eq(&slot.request, new.request) {
            slot.request = new.request.clone();
            new.request.describe(&mut slot.exchange);
        }
        slot.watch = exchange_record::begin(&mut slot.exchange, new, self.life.begun);
        slot.sent_before = new.sent_before;
        slot.unsent = false;
        slot.interim = 0;
        slot.body.clear();
        place
    }

    /// A slot without an exchange in flight.
    fn free_place(&mut self, request: &Arc<Request>) -> usize {
        debug_assert_eq!(
            self.ids.iter().filter(|id| **id != FREE).count(),
            self.in_flight,
            "a place that no exchange in flight has is free"
        );
        if let Some(place) = self.place(FREE) {
            return place;
        }
        let mut exchange = self.blank.clone();
        request.describe(&mut exchange);
        self.ids.push(FREE);
        self.slots.push(ExchangeSlot {
            request: request.clone(),
            exchange,
            watch: Stopwatch::default(),
            sent_before: 0,
            unsent: false,
            interim: 0,
            body: Vec::new(),
            stream: S::default(),
        });
        self.ids.len() - 1
    }

    /// The place of a stream.
    #[inline]
    pub(super) fn place(&self, stream: u64) -> Option<usize> {
        self.ids.iter().position(|&id| id == stream)
    }

    /// The next possible action of a connection that has `room` for exchanges. `over`: no exchange
    /// may begin.
    #[inline]
    pub(super) fn state(&self, over: bool, room: usize) -> State {
        match self.in_flight {
            0 if over => State::Over,
            0 => State::Ready,
            busy if over || !self.answered || busy >= room => State::Busy,
            _ => State::Ready,
        }
    }

    /// Whether the server responded, and no exchange is in flight.
    #[inline]
    pub(super) fn is_idle(&self) -> bool {
        self.answered && self.in_flight == 0
    }

    /// Records that the requests that were begun are with the kernel.
    #[inline]
    pub(super) fn sent(&mut self, at: Nanos) {
        for slot in self.slots.iter_mut().filter(|slot| slot.unsent) {
            slot.unsent = false;
            Stopwatch::sent(&mut slot.exchange, at);
        }
    }

    /// Adds retransmissions to the exchanges in flight, which share the connection.
    pub(super) fn note_retransmissions(&mut self, more: u32) {
        let slots = self.ids.iter().zip(&mut self.slots);
        for (_, slot) in slots.filter(|(id, _)| **id != FREE) {
            *slot.exchange.retransmissions.get_or_insert(0) += more;
        }
    }

    /// Records how long the request took to be acknowledged, if it is the only one in flight.
    pub(super) fn note_acknowledgement(&mut self, nanos: u64) {
        let mut slots = self.ids.iter().zip(&mut self.slots);
        let in_flight = slots.find(|(id, _)| **id != FREE && self.in_flight == 1);
        if let Some((_, slot)) = in_flight {
            slot.exchange.acknowledged_after = Some(nanos);
        }
    }

    /// When the oldest exchange in flight was due.
    pub(super) fn oldest(&self) -> Option<Nanos> {
        if self.in_flight == 0 {
            return None;
        }
        let slots = self.ids.iter().zip(&self.slots);
        let in_flight = slots.filter(|(id, _)| **id != FREE);
        in_flight.map(|(_, slot)| slot.exchange.at).min()
    }

    /// Counts a frame that is no part of a response.
    #[inline]
    pub(super) fn count_idle_frame(&mut self) -> Checked {
        self.idle_frames += 1;
        if self.idle_frames > MOST_IDLE_FRAMES {
            return Err(ResponseError::no_progress(format!(
                "more than {MOST_IDLE_FRAMES} frames in a row carried no part of a response"
            )));
        }
        Ok(())
    }

    /// Takes the fields before the body. Returns whether they are those of an interim response.
    pub(super) fn take_head(
        &mut self,
        place: usize,
        fields: &ResponseFields,
        arrival: Arrival,
    ) -> Checked<bool> {
        let slot = &mut self.slots[place];
        let (status, length) = fields.header_section()?;
        if (100..200).contains(&status) {
            slot.interim += 1;
            if slot.interim > MOST_INTERIM {
                let words = format!("more than {MOST_INTERIM} interim responses");
                return Err(ResponseError::too_large(words));
            }
            return Ok(true);
        }
        slot.exchange.status = Some(status);
        slot.exchange.body.announced = length;
        if let Some(response) = &mut self.life.response {
            response.status = Some(status);
        }
        slot.watch.head(arrival);
        Ok(false)
    }

    /// Takes a part of a body, which has the `length` with its framing.
    #[inline]
    pub(super) fn take_body(
        &mut self,
        place: usize,
        bytes: &[u8],
        length: usize,
        arrival: Arrival,
    ) -> Checked {
        let slot = &mut self.slots[place];
        let exchange = &mut slot.exchange;
        if exchange.status.is_none() {
            let words = "DATA before the header section";
            let code = ErrorCode::H3_FRAME_UNEXPECTED;
            return Err(ResponseError::with_code(words, code));
        }
        if !bytes.is_empty() {
            slot.watch.body(arrival);
        }
        if let Some(content) = &mut self.life.content {
            content.take(bytes)?;
        }
        if slot.request.check.is_some() {
            BodyCheck::keep(&mut slot.body, bytes)?;
        }
        *exchange.body.read.get_or_insert(0) += bytes.len() as u64;
        exchange.bytes.body += length as u64;
        Ok(())
    }

    /// Records the end of a response.
    pub(super) fn complete(&mut self, place: usize, arrival: Arrival, sink: &mut impl Sink) {
        let slot = &mut self.slots[place];
        let exchange = &mut slot.exchange;
        exchange.bytes.decoded = exchange.body.read;
        slot.watch.complete(exchange, arrival);
        judge(exchange, slot.request.expected(exchange.status), false);
        exchange.judge_grpc();
        if let Some(check) = &slot.request.check {
            check.judge(exchange, &slot.body);
        }
        self.answered = true;
        self.free(place);
        sink.record(Event::Exchange(&self.slots[place].exchange));
    }

    /// Records GOAWAY: the server processes no request from stream `first` on.
    pub(super) fn go_away(&mut self, first: u64, arrival: Arrival, sink: &mut impl Sink) {
        self.life.over = true;
        self.life.goaway_at.get_or_insert(arrival.at);
        self.life.announced_by.get_or_insert(Side::Server);
        for place in 0..self.ids.len() {
            if self.ids[place] != FREE && self.ids[place] >= first {
                self.fail(place, Failure::Refusal, arrival.read, sink);
            }
        }
    }

    /// Records the end of the connection: the exchanges in flight end. `end` shows which requests
    /// the server received.
    pub(super) fn end(&mut self, end: &TransportEnd, sink: &mut impl Sink) {
        self.life.over = true;
        if self.in_flight == 0 {
            return;
        }
        let mut moment = ClosePoint::MidExchange;
        for place in 0..self.ids.len() {
            if self.ids[place] == FREE {
                continue;
            }
            let slot = &mut self.slots[place];
            let begun = slot.watch.begun();
            let before = slot.sent_before;
            let kind = end.kind(&mut slot.exchange, begun, self.answered, before);
            let kind = kind.unwrap_or(Failure::Truncated);
            if kind == Failure::Stale {
                moment = ClosePoint::Stale;
            }
            self.fail(place, kind, end.at, sink);
        }
        self.life.moment = moment;
    }

    /// Ends the use of a connection whose server violated the protocol.
    pub(super) fn break_off(&mut self, broken: &ResponseError, at: Nanos, sink: &mut impl Sink) {
        self.life.over = true;
        for place in 0..self.ids.len() {
            if self.ids[place] != FREE {
                self.slots[place].exchange.detail = Some(broken.words.clone());
                self.fail(place, broken.kind, at, sink);
            }
        }
        self.life.moment = ClosePoint::MidExchange;
    }

    /// Ends an exchange with a failure.
    pub(super) fn fail(&mut self, place: usize, kind: Failure, at: Nanos, sink: &mut impl Sink) {
        self.free(place);
        let exchange = &mut self.slots[place].exchange;
        Stopwatch::fail(exchange, kind, at);
        self.life.refused += u64::from(exchange.outcome.is_refusal());
        sink.record(Event::Exchange(exchange));
    }

    /// Frees the slot of an exchange that is over.
    fn free(&mut self, place: usize) {
        self.ids[place] = FREE;
        self.slots[place].unsent = false;
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.life.moment = ClosePoint::AfterExchange;
        }
    }
}

impl<S> ExchangeSlot<S> {
    /// Length of the body that was read, and the length that `content-length` announces for a
    /// response that has a body.
    pub(super) fn body_lengths(&mut self) -> (u64, Option<u64>) {
        let exchange = &mut self.exchange;
        let read = *exchange.body.read.get_or_insert(0);
        let is_bodiless =
            self.request.kind == Kind::Head || matches!(exchange.status, Some(204 | 304));
        (read, exchange.body.announced.filter(|_| !is_bodiless))
    }
}
