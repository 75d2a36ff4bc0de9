//! One request and its answer, on a stream of its own.

use super::control::LARGEST_LIST;
use super::{Http3Connection, code, is_by_client};
use crate::config::Close;
use crate::http2::request::RequestHead;
use crate::record::end_recorded;
use crate::response::Body;
use crate::stream_request::StreamRequest;
use intact_ledger::{Failure, Nanos, Outcome, Protocol};
use intact_wire::h3::{Error, ErrorCode, Frame, FrameReader, qpack, writer};
use quinn::{ReadError, RecvStream, SendStream, WriteError};
use std::rc::Rc;
use tokio::task::yield_now;
use tokio::time::sleep;

/// Largest header block of a request, in compressed bytes.
const LARGEST_BLOCK: usize = 64 * 1024;
/// Bytes that gather before they are given to QUIC.
pub(super) const BATCH: usize = 64 * 1024;

/// Why a request cannot be answered.
enum Refused {
    /// The client has left, or wants no answer any more.
    Gone,
    /// The connection ends with this code.
    Broken(ErrorCode),
    /// The stream alone ends with this code.
    Malformed(ErrorCode),
}

impl From<Error> for Refused {
    fn from(error: Error) -> Refused {
        Refused::Broken(error.code())
    }
}

/// Serves one request. Returns how the connection ends after it; `None`: it goes on.
pub(super) async fn serve(
    connection: Rc<Http3Connection>,
    mut send: SendStream,
    mut receive: RecvStream,
) -> Option<Close> {
    match Box::pin(read(&connection, &mut receive)).await {
        Ok(request) => {
            let after = Box::pin(connection.respond(request, &mut send)).await;
            if connection.is_closing.get() && after.is_none() {
                // an answer that the client does not have is lost with the connection
                let _ = send.stopped().await;
            }
            after.filter(|_| connection.quic.close_reason().is_none())
        }
        Err(Refused::Gone) => None,
        Err(Refused::Broken(broken)) => {
            connection.quic.close(code(broken), b"");
            None
        }
        Err(Refused::Malformed(reason)) => {
            let _ = (send.reset(code(reason)), receive.stop(code(reason)));
            None
        }
    }
}

/// Reads a request up to its end.
async fn read(
    connection: &Rc<Http3Connection>,
    receive: &mut RecvStream,
) -> Result<StreamRequest, Refused> {
    let at = connection.record.now();
    let mut reader = FrameReader::new(LARGEST_BLOCK);
    let mut request: Option<StreamRequest> = None;
    let mut body = RequestBody::default();
    loop {
        let chunk = match receive.read_chunk(usize::MAX, true).await {
            Ok(Some(chunk)) => chunk.bytes,
            Ok(None) => break,
            Err(error) => return Err(gone(request, &error)),
        };
        let mut bytes = &chunk[..];
        loop {
            let step = reader.read(bytes)?;
            bytes = &bytes[step.consumed..];
            match step.event {
                None => break,
                Some(Frame::Headers { block, overhead }) if request.is_none() => {
                    let head = read_fields(block, RequestHead::fault)?;
                    body.announced = head.length;
                    let mut begun = connection.plan(&head, at);
                    if let Some(pending) = &mut begun.pending {
                        pending.stream = Some(receive.id().into());
                        pending.bytes.request_head = (block.len() + overhead) as u64;
                    }
                    request = Some(begun);
                }
                Some(Frame::Headers { block, .. }) => {
                    read_fields(block, RequestHead::trailer_fault)?;
                }
                Some(Frame::Data { bytes, .. }) => match &mut request {
                    Some(request) => body.add(bytes, request),
                    None => return Err(Refused::Broken(ErrorCode::H3_FRAME_UNEXPECTED)),
                },
                Some(Frame::Unknown(_)) => {}
                Some(_) => return Err(Refused::Broken(ErrorCode::H3_FRAME_UNEXPECTED)),
            }
        }
    }
    reader.finish()?;
    let mut request = request.ok_or(Refused::Malformed(ErrorCode::H3_REQUEST_INCOMPLETE))?;
    if body.announced.is_some_and(|length| length != body.length) {
        return Err(Refused::Malformed(ErrorCode::H3_MESSAGE_ERROR));
    }
    request.plan.answer.take_request(body.kept);
    if let Some(pending) = &mut request.pending {
        pending.received();
    }
    Ok(request)
}

/// The client reset its request, or the connection is over.
fn gone(request: Option<StreamRequest>, error: &ReadError) -> Refused {
    let is_by_client = match error {
        ReadError::ConnectionLost(reason) => is_by_client(reason),
        _ => true,
    };
    if is_by_client && let Some(request) = request {
        end_recorded(request.pending, Outcome::Failed(Failure::ClientClosed));
    }
    Refused::Gone
}

/// The fields of a header or trailer section that breaks no rule of `fault`.
fn read_fields(
    block: &[u8],
    fault: fn(&RequestHead) -> Option<&'static str>,
) -> Result<RequestHead, Refused> {
    let mut fields = RequestHead::default();
    qpack::decode(block, LARGEST_LIST, &mut Vec::new(), |field| {
        fields.take(field);
    })
    .map_err(Error::from)?;
    match fault(&fields) {
        None => Ok(fields),
        Some(_) => Err(Refused::Malformed(ErrorCode::H3_MESSAGE_ERROR)),
    }
}

/// The body of a request: counted, and kept where the answer needs it.
#[derive(Default)]
struct RequestBody {
    announced: Option<u64>,
    length: u64,
    kept: Vec<u8>,
}

impl RequestBody {
    fn add(&mut self, piece: &[u8], request: &mut StreamRequest) {
        self.length += piece.len() as u64;
        if let Some(pending) = &mut request.pending {
            pending.bytes.request_body += piece.len() as u64;
        }
        request.plan.answer.keep(piece, &mut self.kept);
    }
}

impl Http3Connection {
    /// Decides about a request whose head came at `at`.
    fn plan(&self, head: &RequestHead, at: Nanos) -> StreamRequest {
        let (state, record) = (&self.state, &self.record);
        let request = StreamRequest::begin(state, record, self.peer, Protocol::Http3, head, at);
        if request.is_last {
            self.is_closing.set(true);
        }
        request
    }

    /// Answers one request. Returns how the connection ends after it.
    async fn respond(&self, mut request: StreamRequest, send: &mut SendStream) -> Option<Close> {
        if !self.state.prepare(&mut request.plan, send.stopped()).await {
            end_recorded(request.pending, Outcome::Failed(Failure::ClientClosed));
            return None;
        }
        if let Some(fault) = request.plan.fault {
            return Box::pin(self.answer_badly(request, fault, send)).await;
        }
        let written = self.write(&mut request, send).await;
        let outcome = match written {
            Ok(()) => Outcome::Ok,
            Err(_) => Outcome::Failed(Failure::ClientClosed),
        };
        end_recorded(request.pending, outcome);
        None
    }

    /// Writes an answer in full.
    async fn write(
        &self,
        request: &mut StreamRequest,
        send: &mut SendStream,
    ) -> Result<(), WriteError> {
        let (mut out, follows) = self.head(request);
        if follows {
            if let Some(gap) = self.state.config.split {
                send.write_all(&out).await?;
                out.clear();
                sleep(gap).await;
            }
            let body = &request.plan.answer.body;
            write_body(&mut out, body, body.len(), BATCH, send).await?;
            if let Some(pending) = &mut request.pending {
                pending.bytes.body = body.len();
            }
        }
        send.write_all(&out).await?;
        let _ = send.finish();
        Ok(())
    }

    /// The header section of an answer, and whether a body follows.
    pub(super) fn head(&self, request: &mut StreamRequest) -> (Vec<u8>, bool) {
        let mut block = Vec::with_capacity(128);
        qpack::begin(&mut block);
        request.fields(&self.headers, |name, value| {
            qpack::encode(name, value, false, &mut block);
        });
        let mut out = Vec::with_capacity(block.len() + 256);
        writer::write_headers(&mut out, &block);
        request.note_head(out.len() as u64);
        (out, request.has_body())
    }
}

/// Appends DATA to `out`: the first bytes of a body, up to `until`, in pieces of at most `most`.
/// Sends `out` whenever it has that much; the rest stays there.
pub(super) async fn write_body(
    out: &mut Vec<u8>,
    body: &Body,
    until: u64,
    most: usize,
    send: &mut SendStream,
) -> Result<(), WriteError> {
    writer::write_data_header(out, usize::try_from(body.len()).unwrap_or(usize::MAX));
    let mut at = 0;
    while at < until {
        let left = usize::try_from(until - at).unwrap_or(usize::MAX);
        let piece = body.piece(at, most.min(left));
        out.extend_from_slice(piece);
        at += piece.len() as u64;
        if out.len() >= most {
            send.write_all(out).await?;
            out.clear();
            // a client that takes as much as there is takes turns with the others
            yield_now().await;
        }
    }
    Ok(())
}
