//! Logs of load balancers with formats of their own: HAProxy's HTTP log, the access log of AWS's
//! ALB and classic load balancer, the connection log of an ALB.

use super::line::{Field, Line, LogFailure};
use crate::fields::{protocol, tls_version, whole};
use crate::timestamp::{self, Timestamp};
use intact_ledger::Failure;
use std::borrow::Cow;

/// Status that an ALB logs if the client closed the connection before the response.
const ALB_CLIENT_CLOSED: u16 = 460;

/// Parses a line of HAProxy's `option httplog`.
pub(super) fn haproxy(text: &str) -> Option<Line<'_>> {
    let (head, request) = text.split_once('"')?;
    let request = request.strip_suffix('"').unwrap_or(request);
    let mut words = head.split_ascii_whitespace();
    let mut line = Line::default();
    line.set(Field::Client, Cow::Borrowed(words.next()?));
    line.port?;
    let accepted = words.next()?;
    line.start = Some(timestamp::read(
        accepted.strip_prefix('[')?.strip_suffix(']')?,
    )?);
    let frontend = words.next()?;
    // a frontend with TLS is marked. It stands for the host, because a connection to one frontend
    // cannot serve another one
    line.secure = Some(frontend.ends_with('~'));
    line.set(Field::Host, Cow::Borrowed(frontend.trim_end_matches('~')));
    words.next()?;
    // TR/Tw/Tc/Tr/Ta in milliseconds
    let timers = words.next()?;
    let total = timers.rsplit('/').next()?.trim_start_matches('+');
    if timers.matches('/').count() != 4 {
        return None;
    }
    line.took = whole(total.parse::<f64>().ok()?.max(0.0) * 1e6);
    line.set(Field::Status, Cow::Borrowed(words.next()?));
    line.set(Field::Sent, Cow::Borrowed(words.next()?));
    line.set(Field::Request, Cow::Borrowed(request));
    // two captured cookies precede the termination state
    if let Some(state) = words.nth(2) {
        line.failure = terminated(state, &line);
    }
    Some(line)
}

/// Why HAProxy did not deliver a complete response, by the termination state: who ended the
/// session, and in which phase (section 8.5 of HAProxy's configuration manual).
fn terminated(state: &str, line: &Line<'_>) -> Option<LogFailure> {
    // a tunnel ends by a close of either side
    if line.status == Some(101) || line.method.as_deref() == Some("CONNECT") {
        return None;
    }
    let &[by, phase, ..] = state.as_bytes() else {
        return None;
    };
    // before the data, HAProxy sends a response of its own
    let is_cut = matches!(phase, b'D' | b'L');
    let why = match by {
        b'C' if is_cut => return Some(LogFailure::in_the_middle()),
        b'C' => return Some(LogFailure::by_client()),
        b'-' | b'L' => return None,
        b'S' => "the server closed the connection",
        b's' => "the server stopped sending",
        b'c' => "the client stopped reading",
        _ => "HAProxy ended the session",
    };
    is_cut.then(|| LogFailure {
        kind: Failure::Truncated,
        detail: format!("{why} in the middle of the response (termination state {state})").into(),
    })
}

/// Parses a line of an ALB's access log.
pub(super) fn alb(text: &str) -> Option<Line<'_>> {
    let mut words = Words(text);
    let kind = words.next()?;
    if !matches!(kind, "http" | "https" | "h2" | "grpcs" | "ws" | "wss") {
        return None;
    }
    let (mut line, time) = elastic(&mut words)?;
    line.end = Some(time);
    line.secure = Some(!matches!(kind, "http" | "ws"));
    line.failure = (line.status == Some(ALB_CLIENT_CLOSED)).then(LogFailure::by_client);
    if kind == "h2" {
        line.protocol = protocol("2");
    }
    // newer logs name the connection, as its line in the connection log does
    let trace = words.find(|word| word.starts_with(TRACE));
    line.connection = trace.map(Cow::Borrowed);
    Some(line)
}

/// Parses a line of a classic load balancer, whose time is that of the request.
pub(super) fn elb(text: &str) -> Option<Line<'_>> {
    let (mut line, time) = elastic(&mut Words(text))?;
    if is_elb_of_tcp(text) {
        return None;
    }
    line.start = Some(time);
    line.secure.get_or_insert(false);
    Some(line)
}

/// Whether the line of a classic load balancer is a connection of a listener for TCP or TLS, whose
/// content it does not know.
pub(super) fn is_elb_of_tcp(text: &str) -> bool {
    text.contains(" \"- - - \"")
}

/// Beginning of the ids of an ALB's connections.
const TRACE: &str = "TID_";

/// The values that an ALB and a classic load balancer log in the same order, and the time.
fn elastic<'a>(words: &mut Words<'a>) -> Option<(Line<'a>, Timestamp)> {
    let time = timestamp::read(words.next()?)?;
    let mut line = Line::default();
    words.next()?;
    line.set(Field::Client, Cow::Borrowed(words.next()?));
    line.port?;
    words.next()?;
    let parts = [words.next()?, words.next()?, words.next()?];
    let seconds: Vec<f64> = parts.iter().filter_map(|part| part.parse().ok()).collect();
    // -1 if the target did not respond
    if seconds.len() == 3 && seconds.iter().all(|part| *part >= 0.0) {
        line.took = whole(seconds.iter().sum::<f64>() * 1e9);
    }
    line.set(Field::Status, Cow::Borrowed(words.next()?));
    words.next()?;
    words.next()?;
    let sent = words.next()?;
    // without a word, another value is in its place
    sent.parse::<u64>().ok()?;
    line.set(Field::Sent, Cow::Borrowed(sent));
    let request = words.next()?;
    line.set(Field::Request, Cow::Borrowed(request));
    let authority = request
        .split(' ')
        .nth(1)
        .and_then(|url| url.split_once("://"));
    if let Some((scheme, rest)) = authority {
        let host = rest.split(['/', '?']).next().unwrap_or(rest);
        line.set(Field::Host, Cow::Borrowed(host));
        line.set(Field::Scheme, Cow::Borrowed(scheme));
    }
    line.set(Field::Agent, Cow::Borrowed(words.next()?));
    words.next()?;
    let version = words.next()?;
    if version != "-" {
        line.set(Field::Tls, Cow::Borrowed(version));
    }
    Some((line, time))
}

/// Parses a line of an ALB's connection log: a connection without its requests.
pub(super) fn alb_connection(text: &str) -> Option<Line<'_>> {
    let mut words = Words(text);
    let at = timestamp::read(words.next()?)?;
    let mut line = Line {
        start: Some(at),
        end: Some(at),
        ..Line::default()
    };
    line.set(Field::Client, Cow::Borrowed(words.next()?));
    line.client?;
    line.port = Some(words.next()?.parse().ok()?);
    let listener: u16 = words.next()?.parse().ok()?;
    let version = words.next()?;
    line.secure = Some(version != "-" || listener == 443);
    line.tls = tls_version(version);
    words.next()?;
    let handshake = words.next()?;
    line.handshake = handshake
        .parse::<f64>()
        .ok()
        .and_then(|seconds| whole(seconds * 1e9));
    line.connection = Some(Cow::Borrowed(words.find(|word| word.starts_with(TRACE))?));
    line.opens = true;
    Some(line)
}

/// Words separated by blanks; a quoted text is one word.
struct Words<'a>(&'a str);

impl<'a> Iterator for Words<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start_matches(' ');
        if text.is_empty() {
            return None;
        }
        let (word, rest) = match text.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => text.split_once(' ').unwrap_or((text, "")),
        };
        self.0 = rest;
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haproxys_lines_are_read() {
        let text = r#"10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in~ static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} "GET /index.html HTTP/1.1""#;
        let line = haproxy(text).unwrap();
        assert_eq!((line.port, line.status), (Some(33317), Some(200)));
        assert_eq!((line.took, line.secure), (Some(109_000_000), Some(true)));
        assert_eq!(line.target.as_deref(), Some("/index.html"));
    }

    #[test]
    fn the_termination_state_shows_responses_that_are_not_complete() {
        let outcome = |status: &str, state: &str, request: &str| {
            let text = format!(
                r#"10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 {status} 2750 - - {state} 1/1/1/1/0 0/0 "{request} HTTP/1.1""#
            );
            haproxy(&text).unwrap().failure.map(|failed| failed.kind)
        };
        let get = |status: &str, state: &str| outcome(status, state, "GET /");
        for (status, state) in [
            ("200", "CD--"),
            ("-1", "CH--"),
            ("400", "CR--"),
            ("200", "CDNI"),
        ] {
            assert_eq!(get(status, state), Some(Failure::ClientClosed), "{state}");
        }
        for state in ["SD--", "sD--", "cD--", "PD--", "KD--", "SL--"] {
            assert_eq!(get("200", state), Some(Failure::Truncated), "{state}");
        }
        // complete responses, some of HAProxy itself
        for (status, state) in [
            ("200", "----"),
            ("200", "--VN"),
            ("502", "SH--"),
            ("504", "sH--"),
            ("503", "SC--"),
            ("503", "sQ--"),
            ("408", "cR--"),
            ("403", "PR--"),
            ("200", "LR--"),
            ("101", "CD--"),
            ("101", "SD--"),
        ] {
            assert_eq!(get(status, state), None, "{state}");
        }
        assert_eq!(outcome("200", "CD--", "CONNECT a:1"), None);
    }

    #[test]
    fn an_alb_logs_460_if_the_client_closed() {
        let outcome = |status: u16| {
            let text = format!(
                r#"http 2018-07-02T22:23:00.186641Z app/my-lb/50dc6c495c0c9188 10.0.1.252:48160 10.0.0.66:9000 0.000 -1 -1 {status} - 5 0 "GET http://a:80/ HTTP/1.1" "curl/7.46.0" - - arn:aws:x "Root=1" "-" "-" 1 2018-07-02T22:22:48.364000Z "forward" "-" "-" "10.0.0.66:9000" "-" "-" "-" TID_1"#
            );
            alb(&text).unwrap().failure.map(|failed| failed.kind)
        };
        assert_eq!(outcome(460), Some(Failure::ClientClosed));
        assert_eq!(outcome(504), None);
    }

    #[test]
    fn an_albs_lines_are_read() {
        let line = alb(
            r#"h2 2018-07-02T22:23:00.186641Z app/my-lb/50dc6c495c0c9188 10.0.1.252:48160 10.0.0.66:9000 0.000 0.002 0.001 200 200 5 257 "GET https://10.0.2.105:773/ HTTP/2.0" "curl/7.46.0" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1" "-" "-" 1 2018-07-02T22:22:48.364000Z "redirect" "-" "-" "10.0.0.66:9000" "200" "-" "-" TID_1"#,
        )
        .unwrap();
        assert_eq!((line.port, line.took), (Some(48160), Some(3_000_000)));
        assert_eq!(line.host.as_deref(), Some("10.0.2.105:773"));
        assert_eq!(line.tls, Some(intact_ledger::TlsVersion::Tls12));
        let connection = alb_connection(
            r#"2023-10-04T17:05:15.514108Z 203.0.113.1 36280 443 TLSv1.2 ECDHE-RSA-AES128-GCM-SHA256 4.036 "C=US" NotBefore=2023 FEF257372D5C14D4 Success TID_3180a73013c8ca4bac2f731159d4b0fe"#,
        )
        .unwrap();
        assert_eq!(connection.handshake, Some(4_036_000_000));
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_trouble(text in ".{0,200}") {
            haproxy(&text);
            alb(&text);
            elb(&text);
            alb_connection(&text);
        }
    }
}
