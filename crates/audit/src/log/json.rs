//! Lines of JSON: nginx with any names, Envoy, Caddy, Traefik. The names show the meaning of a
//! value, see [`super::json_names`].

use super::json_names::{self, Dialect, SHARED};
use super::line::Line;
use crate::lenient::behind;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Reads a line; `None` if it is no object, or shows no request and no malformed one.
pub(super) fn read(text: &str) -> Option<Line<'_>> {
    let line = parse(text)?;
    // 0: no handler has set a status, or the client closed before the response
    let has_outcome = line.status.is_some() || line.has_no_status;
    (has_outcome && (line.is_request() || line.has_request)).then_some(line)
}

/// The values of an object; `None` if it is none.
fn parse(text: &str) -> Option<Line<'_>> {
    let mut found = Found {
        line: Line::default(),
        dialect: &SHARED,
    };
    let mut json = serde_json::Deserializer::from_str(text);
    let object = Value {
        found: &mut found,
        path: "",
    };
    json.deserialize_map(object).ok()?;
    let mut line = found.line;
    line.settle(found.dialect.duration_unit);
    Some(line)
}

/// Reads an event of Suricata about a request; `None` for other lines. Alerts and files repeat the
/// request that they belong to.
pub(super) fn suricata(text: &str) -> Option<Line<'_>> {
    if !is_event_of(text, "\"http\"") {
        return None;
    }
    let mut line = parse(text)?;
    // its numbers do not show the order of connections
    line.connection = line.connection.map(|id| format!("flow {id}").into());
    line.secure = Some(false);
    line.is_request().then_some(line)
}

/// Whether it is a whole event of Suricata of another kind.
pub(super) fn is_other_event(text: &str) -> bool {
    let is_event = is_event_of(text, "\"") && !is_event_of(text, "\"http\"");
    is_event && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Whether an object has the key `event_type` with a value that begins so.
fn is_event_of(text: &str, value: &str) -> bool {
    const KEY: &str = "\"event_type\"";
    let after = text.find(KEY).map(|at| &text.as_bytes()[at + KEY.len()..]);
    after.is_some_and(|after| behind(after, &[":", value]).is_some())
}

/// Whether it is a whole object that shows no request: a message of the server. A request without a
/// time that can be read is one.
pub(super) fn is_other(text: &str) -> bool {
    let is_object = text.starts_with('{') && serde_json::from_str::<IgnoredAny>(text).is_ok();
    is_object && read(text).is_none()
}

struct Found<'a> {
    line: Line<'a>,
    dialect: &'static Dialect,
}

/// The name of a value, borrowed where possible.
#[derive(serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Name<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

/// A value that goes into a line; the values of an object do, too.
struct Value<'f, 'p, 'a> {
    found: &'f mut Found<'a>,
    /// Its name after those of the enclosing objects, separated by dots; empty for the line.
    path: &'p str,
}

impl<'a> Value<'_, '_, 'a> {
    fn take(&mut self, text: Cow<'a, str>) {
        // a name that only one server writes
        self.found.dialect = json_names::writer(self.path).unwrap_or(self.found.dialect);
        let field = json_names::field(self.path, self.found.dialect);
        self.found.line.set(field, text);
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_, '_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_, '_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("anything")
    }

    fn visit_borrowed_str<E>(mut self, text: &'de str) -> Result<(), E> {
        self.take(Cow::Borrowed(text));
        Ok(())
    }

    fn visit_str<E>(mut self, text: &str) -> Result<(), E> {
        self.take(Cow::Owned(text.to_owned()));
        Ok(())
    }

    fn visit_bool<E>(mut self, flag: bool) -> Result<(), E> {
        self.take(Cow::Borrowed(if flag { "true" } else { "false" }));
        Ok(())
    }

    fn visit_u64<E>(mut self, number: u64) -> Result<(), E> {
        self.take(Cow::Owned(number.to_string()));
        Ok(())
    }

    fn visit_i64<E>(mut self, number: i64) -> Result<(), E> {
        self.take(Cow::Owned(number.to_string()));
        Ok(())
    }

    fn visit_f64<E>(mut self, number: f64) -> Result<(), E> {
        self.take(Cow::Owned(format!("{number:.9}")));
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    /// The first of several values of a header field is used.
    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if list.next_element_seed(self)?.is_some() {
            while list.next_element::<IgnoredAny>()?.is_some() {}
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut object: A) -> Result<(), A::Error> {
        let is_line = self.path.is_empty();
        if !is_line && !json_names::is_read(self.path) {
            while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        if !is_line {
            self.take(Cow::Borrowed("{}"));
        }
        while let Some(Name(name)) = object.next_key()? {
            let path = match self.path {
                "" => name,
                outer => format!("{outer}.{name}").into(),
            };
            object.next_value_seed(Value {
                found: self.found,
                path: &path,
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caddys_lines_are_read() {
        let line = read(
            r#"{"level":"info","ts":1646861401.5241024,"logger":"http.log.access","msg":"handled request",
            "request":{"remote_ip":"127.0.0.1","remote_port":"41342","client_ip":"10.0.0.1","proto":"HTTP/2.0","method":"GET",
            "host":"localhost","uri":"/x?y","headers":{"User-Agent":["curl/7.82.0"]},
            "tls":{"resumed":false,"version":772,"cipher_suite":4865,"proto":"h2","server_name":"example.com"}},
            "bytes_read":0,"user_id":"","duration":0.000929675,"size":10900,"status":200,"resp_headers":{"Server":["Caddy"]}}"#,
        )
        .unwrap();
        assert_eq!((line.port, line.took), (Some(41342), Some(929_675)));
        assert_eq!(line.client.unwrap().to_string(), "127.0.0.1");
        assert_eq!(line.end.unwrap().nanos, 1_646_861_401_524_102_449);
        assert_eq!(line.tls, Some(intact_ledger::TlsVersion::Tls13));
        assert_eq!(line.resumed, Some(false));
        assert_eq!(line.target.as_deref(), Some("/x?y"));
        assert_eq!(line.agent.as_deref(), Some("curl/7.82.0"));
    }

    #[test]
    fn caddys_status_of_0_decides_nothing() {
        let line = |status: &str| {
            format!(
                r#"{{"level":"info","ts":1646861401.5,"request":{{"remote_ip":"127.0.0.1","remote_port":"41342","proto":"HTTP/1.1","method":"GET","host":"a","uri":"/x"}},"duration":0.3,"size":0{status}}}"#
            )
        };
        let text = line(r#","status":0"#);
        let unset = read(&text).unwrap();
        assert_eq!((unset.status, unset.failure), (None, None));
        let text = line(r#","status":204"#);
        assert_eq!(read(&text).unwrap().failure, None);
        // no access log
        assert_eq!(read(&line("")), None);
    }

    #[test]
    fn nginx_and_envoy_are_detected_by_their_names() {
        let nginx = read(
            r#"{"time_iso8601":"2024-01-01T00:00:00+00:00","remote_addr":"::1","connection":"12","connection_requests":"3","request":"GET / HTTP/1.1","status":"200","request_time":"0.002"}"#,
        )
        .unwrap();
        assert_eq!((nginx.nth, nginx.took), (Some(3), Some(2_000_000)));
        let envoy = read(
            r#"{"start_time":"2024-01-01T00:00:00.000Z","connection_id":5,"method":"GET","path":"/","protocol":"HTTP/1.1","response_code":200,"duration":7,"downstream_remote_address":"10.0.0.1:99"}"#,
        )
        .unwrap();
        assert_eq!((envoy.port, envoy.took), (Some(99), Some(7_000_000)));
    }

    #[test]
    fn traefiks_lines_are_read() {
        let line = read(
            r#"{"ClientAddr":"192.0.2.1:41342","ClientHost":"192.0.2.1","ClientPort":"41342","DownstreamContentSize":17,
            "DownstreamStatus":200,"Duration":1250000,"RequestHost":"a.example","RequestMethod":"GET","RequestPath":"/x?y=1",
            "RequestProtocol":"HTTP/2.0","RequestScheme":"https","StartLocal":"2026-11-21T09:00:00.25+01:00",
            "StartUTC":"2026-11-21T08:00:00.250000001Z","TLSVersion":"1.3","level":"info","msg":"","request_User-Agent":"curl/8",
            "time":"2026-11-21T08:00:00Z"}"#,
        )
        .unwrap();
        assert_eq!((line.port, line.took), (Some(41342), Some(1_250_000)));
        assert_eq!(line.start.unwrap().nanos, 1_795_248_000_250_000_001);
        assert!(!line.start.unwrap().coarse);
        assert_eq!(line.protocol, Some(intact_ledger::Protocol::Http2));
        assert_eq!(line.tls, Some(intact_ledger::TlsVersion::Tls13));
        assert_eq!((line.status, line.sent), (Some(200), Some(17)));
        assert_eq!(line.agent.as_deref(), Some("curl/8"));
    }

    #[test]
    fn suricatas_events_are_read_by_flow_and_transaction() {
        let text = r#"{"timestamp":"2026-11-21T09:00:00.250000+0100","flow_id":1805461739426734,"in_iface":"lo","event_type":"http","src_ip":"192.0.2.1","src_port":41342,"dest_ip":"192.0.2.2","dest_port":80,"proto":"TCP","tx_id":2,"http":{"hostname":"a.example","url":"/x","http_user_agent":"curl/8","http_method":"GET","protocol":"HTTP/1.1","status":200,"length":17},"host":"sensor"}"#;
        let line = suricata(text).unwrap();
        assert_eq!(line.connection.as_deref(), Some("flow 1805461739426734"));
        assert_eq!(
            (line.nth, line.status, line.sent),
            (Some(3), Some(200), Some(17))
        );
        assert_eq!(line.host.as_deref(), Some("a.example"));
        assert_eq!(line.protocol, Some(intact_ledger::Protocol::Http11));
        assert_eq!(line.end.unwrap().nanos, 1_795_248_000_250_000_000);
        let tls = text
            .replace("\"http\":{", "\"tls\":{")
            .replace("\"event_type\":\"http\"", "\"event_type\":\"tls\"");
        assert!(suricata(&tls).is_none() && is_other_event(&tls));
        // an alert repeats the request
        let alert = text.replace("\"event_type\":\"http\"", "\"event_type\": \"alert\"");
        assert!(suricata(&alert).is_none() && is_other_event(&alert));
        assert!(!is_other_event(text) && !is_other_event(&alert[..90]));
    }

    #[test]
    fn a_request_that_could_not_be_parsed_got_a_response() {
        let envoy = r#"{"start_time":"2026-11-21T08:00:00.000Z","connection_id":5,"method":null,"path":null,"protocol":"HTTP/1.1","response_code":400}"#;
        assert_eq!(read(envoy).unwrap().status, Some(400));
        // from a TCP proxy
        let tcp = r#"{"start_time":"2026-11-21T08:00:00.000Z","connection_id":5,"protocol":null,"response_code":0}"#;
        assert_eq!(read(tcp), None);
    }

    #[test]
    fn other_json_is_not_a_line() {
        for text in [
            "{}",
            "[]",
            "7",
            r#"{"level":"error","msg":"x"}"#,
            r#"{"status":"up"}"#,
            "{",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
