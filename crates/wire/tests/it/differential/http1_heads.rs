//! The first header section of requests and responses, compared with httparse.

use super::{Disagreement, Verdict};
use intact_wire::http1::{
    Error, Headers, Kind, Part, RequestEvent, RequestParser, ResponseEvent, ResponseParser,
};

/// Limit of the fields that httparse reads; our parser limits bytes.
const FIELDS: usize = 512;

/// The result of reading a header section.
#[derive(Debug)]
enum Reading<E> {
    Complete(Section),
    Incomplete,
    Refused(E),
}

/// A header section, and the number of bytes up to its end.
#[derive(Debug, PartialEq, Eq)]
struct Section {
    used: usize,
    /// Method and target, or the status.
    start: [Vec<u8>; 2],
    minor: u8,
    fields: Vec<(Vec<u8>, Vec<u8>)>,
}

/// Compares the first request of some bytes.
pub(crate) fn compare_request(bytes: &[u8]) -> Result<Verdict, Disagreement> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut request = httparse::Request::new(&mut fields);
    let theirs = match request.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => Reading::Complete(Section {
            used,
            start: [owned(request.method), owned(request.path)],
            minor: request.version.unwrap_or_default(),
            fields: theirs(request.headers),
        }),
        Ok(httparse::Status::Partial) => Reading::Incomplete,
        Err(error) => Reading::Refused(error),
    };
    judge(bytes, &our_request(bytes), &theirs)
}

/// Compares the first response of some bytes.
pub(crate) fn compare_response(bytes: &[u8]) -> Result<Verdict, Disagreement> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let theirs = match response.parse(bytes) {
        Ok(httparse::Status::Complete(used)) => Reading::Complete(Section {
            used,
            start: [
                response.code.unwrap_or_default().to_string().into(),
                Vec::new(),
            ],
            minor: response.version.unwrap_or_default(),
            fields: theirs(response.headers),
        }),
        Ok(httparse::Status::Partial) => Reading::Incomplete,
        Err(error) => Reading::Refused(error),
    };
    judge(bytes, &our_response(bytes), &theirs)
}

fn owned(text: Option<&str>) -> Vec<u8> {
    text.unwrap_or_default().into()
}

fn theirs(fields: &[httparse::Header<'_>]) -> Vec<(Vec<u8>, Vec<u8>)> {
    let pair = |field: &httparse::Header<'_>| (field.name.into(), field.value.into());
    fields.iter().map(pair).collect()
}

fn ours(fields: Headers<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    fields
        .map(|(name, value)| (name.into(), value.into()))
        .collect()
}

fn minor(version: intact_wire::http1::Version) -> u8 {
    u8::from(version == intact_wire::http1::Version::Http11)
}

fn our_request(bytes: &[u8]) -> Reading<Error> {
    let mut parser = RequestParser::default();
    let mut used = 0;
    loop {
        let step = match parser.parse(&bytes[used..]) {
            Ok(step) => step,
            Err(error) => return Reading::Refused(error),
        };
        used += step.consumed;
        match step.event {
            None => return Reading::Incomplete,
            Some(RequestEvent::Head(head)) => {
                return Reading::Complete(Section {
                    used,
                    start: [head.method().into(), head.target().into()],
                    minor: minor(head.version),
                    fields: ours(head.headers()),
                });
            }
            Some(_) => {}
        }
    }
}

fn our_response(bytes: &[u8]) -> Reading<Error> {
    let mut parser = ResponseParser::default();
    parser.expect(Kind::Plain);
    match parser.parse(bytes) {
        Err(error) => Reading::Refused(error),
        Ok(step) => match step.event {
            Some(ResponseEvent::Head(head) | ResponseEvent::Interim(head)) => {
                Reading::Complete(Section {
                    used: step.consumed,
                    start: [head.status().to_string().into(), Vec::new()],
                    minor: minor(head.version),
                    fields: ours(head.headers()),
                })
            }
            _ => Reading::Incomplete,
        },
    }
}

/// Compares two results according to RFC 9110 and RFC 9112.
fn judge(
    bytes: &[u8],
    ours: &Reading<Error>,
    theirs: &Reading<httparse::Error>,
) -> Result<Verdict, Disagreement> {
    use Reading::{Complete, Incomplete, Refused};
    let listed = match (ours, theirs) {
        (Complete(ours), Complete(theirs)) if ours == theirs => return Ok(Verdict::Same),
        (Incomplete, Incomplete) | (Refused(_), Refused(_)) => return Ok(Verdict::Same),
        (_, Refused(httparse::Error::TooManyHeaders)) => Some("httparse has room for 512 fields"),
        (Refused(_), Incomplete) => Some("ours refuses a header section before its end"),
        (Incomplete, Refused(_)) => Some("httparse refuses a header section before its end"),
        (Refused(Error::Framing { .. }), Complete(_)) => {
            Some("httparse does not read Content-Length and Transfer-Encoding (RFC 9112 6.3)")
        }
        (Refused(Error::TooLong { .. }), Complete(_)) => Some("httparse has no limit in bytes"),
        (Complete(_), Refused(httparse::Error::NewLine))
            if bytes[0] == b'\r' || bytes[0] == b'\n' =>
        {
            Some("CR and LF before a request are skipped in any order, as nginx does")
        }
        (Complete(ours), Refused(error)) => laxer(bytes, ours, *error),
        (
            Refused(Error::Syntax {
                part: Part::StatusLine,
                ..
            }),
            _,
        ) if bytes[0] == b'\r' || bytes[0] == b'\n' => {
            Some("only a request may follow an empty line (RFC 9112 2.2)")
        }
        (Refused(error), Complete(theirs)) => stricter(error, theirs),
        _ => None,
    };
    let explain = || Disagreement(format!("ours {ours:?}\nhttparse {theirs:?}"));
    listed.map(Verdict::Listed).ok_or_else(explain)
}

/// The reason why our parser may accept what httparse refuses.
fn laxer(bytes: &[u8], ours: &Section, error: httparse::Error) -> Option<&'static str> {
    let section = &bytes[..ours.used];
    let has_control = |text: &[u8]| {
        text.iter()
            .any(|&byte| byte < b' ' && byte != b'\t' || byte == 0x7f)
    };
    match error {
        httparse::Error::HeaderValue if ours.fields.iter().any(|(_, value)| has_control(value)) => {
            Some("a recipient may keep control characters in a field value (RFC 9110 5.5)")
        }
        httparse::Error::Version if section.windows(7).any(|at| at == b"HTTP/1.") => {
            Some("a higher minor version is read as HTTP/1.1 (RFC 9110 2.5)")
        }
        httparse::Error::Token if std::str::from_utf8(&ours.start[1]).is_err() => {
            Some("httparse refuses a target that is not UTF-8; an observer keeps it as sent")
        }
        httparse::Error::Status => {
            let line = section
                .split(|&byte| byte == b'\n')
                .next()
                .unwrap_or_default();
            let reason = line.strip_suffix(b"\r").unwrap_or(line);
            has_control(reason).then_some("a client ignores the reason phrase (RFC 9112 4)")
        }
        _ => None,
    }
}

/// The reason why our parser may refuse what httparse accepts.
fn stricter(error: &Error, theirs: &Section) -> Option<&'static str> {
    match error {
        Error::Syntax {
            part: Part::StatusLine,
            ..
        } if theirs.start[0].len() < 3 => Some("a status code is at least 100 (RFC 9110 15)"),
        Error::Syntax {
            part: Part::RequestLine,
            ..
        } if theirs.start[0].len() > 64 => {
            Some("ours takes a method of more than 64 bytes for another protocol")
        }
        _ => None,
    }
}
