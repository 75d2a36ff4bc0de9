//! The formats of lines, one row per format: how it is detected and read, and what its server can
//! log in addition. To add a format, add a row, and a file that reads its lines.

use super::line::Field;
use super::line::Line;
use super::pattern::{COMBINED, COMMON, ENVOY, ISTIO, Pattern};
use super::w3c::Columns;
use super::{balancer, json, lambda, ltsv, notices, pairs, syslog};
use intact_ledger::Vantage;
use std::borrow::Cow;

/// Number of lines that the detection reads.
const LOOKED_AT: usize = 32;
/// nginx and Apache with the virtual host in front.
const WITH_HOST: &str = r#"$host $remote_addr $identity $remote_user [$time_local] "$request" $status $body_bytes_sent"#;

/// Access logs of S3, whose time is that of the request.
const S3: &str = r#"$owner $bucket [$start] $remote_addr $requester $id $operation $key "$request" $status $error $body_bytes_sent $object_size $ms $turnaround "$http_referer" "$http_user_agent""#;

/// The ingress controller of Kubernetes with nginx.
const INGRESS: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_length $request_time [$service] [$alternative] $upstream $upstream_length $upstream_time $upstream_status $req_id"#;

/// uvicorn, whose lines have no time: that of a container's log counts.
const UVICORN: &str = r#"INFO:     $remote_addr - "$request" $status "#;

/// The development server of Django.
const DJANGO: &str = r#"[$time_local] "$request" $status $body_bytes_sent"#;

/// OVH's web hosting.
const OVH: &str = r#"$remote_addr $host $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;

/// Gandi's web hosting. Its durations have whole seconds, so that most are 0.
const GANDI: &str = r#"$host $remote_addr - $remote_user [$time_local] ($seconds s) "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;

/// Nginx Proxy Manager: a host that is passed on, another one, and those of NPMplus.
const MANAGED: [&str; 3] = [
    r#"[$time_local] $cache $upstream_status $status - $method $scheme $host "$uri" [Client $remote_addr] [Length $body_bytes_sent] [Gzip $gzip] [Sent-to $server] "$http_user_agent" "$http_referer""#,
    r#"[$time_local] $status - $method $scheme $host "$uri" [Client $remote_addr] [Length $body_bytes_sent] [Gzip $gzip] "$http_user_agent" "$http_referer""#,
    r#"[$time_local] $host $remote_addr $request_time "$request" $status $body_bytes_sent $request_length $http_referer $http_user_agent"#,
];

/// The formats of nginx and Apache, in the order in which they are tried.
const USUAL_PATTERNS: [&str; 9] = [
    INGRESS, COMBINED, COMMON, WITH_HOST, OVH, GANDI, MANAGED[0], MANAGED[1], MANAGED[2],
];

/// Traefik, whose time is that of the request.
const TRAEFIK: &str = r#"$remote_addr - $remote_user [$start] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $number "$router" "$server" $took"#;

/// uWSGI, whose time is that of the request.
const UWSGI: &str = "[pid: $pid|app: $app|req: $nth/$all] $remote_addr ($remote_user) {$vars vars in $length bytes} [$start] $method $uri => generated $body_bytes_sent bytes in $took ($protocol $status) $headers";

/// A format of lines.
pub(crate) struct LineFormat {
    /// The name that users see.
    pub(super) name: &'static str,
    /// The readers of a log that begins with these lines, in the order in which they are tried;
    /// none if the lines show another format.
    readers: fn(&str) -> Vec<Reader>,
    /// Whether a line that cannot be read is known to be no request. The logs of services hold
    /// nothing else; servers also write messages.
    is_other: fn(&str) -> bool,
    /// Text that shows the format also in lines that are no requests; empty if nothing does.
    mark: &'static str,
    /// The remedy for lines that do not match, as the end of a sentence.
    pub(super) remedy: &'static str,
    /// The fields that name the connection of a request, as the end of a sentence; empty if the
    /// format cannot have any.
    pub(super) connection_fields: &'static str,
    /// The fields with times below a second, as the end of a sentence; empty if the format cannot
    /// have any.
    pub(super) time_fields: &'static str,
    /// The field for a request's position on its connection, as the end of a sentence: where the
    /// client's port identifies connections, and where the server's ids do.
    position_field: [&'static str; 2],
    /// Configuration lines that make the server log the connection of each request.
    advice: &'static [&'static str],
    /// Where the log was written.
    pub(crate) vantage: Vantage,
    /// What the log never holds, as a caveat that marks missing traffic.
    pub(super) missing: Option<&'static str>,
}

const OTHER_FORMAT: &str = ". Give the format with --log-format if it has others";
const TIME_FIELDS: &str =
    ". Add `msec=$msec` to nginx's log_format, or `start_usec=%{usec}t` to Apache's LogFormat";
const ADD_NTH: &str =
    ". Add `reqs=$connection_requests` to nginx's log_format, or `k=%k` to Apache's LogFormat";

/// The log of a service, which holds requests only.
const SERVICE: LineFormat = LineFormat {
    name: "",
    readers: |_| Vec::new(),
    is_other: |_| false,
    mark: "",
    remedy: "",
    connection_fields: "",
    time_fields: "",
    position_field: ["", ""],
    advice: &[],
    vantage: Vantage::Server,
    missing: None,
};

/// The log of a program, which also holds messages.
const SERVER: LineFormat = LineFormat {
    is_other: |text| json::is_other(text) || notices::is_notice(text),
    ..SERVICE
};

/// nginx and Apache.
const USUAL: LineFormat = LineFormat {
    name: "in the format of nginx and Apache",
    remedy: OTHER_FORMAT,
    connection_fields: ". Add `conn=$connection reqs=$connection_requests` to nginx's log_format, or `port=%{remote}p k=%k X=%X` to Apache's LogFormat",
    time_fields: TIME_FIELDS,
    position_field: [ADD_NTH, ADD_NTH],
    advice: &[NGINX, APACHE],
    ..SERVER
};

/// Envoy.
const ENVOYS: LineFormat = LineFormat {
    name: "in Envoy's format",
    readers: |_| vec![pattern(ENVOY)],
    remedy: OTHER_FORMAT,
    connection_fields: ". Add `conn=%CONNECTION_ID%` to the format",
    advice: &[ENVOY_DIRECTIVE],
    ..SERVER
};

/// The format of `--log-format`.
static GIVEN: LineFormat = LineFormat {
    name: "in the format given",
    remedy: "",
    connection_fields: ANY_FIELDS,
    time_fields: TIME_FIELDS,
    position_field: [". Add $connection_requests (nginx) or %k (Apache)"; 2],
    advice: &[NGINX, APACHE, ENVOY_DIRECTIVE],
    ..SERVER
};

const ANY_FIELDS: &str = ". Add $connection and $connection_requests (nginx), %{remote}p and %k (Apache) or %CONNECTION_ID% (Envoy)";

/// The formats, in the order in which they are tried.
static FORMATS: [LineFormat; 19] = [
    LineFormat {
        name: "in the W3C extended format",
        readers: |text| Vec::from_iter(Columns::find(text).map(Reader::Columns)),
        connection_fields: ". Add the custom field `c-port` for REMOTE_PORT (IIS)",
        advice: &[IIS],
        ..SERVICE
    },
    LineFormat {
        name: "reports of AWS Lambda: each invocation is a request to the function",
        readers: |_| vec![Reader::Each(lambda::report)],
        is_other: lambda::is_other,
        connection_fields: ". The log of a function does not have them: `intact lambda` shows which connections an invocation opens",
        ..SERVICE
    },
    LineFormat {
        name: "EVE of Suricata",
        readers: |_| vec![Reader::Each(json::suricata)],
        is_other: json::is_other_event,
        mark: "\"flow_id\":",
        vantage: Vantage::OnPath,
        missing: Some(
            "EVE has no requests over TLS, and their connections are not counted: a capture with keys shows them",
        ),
        ..SERVICE
    },
    LineFormat {
        name: "in JSON",
        readers: |_| vec![Reader::Each(json::read)],
        remedy: OTHER_FORMAT,
        connection_fields: ANY_FIELDS,
        time_fields: TIME_FIELDS,
        position_field: ["", ". Add $connection_requests, if it is nginx's"],
        advice: &[NGINX, APACHE, ENVOY_DIRECTIVE],
        ..SERVER
    },
    LineFormat {
        name: "in the format of AWS's ALB",
        readers: |_| vec![Reader::Each(balancer::alb)],
        ..SERVICE
    },
    LineFormat {
        name: "in the format of AWS's classic load balancer",
        readers: |_| vec![Reader::Each(balancer::elb)],
        is_other: balancer::is_elb_of_tcp,
        ..SERVICE
    },
    LineFormat {
        name: "connections of AWS's ALB, without their requests",
        readers: |_| vec![Reader::Each(balancer::alb_connection)],
        ..SERVICE
    },
    LineFormat {
        name: "in HAProxy's format",
        readers: |_| vec![Reader::Each(balancer::haproxy)],
        ..SERVER
    },
    LineFormat {
        name: "in Istio's format",
        readers: |_| vec![pattern(ISTIO)],
        ..ENVOYS
    },
    ENVOYS,
    LineFormat {
        name: "in Traefik's format",
        readers: |_| vec![pattern(TRAEFIK)],
        remedy: OTHER_FORMAT,
        connection_fields: ". Traefik writes the client's port in JSON only",
        time_fields: ". Traefik writes finer ones in JSON only",
        advice: &[TRAEFIK_DIRECTIVE],
        ..SERVER
    },
    LineFormat {
        readers: |_| USUAL_PATTERNS.map(pattern).into(),
        ..USUAL
    },
    LineFormat {
        name: "in uWSGI's format",
        readers: |_| vec![pattern(UWSGI)],
        connection_fields: ". uWSGI does not log them: audit the log of the server in front of it",
        ..SERVER
    },
    LineFormat {
        name: "in the format of AWS's S3",
        readers: |_| vec![pattern(S3)],
        ..SERVICE
    },
    LineFormat {
        name: "in LTSV",
        readers: |_| vec![Reader::Each(ltsv::read)],
        connection_fields: ". Add `conn:$connection` and `reqs:$connection_requests`, separated by tabs, to nginx's log_format",
        time_fields: ". Add `msec:$msec` to nginx's log_format",
        position_field: ["", ". Add `reqs:$connection_requests`, if it is nginx's"],
        ..SERVER
    },
    LineFormat {
        name: "in uvicorn's format",
        readers: |_| vec![pattern(UVICORN)],
        ..SERVER
    },
    LineFormat {
        name: "in Django's format",
        readers: |_| vec![pattern(DJANGO)],
        connection_fields: ". Django does not log them: audit the log of the server in front of it",
        ..SERVER
    },
    LineFormat {
        name: "in pairs of keys and values",
        readers: |_| vec![Reader::Each(pairs::read)],
        is_other: |text| (SERVER.is_other)(text) && !pairs::has_request(text),
        connection_fields: ANY_FIELDS,
        ..SERVER
    },
    LineFormat {
        name: "a table of times and durations",
        readers: |text| Vec::from_iter(Columns::of_table(text).map(Reader::Columns)),
        connection_fields: ". Add a column `connection`, if the program knows its connections",
        ..SERVICE
    },
];

/// Reads lines.
#[derive(Clone)]
enum Reader {
    Pattern(Pattern),
    Columns(Columns),
    Each(for<'a> fn(&'a str) -> Option<Line<'a>>),
}

/// A reader of lines in a format that is known here.
fn pattern(known: &'static str) -> Reader {
    Reader::Pattern(Pattern::known(known))
}

impl Reader {
    /// Parses a line; `None` if it does not match, or has no time.
    fn read<'a>(&self, text: &'a str) -> Option<Line<'a>> {
        match self {
            Reader::Pattern(pattern) => pattern.read(text),
            Reader::Columns(columns) => columns.read(text),
            Reader::Each(read) => read(text),
        }
    }
}

/// The format of a log, with the state of its reader.
#[derive(Clone)]
pub(crate) struct LogFormat {
    pub(crate) format: &'static LineFormat,
    reader: Reader,
    /// The lines have heads of a system's log.
    has_heads: bool,
    /// Fewest words of a line among the first ones.
    fewest_words: usize,
}

impl LogFormat {
    /// The format of `--log-format`, for a log that begins with these bytes.
    pub(crate) fn given(pattern: Pattern, prefix: &[u8]) -> LogFormat {
        let text = String::from_utf8_lossy(prefix);
        let lines = records(whole_part(&text));
        let mut given = LogFormat {
            format: &GIVEN,
            reader: Reader::Pattern(pattern),
            has_heads: false,
            fewest_words: 0,
        };
        given.has_heads = has_heads(&lines) && !given.fits(&lines);
        given.count_words(&lines);
        given
    }

    /// The format of at least half of the first lines; else the format of most lines, if it is that
    /// of a tenth of them. Servers, and other programs, write messages before the first request.
    pub(crate) fn detect(prefix: &[u8]) -> Option<LogFormat> {
        let text = String::from_utf8_lossy(prefix);
        let whole = whole_part(&text);
        let lines = records(whole);
        // the first lines may be of another program
        let first = has_heads(&lines);
        let later = lines.iter().any(|line| syslog::read(line).is_some());
        let heads = [first.then_some(true), Some(false), later.then_some(true)];
        let candidates = heads.into_iter().flatten().flat_map(|has_heads| {
            FORMATS.iter().flat_map(move |format| {
                let readers = (format.readers)(whole).into_iter();
                readers.map(move |reader| LogFormat {
                    format,
                    reader,
                    has_heads,
                    fewest_words: 0,
                })
            })
        });
        let is_first = |found: &LogFormat| found.is_named() || found.fits(&lines);
        let mut found = candidates.clone().find(is_first).or_else(|| {
            let read = candidates.map(|found| (found.count_read(&lines, usize::MAX), found));
            let enough = read.filter(|((read, all), _)| *read > 0 && read * 10 >= *all);
            let most = enough.max_by_key(|((read, _), _)| *read);
            most.map(|(_, found)| found)
        })?;
        let last = lines.iter().rev().find(|line| found.read(line).is_some());
        if let (Some(last), Reader::Pattern(pattern)) = (last, &mut found.reader) {
            pattern.learn(without_head(last, found.has_heads).1);
        }
        found.count_words(&lines);
        Some(found)
    }

    /// Learns how many words a whole line has.
    fn count_words(&mut self, lines: &[&str]) {
        let read = lines.iter().filter(|line| self.read(line).is_some());
        self.fewest_words = read.filter_map(|line| words(line)).min().unwrap_or(0);
    }

    /// Whether a line that can be read lacks its end: it has fewer words than all first ones.
    /// Objects and rows of columns cannot be read then.
    pub(super) fn lacks_words(&self, text: &str) -> bool {
        let is_whole = matches!(self.reader, Reader::Columns(_)) || text.starts_with('{');
        !is_whole && words(text).is_none_or(|words| words < self.fewest_words)
    }

    /// Whether it is the format of at least half of the first lines. The lines before the first
    /// request may show it, too.
    fn fits(&self, lines: &[&str]) -> bool {
        let (read, all) = self.count_read(lines, LOOKED_AT);
        let mark = self.format.mark;
        let is_marked = || !mark.is_empty() && lines.iter().any(|line| line.contains(mark));
        (read > 0 && read * 2 >= all) || (all == 0 && is_marked())
    }

    /// Number of lines that are read, among the first `limit` lines that may be requests, and the
    /// number of these.
    fn count_read(&self, lines: &[&str], limit: usize) -> (usize, usize) {
        let read = lines
            .iter()
            .filter_map(|line| match self.read(line.trim_start()) {
                Some(_) => Some(true),
                None => (!self.is_other(line)).then_some(false),
            });
        read.take(limit).fold((0, 0), |(read, all), is_read| {
            (read + usize::from(is_read), all + 1)
        })
    }

    /// Whether the file names its columns.
    pub(super) fn is_named(&self) -> bool {
        matches!(self.reader, Reader::Columns(_))
    }

    /// Reads a line that begins with `#`. It may change the columns of later lines.
    pub(super) fn take_directive(&mut self, text: &str) {
        if let Reader::Columns(columns) = &mut self.reader {
            columns.take(text);
        }
    }

    /// Parses a line; `None` if it does not match, or has no time.
    pub(super) fn read<'a>(&self, text: &'a str) -> Option<Line<'a>> {
        let (time, text) = without_head(text, self.has_heads);
        let mut line = self.reader.read(text)?;
        if let (None, None, Some(time)) = (line.start, line.end, time) {
            line.set(Field::End, Cow::Borrowed(time));
        }
        (line.end.is_some() || line.start.is_some()).then_some(line)
    }

    /// Whether a line that does not match is known to be no request.
    pub(super) fn is_other(&self, text: &str) -> bool {
        let is_head = matches!(&self.reader, Reader::Columns(columns) if columns.is_head(text));
        let message = without_head(text, self.has_heads).1;
        is_head || (self.format.is_other)(text) || (self.format.is_other)(message)
    }

    /// The remedy for lines without their connection, as the end of a sentence.
    pub(super) fn connection_fields(&self) -> String {
        let fields = self.format.connection_fields;
        let option = match &self.reader {
            Reader::Pattern(pattern) => pattern.naming_option(),
            _ => None,
        };
        match option {
            Some(option) => format!(
                "{fields}. The lines end with numbers without names: if they are the connection, {option} reads them"
            ),
            None => fields.to_owned(),
        }
    }

    /// The field for a request's position on its connection, as the end of a sentence; empty if the
    /// server has none. `has_ids`: connections have ids of the server, as in logs of nginx and
    /// Envoy.
    pub(super) fn position_field(&self, has_ids: bool) -> &'static str {
        self.format.position_field[usize::from(has_ids)]
    }

    /// Configuration lines that make the server log the connection of each request.
    pub(super) fn advice(&self) -> Vec<String> {
        let lines = self.format.advice.iter().flat_map(|text| text.lines());
        lines.map(str::to_owned).collect()
    }
}

/// The first bytes without their last line, which may be incomplete.
fn whole_part(text: &str) -> &str {
    text.rfind('\n').map_or(text, |end| &text[..end])
}

/// The lines that may be records.
fn records(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim_end);
    lines
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .collect()
}

/// Whether at least half of the first lines have heads of a system's log.
fn has_heads(lines: &[&str]) -> bool {
    let first = &lines[..lines.len().min(LOOKED_AT)];
    let with_head = first.iter().filter(|line| syslog::read(line).is_some());
    let with_head = with_head.count();
    with_head > 0 && with_head * 2 >= first.len()
}

/// Number of words, separated by tabs if there are any, else by blanks outside of quotes; `None` if
/// a quote is not closed.
fn words(text: &str) -> Option<usize> {
    if text.contains('\t') {
        return Some(text.split('\t').count());
    }
    let (mut words, mut is_quoted, mut is_escaped) = (1, false, false);
    for byte in text.bytes() {
        words += usize::from(byte == b' ' && !is_quoted);
        is_quoted ^= byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
    }
    (!is_quoted).then_some(words)
}

/// The time of a line's head, if it has one, and the line without it.
fn without_head(text: &str, has_heads: bool) -> (Option<&str>, &str) {
    // a relay puts one in front of another
    let heads = if has_heads { 2 } else { 0 };
    (0..heads).fold((None, text), |(time, text), _| match syslog::read(text) {
        Some(headed) => (headed.time.or(time), headed.message),
        None => (time, text),
    })
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

/// For Traefik's static configuration.
pub(super) const TRAEFIK_DIRECTIVE: &str = r#"# Traefik, in the static configuration:
accessLog:
  format: json
  fields:
    headers:
      names:
        User-Agent: keep"#;

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
        let is_usual = |text: &str| {
            let found = LogFormat::detect(text.as_bytes());
            found.is_some_and(|found| found.format.name == USUAL.name)
        };
        assert!(is_usual(combined));
        let s3 = "a19b bucket [16/Feb/2019:11:23:45 +0000] 192.0.2.132 a19b 3E57 REST.GET.OBJECT a/b.jpg \"GET /a/b.jpg?x HTTP/1.1\" 200 - 113 500 7 6 \"-\" \"S3 Console/0.4\" - s9lz= SigV2 ECDHE AuthHeader";
        let found = LogFormat::detect(s3.as_bytes()).unwrap();
        let line = found.read(s3).unwrap();
        assert_eq!(found.format.name, "in the format of AWS's S3");
        assert_eq!((line.status, line.took), (Some(200), Some(7_000_000)));
        assert_eq!((line.sent, line.start.is_some()), (Some(113), true));
        let common = "::1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5\n";
        assert!(is_usual(common));
        let hosted = "a.example:80 ::1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5\n";
        assert!(is_usual(hosted));
        for text in [
            "",
            "\n\n",
            "hello\nworld\n",
            "{\"a\":1}\n",
            "a,b,c\n1,2,3\n",
        ] {
            assert!(LogFormat::detect(text.as_bytes()).is_none(), "{text}");
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
            LogFormat::given(nginx, b""),
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
