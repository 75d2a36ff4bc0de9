//! Lines of `key=value` pairs (logfmt), as programs in Go and Heroku's router write them. Must not
//! accept a line without a status, or without a request.

use super::line::{Field, Line};
use super::pattern::each_pair;
use crate::timestamp;
use std::borrow::Cow;

/// Reads a line; `None` if it has no status or no request.
pub(super) fn read(text: &str) -> Option<Line<'_>> {
    let mut line = Line::default();
    let (first, rest) = text.split_once(' ')?;
    // the time of a router's log may precede the pairs
    let text = match timestamp::read(first) {
        Some(_) => {
            line.set(Field::End, Cow::Borrowed(first));
            rest
        }
        None => text,
    };
    text.split(' ').next()?.split_once('=')?;
    each_pair(text, |key, value| match key {
        // through several proxies; the first is the client
        "fwd" => {
            let client = value.split(',').next().unwrap_or_default();
            line.set(Field::Client, Cow::Borrowed(client));
        }
        "service" | "duration" | "elapsed" | "took" => {
            line.set(Field::WithUnit, Cow::Borrowed(value));
        }
        // of the router; the connection to the program is another one
        "protocol" => line.set(Field::Scheme, Cow::Borrowed(value)),
        "connect" => {}
        _ => line.set(Field::named(key), Cow::Borrowed(value)),
    });
    let has_outcome = line.status.is_some() || line.has_no_status;
    (has_outcome && line.method.is_some() && line.target.is_some()).then_some(line)
}

/// Whether a line has a value that only one of a request has.
pub(super) fn has_request(text: &str) -> bool {
    [" method=", " path=", " status="]
        .iter()
        .any(|key| text.contains(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_a_request_are_read() {
        let heroku = "at=info method=GET path=\"/a?b=c\" host=a.example request_id=7 fwd=\"192.0.2.1,192.0.2.9\" dyno=web.1 connect=1ms service=39ms status=200 bytes=915 protocol=https";
        let line = read(heroku).unwrap();
        assert_eq!((line.status, line.took), (Some(200), Some(39_000_000)));
        assert_eq!(line.target.as_deref(), Some("/a?b=c"));
        assert_eq!((line.secure, line.sent), (Some(true), Some(915)));
        assert_eq!(line.client.unwrap().to_string(), "192.0.2.1");
        let go = "time=2026-11-21T08:00:00.250Z level=INFO msg=request method=GET path=/a status=200 duration=1.5ms";
        let line = read(go).unwrap();
        assert_eq!(line.took, Some(1_500_000));
        assert!(line.end.is_some());
        for other in [
            "",
            "a=b",
            "status=200 method=GET",
            "GET / status=200 method=GET path=/",
        ] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_trouble(text in ".{0,200}") {
            read(&text);
        }
    }
}
