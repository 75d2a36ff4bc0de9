//! The server's bytes on the streams of requests: frames in, exchanges out. A violation of RFC 9114
//! ends the connection immediately.

use super::exchanges::{Http3, LARGEST_LIST};
use super::{Checked, StreamEnd};
use crate::connection::ResponseInfo;
use crate::{Arrival, ResponseError};
use bytes::Bytes;
use intact_ledger::{Failure, Protocol, Sink};
use intact_wire::h2::ResponseFields;
use intact_wire::h3::{self, ErrorCode, Frame, FrameReader, qpack};

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
    ) -> Checked {
        if self.broken.is_some() {
            return Ok(());
        }
        let Some(place) = self.exchanges.place(stream) else {
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
                self.exchanges.fail(place, kind, arrival.read, sink);
                Ok(())
            }
        }
    }

    fn response_bytes(&mut self, place: usize, mut bytes: &[u8], arrival: Arrival) -> Checked {
        let slot = &mut self.exchanges.slots[place];
        slot.watch.hear(&mut slot.exchange, arrival);
        // taken for the loop, because its frames borrow it
        let mut reader = std::mem::replace(&mut slot.stream.reader, FrameReader::new(0));
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
        self.exchanges.slots[place].stream.reader = reader;
        read
    }

    fn frame(&mut self, place: usize, frame: Frame<'_>, arrival: Arrival) -> Checked {
        match frame {
            Frame::Data { bytes, overhead } => self.data(place, bytes, overhead, arrival),
            Frame::Headers { block, overhead } => self.headers(place, block, overhead, arrival),
            Frame::Unknown(_) => self.exchanges.count_idle_frame(),
            Frame::PushPromise => Err(ResponseError::with_code(
                "a push although we allowed none",
                ErrorCode::H3_ID_ERROR,
            )),
            Frame::Settings(_) | Frame::GoAway(_) | Frame::CancelPush(_) | Frame::MaxPushId(_) => {
                Err(ResponseError::with_code(
                    "a frame of the control stream on the stream of a request",
                    ErrorCode::H3_FRAME_UNEXPECTED,
                ))
            }
        }
    }

    fn data(&mut self, place: usize, bytes: &[u8], overhead: usize, arrival: Arrival) -> Checked {
        if bytes.is_empty() {
            self.exchanges.count_idle_frame()?;
        } else {
            self.exchanges.idle_frames = 0;
        }
        let length = overhead + bytes.len();
        self.exchanges.take_body(place, bytes, length, arrival)
    }

    /// Decodes a header block.
    fn decode(&mut self, block: &[u8], is_trailers: bool) -> Checked<ResponseFields> {
        let scratch = &mut self.scratch;
        let life = &mut self.exchanges.life;
        let Some(response) = &mut life.response else {
            let derive = |block: &[u8]| {
                let mut fields = ResponseFields::default();
                qpack::decode(block, LARGEST_LIST, scratch, |field| {
                    fields.take(field.name, field.value);
                })?;
                Ok::<_, h3::Error>((fields, true))
            };
            return Ok(self.memo.read_with(block, derive)?);
        };
        if !is_trailers {
            **response = ResponseInfo::begun(Protocol::Http3, !life.over);
        }
        let mut fields = ResponseFields::default();
        qpack::decode(block, LARGEST_LIST, scratch, |field| {
            fields.take(field.name, field.value);
            if !is_trailers && !field.name.starts_with(b":") {
                response.note(field.name, field.value);
            }
        })
        .map_err(h3::Error::from)?;
        Ok(fields)
    }

    fn headers(
        &mut self,
        place: usize,
        block: &[u8],
        overhead: usize,
        arrival: Arrival,
    ) -> Checked {
        self.exchanges.idle_frames = 0;
        let is_trailers = self.exchanges.slots[place].exchange.status.is_some();
        let fields = self.decode(block, is_trailers)?;
        let exchange = &mut self.exchanges.slots[place].exchange;
        exchange.bytes.head += (overhead + block.len()) as u64;
        if is_trailers {
            return Ok(fields.trailer_section()?);
        }
        self.exchanges.take_head(place, &fields, arrival)?;
        Ok(())
    }

    /// Records the end of a response.
    fn complete(&mut self, place: usize, arrival: Arrival, sink: &mut impl Sink) -> Checked {
        let slot = &mut self.exchanges.slots[place];
        slot.stream.reader.finish()?;
        slot.watch.hear(&mut slot.exchange, arrival);
        if slot.exchange.status.is_none() {
            return Err(ResponseError::malformed(
                "a stream that ends before its response",
            ));
        }
        // as in HTTP/1, a body that is shorter was cut off
        match slot.body_lengths() {
            (read, Some(announced)) if announced > read => {
                let words = "the body is shorter than content-length";
                Err(ResponseError::truncated(words))
            }
            (read, Some(announced)) if announced < read => Err(ResponseError::malformed(
                "the body is longer than content-length",
            )),
            _ => {
                self.exchanges.complete(place, arrival, sink);
                Ok(())
            }
        }
    }
}
