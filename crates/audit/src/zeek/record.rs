//! One line of a Zeek log: columns that a header names, or a JSON object. The names show which log
//! it is.

use crate::format::Log;
use crate::lenient::Lenient;
use crate::log::Name;
use crate::named::named;
use crate::timestamp;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;

/// First line of every file with columns; tools of others write the tab as `\t`.
const HEADS: [&str; 2] = ["#separator \\x09", "#separator \\t"];
/// Bytes of a target that are kept.
const MAX_TARGET: usize = 8 << 10;
/// Bytes of any other value that are kept; a DNS name has at most 253.
const MAX_VALUE: usize = 256;
/// Number of lines that the detection reads in a file without a header.
const FIRST: usize = 16;

named! {
    /// The columns that are read, over all three logs.
    pub(super) Field {
        Start "ts",
        Uid "uid",
        Client "id.orig_h",
        ClientPort "id.orig_p",
        Server "id.resp_h",
        ServerPort "id.resp_p",
        Transport "proto",
        Service "service",
        Duration "duration",
        Sent "orig_bytes",
        Received "resp_bytes",
        State "conn_state",
        Missed "missed_bytes",
        History "history",
        Version "version",
        Cipher "cipher",
        ServerName "server_name",
        Resumed "resumed",
        Alpn "next_protocol",
        Established "established",
        Alert "last_alert",
        Nth "trans_depth",
        Method "method",
        Host "host",
        Target "uri",
        Agent "user_agent",
        Status "status_code",
        Body "response_body_len",
    }
}

/// Number of columns that are read.
const FIELDS: usize = Field::Body as usize + 1;

/// The values of a line.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Record<'a> {
    values: [Option<Cow<'a, str>>; FIELDS],
}

impl<'a> Record<'a> {
    fn set(&mut self, field: Field, value: Cow<'a, str>) {
        // an unset value, and an empty set
        if !value.is_empty() && value != "-" && value != "(empty)" {
            let most = match field {
                Field::Target => MAX_TARGET,
                _ => MAX_VALUE,
            };
            self.values[field as usize] = Some(clip(value, most));
        }
    }

    /// A value; `None` if it is unset.
    pub(super) fn text(&self, field: Field) -> Option<&str> {
        self.values[field as usize].as_deref()
    }

    /// A value as a number.
    pub(super) fn number<T: std::str::FromStr>(&self, field: Field) -> Option<T> {
        self.text(field)?.parse().ok()
    }

    /// A value as a boolean.
    pub(super) fn flag(&self, field: Field) -> Option<bool> {
        self.text(field).map(|flag| flag == "T")
    }

    /// The start in nanoseconds since 1970.
    pub(super) fn start(&self) -> Option<u64> {
        timestamp::nanos(self.text(Field::Start)?)
    }

    /// The addresses of the client and the server.
    pub(super) fn ends(&self) -> Option<(SocketAddr, SocketAddr)> {
        let end = |host, port| {
            let address = self.text(host)?.parse().ok()?;
            Some(SocketAddr::new(address, self.number(port)?))
        };
        Some((
            end(Field::Client, Field::ClientPort)?,
            end(Field::Server, Field::ServerPort)?,
        ))
    }

    /// Whether it has what Zeek writes on each line of this log.
    pub(super) fn is_whole(&self, log: Log) -> bool {
        let has_ends = self.start().is_some() && self.text(Field::Uid).is_some();
        has_ends
            && match log {
                Log::Connections => self.ends().is_some() && self.text(Field::State).is_some(),
                Log::Tls | Log::Requests => self.text(Field::Client).is_some(),
            }
    }

    /// The log of the line, for files without a header.
    fn log(&self) -> Option<Log> {
        let has = |field| self.values[field as usize].is_some();
        [Log::Connections, Log::Tls, Log::Requests]
            .into_iter()
            .find(|log| has(Field::Client) && has_columns_of(*log, has))
    }
}

/// Limits a text that clients choose: it may be long, and stays in memory.
fn clip(value: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    if value.len() <= most {
        return value;
    }
    let mut ends = (0..=most).rev();
    let end = ends.find(|end| value.is_char_boundary(*end)).unwrap_or(0);
    match value {
        Cow::Borrowed(text) => Cow::Borrowed(&text[..end]),
        Cow::Owned(text) => Cow::Owned(text[..end].to_owned()),
    }
}

/// Whether these columns can be those of `log`. Other logs of Zeek have columns of `http.log`;
/// `sip.log` has all but the host.
fn has_columns_of(log: Log, has: impl Fn(Field) -> bool) -> bool {
    let both = |one, other| has(one) && has(other);
    both(Field::Start, Field::Uid)
        && match log {
            Log::Connections => has(Field::State),
            Log::Tls => has(Field::Established) || both(Field::Version, Field::Cipher),
            Log::Requests => both(Field::Nth, Field::Method) && both(Field::Target, Field::Host),
        }
}

/// The layout of the lines of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordLayout {
    /// JSON objects.
    Objects,
    /// Columns in this order; `None` for a column that is not read.
    Columns(Vec<Option<Field>>),
}

impl RecordLayout {
    /// Detects the log and its layout by the first lines.
    pub(super) fn detect(prefix: &[u8]) -> Option<(Log, RecordLayout)> {
        let text = String::from_utf8_lossy(prefix);
        if !has_head(&text) {
            // JSON omits unset values: the first request may be one without a host
            let log = text
                .lines()
                .filter(|line| !line.trim().is_empty())
                .take(FIRST)
                .map_while(object)
                .find_map(|record| record.log())?;
            return Some((log, RecordLayout::Objects));
        }
        let log = match path(&text)? {
            "conn" => Log::Connections,
            "ssl" => Log::Tls,
            "http" => Log::Requests,
            _ => return None,
        };
        let names = text
            .lines()
            .find_map(|line| line.strip_prefix("#fields\t"))?;
        let columns: Vec<Option<Field>> = names.split('\t').map(field).collect();
        if !has_columns_of(log, |field| columns.contains(&Some(field))) {
            return None;
        }
        Some((log, RecordLayout::Columns(columns)))
    }

    /// Parses a line.
    pub(super) fn read<'a>(&self, text: &'a str) -> Option<Record<'a>> {
        let RecordLayout::Columns(columns) = self else {
            return object(text);
        };
        let mut record = Record::default();
        let mut values = text.split('\t');
        for field in columns {
            let value = values.next()?;
            if let Some(field) = field {
                record.set(*field, Cow::Borrowed(value));
            }
        }
        // tools of others end a line with a tab
        values.next().is_none_or(str::is_empty).then_some(record)
    }
}

/// The name of a log of Zeek that does not describe connections, so that it is not read.
pub(crate) fn other_log(prefix: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(prefix);
    if !has_head(&text) {
        return None;
    }
    let path = path(&text)?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (path.len() < 64 && path.bytes().all(is_name)).then(|| path.to_owned())
}

/// Whether the file has columns, which its first line announces.
fn has_head(text: &str) -> bool {
    HEADS.iter().any(|head| text.starts_with(head))
}

/// The field of a column. `Log::default_scope_sep` is often set to `_`, for databases.
fn field(name: &str) -> Option<Field> {
    match name.strip_prefix("id_") {
        Some(end) => Field::named(&format!("id.{end}")),
        None => Field::named(name),
    }
}

/// The name of the log in a header.
fn path(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("#path\t"))
}

fn object(text: &str) -> Option<Record<'static>> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let mut json = serde_json::Deserializer::from_str(text);
    json.deserialize_map(Object).ok()
}

struct Object;

impl<'de> Visitor<'de> for Object {
    type Value = Record<'static>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self::Value, A::Error> {
        let mut record = Record::default();
        while let Some(Name(name)) = object.next_key()? {
            let Some(field) = field(&name) else {
                object.next_value::<IgnoredAny>()?;
                continue;
            };
            let text = match object.next_value::<Lenient>()? {
                Lenient::Flag(flag) => Some(if flag { "T" } else { "F" }.to_owned()),
                other => other.text(),
            };
            record.set(field, text.unwrap_or_default().into());
        }
        Ok(record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_and_objects_give_the_same_record() {
        let columns = "#separator \\x09\n#path\tconn\n#fields\tts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\tproto\tservice\tduration\tconn_state\tlocal_orig\thistory\n";
        let (log, layout) = RecordLayout::detect(columns.as_bytes()).unwrap();
        assert_eq!(log, Log::Connections);
        let line = "1389719059.311687\tCa\t192.0.2.1\t5000\t2001:db8::1\t80\ttcp\thttp\t0.5\tSF\tT\tShADadFf";
        let record = layout.read(line).unwrap();
        assert_eq!(record.start(), Some(1_389_719_059_311_687_000));
        let object = r#"{"ts":1389719059.311687,"uid":"Ca","id.orig_h":"192.0.2.1","id.orig_p":5000,"id.resp_h":"2001:db8::1","id.resp_p":80,
            "proto":"tcp","service":"http","duration":0.5,"conn_state":"SF","local_orig":true,"history":"ShADadFf","tunnel_parents":["x"]}"#
            .replace('\n', " ");
        let (log, layout) = RecordLayout::detect(object.as_bytes()).unwrap();
        assert_eq!((log, &layout), (Log::Connections, &RecordLayout::Objects));
        assert_eq!(layout.read(&object), Some(record));
        // another separator in names
        let other = RecordLayout::detect(object.replace("id.", "id_").as_bytes());
        assert_eq!(other, Some((Log::Connections, RecordLayout::Objects)));
        let other = columns.replace("id.", "id_").replace("\\x09", "\\t");
        assert_eq!(
            RecordLayout::detect(other.as_bytes()),
            RecordLayout::detect(columns.as_bytes())
        );
    }

    #[test]
    fn logs_are_detected_by_their_columns() {
        let log = |text: &str| RecordLayout::detect(text.as_bytes()).map(|(log, _)| log);
        let tls = r#"{"ts":1.5,"uid":"Ca","id.orig_h":"192.0.2.1","version":"TLSv13","cipher":"TLS_AES_128_GCM_SHA256","established":true}"#;
        assert_eq!(log(tls), Some(Log::Tls));
        let old = r#"{"ts":1.5,"uid":"Ca","id.orig_h":"192.0.2.1","trans_depth":1,"method":"GET","uri":"/"}"#;
        assert_eq!(log(old), None);
        let request = old.replace('}', r#","host":"a.example"}"#);
        assert_eq!(log(&format!("{old}\n{request}\n")), Some(Log::Requests));
        for text in [
            "",
            "{",
            "{}",
            "[]",
            r#"{"ts":1.5,"msg":"x"}"#,
            "ts\tuid\tconn_state\n",
            "#separator \\x09\n#path\tdns\n#fields\tts\tuid\tproto\n",
            "#separator \\x09\n#path\tconn\n#fields\tts\tuid\tproto\n",
            // a log of another program
            r#"{"ts":1.5,"uid":"7","method":"GET","uri":"/","host":"a.example","status_code":200}"#,
        ] {
            assert_eq!(log(text), None, "{text}");
        }
    }

    #[test]
    fn logs_with_columns_of_http_log_are_not_detected_as_http_log() {
        let ends = "ts\tuid\tid.orig_h\tid.orig_p\tid.resp_h\tid.resp_p\ttrans_depth";
        for (name, columns) in [
            ("smtp", "helo\tmailfrom\tlast_reply\tuser_agent\ttls"),
            ("sip", "method\turi\tdate\tuser_agent\tstatus_code"),
        ] {
            let head =
                format!("#separator \\x09\n#path\t{name}\n#fields\t{ends}\t{columns}\thost\n");
            assert_eq!(RecordLayout::detect(head.as_bytes()), None);
            assert_eq!(other_log(head.as_bytes()).as_deref(), Some(name));
        }
        let sip = r#"{"ts":1.5,"uid":"Ca","id.orig_h":"192.0.2.1","trans_depth":0,"method":"INVITE","uri":"sip:a@b","status_code":200}"#;
        let smtp = r#"{"ts":1.5,"uid":"Ca","id.orig_h":"192.0.2.1","trans_depth":1,"helo":"a","tls":false}"#;
        for line in [sip, smtp] {
            assert_eq!(RecordLayout::detect(line.as_bytes()), None);
        }
    }

    #[test]
    fn long_values_are_clipped_between_letters() {
        let long = "é".repeat(10_000);
        let layout = RecordLayout::Columns(vec![Some(Field::Target), Some(Field::Agent)]);
        let columns = format!("/{long}\t{long}x");
        let object = format!(r#"{{"uri":"/{long}","user_agent":"{long}x"}}"#);
        for (layout, line) in [(layout, columns), (RecordLayout::Objects, object)] {
            let record = layout.read(&line).unwrap();
            assert_eq!(record.text(Field::Target).unwrap().len(), MAX_TARGET - 1);
            assert_eq!(record.text(Field::Agent).unwrap().len(), MAX_VALUE);
        }
    }

    #[test]
    fn a_truncated_line_is_none() {
        let columns = RecordLayout::Columns(vec![Some(Field::Start), None, Some(Field::Uid)]);
        assert_eq!(columns.read("1.5\tx"), None);
        assert_eq!(columns.read("1.5\tx\ty\tz"), None);
        assert_eq!(columns.read("1.5\tx\ty\t"), columns.read("1.5\tx\ty"));
        assert_eq!(columns.read("1.5\tx\t-").unwrap().text(Field::Uid), None);
    }
}
