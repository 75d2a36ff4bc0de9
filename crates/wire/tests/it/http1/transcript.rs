//! Runs a parser over pieces of bytes and writes its events, one per line.

use std::fmt::Write as _;

use intact_wire::http1::{
    Headers, Kind, Limits, RequestEvent, RequestParser, ResponseEvent, ResponseParser,
};

/// The events of these responses, then of the end of the stream.
pub(super) fn responses(kinds: &[Kind], pieces: &[&[u8]]) -> String {
    responses_within(Limits::default(), kinds, pieces)
}

pub(super) fn responses_within(limits: Limits, kinds: &[Kind], pieces: &[&[u8]]) -> String {
    let mut parser = ResponseParser::new(limits);
    for &kind in kinds {
        parser.expect(kind);
    }
    let mut script = Script::default();
    for piece in pieces {
        let mut input = *piece;
        loop {
            match parser.parse(input) {
                Err(error) => {
                    assert_eq!(parser.parse(b"").unwrap_err(), error, "an error is final");
                    return script.error(&error);
                }
                Ok(step) => {
                    input = &input[step.consumed..];
                    match step.event {
                        None => break,
                        Some(ResponseEvent::Interim(head)) => {
                            script.line(&format!("interim {}", head.status()));
                        }
                        Some(ResponseEvent::Head(head)) => {
                            let unsolicited = if head.solicited { "" } else { " unsolicited" };
                            let ambiguous = if head.ambiguous { " ambiguous" } else { "" };
                            script.line(&format!(
                                "head {} {:?}{unsolicited}{ambiguous}",
                                head.status(),
                                head.framing
                            ));
                        }
                        Some(ResponseEvent::Body(bytes)) => script.body(bytes),
                        Some(ResponseEvent::Trailers(fields)) => script.trailers(fields),
                        Some(ResponseEvent::End(after)) => script.line(&format!("end {after:?}")),
                    }
                }
            }
        }
        script.rest(input);
    }
    script.line(&format!("eof {:?}", parser.finish()));
    script.finish()
}

/// The events of these requests, then of the end of the stream.
pub(super) fn requests(pieces: &[&[u8]]) -> String {
    requests_within(Limits::default(), pieces)
}

pub(super) fn requests_within(limits: Limits, pieces: &[&[u8]]) -> String {
    let mut parser = RequestParser::new(limits);
    let mut script = Script::default();
    for piece in pieces {
        let mut input = *piece;
        loop {
            match parser.parse(input) {
                Err(error) => {
                    assert_eq!(parser.parse(b"").unwrap_err(), error, "an error is final");
                    return script.error(&error);
                }
                Ok(step) => {
                    input = &input[step.consumed..];
                    match step.event {
                        None => break,
                        Some(RequestEvent::Head(head)) => {
                            let (method, target) =
                                (head.method().escape_ascii(), head.target().escape_ascii());
                            let ambiguous = if head.ambiguous { " ambiguous" } else { "" };
                            script.line(&format!(
                                "head {method} {target} {:?}{ambiguous}",
                                head.framing
                            ));
                        }
                        Some(RequestEvent::Body(bytes)) => script.body(bytes),
                        Some(RequestEvent::Trailers(fields)) => script.trailers(fields),
                        Some(RequestEvent::End(after)) => script.line(&format!("end {after:?}")),
                    }
                }
            }
        }
        script.rest(input);
    }
    script.line(&format!("eof {:?}", parser.finish()));
    script.finish()
}

/// Joins adjacent pieces of bodies and tunnels, so splits do not show.
#[derive(Default)]
struct Script {
    lines: String,
    body: Vec<u8>,
    rest: Vec<u8>,
}

impl Script {
    fn line(&mut self, line: &str) {
        self.flush();
        self.lines.push_str(line);
        self.lines.push('\n');
    }

    fn body(&mut self, bytes: &[u8]) {
        assert!(!bytes.is_empty(), "a body event carries bytes");
        self.body.extend_from_slice(bytes);
    }

    fn trailers(&mut self, fields: Headers<'_>) {
        let mut line = String::from("trailers");
        for (name, value) in fields {
            write!(line, " {}={}", name.escape_ascii(), value.escape_ascii()).unwrap();
        }
        self.line(&line);
    }

    fn rest(&mut self, left: &[u8]) {
        self.rest.extend_from_slice(left);
    }

    /// Without the snippet: the number of bytes that it quotes depends on the split.
    fn error(mut self, error: &intact_wire::http1::Error) -> String {
        let text = error.to_string();
        self.line(&format!("error {}", text.split(", found").next().unwrap()));
        self.finish()
    }

    fn flush(&mut self) {
        let body = std::mem::take(&mut self.body);
        if !body.is_empty() {
            writeln!(self.lines, "body {}", body.escape_ascii()).unwrap();
        }
    }

    fn finish(mut self) -> String {
        self.flush();
        if !self.rest.is_empty() {
            writeln!(self.lines, "left {}", self.rest.escape_ascii()).unwrap();
        }
        self.lines
    }
}
