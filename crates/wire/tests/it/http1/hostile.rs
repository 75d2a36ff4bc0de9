//! Hostile input: every case ends in an error that states what was expected.

use intact_wire::http1::{Kind, Limits};

use super::transcript::{requests, requests_within, responses, responses_within};

fn refused(script: &str, expected: &str) {
    let last = script.lines().last().unwrap();
    assert!(
        last.starts_with("error ") && last.contains(expected),
        "{last:?} does not say {expected:?}"
    );
}

fn response(input: &str) -> String {
    responses(&[Kind::Plain], &[input.as_bytes()])
}

fn request(input: &str) -> String {
    requests(&[input.as_bytes()])
}

#[test]
fn another_protocol_is_refused_at_its_first_bytes() {
    refused(&response("SSH-2.0-OpenSSH_9.2\r\n"), "HTTP/1.x");
    refused(&response("\x15\x03\x01\x00\x02\x02\x46"), "HTTP/1.x");
    refused(&response("\0\0\x12\x04\0\0\0\0\0"), "HTTP/1.x");
    refused(&response("\r\nHTTP/1.1 200 OK\r\n\r\n"), "HTTP/1.x");
    refused(
        &response("HTTP/2.0 200 OK\r\n\r\n"),
        "expected HTTP/1.0 or HTTP/1.1",
    );
    refused(&request("\x16\x03\x01\x02\0\x01\0"), "a method");
    refused(
        &request("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        "expected HTTP/1.0 or HTTP/1.1",
    );
    refused(&request("GET /\r\n\r\n"), "a version");
}

#[test]
fn status_lines_that_are_nearly_right_are_refused() {
    for bad in [
        "HTTP/1.1 20 OK",
        "HTTP/1.1 2000 OK",
        "HTTP/1.1 099 X",
        "HTTP/1.1 2x0 OK",
    ] {
        refused(&response(&format!("{bad}\r\n\r\n")), "status line");
    }
    for bad in [
        "HTTP/1.x 200 OK",
        "HTTP/1.1200 OK",
        "HTTP/1.1  200 OK",
        "HTTP/1 200 OK",
        "HTTP/11 200 OK",
        // found by a comparison with httparse
        "HTTP/1~1 200 OK",
        "HTTP/1\x001 200 OK",
    ] {
        refused(&response(&format!("{bad}\r\n\r\n")), "status line");
    }
    refused(&response("HTTP/1.1 200 O\rK\r\n\r\n"), "no CR");
}

#[test]
fn request_lines_that_are_nearly_right_are_refused() {
    for bad in [
        "GET  / HTTP/1.1",
        "GET /  HTTP/1.1",
        "GET / HTTP/1.1 ",
        "GET /a b HTTP/1.1",
        "G@T / HTTP/1.1",
        "GET / HTTP/1.x",
        "GET\t/ HTTP/1.1",
    ] {
        refused(&request(&format!("{bad}\r\n\r\n")), "request line");
    }
}

#[test]
fn smuggling_is_refused() {
    // only spaces and tabs are blanks around a value: found by a comparison with httparse
    for blank in ["\x0c", "\x0b"] {
        let length = format!("POST / HTTP/1.1\r\nContent-Length:{blank}5\r\n\r\n");
        refused(&request(&length), "not a number");
        let coding = format!("POST / HTTP/1.1\r\nTransfer-Encoding: {blank}chunked\r\n\r\n");
        refused(&request(&coding), "final transfer coding is not chunked");
    }
    refused(
        &request("POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
        "Content-Lengths that differ",
    );
    refused(
        &request("POST / HTTP/1.1\r\nTransfer-Encoding: chunked, gzip\r\n\r\n"),
        "final transfer coding",
    );
    refused(
        &request("POST / HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n"),
        "final transfer coding",
    );
    refused(
        &request("POST / HTTP/1.1\r\nContent-Length : 5\r\n\r\n"),
        "colon right after",
    );
    refused(
        &request("POST / HTTP/1.1\r\nA: b\r\n Content-Length: 5\r\n\r\n"),
        "folded",
    );
    refused(
        &response("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n"),
        "Content-Lengths that differ",
    );
    refused(&response("HTTP/1.1 200 OK\r\nA: b\0c\r\n\r\n"), "no NUL");
}

#[test]
fn endless_heads_trailers_and_interims_are_bounded() {
    let limits = Limits {
        head: 64,
        interim: 2,
    };
    let kinds = [Kind::Plain];
    let long = format!("HTTP/1.1 200 OK\r\nA: {}", "x".repeat(64));
    refused(
        &responses_within(limits, &kinds, &[long.as_bytes()]),
        "head longer than 64 bytes",
    );
    refused(
        &requests_within(limits, &[b"GET /", &[b'a'; 64]]),
        "head longer than 64 bytes",
    );

    let trailers = format!(
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: {}",
        "x".repeat(64)
    );
    refused(
        &responses_within(limits, &kinds, &[trailers.as_bytes()]),
        "trailers longer than 64 bytes",
    );

    let interims = "HTTP/1.1 100 Continue\r\n\r\n".repeat(3);
    refused(
        &responses_within(limits, &kinds, &[interims.as_bytes()]),
        "more than 2 interim responses",
    );
}

#[test]
fn bytes_after_a_complete_response_must_be_a_response() {
    let input = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nab";
    let script = response(input);
    assert!(
        script.starts_with("head 200 Length(1)\nbody a\nend Reuse\n"),
        "{script}"
    );
    refused(&script, "HTTP/1.x");
}
