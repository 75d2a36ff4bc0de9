//! Lines of JSON: nginx with any names, Caddy, Envoy. Names tell what a value is; an object `request` is Caddy's.

use super::line::{Field, Line};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Reads a line; `None` where it is no object, or says nothing of a request.
pub(super) fn read(text: &str) -> Option<Line<'_>> {
    let mut found = Found::default();
    let mut json = serde_json::Deserializer::from_str(text);
    Object {
        found: &mut found,
        depth: 0,
    }
    .deserialize(&mut json)
    .ok()?;
    let mut line = found.line;
    // Caddy counts in seconds, Envoy in milliseconds
    line.settle(if found.is_caddy { 1e9 } else { 1e6 });
    (line.status.is_some() && (line.method.is_some() || line.target.is_some())).then_some(line)
}

#[derive(Default)]
struct Found<'a> {
    line: Line<'a>,
    is_caddy: bool,
}

/// An object whose values go into a line.
struct Object<'f, 'a> {
    found: &'f mut Found<'a>,
    depth: u8,
}

impl<'de> DeserializeSeed<'de> for Object<'_, 'de> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Object<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        while let Some(Name(name)) = object.next_key()? {
            let value = Value {
                found: &mut *self.found,
                name: &name,
                depth: self.depth,
            };
            object.next_value_seed(value)?;
        }
        Ok(())
    }
}

/// The name of a value, borrowed where it can be.
pub(crate) struct Name<'a>(pub(crate) Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Name<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name<'de>, D::Error> {
        struct Text;
        impl<'de> Visitor<'de> for Text {
            type Value = Name<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Name<'de>, E> {
                Ok(Name(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(Text)
    }
}

/// A value under a name.
struct Value<'f, 'n, 'a> {
    found: &'f mut Found<'a>,
    name: &'n str,
    depth: u8,
}

impl<'a> Value<'_, '_, 'a> {
    fn take(self, text: Cow<'a, str>) {
        // Caddy calls a client behind a trusted proxy `client_ip`: whose connection it is tells `remote_ip`
        let field = match (self.depth, self.name) {
            (1, "version") if self.found.is_caddy => Field::Tls,
            (1, "proto") => Field::Protocol,
            (2, "version") => Field::Tls,
            (2, "resumed") => Field::Resumed,
            (2, "User-Agent") => Field::Agent,
            (2, _) => Field::Other,
            (_, name) => Field::named(name),
        };
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

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<(), E> {
        self.take(Cow::Borrowed(text));
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        self.take(Cow::Owned(text.to_owned()));
        Ok(())
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<(), E> {
        self.take(Cow::Borrowed(if flag { "true" } else { "false" }));
        Ok(())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<(), E> {
        self.take(Cow::Owned(number.to_string()));
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.take(Cow::Owned(number.to_string()));
        Ok(())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<(), E> {
        self.take(Cow::Owned(format!("{number:.9}")));
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        if (self.depth, self.name) == (2, "User-Agent") && list.next_element_seed(self)?.is_none() {
            return Ok(());
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let wanted = matches!(
            (self.depth, self.name),
            (0, "request") | (1, "tls" | "headers")
        );
        if !wanted {
            while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        if self.depth == 0 {
            self.found.is_caddy = true;
        } else if self.name == "tls" {
            self.found.line.secure = Some(true);
        }
        let inner = Object {
            found: self.found,
            depth: self.depth + 1,
        };
        inner.visit_map(object)
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
    fn nginx_and_envoy_are_told_by_their_names() {
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
    fn json_of_something_else_is_none() {
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
