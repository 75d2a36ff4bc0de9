//! HTTP/2 on one connection, by the `h2` crate: its frames are its own, what is recorded are the exchanges.

use crate::answer::{Answers, is_bodiless};
use crate::config::Config;
use crate::meter::Passed;
use crate::record::Ledger;
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{RecvStream, SendStream};
use http::{Request, Response};
use ledger::{Ending, Failure, Outcome, Side, Span};
use std::rc::Rc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::spawn_local;

/// Streams that a client may have open at once.
const STREAMS: u32 = 256;

/// Serves requests until either side ends the connection.
pub(crate) async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    config: &Rc<Config>,
    answers: &Rc<Answers>,
    ledger: Rc<Ledger>,
    passed: &Rc<Passed>,
) {
    let handshake = h2::server::Builder::new()
        .max_concurrent_streams(STREAMS)
        .handshake(stream)
        .await;
    let Ok(mut connection) = handshake else {
        return ledger.close(!passed.ended.get(), Ending::Fin);
    };
    let mut ours = false;
    loop {
        let next = connection.accept();
        let next = match config.idle_timeout {
            Some(limit) => match tokio::time::timeout(limit, next).await {
                Ok(next) => next,
                Err(_) => {
                    ours = true;
                    ledger.announced_by.set(Some(Side::Server));
                    connection.graceful_shutdown();
                    connection.accept().await
                }
            },
            None => next.await,
        };
        let Some(Ok((request, respond))) = next else {
            break;
        };
        if config
            .max_requests
            .is_some_and(|most| ledger.exchanges() + 1 >= most)
        {
            ours = true;
            ledger.announced_by.set(Some(Side::Server));
            connection.graceful_shutdown();
        }
        let one = one(
            request,
            respond,
            config.clone(),
            answers.clone(),
            ledger.clone(),
        );
        spawn_local(one);
    }
    // without a GOAWAY of ours only the client's GOAWAY, FIN or RST ends the loop above
    ledger.close(
        ours && !passed.reset.get(),
        if ours { Ending::Goaway } else { Ending::Fin },
    );
}

/// Reads one request to its end and answers it.
async fn one(
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    config: Rc<Config>,
    answers: Rc<Answers>,
    ledger: Rc<Ledger>,
) {
    let mut exchange = ledger.begin(ledger.now());
    exchange.stream = Some(u64::from(respond.stream_id().as_u32()));
    let path = request
        .uri()
        .path_and_query()
        .map_or("/", |path| path.as_str())
        .to_owned();
    Ledger::request(
        &mut exchange,
        request.method().as_str().as_bytes(),
        path.as_bytes(),
    );
    let head_only = request.method() == http::Method::HEAD;
    let mut body = request.into_body();
    while let Some(Ok(piece)) = body.data().await {
        exchange.bytes.request_body += piece.len() as u64;
        let _ = body.flow_control().release_capacity(piece.len());
    }
    exchange.spans.send = Some(Span::new(exchange.at, ledger.now()));
    let answer = answers.to(path.as_bytes());
    let first = exchange.ordinal == Some(1);
    let delay = answer.delay
        + if first {
            config.first_request_cost
        } else {
            std::time::Duration::ZERO
        };
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
    exchange.status = Some(answer.status);
    let bodiless = head_only || is_bodiless(answer.status) || answer.body.is_empty();
    exchange.bytes.body = if bodiless {
        0
    } else {
        answer.body.len() as u64
    };
    let sent = send(respond, answer.status, (!bodiless).then_some(answer.body)).await;
    let outcome = match sent {
        Ok(()) => Outcome::Ok,
        Err(_) => Outcome::Failed(Failure::StreamReset),
    };
    ledger.end(exchange, outcome);
}

async fn send(
    mut respond: SendResponse<Bytes>,
    status: u16,
    body: Option<Bytes>,
) -> Result<(), h2::Error> {
    let mut head = Response::new(());
    if let Ok(status) = http::StatusCode::from_u16(status) {
        *head.status_mut() = status;
    }
    if let Some(body) = &body {
        head.headers_mut()
            .insert(http::header::CONTENT_LENGTH, body.len().into());
    }
    let mut stream = respond.send_response(head, body.is_none())?;
    if let Some(body) = body {
        send_body(&mut stream, body).await?;
    }
    Ok(())
}

/// Sends a body as fast as the client's windows allow.
async fn send_body(stream: &mut SendStream<Bytes>, mut body: Bytes) -> Result<(), h2::Error> {
    stream.reserve_capacity(body.len());
    while !body.is_empty() {
        // most bodies fit into the window at once
        let capacity = match stream.capacity() {
            0 => match std::future::poll_fn(|context| stream.poll_capacity(context)).await {
                Some(capacity) => capacity?,
                None => return Err(h2::Reason::CANCEL.into()),
            },
            capacity => capacity,
        };
        let piece = body.split_to(capacity.min(body.len()));
        stream.send_data(piece, body.is_empty())?;
    }
    Ok(())
}
