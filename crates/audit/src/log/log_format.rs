//! Detects which of the known formats a log has, by its first lines.

use super::line::Line;
use super::pattern::{COMBINED, COMMON, ENVOY, Pattern};
use super::w3c::Columns;
use super::{balancer, json, notices};

/// Number of lines that the detection reads.
const LOOKED_AT: usize = 32;
/// nginx and Apache with the virtual host in front.
const WITH_HOST: &str = r#"$host $remote_addr $identity $remote_user [$time_local] "$request" $status $body_bytes_sent"#;

/// A format of lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// The format of `--log-format`.
    Given(Pattern),
    /// A usual format of nginx and Apache, perhaps with `key=value` pairs at the end.
    Usual(Pattern),
    Envoy(Pattern),
    Json,
    Haproxy,
    Alb,
    AlbConnection,
    W3c(Columns),
}

impl LogFormat {
    /// The format of at least half of the first lines.
    pub(crate) fn detect(prefix: &[u8]) -> Option<LogFormat> {
        let text = String::from_utf8_lossy(prefix);
        // the last line of the prefix may be incomplete
        let whole = match text.rfind('\n') {
            Some(end) => &text[..end],
            None => &text,
        };
        if let Some(columns) = Columns::find(whole) {
            return Some(LogFormat::W3c(columns));
        }
        let lines: Vec<&str> = whole
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            // servers write messages of their own before the first request
            .filter(|line| !notices::is_notice(line) && !json::is_other(line))
            .take(LOOKED_AT)
            .collect();
        let known = [
            LogFormat::Json,
            LogFormat::Alb,
            LogFormat::AlbConnection,
            LogFormat::Haproxy,
            LogFormat::Usual(Pattern::known(COMBINED)),
            LogFormat::Usual(Pattern::known(COMMON)),
            LogFormat::Usual(Pattern::known(WITH_HOST)),
            LogFormat::Envoy(Pattern::known(ENVOY)),
        ];
        known.into_iter().find(|dialect| {
            let fitting = lines.iter().filter(|line| dialect.read(line).is_some());
            let fitting = fitting.count();
            fitting > 0 && fitting * 2 >= lines.len()
        })
    }

    /// Reads a line that begins with `#`. It may change the columns of later lines.
    pub(super) fn take_directive(&mut self, text: &str) {
        if let LogFormat::W3c(columns) = self {
            columns.take(text);
        }
    }

    /// Parses a line; `None` if it does not match, or has no time.
    pub(super) fn read<'a>(&self, text: &'a str) -> Option<Line<'a>> {
        let line = match self {
            LogFormat::Given(pattern) | LogFormat::Usual(pattern) | LogFormat::Envoy(pattern) => {
                pattern.read(text)
            }
            LogFormat::Json => json::read(text),
            LogFormat::Haproxy => balancer::haproxy(text),
            LogFormat::Alb => balancer::alb(text),
            LogFormat::AlbConnection => balancer::alb_connection(text),
            LogFormat::W3c(columns) => columns.read(text),
        }?;
        (line.end.is_some() || line.start.is_some()).then_some(line)
    }

    /// Whether a line that does not match is known to be no request. The logs of services hold
    /// nothing else; servers also write messages.
    pub(super) fn is_other(&self, text: &str) -> bool {
        match self {
            LogFormat::Json => json::is_other(text) || notices::is_notice(text),
            LogFormat::Given(_)
            | LogFormat::Usual(_)
            | LogFormat::Envoy(_)
            | LogFormat::Haproxy => json::is_other(text) || notices::is_notice(text),
            LogFormat::Alb | LogFormat::AlbConnection | LogFormat::W3c(_) => false,
        }
    }

    /// The remedy for lines that do not match, as the end of a sentence; empty if there is none.
    pub(super) fn remedy(&self) -> &'static str {
        match self {
            LogFormat::Usual(_) | LogFormat::Envoy(_) | LogFormat::Json => {
                ". Give the format with --log-format if it has others"
            }
            _ => "",
        }
    }

    /// The name that users see.
    pub(super) fn name(&self) -> &'static str {
        match self {
            LogFormat::Given(_) => "in the format given",
            LogFormat::Usual(_) => "in the format of nginx and Apache",
            LogFormat::Envoy(_) => "in Envoy's format",
            LogFormat::Json => "in JSON",
            LogFormat::Haproxy => "in HAProxy's format",
            LogFormat::Alb => "in the format of AWS's ALB",
            LogFormat::AlbConnection => "connections of AWS's ALB, without their requests",
            LogFormat::W3c(_) => "in the W3C extended format",
        }
    }

    /// The fields that name the connection of a request, as the end of a sentence; empty if the
    /// format cannot have any.
    pub(super) fn connection_fields(&self) -> &'static str {
        match self {
            LogFormat::Usual(_) => {
                ". Add `conn=$connection reqs=$connection_requests` to nginx's log_format, or `port=%{remote}p k=%k X=%X` to Apache's LogFormat"
            }
            LogFormat::Envoy(_) => ". Add `conn=%CONNECTION_ID%` to the format",
            LogFormat::Given(_) | LogFormat::Json => {
                ". Add $connection and $connection_requests (nginx), %{remote}p and %k (Apache) or %CONNECTION_ID% (Envoy)"
            }
            LogFormat::W3c(_) => ". Add the custom field `c-port` for REMOTE_PORT (IIS)",
            LogFormat::Haproxy | LogFormat::Alb | LogFormat::AlbConnection => "",
        }
    }

    /// The field for a request's position on its connection, as the end of a sentence; empty if the
    /// server has none. `has_ids`: connections have ids of the server, as in logs of nginx and
    /// Envoy.
    pub(super) fn position_field(&self, has_ids: bool) -> &'static str {
        match self {
            LogFormat::Usual(_) => {
                ". Add `reqs=$connection_requests` to nginx's log_format, or `k=%k` to Apache's LogFormat"
            }
            LogFormat::Given(_) => ". Add $connection_requests (nginx) or %k (Apache)",
            LogFormat::Json if has_ids => ". Add $connection_requests, if it is nginx's",
            LogFormat::Json
            | LogFormat::Envoy(_)
            | LogFormat::Haproxy
            | LogFormat::Alb
            | LogFormat::AlbConnection
            | LogFormat::W3c(_) => "",
        }
    }

    /// Configuration lines that make the server log the connection of each request.
    pub(super) fn advice(&self) -> Vec<String> {
        let all: &[&str] = match self {
            LogFormat::Usual(_) => &[NGINX, APACHE],
            LogFormat::Given(_) | LogFormat::Json => &[NGINX, APACHE, ENVOY_DIRECTIVE],
            LogFormat::Envoy(_) => &[ENVOY_DIRECTIVE],
            LogFormat::W3c(_) => &[IIS],
            LogFormat::Haproxy | LogFormat::Alb | LogFormat::AlbConnection => &[],
        };
        let lines = all.iter().flat_map(|text| text.lines());
        lines.map(str::to_owned).collect()
    }
}

/// For nginx's `http` block.
pub(super) const NGINX: &str = r#"# nginx, in the http block:
log_format intact '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent '
    '"$http_referer" "$http_user_agent" msec=$msec rt=$request_time conn=$connection '
    'reqs=$connection_requests scheme=$scheme host=$host tls=$ssl_protocol '
    'resumed=$ssl_session_reused';
access_log /var/log/nginx/access.log intact;"#;

/// For Apache's server configuration.
pub(super) const APACHE: &str = r#"# Apache:
LogFormat "%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-Agent}i\" start_usec=%{usec}t usec=%D port=%{remote}p k=%k X=%X host=%V" intact
CustomLog ${APACHE_LOG_DIR}/access.log intact"#;

/// For a site of IIS.
pub(super) const IIS: &str = r#"# IIS, in the logFile element of the site:
<customFields>
  <add logFieldName="c-port" sourceName="REMOTE_PORT" sourceType="ServerVariable" />
</customFields>"#;

/// For Envoy's access log.
pub(super) const ENVOY_DIRECTIVE: &str = r#"# Envoy, in access_log:
log_format:
  json_format:
    start_time: "%START_TIME%"
    downstream_direct_remote_address: "%DOWNSTREAM_DIRECT_REMOTE_ADDRESS%"
    connection_id: "%CONNECTION_ID%"
    method: "%REQ(:METHOD)%"
    path: "%REQ(X-ENVOY-ORIGINAL-PATH?:PATH)%"
    protocol: "%PROTOCOL%"
    response_code: "%RESPONSE_CODE%"
    duration: "%DURATION%"
    host: "%REQ(:AUTHORITY)%"
    scheme: "%REQ(:SCHEME)%"
    downstream_tls_version: "%DOWNSTREAM_TLS_VERSION%""#;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_by_their_lines() {
        let combined =
            "::1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl/8\"\n";
        assert!(matches!(
            LogFormat::detect(combined.as_bytes()),
            Some(LogFormat::Usual(_))
        ));
        let common = "::1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5\n";
        assert!(matches!(
            LogFormat::detect(common.as_bytes()),
            Some(LogFormat::Usual(_))
        ));
        let hosted = "a.example:80 ::1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5\n";
        assert!(matches!(
            LogFormat::detect(hosted.as_bytes()),
            Some(LogFormat::Usual(_))
        ));
        for text in [
            "",
            "\n\n",
            "hello\nworld\n",
            "{\"a\":1}\n",
            "a,b,c\n1,2,3\n",
        ] {
            assert_eq!(LogFormat::detect(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn the_recommended_formats_are_read() {
        let directive = NGINX.split_once('\n').unwrap().1;
        let directive = directive.split_once(";\n").unwrap().0;
        let nginx = Pattern::new(directive).unwrap();
        let line = "::1 - - [21/Nov/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl/8\" msec=1795248000.250 \
            rt=0.125 conn=7 reqs=2 scheme=https host=a.example tls=TLSv1.3 resumed=r";
        for dialect in [
            LogFormat::Given(nginx),
            LogFormat::detect(line.as_bytes()).unwrap(),
        ] {
            let read = dialect.read(line).unwrap();
            assert_eq!((read.connection.as_deref(), read.nth), (Some("7"), Some(2)));
            assert_eq!(read.resumed, Some(true));
            assert_eq!(read.end.unwrap().nanos, 1_795_248_000_250_000_000);
        }
        assert!(Pattern::new(APACHE.lines().nth(1).unwrap()).is_ok());
        let line = "127.0.0.1 - - [21/Nov/2026:08:00:00 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"curl/8\" \
            start_usec=1795248000123456 usec=250 port=5000 k=0 X=+ host=a";
        let read = LogFormat::detect(line.as_bytes())
            .unwrap()
            .read(line)
            .unwrap();
        assert_eq!(
            (read.port, read.nth, read.closes),
            (Some(5000), Some(1), false)
        );
        assert_eq!(read.took, Some(250_000));
        assert_eq!(read.start.unwrap().nanos, 1_795_248_000_123_456_000);
    }
}
