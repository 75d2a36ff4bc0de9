//! The end of exchanges, complete or not, and of a connection that violated RFC 9113.

use super::Http2;
use crate::{Arrival, ResponseError, Stopwatch, judge};
use intact_ledger::{ClosePoint, Event, Failure, Nanos, Sink};
use intact_wire::http1::Kind;

impl Http2 {
    /// Records the end of a response.
    pub(super) fn complete(
        &mut self,
        place: usize,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Result<(), ResponseError> {
        let stream = &mut self.streams[place];
        let exchange = &mut stream.exchange;
        let read = *exchange.body.read.get_or_insert(0);
        let is_bodiless =
            stream.request.kind == Kind::Head || matches!(exchange.status, Some(204 | 304));
        let announced = exchange.body.announced.filter(|_| !is_bodiless);
        if announced.is_some_and(|announced| announced != read) {
            return Err(ResponseError::malformed(
                "a body of another length than content-length announces",
            ));
        }
        exchange.bytes.decoded = Some(read);
        stream.watch.complete(exchange, arrival);
        judge(exchange, stream.request.expected(exchange.status), false);
        if stream.request.is_grpc {
            exchange.grpc.get_or_insert_default();
            exchange.judge_grpc();
        }
        self.answered = true;
        self.free(place);
        sink.record(Event::Exchange(&self.streams[place].exchange));
        Ok(())
    }

    pub(super) fn fail(&mut self, stream: u32, kind: Failure, at: Nanos, sink: &mut impl Sink) {
        let Some(place) = self.place(stream) else {
            return;
        };
        self.free(place);
        let exchange = &mut self.streams[place].exchange;
        Stopwatch::fail(exchange, kind, at);
        self.refused += u64::from(exchange.outcome.is_refusal());
        sink.record(Event::Exchange(exchange));
    }

    fn free(&mut self, place: usize) {
        self.ids[place] = 0;
        self.streams[place].unsent = false;
        self.in_flight -= 1;
        if self.in_flight == 0 {
            self.moment = ClosePoint::AfterExchange;
        }
    }

    /// See [`super::super::stream_connection::HttpState::break_off`].
    pub(in super::super) fn break_off(
        &mut self,
        broken: &ResponseError,
        at: Nanos,
        sink: &mut impl Sink,
    ) {
        self.over = true;
        self.broken = Some(broken.code);
        for id in self.ids.clone() {
            if let Some(place) = self.place(id) {
                self.streams[place].exchange.detail = Some(broken.words.clone());
                self.fail(id, broken.kind, at, sink);
            }
        }
        self.moment = ClosePoint::MidExchange;
    }
}
