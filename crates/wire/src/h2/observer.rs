//! Observes both directions of an HTTP/2 connection: streams as exchanges, and the announcements of
//! the ends.
//!
//! Bytes must arrive in order of time, a request before its response. Frames cannot be found again
//! after a gap, so a direction that lost bytes outside DATA is not read any further.

use std::collections::BTreeMap;

use super::DEFAULT_MAX_FRAME_SIZE;
use super::error::{Error, ErrorCode};
use super::frame::Frame;
use super::hpack::Decoder;
use super::reader::{FrameReader, Limits};
use super::settings::Settings;
use super::streams::{Head, Streams};
use crate::Side;
use crate::exchange::{Event, Exchange, Outcome, Request, Response};

/// Facts about the connection as a whole; times in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Http2Facts {
    /// The client's last SETTINGS.
    pub(super) client_settings: Option<Settings>,
    /// The server's last SETTINGS.
    pub server_settings: Option<Settings>,
    /// The first GOAWAY.
    pub go_away: Option<GoAway>,
    /// Number of PINGs, without answers.
    pub pings: u64,
    /// Requests are not followed, because [`MAX_STREAMS`](crate::h2::MAX_STREAMS) were open.
    pub has_too_many: bool,
}

/// The announcement that a connection takes no more streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct GoAway {
    /// The sender.
    pub by: Side,
    /// The highest stream that was or will be processed.
    pub last_stream: u32,
    /// The reason; `NO_ERROR` is a graceful shutdown.
    pub code: ErrorCode,
    /// The time in nanoseconds.
    pub at: u64,
}

/// Why a direction is not read any further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Lost {
    /// Its bytes are not HTTP/2, or the state of its header compression is lost.
    #[error(transparent)]
    Frame(#[from] Error),
    /// Bytes are missing.
    #[error("bytes are missing from the capture, and frames cannot be found again without them")]
    Hole,
}

/// Reads both directions of one connection.
#[derive(Debug)]
pub struct Http2Observer {
    client: Http2Flow,
    server: Http2Flow,
    streams: BTreeMap<u32, Exchange>,
    facts: Http2Facts,
    /// The highest stream that the server processes, by its last GOAWAY (RFC 9113 section 6.8).
    last_processed: Option<u32>,
}

#[derive(Debug)]
struct Http2Flow {
    reader: FrameReader,
    decoder: Decoder,
    /// When the first byte of the current frame arrived.
    started_at: u64,
    lost: Option<Lost>,
    /// The longest frame that the other side has allowed so far.
    allowed: u32,
}

/// Limit of a connection's dynamic table, in bytes.
const MAX_TABLE: u32 = 1 << 20;
const MAX_LIST: usize = 256 * 1024;

impl Default for Http2Observer {
    fn default() -> Self {
        // before the SETTINGS of the other side are known, everything that they may allow is
        // allowed
        let limits = Limits {
            frame: 0xff_ffff,
            ..Limits::default()
        };
        let direction = |reader| Http2Flow {
            reader,
            decoder: Decoder::new(MAX_LIST),
            started_at: 0,
            lost: None,
            allowed: DEFAULT_MAX_FRAME_SIZE,
        };
        Self {
            client: direction(FrameReader::client(limits).observing()),
            server: direction(FrameReader::server(limits).observing()),
            streams: BTreeMap::new(),
            facts: Http2Facts::default(),
            last_processed: None,
        }
    }
}

impl Http2Observer {
    /// Facts about the connection as a whole.
    pub fn facts(&self) -> &Http2Facts {
        &self.facts
    }

    /// Why that side is not read any further.
    pub fn lost(&self, side: Side) -> Option<Lost> {
        side.pick(self.client.lost, self.server.lost)
    }

    /// Number of open streams.
    pub fn outstanding(&self) -> usize {
        self.streams.len()
    }

    /// Responses that have begun and have not ended.
    pub fn responses_under_way(&self) -> impl Iterator<Item = &Response> {
        let open = self.streams.values();
        open.filter_map(|exchange| exchange.response.as_ref())
            .filter(|response| response.ended_at.is_none())
    }

    /// The oldest open stream.
    pub fn first_open_stream(&self) -> Option<u32> {
        self.streams.keys().next().copied()
    }

    /// Whether the last byte of that side ended a frame.
    pub fn is_between_frames(&self, side: Side) -> bool {
        let flow = side.pick(&self.client, &self.server);
        flow.lost.is_none() && flow.reader.is_between_frames()
    }

    /// Records that stream 1 answers a request of HTTP/1.1 (Upgrade: h2c).
    pub fn assume_upgraded(&mut self, request: Request) {
        self.streams.insert(
            1,
            Exchange {
                stream: Some(1),
                request: Some(request),
                ..Exchange::default()
            },
        );
    }

    /// Reads the next bytes of one direction.
    pub fn read(&mut self, from: Side, bytes: &[u8], at: u64, mut visit: impl FnMut(Event<'_>)) {
        let (this, other) = from.order(&mut self.client, &mut self.server);
        let Http2Flow {
            reader,
            decoder,
            started_at,
            lost,
            ..
        } = this;
        if lost.is_some() {
            return;
        }
        let mut frames = Frames {
            streams: Streams {
                streams: &mut self.streams,
                facts: &mut self.facts,
                from,
                at,
                last_processed: &mut self.last_processed,
            },
            decoder,
            peer: other,
        };
        let mut input = bytes;
        loop {
            if reader.is_between_frames() {
                *started_at = at;
            }
            let step = match reader.read(input) {
                Ok(step) => step,
                Err(error) => {
                    *lost = Some(error.into());
                    return;
                }
            };
            input = &input[step.consumed..];
            let Some(frame) = step.event else { return };
            if let Err(error) = frames.take(frame, *started_at, &mut visit) {
                *lost = Some(error.into());
                return;
            }
        }
    }

    /// Records that bytes are missing: the direction is not read any further.
    pub fn lose(&mut self, from: Side) {
        let this = from.pick(&mut self.client, &mut self.server);
        this.lost = this.lost.or(Some(Lost::Hole));
    }

    /// Records that a direction ended. The end of the server's direction ends every exchange.
    pub fn end(&mut self, from: Side, mut visit: impl FnMut(Event<'_>)) {
        if from == Side::Client {
            return;
        }
        let last_processed = self.last_processed.unwrap_or(u32::MAX);
        for (stream, exchange) in std::mem::take(&mut self.streams) {
            let outcome = match &exchange.response {
                _ if exchange.is_answered() => Outcome::Complete,
                _ if self.server.lost.is_some() => Outcome::Unseen,
                Some(_) => Outcome::Cut,
                None if stream > last_processed => Outcome::Refused,
                None => Outcome::Unanswered,
            };
            visit(Event::Done(&exchange, outcome));
        }
    }
}

/// The state that the frames of one side change.
struct Frames<'a> {
    streams: Streams<'a>,
    decoder: &'a mut Decoder,
    peer: &'a mut Http2Flow,
}

impl Frames<'_> {
    fn take(
        &mut self,
        frame: Frame<'_>,
        started_at: u64,
        visit: &mut impl FnMut(Event<'_>),
    ) -> Result<(), Error> {
        let streams = &mut self.streams;
        let (from, at) = (streams.from, streams.at);
        match frame {
            Frame::Headers(headers) => {
                let head = Head::decode(self.decoder, headers.block)?;
                streams.take_headers(&headers, head, started_at, visit);
            }
            Frame::PushPromise(promise) => {
                let head = Head::decode(self.decoder, promise.block)?;
                let len = promise.block.len();
                streams.take_promise(promise.promised, head, len, started_at, visit);
            }
            Frame::Data(data) => streams.take_data(&data, visit),
            Frame::Reset { stream, code } => {
                streams.finish(stream, Outcome::Reset { by: from, code }, visit);
            }
            Frame::GoAway {
                last_stream, code, ..
            } => {
                let go_away = GoAway {
                    by: from,
                    last_stream,
                    code,
                    at,
                };
                streams.take_go_away(go_away, visit);
            }
            Frame::Settings(payload) => {
                if let Some(settings) = streams.take_settings(payload) {
                    // this limits the table of the other side from its acknowledgement on; a larger
                    // table before does no harm
                    let size = settings.header_table_size.min(MAX_TABLE);
                    self.peer.decoder.raise_table_size(size);
                    // a longer frame hides those after it
                    self.peer.allowed = self.peer.allowed.max(settings.max_frame_size);
                    self.peer.reader.limit_frames(self.peer.allowed);
                }
            }
            Frame::Ping { ack: false, .. } => streams.facts.pings += 1,
            Frame::Preface
            | Frame::Priority { .. }
            | Frame::SettingsAck
            | Frame::Ping { ack: true, .. }
            | Frame::WindowUpdate { .. }
            | Frame::Unknown { .. } => {}
        }
        Ok(())
    }
}
