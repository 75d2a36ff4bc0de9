//! The server's bytes: frames in, exchanges out. A violation of RFC 9113 ends the connection
//! immediately.

use super::{Http2, LARGEST_WINDOW, MOST_IDLE_FRAMES, MOST_INTERIM, MOST_SETTINGS, REFILL};
use crate::{Arrival, ResponseError, is_tls_alert};
use intact_ledger::{Failure, GrpcCall, Protocol, Side, Sink};
use intact_wire::h2::hpack;
use intact_wire::h2::{
    Data, Error, ErrorCode, FRAME_HEADER_LEN, Frame, FrameReader, Headers, Limits, ResponseFields,
    SettingsPayload, writer,
};

use super::super::ResponseInfo;

impl Http2 {
    /// See [`super::super::stream_connection::HttpState::receive`].
    pub(in super::super) fn receive(
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
        let first = self.begun == 1 && self.streams.iter().all(|one| !one.watch.begun());
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
    ) -> Result<(), ResponseError> {
        self.count_idle_frame()?;
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
                self.fail(stream, kind, arrival.read, sink);
            }
            Frame::Settings(payload) => self.apply_settings(payload, out)?,
            Frame::SettingsAck if self.response.is_none() => self.decoder.allow_table_size(0),
            Frame::Ping {
                ack: false,
                payload,
            } => {
                self.count_reply()?;
                writer::write_ping(out, true, payload);
            }
            Frame::GoAway { last_stream, .. } => self.go_away(last_stream, arrival, sink),
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

    /// Counts a frame. A frame with a part of a response resets the count.
    fn count_idle_frame(&mut self) -> Result<(), ResponseError> {
        self.idle_frames += 1;
        if self.idle_frames > MOST_IDLE_FRAMES {
            return Err(ResponseError::no_progress(format!(
                "more than {MOST_IDLE_FRAMES} frames in a row carried no part of a response"
            )));
        }
        Ok(())
    }

    /// Counts a reply that the server causes. If it does not read the replies, they must not
    /// accumulate.
    fn count_reply(&mut self) -> Result<(), ResponseError> {
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
    fn check_stream(&self, stream: u32) -> Result<(), ResponseError> {
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

    fn go_away(&mut self, last_stream: u32, arrival: Arrival, sink: &mut impl Sink) {
        self.over = true;
        self.goaway_at.get_or_insert(arrival.at);
        self.goaway_stream = Some(last_stream);
        self.announced_by.get_or_insert(Side::Server);
        let refused: Vec<u32> = self
            .ids
            .iter()
            .copied()
            .filter(|&id| id > last_stream)
            .collect();
        for stream in refused {
            self.fail(stream, Failure::Refusal, arrival.read, sink);
        }
    }

    fn apply_settings(
        &mut self,
        payload: SettingsPayload<'_>,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        if self.response.is_some() {
            let room = MOST_SETTINGS.saturating_sub(self.settings.len());
            self.settings.extend(payload.take(room));
        }
        let before = self.server;
        self.server.apply(payload)?;
        self.count_reply()?;
        writer::write_settings_ack(out);
        if self.server.header_table_size != before.header_table_size {
            let most = hpack::DEFAULT_TABLE_SIZE;
            self.encoder.resize(self.server.header_table_size.min(most));
            self.repeats = false;
        }
        let change =
            i64::from(self.server.initial_window_size) - i64::from(before.initial_window_size);
        for place in 0..self.streams.len() {
            if self.ids[place] != 0 {
                self.streams[place].window = widened(self.streams[place].window, change)?;
                self.send_body(place, out);
            }
        }
        Ok(())
    }

    /// Handles a WINDOW_UPDATE, of the connection if `stream` is 0.
    fn widen_window(
        &mut self,
        stream: u32,
        increment: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        let increment = i64::from(increment);
        if stream == 0 {
            self.window = widened(self.window, increment)?;
            for place in 0..self.streams.len() {
                if self.ids[place] != 0 {
                    self.send_body(place, out);
                }
            }
            return Ok(());
        }
        self.check_stream(stream)?;
        if let Some(place) = self.place(stream) {
            self.streams[place].window = widened(self.streams[place].window, increment)?;
            self.send_body(place, out);
        }
        Ok(())
    }

    fn data(
        &mut self,
        data: Data<'_>,
        arrival: Arrival,
        sink: &mut impl Sink,
        out: &mut Vec<u8>,
    ) -> Result<(), ResponseError> {
        self.check_stream(data.stream)?;
        self.taken += data.flow;
        if self.taken >= REFILL {
            writer::write_window_update(out, 0, self.taken);
            self.taken = 0;
        }
        let Some(place) = self.place(data.stream) else {
            return Ok(());
        };
        if data.end_stream || !data.bytes.is_empty() {
            self.idle_frames = 0;
        }
        let stream = &mut self.streams[place];
        stream.watch.hear(&mut stream.exchange, arrival);
        let exchange = &mut stream.exchange;
        if exchange.status.is_none() {
            return Err(ResponseError::malformed("DATA before the header section"));
        }
        if !data.bytes.is_empty() {
            stream.watch.body(arrival);
        }
        if let Some(content) = &mut self.content {
            content.take(data.bytes)?;
        }
        *exchange.body.read.get_or_insert(0) += data.bytes.len() as u64;
        exchange.bytes.body += u64::from(data.flow);
        if data.complete {
            exchange.bytes.body += FRAME_HEADER_LEN as u64;
        }
        stream.taken += data.flow;
        if data.end_stream {
            self.complete(place, arrival, sink)?;
        } else if stream.taken >= REFILL {
            writer::write_window_update(out, data.stream, stream.taken);
            stream.taken = 0;
        }
        Ok(())
    }

    /// Decodes a header block. This is needed even if the fields are not used, because it changes
    /// the decoder.
    fn decode(
        &mut self,
        headers: Headers<'_>,
        place: Option<usize>,
    ) -> Result<ResponseFields, ResponseError> {
        let take = |fields: &mut ResponseFields, field: hpack::Field<'_>| {
            fields.take(field.name, field.value);
        };
        let Some(response) = &mut self.response else {
            let (memo, empty) = (&mut self.memo, ResponseFields::default());
            return Ok(memo.read(&mut self.decoder, headers.block, empty, take)?);
        };
        let is_trailers = place.is_none_or(|place| self.streams[place].exchange.status.is_some());
        if !is_trailers {
            **response = ResponseInfo::default();
            response.response_version = Some(Protocol::Http2);
            response.keeps = !self.over;
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

    fn headers(
        &mut self,
        headers: Headers<'_>,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Result<(), ResponseError> {
        self.check_stream(headers.stream)?;
        let place = self.place(headers.stream);
        let fields = self.decode(headers, place)?;
        let Some(place) = place else {
            return Ok(());
        };
        self.idle_frames = 0;
        let stream = &mut self.streams[place];
        stream.watch.hear(&mut stream.exchange, arrival);
        let exchange = &mut stream.exchange;
        exchange.bytes.head +=
            (headers.block.len() + FRAME_HEADER_LEN * headers.frames as usize) as u64;
        if let (true, Some(status)) = (stream.request.is_grpc, fields.grpc_status()) {
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
        let (status, length) = fields.header_section()?;
        if (100..200).contains(&status) {
            if headers.end_stream {
                return Err(ResponseError::malformed(
                    "an interim response ends the stream",
                ));
            }
            stream.interim += 1;
            if stream.interim > MOST_INTERIM {
                let words = format!("more than {MOST_INTERIM} interim responses");
                return Err(ResponseError::too_large(words));
            }
            return Ok(());
        }
        exchange.status = Some(status);
        exchange.body.announced = length;
        if let Some(response) = &mut self.response {
            response.status = Some(status);
        }
        stream.watch.head(arrival);
        if headers.end_stream {
            self.complete(place, arrival, sink)?;
        }
        Ok(())
    }
}

/// The window after `change`, at most 2^31 - 1 (RFC 9113 section 6.9.1).
fn widened(window: i64, change: i64) -> Result<i64, ResponseError> {
    let window = window + change;
    if window > i64::from(LARGEST_WINDOW) {
        let error = Error::Protocol("a flow-control window above 2^31 - 1");
        return Err(ResponseError {
            code: ErrorCode::FLOW_CONTROL_ERROR,
            ..ResponseError::from(error)
        });
    }
    Ok(window)
}
