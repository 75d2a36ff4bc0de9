//! The server's bytes: frames in, exchanges out. A violation of RFC 9113 ends the connection
//! immediately.

use super::super::exchange_slots::{FREE, MOST_IDLE_FRAMES};
use super::super::stream_connection::HttpState;
use super::super::{Checked, ResponseInfo};
use super::{Http2, MOST_SETTINGS, REFILL};
use crate::{Arrival, ResponseError, is_tls_alert};
use intact_ledger::{Failure, GrpcCall, Protocol, Sink};
use intact_wire::h2::{
    Data, Error, ErrorCode, FRAME_HEADER_LEN, Frame, FrameReader, Headers, Limits, ResponseFields,
    SettingsPayload, hpack, widen, writer,
};

impl Http2 {
    /// See [`HttpState::receive`].
    pub(super) fn read(
        &mut self,
        mut bytes: &[u8],
        arrival: Arrival,
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) {
        if self.broken.is_some() {
            return;
        }
        // if it is shorter than a frame's header, an alert would look like a truncated stream
        let exchanges = &self.exchanges;
        let first =
            exchanges.life.begun == 1 && exchanges.slots.iter().all(|slot| !slot.watch.begun());
        if first && is_tls_alert(bytes) {
            self.break_off(&ResponseError::tls_alert(), arrival.read, sink);
            return;
        }
        // taken for the loop, because its frames borrow it
        let mut reader =
            std::mem::replace(&mut self.reader, FrameReader::mid_stream(Limits::default()));
        let broken = loop {
            match reader.read(bytes) {
                Ok(step) => {
                    bytes = &bytes[step.consumed..];
                    let Some(frame) = step.event else { break None };
                    if let Err(broken) = self.frame(frame, arrival, sink, out) {
                        break Some(broken);
                    }
                }
                Err(error) => break Some(ResponseError::from(error)),
            }
        };
        self.reader = reader;
        if let Some(broken) = broken {
            self.break_off(&broken, arrival.read, sink);
        }
    }

    /// Handles one frame. The error makes the connection useless.
    fn frame(
        &mut self,
        frame: Frame<'_>,
        arrival: Arrival,
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) -> Checked {
        self.exchanges.count_idle_frame()?;
        match frame {
            Frame::Data(data) => self.data(data, arrival, sink, out)?,
            Frame::Headers(headers) => self.headers(headers, arrival, sink)?,
            Frame::Reset { stream, code } => {
                self.check_stream(stream)?;
                let kind = if code == ErrorCode::REFUSED_STREAM {
                    Failure::Refusal
                } else {
                    Failure::StreamReset
                };
                if let Some(place) = self.exchanges.place(u64::from(stream)) {
                    self.exchanges.fail(place, kind, arrival.read, sink);
                }
            }
            Frame::Settings(payload) => self.apply_settings(payload, out)?,
            Frame::SettingsAck if !self.has_table => self.decoder.allow_table_size(0),
            Frame::Ping {
                ack: false,
                payload,
            } => {
                self.count_reply()?;
                writer::write_ping(out, true, payload);
            }
            Frame::GoAway { last_stream, .. } => {
                self.exchanges.life.goaway_stream = Some(last_stream);
                let first = u64::from(last_stream) + 1;
                self.exchanges.go_away(first, arrival, sink);
            }
            Frame::WindowUpdate { stream, increment } => {
                self.widen_window(stream, increment, out)?;
            }
            Frame::PushPromise(_) => {
                let words = "a push although we said that there is to be none";
                return Err(ResponseError::malformed(words));
            }
            Frame::Preface
            | Frame::Priority { .. }
            | Frame::SettingsAck
            | Frame::Ping { ack: true, .. }
            | Frame::Unknown { .. } => {}
        }
        Ok(())
    }

    /// Counts a reply that the server causes. If it does not read the replies, they must not
    /// accumulate.
    fn count_reply(&mut self) -> Checked {
        self.unread_replies += 1;
        if self.unread_replies > MOST_IDLE_FRAMES {
            return Err(ResponseError::no_progress(format!(
                "more than {MOST_IDLE_FRAMES} SETTINGS and PING frames, whose replies the server does not read"
            )));
        }
        Ok(())
    }

    /// Refuses a frame on a stream that we did not open. The stream is idle, or only a push could
    /// have opened it (RFC 9113 section 5.1).
    fn check_stream(&self, stream: u32) -> Checked {
        if stream.is_multiple_of(2) {
            return Err(ResponseError::malformed(
                "a frame on a stream that only a push could open",
            ));
        }
        if stream >= self.next_id {
            return Err(ResponseError::malformed(
                "a frame on an idle stream, without a request",
            ));
        }
        Ok(())
    }

    fn apply_settings(&mut self, payload: SettingsPayload<'_>, out: &mut Vec<u8>) -> Checked {
        let life = &mut self.exchanges.life;
        if life.response.is_some() {
            let room = MOST_SETTINGS.saturating_sub(life.settings.len());
            life.settings.extend(payload.take(room));
        }
        let change = self.server.apply_to(&mut self.encoder, payload)?;
        self.repeats = false;
        self.count_reply()?;
        writer::write_settings_ack(out);
        for place in 0..self.exchanges.slots.len() {
            if self.exchanges.ids[place] != FREE {
                self.widen(place, change, out)?;
            }
        }
        Ok(())
    }

    /// Handles a WINDOW_UPDATE, of the connection if `stream` is 0.
    fn widen_window(&mut self, stream: u32, increment: u32, out: &mut Vec<u8>) -> Checked {
        let increment = i64::from(increment);
        if stream == 0 {
            widen(&mut self.window, increment)?;
            self.send_bodies(out);
            return Ok(());
        }
        self.check_stream(stream)?;
        match self.exchanges.place(u64::from(stream)) {
            Some(place) => self.widen(place, increment, out),
            None => Ok(()),
        }
    }

    /// Changes the window of an exchange.
    fn widen(&mut self, place: usize, change: i64, out: &mut Vec<u8>) -> Checked {
        widen(&mut self.exchanges.slots[place].stream.window, change)?;
        self.send_body(place, out);
        Ok(())
    }

    fn data(
        &mut self,
        data: Data<'_>,
        arrival: Arrival,
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) -> Checked {
        self.check_stream(data.stream)?;
        self.taken += data.flow;
        if self.taken >= REFILL {
            writer::write_window_update(out, 0, self.taken);
            self.taken = 0;
        }
        let Some(place) = self.exchanges.place(u64::from(data.stream)) else {
            return Ok(());
        };
        if data.end_stream || !data.bytes.is_empty() {
            self.exchanges.idle_frames = 0;
        }
        let slot = &mut self.exchanges.slots[place];
        slot.watch.hear(&mut slot.exchange, arrival);
        slot.stream.taken += data.flow;
        let length = data.flow as usize + FRAME_HEADER_LEN * usize::from(data.complete);
        self.exchanges
            .take_body(place, data.bytes, length, arrival)?;
        let slot = &mut self.exchanges.slots[place];
        if data.end_stream {
            self.complete(place, arrival, sink)?;
        } else if slot.stream.taken >= REFILL {
            writer::write_window_update(out, data.stream, slot.stream.taken);
            slot.stream.taken = 0;
        }
        Ok(())
    }

    /// Decodes a header block. This is needed even if the fields are not used, because it changes
    /// the decoder.
    fn decode(
        &mut self,
        headers: Headers<'_>,
        place: Option<usize>,
    ) -> Result<ResponseFields, Error> {
        let take = |fields: &mut ResponseFields, field: hpack::Field<'_>| {
            fields.take(field.name, field.value);
        };
        let exchanges = &mut self.exchanges;
        let Some(response) = &mut exchanges.life.response else {
            let (memo, empty) = (&mut self.memo, ResponseFields::default());
            return Ok(memo.read(&mut self.decoder, headers.block, empty, take)?);
        };
        let has_status = |place: usize| exchanges.slots[place].exchange.status.is_some();
        let is_trailers = place.is_none_or(has_status);
        if !is_trailers {
            **response = ResponseInfo::begun(Protocol::Http2, !exchanges.life.over);
        }
        let mut fields = ResponseFields::default();
        self.decoder.decode(headers.block, |field| {
            take(&mut fields, field);
            if !is_trailers && !field.name.starts_with(b":") {
                response.note(field.name, field.value);
            }
        })?;
        Ok(fields)
    }

    fn headers(&mut self, headers: Headers<'_>, arrival: Arrival, sink: &mut impl Sink) -> Checked {
        self.check_stream(headers.stream)?;
        let place = self.exchanges.place(u64::from(headers.stream));
        let fields = self.decode(headers, place)?;
        let Some(place) = place else {
            return Ok(());
        };
        self.exchanges.idle_frames = 0;
        let slot = &mut self.exchanges.slots[place];
        slot.watch.hear(&mut slot.exchange, arrival);
        let exchange = &mut slot.exchange;
        exchange.bytes.head +=
            (headers.block.len() + FRAME_HEADER_LEN * headers.frames as usize) as u64;
        if let (true, Some(status)) = (slot.request.is_grpc, fields.grpc_status()) {
            exchange.grpc = Some(GrpcCall {
                status: Some(status),
            });
        }
        if exchange.status.is_some() {
            fields.trailer_section()?;
            if !headers.end_stream {
                return Err(ResponseError::malformed(
                    "trailers that do not end the stream",
                ));
            }
            return self.complete(place, arrival, sink);
        }
        let is_interim = self.exchanges.take_head(place, &fields, arrival)?;
        match (is_interim, headers.end_stream) {
            (true, true) => Err(ResponseError::malformed(
                "an interim response ends the stream",
            )),
            (false, true) => self.complete(place, arrival, sink),
            (_, false) => Ok(()),
        }
    }

    /// Records the end of a response.
    fn complete(&mut self, place: usize, arrival: Arrival, sink: &mut impl Sink) -> Checked {
        let slot = &mut self.exchanges.slots[place];
        let (read, announced) = slot.body_lengths();
        if announced.is_some_and(|announced| announced != read) {
            return Err(ResponseError::malformed(
                "a body of another length than content-length announces",
            ));
        }
        if slot.request.is_grpc {
            slot.exchange.grpc.get_or_insert_default();
        }
        self.exchanges.complete(place, arrival, sink);
        Ok(())
    }
}
