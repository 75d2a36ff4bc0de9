//! Log formats as configuration files spell them (nginx `log_format`, Apache `LogFormat`, Envoy),
//! parsed into readers of lines.

use super::line::{Field, Line};
use std::borrow::Cow;

/// A parsed format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    items: Vec<Item>,
    /// `key=value` pairs may follow the named values.
    tail: bool,
    /// The keys of these pairs in their usual order: most lines have the same ones.
    keys: Vec<(Box<str>, Field)>,
    /// The format as a configuration spells it.
    text: Box<str>,
    /// Numbers after the named values of a line that no key names.
    unnamed_numbers: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Item {
    Literal(String),
    Value(Field),
}

/// Why a format cannot be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum PatternError {
    /// It names no value.
    #[error(
        "it names no values: give the text of nginx's log_format, Apache's LogFormat or Envoy's format"
    )]
    NoValues,
    /// Two values touch, so the end of the first one is unknown.
    #[error("no text separates two values near {0:?}, so lines cannot be parsed")]
    Touching(String),
    /// A quoted text is not closed.
    #[error("a quote is not closed")]
    Quote,
}

/// `combined` of nginx and Apache, with `key=value` pairs after it as `docs/reference/audit.md`
/// recommends.
pub(super) const COMBINED: &str = r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent""#;
/// `combined` without its last two values.
pub(super) const COMMON: &str =
    r#"$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent"#;
/// Envoy's default format.
pub(super) const ENVOY: &str = r#"[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% %BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%""#;
/// Istio's default format.
pub(super) const ISTIO: &str = r#"[%START_TIME%] "%REQ(:METHOD)% %REQ(X-ENVOY-ORIGINAL-PATH?:PATH)% %PROTOCOL%" %RESPONSE_CODE% %RESPONSE_FLAGS% %RESPONSE_CODE_DETAILS% %CONNECTION_TERMINATION_DETAILS% "%UPSTREAM_TRANSPORT_FAILURE_REASON%" %BYTES_RECEIVED% %BYTES_SENT% %DURATION% %RESP(X-ENVOY-UPSTREAM-SERVICE-TIME)% "%REQ(X-FORWARDED-FOR)%" "%REQ(USER-AGENT)%" "%REQ(X-REQUEST-ID)%" "%REQ(:AUTHORITY)%" "%UPSTREAM_HOST%" %UPSTREAM_CLUSTER_RAW% %UPSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_LOCAL_ADDRESS% %DOWNSTREAM_REMOTE_ADDRESS% %REQUESTED_SERVER_NAME% %ROUTE_NAME%"#;

impl Pattern {
    /// Parses a format: its text alone, or the whole directive as in the configuration.
    pub fn new(text: &str) -> Result<Pattern, PatternError> {
        let text = unwrap(text.trim())?;
        let items = if text.contains("%START_TIME") || text.contains("%RESPONSE_CODE") {
            parse(&text, '%', envoy)
        } else if text.contains('%') && !text.contains("$remote") {
            parse(&text, '%', apache)
        } else {
            parse(&text, '$', nginx)
        };
        let values = |item: &&Item| matches!(item, Item::Value(field) if *field != Field::Other);
        if items.iter().filter(values).count() == 0 {
            return Err(PatternError::NoValues);
        }
        for pair in items.windows(2) {
            if let [Item::Value(_), Item::Value(_)] = pair {
                return Err(PatternError::Touching(text.chars().take(60).collect()));
            }
        }
        Ok(Pattern {
            items,
            tail: false,
            keys: Vec::new(),
            text: text.into(),
            unnamed_numbers: 0,
        })
    }

    /// A built-in format.
    pub(super) fn known(text: &str) -> Pattern {
        let mut pattern = Pattern::new(text).expect("a format that is known by heart can be read");
        pattern.tail = true;
        pattern
    }

    /// Learns the keys of the pairs in a line, so that they are known faster in the next ones.
    pub(super) fn learn(&mut self, text: &str) {
        self.keys.clear();
        let mut line = Line::default();
        let Some(rest) = self.read_items(text, &mut line).filter(|_| self.tail) else {
            return;
        };
        let mut keys = Vec::new();
        each_pair(rest, |key, _| keys.push((key.into(), Field::named(key))));
        self.keys = keys;
        let is_number = |word: &&str| word.bytes().all(|byte| byte.is_ascii_digit());
        self.unnamed_numbers = rest.split_ascii_whitespace().filter(is_number).count();
    }

    /// The option that names the numbers at the end of the lines, if they have such numbers: nginx
    /// may write the connection there.
    pub(super) fn naming_option(&self) -> Option<String> {
        let names = match self.unnamed_numbers {
            0 => return None,
            1 => "$connection",
            _ => "$connection $connection_requests",
        };
        Some(format!("--log-format '{} {names}'", self.text))
    }

    /// Parses a line; `None` if it does not match.
    pub(super) fn read<'a>(&self, text: &'a str) -> Option<Line<'a>> {
        let mut line = Line::default();
        let rest = self.read_items(text, &mut line)?;
        if self.tail {
            let mut known = self.keys.iter();
            each_pair(rest, |key, value| {
                let field = match known.next() {
                    Some((name, field)) if **name == *key => *field,
                    _ => Field::named(key),
                };
                line.set(field, Cow::Borrowed(value));
            });
        } else if !rest.trim().is_empty() {
            return None;
        }
        // Envoy's DURATION is the only name without a unit
        line.settle(1e6);
        Some(line)
    }

    /// Sets the named values of a line. Returns the text after them.
    fn read_items<'a>(&self, text: &'a str, line: &mut Line<'a>) -> Option<&'a str> {
        let mut rest = text;
        let mut items = self.items.iter();
        while let Some(item) = items.next() {
            match item {
                Item::Literal(literal) => rest = rest.strip_prefix(literal.as_str())?,
                Item::Value(field) => {
                    // a literal follows each value, but for the last one
                    let (end, skipped) = match items.next() {
                        Some(Item::Literal(next)) => (find(rest, next)?, next.len()),
                        _ if self.tail => (find(rest, " ").unwrap_or(rest.len()), 0),
                        _ => (rest.len(), 0),
                    };
                    line.set(*field, Cow::Borrowed(&rest[..end]));
                    rest = &rest[end + skipped..];
                }
            }
        }
        Some(rest)
    }
}

/// Passes on `key=value` pairs, also with quoted values; other words are skipped.
pub(super) fn each_pair<'a>(mut rest: &'a str, mut take: impl FnMut(&'a str, &'a str)) {
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return;
        }
        let word_end = memchr::memchr2(b' ', b'=', rest.as_bytes()).unwrap_or(rest.len());
        let Some(value) = rest[word_end..].strip_prefix('=') else {
            rest = match rest.strip_prefix('"') {
                Some(quoted) => &quoted[find(quoted, "\"").map_or(quoted.len(), |end| end + 1)..],
                None => &rest[word_end..],
            };
            continue;
        };
        let key = &rest[..word_end];
        let (value, after) = match value.strip_prefix('"') {
            Some(quoted) => {
                let end = find(quoted, "\"").unwrap_or(quoted.len());
                (&quoted[..end], quoted.get(end + 1..).unwrap_or_default())
            }
            None => value.split_at(find(value, " ").unwrap_or(value.len())),
        };
        take(key, value);
        rest = after;
    }
}

/// The offset of the next literal. A quote after a backslash belongs to the value.
fn find(text: &str, literal: &str) -> Option<usize> {
    let (bytes, literal) = (text.as_bytes(), literal.as_bytes());
    let (&first, others) = literal.split_first()?;
    // literals are a few bytes, so that preparing a search costs more than it saves
    memchr::memchr_iter(first, bytes).find(|&at| {
        let slashes = || bytes[..at].iter().rev().take_while(|&&byte| byte == b'\\');
        let is_next = others
            .first()
            .is_none_or(|next| bytes.get(at + 1) == Some(next));
        is_next
            && bytes[at + 1..].starts_with(others)
            && (first != b'"' || slashes().count() % 2 == 0)
    })
}

/// The format in a directive: `log_format NAME '...' '...';`, `LogFormat "..." NAME`.
fn unwrap(text: &str) -> Result<String, PatternError> {
    let mut rest = match text.strip_prefix("log_format") {
        Some(rest) => {
            let rest = rest.trim_start();
            let name = rest.find(char::is_whitespace).unwrap_or(rest.len());
            let rest = rest[name..].trim_start();
            match rest.strip_prefix("escape=") {
                Some(rest) => rest
                    .split_once(char::is_whitespace)
                    .map_or("", |(_, rest)| rest.trim_start()),
                None => rest,
            }
        }
        None => match text.strip_prefix("LogFormat") {
            Some(rest) => rest.trim_start(),
            None => return Ok(text.to_owned()),
        },
    };
    let mut format = String::new();
    while let Some(quote) = rest.chars().next().filter(|letter| "'\"".contains(*letter)) {
        let end = rest[1..]
            .char_indices()
            .find(|&(at, letter)| letter == quote && !rest[..=at].ends_with('\\'))
            .ok_or(PatternError::Quote)?
            .0;
        format.push_str(&rest[1..=end].replace("\\\"", "\"").replace("\\'", "'"));
        rest = rest[end + 2..].trim_start();
    }
    Ok(format)
}

/// Adds text to the last literal.
fn literal(items: &mut Vec<Item>, text: &str) {
    match items.last_mut() {
        _ if text.is_empty() => {}
        Some(Item::Literal(last)) => last.push_str(text),
        _ => items.push(Item::Literal(text.to_owned())),
    }
}

/// Adds the value at the start of a text, without its mark. Returns the text after the value.
type TakeValue = for<'t> fn(&mut Vec<Item>, &'t str) -> &'t str;

/// Splits a format into text and the values that `mark` begins.
fn parse(text: &str, mark: char, take_value: TakeValue) -> Vec<Item> {
    let mut items = Vec::new();
    let mut rest = text;
    while let Some((before, value)) = rest.split_once(mark) {
        literal(&mut items, before);
        rest = take_value(&mut items, value);
    }
    literal(&mut items, rest);
    items
}

/// The text in braces at the start, and the text after the braces.
fn braced(text: &str) -> Option<(&str, &str)> {
    text.strip_prefix('{')?.split_once('}')
}

fn nginx<'t>(items: &mut Vec<Item>, text: &'t str) -> &'t str {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let (name, rest) = braced(text).unwrap_or_else(|| {
        text.split_at(text.find(|letter| !is_name(letter)).unwrap_or(text.len()))
    });
    items.push(Item::Value(Field::named(name)));
    rest
}

fn apache<'t>(items: &mut Vec<Item>, text: &'t str) -> &'t str {
    if let Some(rest) = text.strip_prefix('%') {
        literal(items, "%");
        return rest;
    }
    // conditions and redirections (%!200s, %>s) do not change the value
    let text =
        text.trim_start_matches(|letter: char| "!<>,".contains(letter) || letter.is_ascii_digit());
    let (name, after) = braced(text).unwrap_or(("", text));
    let Some(letter) = after.chars().next() else {
        literal(items, text);
        return "";
    };
    let field = match (letter, name.to_ascii_lowercase().as_str()) {
        ('h' | 'a', _) => Field::Client,
        ('p', "remote") => Field::ClientPort,
        ('k', _) => Field::Before,
        ('X', _) => Field::Fate,
        ('t', "" | "sec" | "msec" | "usec") => Field::Start,
        ('D', _) | ('T', "us") => Field::Micros,
        ('T', "ms") => Field::Millis,
        // whole seconds: most durations are 0
        ('T', _) => Field::Other,
        ('r', _) => Field::Request,
        ('m', _) => Field::Method,
        ('U', _) => Field::Target,
        ('H', _) => Field::Protocol,
        ('s', _) => Field::Status,
        ('b' | 'B' | 'O', _) => Field::Sent,
        ('v' | 'V', _) | ('i', "host") => Field::Host,
        ('i', "user-agent") => Field::Agent,
        ('x' | 'e', "ssl_protocol") => Field::Tls,
        ('x' | 'e', "ssl_session_resumed") => Field::Resumed,
        ('o', "connection") => Field::ConnectionSent,
        _ => Field::Other,
    };
    if (letter, name) == ('t', "") {
        literal(items, "[");
        items.push(Item::Value(field));
        literal(items, "]");
    } else {
        items.push(Item::Value(field));
    }
    &after[letter.len_utf8()..]
}

fn envoy<'t>(items: &mut Vec<Item>, text: &'t str) -> &'t str {
    let Some((operator, rest)) = text.split_once('%') else {
        literal(items, text);
        return "";
    };
    let name = operator.split(['(', ':']).next().unwrap_or(operator);
    let argument = operator.split_once('(').map_or("", |(_, rest)| rest);
    let argument = argument.trim_end_matches(|letter: char| letter != ')');
    let argument = argument.trim_end_matches(')').to_ascii_lowercase();
    items.push(Item::Value(match (name, argument.as_str()) {
        ("CONNECTION_ID", _) => Field::Connection,
        ("DOWNSTREAM_REMOTE_ADDRESS" | "DOWNSTREAM_DIRECT_REMOTE_ADDRESS", _) => Field::Client,
        ("DOWNSTREAM_REMOTE_PORT" | "DOWNSTREAM_DIRECT_REMOTE_PORT", _) => Field::ClientPort,
        ("START_TIME", _) => Field::Start,
        ("DURATION", _) => Field::Duration,
        ("PROTOCOL", _) => Field::Protocol,
        ("RESPONSE_CODE", _) => Field::Status,
        ("RESPONSE_FLAGS", _) => Field::Flags,
        ("BYTES_SENT", _) => Field::Sent,
        ("DOWNSTREAM_TLS_VERSION", _) => Field::Tls,
        ("REQ", ":method") => Field::Method,
        ("REQ", ":authority") => Field::Host,
        ("REQ", ":scheme") => Field::Scheme,
        ("REQ", "user-agent") => Field::Agent,
        ("REQ", argument) if argument.ends_with(":path") => Field::Target,
        _ => Field::Other,
    }));
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directive_is_read_as_it_stands_in_a_configuration() {
        let directive = "log_format main escape=json '$remote_addr [$time_local] \"$request\" '\n  '$status $connection/$connection_requests ${request_time}s';";
        let pattern = Pattern::new(directive).unwrap();
        let line = pattern
            .read("192.0.2.1 [10/Oct/2000:13:55:36 -0700] \"GET /x HTTP/1.1\" 200 17/3 0.250s")
            .unwrap();
        assert_eq!(line.connection.as_deref(), Some("17"));
        assert_eq!((line.nth, line.took), (Some(3), Some(250_000_000)));
    }

    #[test]
    fn apaches_directive_is_read_too() {
        let directive = r#"LogFormat "%h %l %u %t \"%r\" %>s %b %{remote}p %k %X %D" keep"#;
        let pattern = Pattern::new(directive).unwrap();
        let line = pattern
            .read(r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET /\"x HTTP/1.1" 200 5 4711 0 - 90"#)
            .unwrap();
        assert_eq!((line.port, line.nth), (Some(4711), Some(1)));
        assert_eq!(line.took, Some(90_000));
        assert!(line.closes);
        assert!(line.start.is_some());
    }

    #[test]
    fn pairs_after_a_known_format_are_read() {
        let line = Pattern::known(COMBINED)
            .read(r#"192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] "GET / HTTP/1.1" 200 5 "-" "curl \"8\"" 0.1 "x y" conn=9 reqs=2 host="a b" rt=0.5"#)
            .unwrap();
        assert_eq!(line.connection.as_deref(), Some("9"));
        assert_eq!((line.nth, line.took), (Some(2), Some(500_000_000)));
    }

    #[test]
    fn envoys_default_is_read() {
        let line = Pattern::known(ENVOY)
            .read(r#"[2016-04-15T20:17:00.310Z] "POST /api/v1/locations HTTP/2" 204 - 154 0 226 100 "10.0.35.28" "nsq2http" "cc21d9b0" "locations" "tcp://10.0.2.1:80""#)
            .unwrap();
        assert_eq!((line.status, line.took), (Some(204), Some(226_000_000)));
        assert_eq!(line.target.as_deref(), Some("/api/v1/locations"));
    }

    #[test]
    fn formats_that_cannot_be_used_are_refused() {
        assert_eq!(Pattern::new("hello"), Err(PatternError::NoValues));
        let touching = Pattern::new("$remote_addr$status");
        assert!(matches!(touching, Err(PatternError::Touching(_))));
        assert_eq!(
            Pattern::new("log_format x '$status"),
            Err(PatternError::Quote)
        );
    }

    proptest::proptest! {
        #[test]
        fn no_format_and_no_line_is_trouble(format in ".{0,60}", line in ".{0,120}") {
            if let Ok(pattern) = Pattern::new(&format) {
                let _ = pattern.read(&line);
            }
            for known in [COMBINED, COMMON, ENVOY, ISTIO] {
                let _ = Pattern::known(known).read(&line);
            }
        }
    }
}
