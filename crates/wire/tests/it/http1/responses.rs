//! Responses as servers send them.

use intact_wire::http1::{
    Eof, Framing, KeepAlive, Kind, Options, ResponseEvent, ResponseParser, Version,
};

use super::transcript::responses;

fn script(kinds: &[Kind], input: &str) -> String {
    responses(kinds, &[input.as_bytes()])
}

#[test]
fn a_head_has_version_status_terms_and_fields() {
    let input = b"HTTP/1.0 404 Not  Found\r\nConnection: Keep-Alive\r\nKeep-Alive: timeout=5, max=99\r\nContent-Length: 0\r\nX-A: 1\r\nx-a: 2\r\n\r\n";
    let mut parser = ResponseParser::default();
    parser.expect(Kind::Plain);
    let step = parser.parse(input).unwrap();
    assert_eq!(step.consumed, input.len());
    let Some(ResponseEvent::Head(head)) = step.event else {
        panic!("{step:?}")
    };
    assert_eq!(
        (head.version, head.status(), head.framing),
        (Version::Http10, 404, Framing::Length(0))
    );
    assert_eq!(head.reason(), b"Not  Found");
    assert_eq!(
        head.options,
        Options {
            keep_alive: true,
            ..Options::default()
        }
    );
    assert_eq!(
        head.keep_alive,
        KeepAlive {
            timeout_s: Some(5),
            max: Some(99)
        }
    );
    assert!(head.persistent() && head.solicited && !head.ambiguous);
    assert_eq!(head.header("X-a"), Some(b"1".as_slice()));
    assert_eq!(head.headers().count(), 5);
    assert_eq!(head.as_bytes(), input);
}

#[test]
fn an_empty_reason_may_lack_its_space() {
    assert_eq!(
        script(&[Kind::Plain], "HTTP/1.1 204\r\n\r\n"),
        "head 204 None\nend Reuse\neof Idle\n"
    );
    let mut parser = ResponseParser::default();
    let Some(ResponseEvent::Head(head)) = parser.parse(b"HTTP/1.1 204\n\n").unwrap().event else {
        panic!("no head")
    };
    assert_eq!(head.reason(), b"");
}

#[test]
fn lengths_end_bodies_and_responses_follow_each_other() {
    let one = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi";
    assert_eq!(
        script(&[Kind::Plain, Kind::Plain], &one.repeat(2)),
        "head 200 Length(2)\nbody hi\nend Reuse\nhead 200 Length(2)\nbody hi\nend Reuse\neof Idle\n"
    );
}

#[test]
fn chunks_are_joined_and_trailers_returned() {
    let input = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n1;x=y\r\n!\r\n0\r\nDigest: abc\r\n\r\n";
    assert_eq!(
        script(&[Kind::Plain], input),
        "head 200 Chunked\nbody hi!\ntrailers Digest=abc\nend Reuse\neof Idle\n"
    );
}

#[test]
fn requests_and_statuses_without_a_body_have_none_for_any_announcement() {
    let named = |status| {
        format!("HTTP/1.1 {status} X\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\n")
    };
    assert_eq!(
        script(&[Kind::Head], &named(200)),
        "head 200 None ambiguous\nend Reuse\neof Idle\n"
    );
    for status in [204, 304] {
        assert_eq!(
            script(&[Kind::Plain], &named(status)),
            format!("head {status} None ambiguous\nend Reuse\neof Idle\n")
        );
    }
}

#[test]
fn the_request_queue_pairs_pipelined_responses_with_their_kinds() {
    let input = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    assert_eq!(
        script(&[Kind::Head, Kind::Plain], input),
        "head 200 None\nend Reuse\nhead 200 Length(5)\nbody hello\nend Reuse\neof Idle\n"
    );
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let input = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(
        script(&[Kind::Plain], input),
        "interim 100\ninterim 103\nhead 200 Length(0)\nend Reuse\neof Idle\n"
    );
}

#[test]
fn switching_protocols_leaves_the_rest_unread() {
    let upgrade = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\r\n\x01\x02";
    assert_eq!(
        script(&[Kind::Plain], upgrade),
        "head 101 Tunnel\nend Tunnel\neof Complete\nleft \\x01\\x02\n"
    );
    let connect = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n\x16\x03";
    assert_eq!(
        script(&[Kind::Connect], connect),
        "head 200 Tunnel\nend Tunnel\neof Complete\nleft \\x16\\x03\n"
    );
    let refused = "HTTP/1.1 407 No\r\nContent-Length: 2\r\n\r\nno";
    assert_eq!(
        script(&[Kind::Connect], refused),
        "head 407 Length(2)\nbody no\nend Reuse\neof Idle\n"
    );
}

#[test]
fn persistence_follows_version_options_and_framing() {
    let cases = [
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n",
            "end Reuse\neof Idle\n",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n",
            "end Close\neof Idle\n",
        ),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n",
            "end Close\neof Idle\n",
        ),
        (
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n",
            "end Reuse\neof Idle\n",
        ),
        (
            "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n",
            "eof Complete\n",
        ),
        (
            "HTTP/1.0 304 Not Modified\r\nConnection: keep-alive\r\n",
            "end Reuse\neof Idle\n",
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n",
            "eof Complete\n",
        ),
    ];
    for (head, expected) in cases {
        let got = script(&[Kind::Plain], &format!("{head}\r\n"));
        assert_eq!(got.split_once('\n').unwrap().1, expected, "{head}");
    }
}

#[test]
fn a_body_until_close_is_complete_only_at_the_end() {
    assert_eq!(
        script(&[Kind::Plain], "HTTP/1.1 200 OK\r\n\r\nabc"),
        "head 200 UntilClose\nbody abc\neof Complete\n"
    );
}

#[test]
fn a_cut_response_differs_from_a_complete_one() {
    let eof = |kinds: &[Kind], input: &str| {
        let script = script(kinds, input);
        script.lines().last().unwrap().to_owned()
    };
    assert_eq!(eof(&[], ""), "eof Idle");
    assert_eq!(
        eof(&[Kind::Plain, Kind::Plain], ""),
        "eof Unanswered { requests: 2 }"
    );
    assert_eq!(
        eof(&[Kind::Plain], "HTTP/1.1 100 Continue\r\n\r\n"),
        "eof Unanswered { requests: 1 }"
    );
    assert_eq!(
        eof(&[Kind::Plain], "HTTP/1.1 200 OK\r\nConte"),
        "eof InHead"
    );
    assert_eq!(
        eof(
            &[Kind::Plain],
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc"
        ),
        "eof InBody { missing: Some(2) }"
    );
    for cut in [
        "",
        "3",
        "3\r\nab",
        "3\r\nabc\r\n",
        "3\r\nabc\r\n0\r\n",
        "0\r\nA: b\r\n",
    ] {
        let input = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{cut}");
        assert_eq!(
            eof(&[Kind::Plain], &input),
            "eof InBody { missing: None }",
            "{cut:?}"
        );
    }
}

#[test]
fn a_response_without_a_request_is_unsolicited() {
    let input = "HTTP/1.1 408 Request Timeout\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    assert_eq!(
        script(&[], input),
        "head 408 Length(0) unsolicited\nend Close\neof Idle\n"
    );
}

#[test]
fn a_repeated_head_reads_the_same_for_another_kind_of_request() {
    let input =
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n";
    assert_eq!(
        script(&[Kind::Plain, Kind::Head], input),
        "head 200 Length(1)\nbody a\nend Reuse\nhead 200 None\nend Reuse\neof Idle\n"
    );
}

#[test]
fn finish_on_a_new_parser_is_idle() {
    assert_eq!(ResponseParser::default().finish(), Eof::Idle);
}
