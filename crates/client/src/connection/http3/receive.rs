//! The server's bytes on the streams of requests: frames in, exchanges out. A violation of RFC 9114
//! ends the connection immediately.

use super::exchanges::{Http3, LARGEST_LIST};
use super::{StreamEnd, Violation};
use crate::connection::ResponseInfo;
use crate::{Arrival, ResponseError, judge};
use bytes::Bytes;
use intact_ledger::{Event, Failure, Protocol, Sink};
use intact_wire::h2::ResponseFields;
use intact_wire::h3::{ErrorCode, Frame, FrameReader, qpack};
use intact_wire::http1::Kind;

/// Interim (1xx) responses that may precede a final one, as in HTTP/1.
const MOST_INTERIM: u32 = 100;
/// Limit of consecutive frames without a part of a response: more are a flood (RFC 9114 section
/// 10.5).
const MOST_IDLE_FRAMES: u32 = 10_000;

impl Http3 {
    /// Takes what was read of a stream: bytes, and its end or its reset.
    #[inline]
    pub(super) fn receive(
        &mut self,
        stream: u64,
        chunks: &[Bytes],
        end: StreamEnd,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Result<(), Violation> {
        if self.broken.is_some() {
            return Ok(());
        }
        let Some(place) = self.place(stream) else {
            return self.receive_from_server(stream, chunks, end, arrival, sink);
        };
        for chunk in chunks {
            self.response_bytes(place, chunk, arrival)?;
        }
        match end {
            StreamEnd::Open => Ok(()),
            StreamEnd::Finished => self.complete(place, arrival, sink),
            StreamEnd::Reset(code) => {
                let kind = match ErrorCode(code) {
                    ErrorCode::H3_REQUEST_REJECTED => Failure::Refusal,
                    _ => Failure::StreamReset,
                };
                self.fail(place, kind, arrival.read, sink);
                Ok(())
            }
        }
    }

    fn response_bytes(
        &mut self,
        place: usize,
        mut bytes: &[u8],
        arrival: Arrival,
    ) -> Result<(), Violation> {
        let stream = &mut self.streams[place];
        stream.watch.hear(&mut stream.exchange, arrival);
        // taken for the loop, because its frames borrow it
        let mut reader = std::mem::replace(&mut stream.reader, FrameReader::new(0));
        let read = loop {
            match reader.read(bytes) {
                Ok(step) => {
                    bytes = &bytes[step.consumed..];
                    let Some(frame) = step.event else {
                        break Ok(());
                    };
                    if let Err(violation) = self.frame(place, frame, arrival) {
                        break Err(violation);
                    }
                }
                Err(error) => break Err(error.into()),
            }
        };
        self.streams[place].reader = reader;
        read
    }

    /// Counts a frame that is no part of a response.
    pub(super) fn count_idle_frame(&mut self) -> Result<(), Violation> {
        self.idle_frames += 1;
        if self.idle_frames <= MOST_IDLE_FRAMES {
            return Ok(());
        }
        let words =
            format!("more than {MOST_IDLE_FRAMES} frames in a row carried no part of a response");
        Err(Violation {
            error: ResponseError::no_progress(words),
            code: ErrorCode::H3_EXCESSIVE_LOAD,
        })
    }

    fn frame(&mut self, place: usize, frame: Frame<'_>, arrival: Arrival) -> Result<(), Violation> {
        match frame {
            Frame::Data { bytes, overhead } => self.data(place, bytes, overhead, arrival),
            Frame::Headers { block, overhead } => self.headers(place, block, overhead, arrival),
            Frame::Unknown(_) => self.count_idle_frame(),
            Frame::PushPromise => Err(Violation::new(
                "a push although we allowed none",
                ErrorCode::H3_ID_ERROR,
            )),
            Frame::Settings(_) | Frame::GoAway(_) | Frame::CancelPush(_) | Frame::MaxPushId(_) => {
                Err(Violation::new(
                    "a frame of the control stream on the stream of a request",
                    ErrorCode::H3_FRAME_UNEXPECTED,
                ))
            }
        }
    }

    fn data(
        &mut self,
        place: usize,
        bytes: &[u8],
        overhead: usize,
        arrival: Arrival,
    ) -> Result<(), Violation> {
        if bytes.is_empty() {
            self.count_idle_frame()?;
        } else {
            self.idle_frames = 0;
        }
        let stream = &mut self.streams[place];
        let exchange = &mut stream.exchange;
        if exchange.status.is_none() {
            return Err(Violation::new(
                "DATA before the header section",
                ErrorCode::H3_FRAME_UNEXPECTED,
            ));
        }
        if !bytes.is_empty() {
            stream.watch.body(arrival);
        }
        *exchange.body.read.get_or_insert(0) += bytes.len() as u64;
        exchange.bytes.body += (overhead + bytes.len()) as u64;
        Ok(())
    }

    /// Decodes a header block.
    fn decode(&mut self, block: &[u8], is_trailers: bool) -> Result<ResponseFields, Violation> {
        let scratch = &mut self.scratch;
        let Some(response) = &mut self.response else {
            let derive = |block: &[u8]| {
                let mut fields = ResponseFields::default();
                qpack::decode(block, LARGEST_LIST, scratch, |field| {
                    fields.take(field.name, field.value);
                })?;
                Ok(fields)
            };
            let read = self.memo.read(block, derive);
            return Ok(read.map_err(intact_wire::h3::Error::from)?);
        };
        if !is_trailers {
            **response = ResponseInfo::default();
            response.response_version = Some(Protocol::Http3);
            response.keeps = !self.over;
        }
        let mut fields = ResponseFields::default();
        qpack::decode(block, LARGEST_LIST, scratch, |field| {
            fields.take(field.name, field.value);
            if !is_trailers && !field.name.starts_with(b":") {
                response.note(field.name, field.value);
            }
        })
        .map_err(intact_wire::h3::Error::from)?;
        Ok(fields)
    }

    fn headers(
        &mut self,
        place: usize,
        block: &[u8],
        overhead: usize,
        arrival: Arrival,
    ) -> Result<(), Violation> {
        self.idle_frames = 0;
        let is_trailers = self.streams[place].exchange.status.is_some();
        let fields = self.decode(block, is_trailers)?;
        let stream = &mut self.streams[place];
        let exchange = &mut stream.exchange;
        exchange.bytes.head += (overhead + block.len()) as u64;
        if is_trailers {
            return Ok(fields.trailer_section()?);
        }
        let (status, length) = fields.header_section()?;
        if (100..200).contains(&status) {
            stream.interim += 1;
            if stream.interim > MOST_INTERIM {
                let words = format!("more than {MOST_INTERIM} interim responses");
                return Err(Violation {
                    error: ResponseError::too_large(words),
                    code: ErrorCode::H3_EXCESSIVE_LOAD,
                });
            }
            return Ok(());
        }
        exchange.status = Some(status);
        exchange.body.announced = length;
        if let Some(response) = &mut self.response {
            response.status = Some(status);
        }
        stream.watch.head(arrival);
        Ok(())
    }

    /// Records the end of a response.
    fn complete(
        &mut self,
        place: usize,
        arrival: Arrival,
        sink: &mut impl Sink,
    ) -> Result<(), Violation> {
        let stream = &mut self.streams[place];
        stream.reader.finish()?;
        stream.watch.hear(&mut stream.exchange, arrival);
        let exchange = &mut stream.exchange;
        if exchange.status.is_none() {
            return Err(Violation::message("a stream that ends before its response"));
        }
        let read = *exchange.body.read.get_or_insert(0);
        let is_bodiless =
            stream.request.kind == Kind::Head || matches!(exchange.status, Some(204 | 304));
        let announced = exchange.body.announced.filter(|_| !is_bodiless);
        // as in HTTP/1, a body that is shorter was cut off
        if announced.is_some_and(|announced| announced > read) {
            return Err(Violation {
                error: ResponseError::truncated("the body is shorter than content-length"),
                code: ErrorCode::H3_MESSAGE_ERROR,
            });
        }
        if announced.is_some_and(|announced| announced < read) {
            return Err(Violation::message("the body is longer than content-length"));
        }
        exchange.bytes.decoded = Some(read);
        stream.watch.complete(exchange, arrival);
        judge(exchange, stream.request.expected(exchange.status), false);
        self.answered = true;
        self.free(place);
        sink.record(Event::Exchange(&self.streams[place].exchange));
        Ok(())
    }
}
