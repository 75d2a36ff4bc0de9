//! Requests as clients send them.

use intact_wire::http1::{Framing, Kind, RequestEvent, RequestParser, Version};

use super::transcript::requests;

fn script(input: &str) -> String {
    requests(&[input.as_bytes()])
}

#[test]
fn a_head_has_method_target_and_the_facts_that_the_response_depends_on() {
    let input =
        b"POST /a?b=c HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\nContent-Length: 3\r\n\r\n";
    let mut parser = RequestParser::default();
    let Some(RequestEvent::Head(head)) = parser.parse(input).unwrap().event else {
        panic!("no head")
    };
    assert_eq!(
        (head.method(), head.target()),
        (b"POST".as_slice(), b"/a?b=c".as_slice())
    );
    assert_eq!(
        (head.version, head.framing, head.kind()),
        (Version::Http11, Framing::Length(3), Kind::Plain)
    );
    assert!(head.expects_continue && head.persistent());
    assert_eq!(head.header("host"), Some(b"h".as_slice()));
    assert_eq!(head.as_bytes(), input);
}

#[test]
fn pipelined_requests_follow_each_other() {
    let input = "GET /1 HTTP/1.1\r\n\r\nPOST /2 HTTP/1.1\r\nContent-Length: 2\r\n\r\nhiHEAD /3 HTTP/1.0\r\n\r\n";
    assert_eq!(
        script(input),
        "head GET /1 None\nend Reuse\nhead POST /2 Length(2)\nbody hi\nend Reuse\nhead HEAD /3 None\nend Close\neof Idle\n"
    );
}

#[test]
fn empty_lines_before_a_request_are_skipped() {
    assert_eq!(
        script("\r\n\r\nGET / HTTP/1.1\r\n\r\n\r\n"),
        "head GET / None\nend Reuse\neof Idle\n"
    );
}

#[test]
fn chunked_uploads_may_carry_trailers() {
    let input =
        "PUT / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nA: b\r\n\r\n";
    assert_eq!(
        script(input),
        "head PUT / Chunked\nbody hello\ntrailers A=b\nend Reuse\neof Idle\n"
    );
}

#[test]
fn an_ambiguous_request_is_flagged_and_closes() {
    let input =
        "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n";
    assert_eq!(
        script(input),
        "head POST / Chunked ambiguous\nend Close\neof Idle\n"
    );
}

#[test]
fn connect_waits_for_its_response() {
    let mut parser = RequestParser::default();
    let input = b"CONNECT a:1 HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n";
    assert_eq!(
        requests(&[input]),
        "head CONNECT a:1 None\nend Tunnel\neof Complete\nleft GET / HTTP/1.1\\r\\n\\r\\n\n"
    );

    let head = parser.parse(input).unwrap().consumed;
    let _end = parser.parse(&input[head..]).unwrap();
    assert_eq!(parser.parse(&input[head..]).unwrap().event, None);
    parser.resume();
    let Some(RequestEvent::Head(next)) = parser.parse(&input[head..]).unwrap().event else {
        panic!("not resumed")
    };
    assert_eq!(next.method(), b"GET");
}

#[test]
fn a_cut_request_differs_from_an_idle_end() {
    let eof = |input: &str| script(input).lines().last().unwrap().to_owned();
    assert_eq!(eof(""), "eof Idle");
    assert_eq!(eof("\r\n"), "eof Idle");
    assert_eq!(eof("GE"), "eof InHead");
    assert_eq!(
        eof("PUT / HTTP/1.1\r\nContent-Length: 9\r\n\r\nabc"),
        "eof InBody { missing: Some(6) }"
    );
}
