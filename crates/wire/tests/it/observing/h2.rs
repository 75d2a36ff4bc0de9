//! Observed HTTP/2: scripts, and real conversations of the `h2` crate.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use intact_wire::Side::{self, Client, Server};
use intact_wire::exchange::{Event, Exchange, Outcome};
use intact_wire::h2::hpack::{Encoder, Indexing};
use intact_wire::h2::writer::{
    write_data, write_go_away, write_headers, write_ping, write_reset, write_settings,
    write_settings_ack, write_window_update,
};
use intact_wire::h2::{Error, ErrorCode, Http2Observer, Lost, PREFACE, Setting};
use proptest::collection::vec;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex, split};

use super::Log;

/// The two ends of a scripted connection.
#[derive(Default)]
struct Script {
    client: Encoder,
    server: Encoder,
}

impl Script {
    fn block(&mut self, from: Side, fields: &[(&str, &str)]) -> Vec<u8> {
        let encoder = if from == Client {
            &mut self.client
        } else {
            &mut self.server
        };
        let mut block = Vec::new();
        encoder.begin(&mut block);
        for (name, value) in fields {
            encoder.encode(
                name.as_bytes(),
                value.as_bytes(),
                Indexing::Incremental,
                &mut block,
            );
        }
        block
    }

    fn get(&mut self, stream: u32, path: &str) -> Vec<u8> {
        let block = self.block(
            Client,
            &[
                (":method", "GET"),
                (":scheme", "https"),
                (":path", path),
                (":authority", "h"),
            ],
        );
        frames(|out| write_headers(out, stream, &block, true, 16_384))
    }

    fn head(&mut self, stream: u32, status: &str, end: bool) -> Vec<u8> {
        let block = self.block(Server, &[(":status", status), ("content-length", "5")]);
        frames(|out| write_headers(out, stream, &block, end, 16_384))
    }
}

fn frames(write: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(&mut out);
    out
}

fn opening() -> [(Side, Vec<u8>); 2] {
    let client = frames(|out| {
        out.extend_from_slice(PREFACE);
        write_settings(out, &[(Setting::EnablePush, 0)]);
    });
    let server = frames(|out| {
        write_settings(out, &[(Setting::MaxConcurrentStreams, 100)]);
        write_settings_ack(out);
    });
    [(Client, client), (Server, server)]
}

fn observe(observer: &mut Http2Observer, pieces: &[(Side, Vec<u8>)], chunk: usize) -> Vec<String> {
    let mut log = Log::default();
    for (at, (from, bytes)) in pieces.iter().enumerate() {
        for chunk in bytes.chunks(chunk) {
            observer.read(*from, chunk, at as u64, |event| log.take(event));
        }
    }
    observer.end(Client, |event| log.take(event));
    observer.end(Server, |event| log.take(event));
    log.0
}

/// The statuses of the exchanges that ended.
fn statuses(pieces: &[(Side, Vec<u8>)]) -> Vec<Option<u16>> {
    let mut statuses = Vec::new();
    let mut observer = Http2Observer::default();
    for (from, bytes) in pieces {
        observer.read(*from, bytes, 0, |event| {
            if let Event::Done(exchange, _) = event {
                statuses.push(exchange.response.as_ref().map(|response| response.status));
            }
        });
    }
    statuses
}

#[test]
fn two_statuses_are_none_and_a_response_needs_a_request() {
    let mut script = Script::default();
    let mut pieces = opening().to_vec();
    // on idle streams, odd and even: no exchange
    pieces.push((Server, script.head(1, "200", true)));
    pieces.push((Server, script.head(2, "200", true)));
    pieces.push((Server, frames(|out| write_data(out, 3, b"hello", true))));
    pieces.push((Client, script.get(1, "/a")));
    let two = script.block(Server, &[(":status", "200"), (":status", "404")]);
    pieces.push((
        Server,
        frames(|out| write_headers(out, 1, &two, true, 16_384)),
    ));
    pieces.push((Client, script.get(3, "/b")));
    pieces.push((Server, script.head(3, "204", true)));
    assert_eq!(statuses(&pieces), [Some(0), Some(204)]);
}

/// The outcome of an exchange whose response has this header section, body and trailers.
fn outcome(fields: &[(&str, &str)], body: Option<&[u8]>, trailers: &[(&str, &str)]) -> Outcome {
    let mut script = Script::default();
    let mut pieces = opening().to_vec();
    pieces.push((Client, script.get(1, "/")));
    let mut respond = |fields: &[(&str, &str)], is_end: bool| {
        let block = script.block(Server, fields);
        let bytes = frames(|out| write_headers(out, 1, &block, is_end, 16_384));
        pieces.push((Server, bytes));
    };
    respond(fields, body.is_none() && trailers.is_empty());
    if !trailers.is_empty() {
        respond(trailers, true);
    }
    if let Some(body) = body {
        pieces.push((Server, frames(|out| write_data(out, 1, body, true))));
    }
    let mut outcomes = Vec::new();
    let mut observer = Http2Observer::default();
    for (from, bytes) in &pieces {
        observer.read(*from, bytes, 0, |event| {
            if let Event::Done(_, outcome) = event {
                outcomes.push(outcome);
            }
        });
    }
    assert_eq!(outcomes.len(), 1, "{fields:?}");
    outcomes[0]
}

#[test]
fn a_complete_response_that_breaks_rfc_9113_is_malformed() {
    let ok = (":status", "200");
    let five = ("content-length", "5");
    let malformed: &[&[(&str, &str)]] = &[
        &[],
        &[ok, ok],
        &[("a", "b"), ok],
        &[ok, ("A", "b")],
        &[ok, ("a", "b\r\nc: d")],
        &[ok, five, ("content-length", "6")],
        &[(":status", "20")],
    ];
    for fields in malformed {
        assert_eq!(outcome(fields, None, &[]), Outcome::Malformed, "{fields:?}");
    }
    assert_eq!(outcome(&[ok, five], Some(b"four"), &[]), Outcome::Malformed);
    assert_eq!(outcome(&[ok, five], None, &[]), Outcome::Malformed);
    assert_eq!(outcome(&[ok], None, &[ok]), Outcome::Malformed);

    assert_eq!(outcome(&[ok, five], Some(b"fives"), &[]), Outcome::Complete);
    assert_eq!(outcome(&[ok], None, &[("a", "b")]), Outcome::Complete);
    let not_modified = [(":status", "304"), five];
    assert_eq!(outcome(&not_modified, None, &[]), Outcome::Complete);
    // Go's client accepts it
    let of_connections = [ok, ("connection", "keep-alive")];
    assert_eq!(outcome(&of_connections, None, &[]), Outcome::Complete);
}

#[test]
fn streams_become_exchanges_with_the_gap_between_head_and_data() {
    let mut script = Script::default();
    let mut pieces = opening().to_vec();
    pieces.push((Client, script.get(1, "/a")));
    pieces.push((Server, script.head(1, "200", false)));
    pieces.push((Server, frames(|out| write_data(out, 1, b"hel", false))));
    pieces.push((Server, frames(|out| write_data(out, 1, b"lo", true))));
    let mut observer = Http2Observer::default();
    let mut done = None;
    for (at, (from, bytes)) in pieces.iter().enumerate() {
        observer.read(*from, bytes, at as u64, |event| {
            if let Event::Done(exchange, _) = event {
                done = Some(exchange.clone());
            }
        });
    }
    let Some(Exchange {
        stream: Some(1),
        request: Some(request),
        response: Some(response),
        ..
    }) = done
    else {
        panic!("not done")
    };
    assert_eq!(
        (request.method.as_slice(), request.authority.as_deref()),
        (b"GET".as_slice(), Some(b"h".as_slice()))
    );
    assert_eq!((request.head_at, request.ended_at), (2, Some(2)));
    assert_eq!(
        (response.head_at, response.first_body_at, response.ended_at),
        (3, Some(4), Some(5))
    );
    assert_eq!(
        (response.status, response.body_len, response.announced_len),
        (200, 5, Some(5))
    );
    let settings = observer.facts().server_settings.unwrap();
    assert_eq!(settings.max_concurrent_streams, Some(100));
}

#[test]
fn resets_and_go_away_show_what_may_be_sent_again() {
    let mut script = Script::default();
    let mut pieces = opening().to_vec();
    for stream in [1, 3, 5, 7] {
        pieces.push((Client, script.get(stream, "/")));
    }
    pieces.push((
        Server,
        frames(|out| write_reset(out, 1, ErrorCode::REFUSED_STREAM)),
    ));
    pieces.push((Client, frames(|out| write_reset(out, 3, ErrorCode::CANCEL))));
    pieces.push((
        Server,
        frames(|out| write_go_away(out, 5, ErrorCode::NO_ERROR, b"")),
    ));
    let mut observer = Http2Observer::default();
    assert_eq!(
        observe(&mut observer, &pieces, usize::MAX),
        [
            "1: GET /+0 -> - Refused",
            "3: GET /+0 -> - Reset { by: Client, code: CANCEL }",
            "7: GET /+0 -> - Refused",
            "5: GET /+0 -> - Unanswered",
        ]
    );
    let go_away = observer.facts().go_away.unwrap();
    assert_eq!(
        (go_away.by, go_away.last_stream, go_away.at),
        (Server, 5, 8)
    );
}

#[test]
fn interims_and_trailers_are_not_responses() {
    let mut script = Script::default();
    let mut pieces = opening().to_vec();
    pieces.push((Client, script.get(1, "/")));
    pieces.push((Server, script.head(1, "103", false)));
    let ok = script.block(Server, &[(":status", "200")]);
    pieces.push((
        Server,
        frames(|out| write_headers(out, 1, &ok, false, 16_384)),
    ));
    pieces.push((Server, frames(|out| write_data(out, 1, b"x", false))));
    let trailers = script.block(Server, &[("grpc-status", "0")]);
    pieces.push((
        Server,
        frames(|out| write_headers(out, 1, &trailers, true, 5)),
    ));
    assert_eq!(
        observe(&mut Http2Observer::default(), &pieces, usize::MAX),
        ["1: GET /+0 -> 200+1 interims 1 Complete"]
    );
}

#[test]
fn a_stream_that_is_promised_again_is_opened_once() {
    let mut pieces = opening().to_vec();
    // GET / by the static table
    let promise = [0, 0, 6, 5, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0x82, 0x84];
    pieces.push((Server, [promise, promise].concat()));
    let mut observer = Http2Observer::default();
    let (mut opened, mut done) = (0, 0);
    let mut count = |event: Event<'_>| match event {
        Event::Opened(_) => opened += 1,
        Event::Done(..) => done += 1,
        Event::Body { .. } | Event::GoingAway { .. } => {}
    };
    for (from, bytes) in &pieces {
        observer.read(*from, bytes, 0, &mut count);
    }
    observer.end(Server, &mut count);
    assert_eq!((opened, done), (1, 1));
}

#[test]
fn pings_are_counted_without_their_answers() {
    let mut pieces = opening().to_vec();
    pieces.push((Client, frames(|out| write_ping(out, false, *b"question"))));
    pieces.push((Client, frames(|out| write_window_update(out, 0, 1000))));
    pieces.push((Server, frames(|out| write_ping(out, true, *b"question"))));
    let mut observer = Http2Observer::default();
    observe(&mut observer, &pieces, usize::MAX);
    assert_eq!(observer.facts().pings, 1);
}

#[test]
fn a_connection_joined_late_is_lost() {
    let mut script = Script::default();
    let _before = (script.get(1, "/secret"), script.head(1, "200", true));
    let pieces = [
        (Client, script.get(3, "/secret")),
        (Server, script.head(3, "200", true)),
    ];
    let mut observer = Http2Observer::default();
    assert!(observe(&mut observer, &pieces, usize::MAX).is_empty());
    let lost = [Client, Server].map(|side| observer.lost(side));
    assert_eq!(lost[0], Some(Lost::Frame(Error::Preface)));
    // a server's first frame may be any, but its header compression needs what came before
    assert!(matches!(lost[1], Some(Lost::Frame(Error::Compression(_)))));
}

#[test]
fn a_gap_ends_a_direction_and_is_reported() {
    let mut script = Script::default();
    let mut observer = Http2Observer::default();
    let mut log = Log::default();
    let [client, server] = opening();
    for (from, bytes) in [client, server, (Client, script.get(1, "/"))] {
        observer.read(from, &bytes, 0, |event| log.take(event));
    }
    observer.lose(Server);
    observer.read(Server, &script.head(1, "200", true), 1, |event| {
        log.take(event);
    });
    observer.end(Server, |event| log.take(event));
    assert_eq!(log.0, ["1: GET /+0 -> - Unseen"]);
    assert_eq!(observer.lost(Server), Some(Lost::Hole));
}

#[test]
fn a_frame_that_is_longer_than_allowed_hides_nothing_in_silence() {
    let lost = |size: u32| {
        let mut observer = Http2Observer::default();
        let allowed = frames(|out| write_settings(out, &[(Setting::MaxFrameSize, 20_000)]));
        let head = [&size.to_be_bytes()[1..], &[0, 0, 0, 0, 0, 1][..]].concat();
        let [client, _] = opening();
        for (from, bytes) in [client, (Server, allowed), (Client, head)] {
            observer.read(from, &bytes, 0, |_| {});
        }
        observer.lost(Client)
    };
    assert_eq!(lost(20_000), None);
    let too_long = lost(20_001);
    assert!(matches!(
        too_long,
        Some(Lost::Frame(Error::FrameTooLong { .. }))
    ));
}

type Recorded = Arc<Mutex<Vec<(Side, Vec<u8>)>>>;

/// Forwards bytes in both directions and records them.
async fn relay(client: DuplexStream, server: DuplexStream, recorded: Recorded) {
    let (client_in, client_out) = split(client);
    let (server_in, server_out) = split(server);
    let copy = |from: Side,
                mut input: tokio::io::ReadHalf<DuplexStream>,
                mut output: tokio::io::WriteHalf<DuplexStream>| {
        let recorded = recorded.clone();
        async move {
            let mut buffer = vec![0; 4096];
            while let Ok(len @ 1..) = input.read(&mut buffer).await {
                recorded
                    .lock()
                    .unwrap()
                    .push((from, buffer[..len].to_vec()));
                if output.write_all(&buffer[..len]).await.is_err() {
                    return;
                }
            }
            let _ = output.shutdown().await;
        }
    };
    tokio::join!(
        copy(Client, client_in, server_out),
        copy(Server, server_in, client_out)
    );
}

/// The `h2` crate sends twenty concurrent POSTs; each response has twice the body of its request.
async fn converse(recorded: Recorded) {
    let (client_io, client_far) = duplex(1 << 16);
    let (server_io, server_far) = duplex(1 << 16);
    let server = async {
        let mut connection = h2::server::handshake(server_io).await.unwrap();
        let mut tasks = tokio::task::JoinSet::new();
        while let Some(accepted) = connection.accept().await {
            let Ok((request, mut respond)) = accepted else {
                break;
            };
            tasks.spawn(async move {
                let mut body = request.into_body();
                let mut len = 0;
                while let Some(chunk) = body.data().await {
                    let chunk = chunk.unwrap();
                    len += chunk.len();
                    body.flow_control().release_capacity(chunk.len()).unwrap();
                }
                let response = http::Response::builder()
                    .status(201)
                    .header("server", "test")
                    .body(())
                    .unwrap();
                let mut send = respond.send_response(response, false).unwrap();
                send.send_data(Bytes::from(vec![b'x'; 2 * len]), true)
                    .unwrap();
            });
        }
        while tasks.join_next().await.is_some() {}
    };
    let client = async {
        let (send, connection) = h2::client::handshake(client_io).await.unwrap();
        let driver = tokio::spawn(connection);
        let mut tasks = tokio::task::JoinSet::new();
        for n in 0..20usize {
            let mut send = send.clone().ready().await.unwrap();
            let request = http::Request::post(format!("https://test.example/item/{n}"))
                .header("x-number", n)
                .body(())
                .unwrap();
            let (response, mut body) = send.send_request(request, false).unwrap();
            body.send_data(Bytes::from(vec![b'y'; n * 100]), true)
                .unwrap();
            tasks.spawn(async move {
                let mut body = response.await.unwrap().into_body();
                while let Some(chunk) = body.data().await {
                    let len = chunk.unwrap().len();
                    body.flow_control().release_capacity(len).unwrap();
                }
            });
        }
        while tasks.join_next().await.is_some() {}
        drop(send);
        driver.await.unwrap().unwrap();
    };
    tokio::join!(server, client, relay(client_far, server_far, recorded));
}

#[test]
fn conversations_of_the_h2_crate_are_understood_at_any_split() {
    let recorded = Recorded::default();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(converse(recorded.clone()));
    let pieces = recorded.lock().unwrap().clone();
    let mut expected: Vec<String> = (0..20)
        .map(|n| {
            format!(
                "{}: POST /item/{n}+{} -> 201+{} Complete",
                2 * n + 1,
                n * 100,
                n * 200
            )
        })
        .collect();
    expected.sort();
    for chunk in [1, 10, usize::MAX] {
        let mut observer = Http2Observer::default();
        let mut got = observe(&mut observer, &pieces, chunk);
        got.sort();
        assert_eq!(got, expected, "in chunks of {chunk}");
        assert_eq!((observer.lost(Client), observer.lost(Server)), (None, None));
    }
}

proptest! {
    #[test]
    fn damage_never_makes_it_panic(damage in vec((any::<usize>(), any::<u8>()), 0..4), late in any::<bool>()) {
        let mut script = Script::default();
        let mut pieces = if late { Vec::new() } else { opening().to_vec() };
        for stream in [1, 3, 5] {
            pieces.push((Client, script.get(stream, "/some/path")));
            pieces.push((Server, script.head(stream, "200", false)));
            pieces.push((Server, frames(|out| write_data(out, stream, b"hello", true))));
        }
        for &(at, byte) in &damage {
            let count = pieces.len();
            let bytes = &mut pieces[at % count].1;
            let len = bytes.len();
            bytes[at / 7 % len] = byte;
        }
        let mut observer = Http2Observer::default();
        observe(&mut observer, &pieces, 3);
        prop_assert_eq!(observer.outstanding(), 0);
    }
}
