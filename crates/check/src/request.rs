//! A request, formatted once for every HTTP version.

use crate::config::{Config, ConfigError};
use crate::probe::is_redirect;
use intact_client::ServerUrl;
use intact_ledger::{ExpectedStatus, Method, Protocol, Scheme, Target};
use intact_wire::http1::{Kind, split_field};

/// Fields that belong to a connection, which HTTP/2 forbids (RFC 9113 section 8.2.2).
pub(crate) const CONNECTION_FIELDS: [&str; 5] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
];

/// What is asked; how it looks on the wire follows from the version.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    /// As sent, query included.
    path: String,
    scheme: &'static str,
    authority: String,
    /// The given fields and ours, without `Host`.
    fields: Vec<(String, String)>,
    /// `Connection` in HTTP/1, if it is to be sent.
    connection: Option<&'static str>,
    pub(crate) body: Option<&'static str>,
    /// The statuses that count as ok, where they matter.
    pub(crate) expect: Option<ExpectedStatus>,
    /// Whether a redirect is followed, and so ok whatever its status.
    pub(crate) follows: bool,
}

impl Request {
    /// The request that a configuration asks for.
    pub(crate) fn new(config: &Config) -> Result<Request, ConfigError> {
        let mut given = Vec::new();
        for header in &config.headers {
            given.push(field(header)?);
        }
        let mut fields = Vec::new();
        for (name, value) in [("user-agent", &*config.user_agent), ("accept", "*/*")] {
            if !given.iter().any(|(own, _)| own == name) {
                fields.push((name.to_owned(), value.to_owned()));
            }
        }
        let mut authority = config.address.authority();
        given.retain(|(name, value)| {
            let is_host = name == "host";
            if is_host {
                authority.clone_from(value);
            }
            !is_host
        });
        fields.extend(given);
        Ok(Request {
            method: config.method.clone(),
            path: config.address.path.clone(),
            scheme: config.address.scheme.as_str(),
            authority,
            fields,
            connection: None,
            body: None,
            expect: None,
            follows: false,
        })
    }

    /// The same to another place; fields that may hold secrets stay behind when the host is another, or TLS is left.
    pub(crate) fn led_to(&self, address: &ServerUrl) -> Request {
        let mut led = self.clone();
        let may_know = self.authority == address.authority()
            && (self.scheme == "http" || address.scheme == Scheme::Https);
        led.path.clone_from(&address.path);
        led.scheme = address.scheme.as_str();
        led.authority = address.authority();
        if !may_know {
            led.fields
                .retain(|(name, _)| name == "user-agent" || name == "accept");
        }
        led
    }

    /// The same by another method.
    pub(crate) fn by(&self, method: Method) -> Request {
        Request {
            method,
            ..self.clone()
        }
    }

    /// The same where only these statuses count as ok, and those of redirects that are followed.
    pub(crate) fn expecting(&self, expect: Option<ExpectedStatus>, follows: bool) -> Request {
        Request {
            expect,
            follows,
            ..self.clone()
        }
    }

    /// The statuses that count as ok for a response with this one.
    pub(crate) fn expected(&self, status: Option<u16>) -> Option<ExpectedStatus> {
        self.expect
            .filter(|_| !(self.follows && status.is_some_and(is_redirect)))
    }

    /// The same for another path.
    pub(crate) fn at(&self, path: &str) -> Request {
        Request {
            path: path.to_owned(),
            ..self.clone()
        }
    }

    /// The same with `Connection` said, in HTTP/1.
    pub(crate) fn saying(&self, connection: &'static str) -> Request {
        Request {
            connection: Some(connection),
            ..self.clone()
        }
    }

    /// The same with another field.
    pub(crate) fn with(&self, name: &str, value: &str) -> Request {
        let mut request = self.clone();
        request.fields.push((name.to_owned(), value.to_owned()));
        request
    }

    /// The same with a body, which is JSON unless a field was given that says something else.
    pub(crate) fn carrying(&self, body: &'static str) -> Request {
        let is_told = self.fields.iter().any(|(name, _)| name == "content-type");
        let mut request = self.with("content-length", &body.len().to_string());
        if !is_told {
            request = request.with("content-type", "application/json");
        }
        Request {
            body: Some(body),
            ..request
        }
    }

    /// The path without its query, as recorded.
    pub(crate) fn target(&self) -> Target {
        Target::new(&self.path)
    }

    /// What the answer's framing must know of it.
    pub(crate) fn kind(&self) -> Kind {
        if self.method == Method::HEAD {
            Kind::Head
        } else {
            Kind::Plain
        }
    }

    /// As sent in HTTP/1.
    pub(crate) fn http1(&self, version: Protocol) -> Vec<u8> {
        let version = version.as_str();
        let Request {
            method,
            path,
            authority,
            ..
        } = self;
        let mut text = format!("{method} {path} HTTP/{version}\r\nhost: {authority}\r\n");
        for (name, value) in &self.fields {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        if let Some(option) = self.connection {
            text.push_str(&format!("connection: {option}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(self.body.unwrap_or(""));
        text.into_bytes()
    }

    /// As fields of HTTP/2, pseudo-fields first, nothing that belongs to a connection.
    pub(crate) fn http2(&self) -> Vec<(&str, &str)> {
        let mut all = vec![
            (":method", self.method.as_str()),
            (":scheme", self.scheme),
            (":authority", &self.authority),
            (":path", &self.path),
        ];
        for (name, value) in &self.fields {
            if !CONNECTION_FIELDS.contains(&name.as_str()) {
                all.push((name, value));
            }
        }
        all
    }
}

/// A field as given, its name in lower case.
fn field(header: &str) -> Result<(String, String), ConfigError> {
    let wrong = |reason| ConfigError::Header {
        field: header.split(':').next().unwrap_or("").to_owned(),
        reason,
    };
    let (name, value) = split_field(header).map_err(wrong)?;
    let name = name.to_ascii_lowercase();
    if name == "content-length" {
        return Err(wrong("the body, where there is one, is ours"));
    }
    if CONNECTION_FIELDS.contains(&name.as_str()) {
        return Err(wrong(
            "what is said about the connection is what is measured here",
        ));
    }
    Ok((name, value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(headers: &[&str]) -> Result<Request, ConfigError> {
        let mut config = Config::new("http://h:8/p?q=1").unwrap();
        config.headers = headers.iter().map(|&header| header.to_owned()).collect();
        Request::new(&config)
    }

    #[test]
    fn each_version_has_its_own_form() {
        let asked = request(&["X-A: b", "Host: other"]).unwrap();
        let text = String::from_utf8(asked.saying("keep-alive").http1(Protocol::Http10)).unwrap();
        assert!(
            text.starts_with("GET /p?q=1 HTTP/1.0\r\nhost: other\r\n"),
            "{text}"
        );
        assert!(
            text.ends_with("x-a: b\r\nconnection: keep-alive\r\n\r\n"),
            "{text}"
        );
        let fields = asked.saying("keep-alive");
        let fields = fields.http2();
        assert_eq!(fields[2], (":authority", "other"));
        assert!(fields.iter().all(|(name, _)| *name != "connection"));
    }

    #[test]
    fn a_body_says_how_long_it_is_and_what() {
        let post = request(&[]).unwrap().by(Method::POST).carrying("{}");
        let text = String::from_utf8(post.http1(Protocol::Http11)).unwrap();
        assert!(
            text.ends_with("content-length: 2\r\ncontent-type: application/json\r\n\r\n{}"),
            "{text}"
        );
        let own = request(&["Content-Type: text/plain"])
            .unwrap()
            .carrying("{}");
        let fields = own.http2();
        assert!(!fields.contains(&("content-type", "application/json")));
        assert!(fields.contains(&("content-length", "2")));
    }

    #[test]
    fn secrets_do_not_follow_to_another_host_or_out_of_tls() {
        let secure = Config::new("https://h:8443/p").unwrap();
        let mut secure = Request::new(&secure).unwrap();
        secure
            .fields
            .push(("cookie".to_owned(), "secret".to_owned()));
        let plain = secure.led_to(&ServerUrl::parse("http://h:8443/p").unwrap());
        assert!(
            !String::from_utf8(plain.http1(Protocol::Http11))
                .unwrap()
                .contains("secret")
        );
        let asked = request(&["Authorization: secret"]).unwrap();
        let sent = |url: &str| {
            let led = asked.led_to(&ServerUrl::parse(url).unwrap());
            String::from_utf8(led.http1(Protocol::Http11)).unwrap()
        };
        assert!(sent("http://h:8/x").contains("secret"));
        assert!(!sent("http://other/x").contains("secret"));
        assert!(!sent("https://h:9/x").contains("secret"));
    }

    #[test]
    fn fields_that_would_spoil_the_measurement_are_refused() {
        for bad in [
            "Connection: close",
            "Content-Length: 3",
            "no colon",
            "a b: c",
            "a: b\nc: d",
        ] {
            assert!(
                matches!(request(&[bad]), Err(ConfigError::Header { .. })),
                "{bad:?}"
            );
        }
    }
}
