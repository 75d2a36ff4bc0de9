//! Lines of labelled values, separated by tabs (LTSV): `time:[10/Oct/2000:13:55:36 -0700]<TAB>...`.
//! Must not accept a line with a part that has no label.

use super::line::{Field, Line};
use std::borrow::Cow;
use std::net::IpAddr;

/// Reads a line; `None` if it is none, or has no status or no request.
pub(super) fn read(text: &str) -> Option<Line<'_>> {
    let mut line = Line::default();
    for part in text.split('\t') {
        let (label, value) = part.split_once(':').filter(|(label, _)| is_label(label))?;
        line.set(field(label, value), Cow::Borrowed(value.trim()));
    }
    let has_outcome = line.status.is_some() || line.has_no_status;
    line.settle(1e6);
    (has_outcome && line.is_request()).then_some(line)
}

/// Whether a text is a label (ltsv.org). A head of syslog is none.
fn is_label(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

/// The field of a label of ltsv.org, or of one of nginx's names.
fn field(label: &str, value: &str) -> Field {
    match label {
        // of the client; some logs have the requested name there
        "host" if value.parse::<IpAddr>().is_ok() => Field::Client,
        "remote_host" => Field::Client,
        "datetime" => Field::End,
        "req" => Field::Request,
        "reqtime" => Field::Seconds,
        "reqtime_microsec" => Field::Micros,
        _ => Field::named(label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labelled_values_are_read() {
        let text = "host:192.0.2.1\tident:-\ttime:[10/Oct/2000:13:55:36 -0700]\treq:GET /a?b=c:d HTTP/1.1\tstatus:200\tsize:5\tua:curl/8 x\tvhost:a.example\treqtime:0.250\tconn:7\treqs:2";
        let line = read(text).unwrap();
        assert_eq!((line.status, line.took), (Some(200), Some(250_000_000)));
        assert_eq!(line.target.as_deref(), Some("/a?b=c:d"));
        assert_eq!(line.client.unwrap().to_string(), "192.0.2.1");
        assert_eq!((line.connection.as_deref(), line.nth), (Some("7"), Some(2)));
        assert_eq!(line.host.as_deref(), Some("a.example"));
        let text = text.replace("192.0.2.1", "b.example");
        let name = read(&text).unwrap();
        assert_eq!(
            (name.client, name.host.as_deref()),
            (None, Some("a.example"))
        );
        for other in ["", "a:b", "status:200", "status:200\tx", &text[..60]] {
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
