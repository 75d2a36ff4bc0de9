//! The W3C extended log format of IIS and CloudFront: a `#Fields` directive names the columns. Must
//! not guess a column that no directive names.

use super::line::{Field, Line};
use crate::timestamp;
use std::borrow::Cow;

const FIELDS: &str = "#Fields:";

/// The columns, in the order of the last directive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns(Vec<Column>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Date,
    Time,
    /// In milliseconds (IIS), or in seconds with a fraction.
    TimeTaken,
    /// IIS writes `+` for a blank.
    Agent,
    Value(Field),
}

impl Column {
    fn named(name: &str) -> Column {
        let name = name.to_ascii_lowercase();
        Column::Value(match name.as_str() {
            "date" => return Column::Date,
            "time" => return Column::Time,
            "time-taken" => return Column::TimeTaken,
            "cs(user-agent)" => return Column::Agent,
            "c-ip" => Field::Client,
            // IIS has no column for the port: these are names of custom ones
            "c-port" | "remote_port" | "remote-port" | "remoteport" => Field::ClientPort,
            "cs-method" => Field::Method,
            "cs-uri-stem" | "cs-uri" => Field::Target,
            "cs-version" | "cs-protocol-version" => Field::Protocol,
            "cs-host" | "x-host-header" => Field::Host,
            "cs-protocol" => Field::Scheme,
            "sc-status" => Field::Status,
            "sc-bytes" => Field::Sent,
            "ssl-protocol" => Field::Tls,
            "ssl-cipher" => Field::Cipher,
            _ => Field::Other,
        })
    }
}

impl Columns {
    /// Reads the first directive of the prefix; `None` if there is none.
    pub(super) fn find(prefix: &str) -> Option<Columns> {
        let mut columns = Columns::default();
        let is_found = prefix.lines().any(|line| columns.take(line));
        is_found.then_some(columns)
    }

    /// Reads the columns of a directive. Returns whether the line is one.
    pub(super) fn take(&mut self, line: &str) -> bool {
        let Some(names) = line.strip_prefix(FIELDS) else {
            return false;
        };
        self.0 = names.split_whitespace().map(Column::named).collect();
        self.0.contains(&Column::Time)
    }

    /// Parses a line; `None` if it has another number of columns, or no time.
    pub(super) fn read<'a>(&self, text: &'a str) -> Option<Line<'a>> {
        let mut line = Line::default();
        let mut values = text.split_ascii_whitespace();
        let (mut date, mut time) = ("", "");
        for column in &self.0 {
            let value = values.next()?;
            match column {
                Column::Date => date = value,
                Column::Time => time = value,
                Column::TimeTaken if value.contains('.') => {
                    line.set(Field::Seconds, Cow::Borrowed(value));
                }
                Column::TimeTaken => line.set(Field::Millis, Cow::Borrowed(value)),
                Column::Agent => line.set(Field::Agent, blanks(value)),
                Column::Value(field) => line.set(*field, Cow::Borrowed(value)),
            }
        }
        if values.next().is_some() {
            return None;
        }
        line.end = Some(timestamp::read(&format!("{date}T{time}Z"))?);
        Some(line)
    }
}

fn blanks(value: &str) -> Cow<'_, str> {
    if value.contains(['+', '%']) {
        value.replace('+', " ").replace("%20", " ").into()
    } else {
        value.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iis_writes_milliseconds_and_cloudfront_seconds() {
        let iis = Columns::find(
            "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2026-11-21 08:00:00\n\
             #Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status sc-substatus sc-win32-status time-taken\n",
        )
        .unwrap();
        let line = iis
            .read("2026-11-21 08:00:01 10.0.0.5 GET /a - 443 - 192.0.2.1 python-requests/2.31.0+x - 200 0 0 46")
            .unwrap();
        assert_eq!(line.end.unwrap().nanos, 1_795_248_001_000_000_000);
        assert!(line.end.unwrap().coarse);
        assert_eq!((line.took, line.port), (Some(46_000_000), None));
        assert_eq!(line.agent.as_deref(), Some("python-requests/2.31.0 x"));
        let cloudfront = Columns::find(
            "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query time-taken cs-protocol-version c-port\n",
        )
        .unwrap();
        let line = cloudfront
            .read("2026-11-21\t08:00:01\tFRA2\t392\t192.0.2.1\tGET\td.example\t/a\t200\t-\tcurl/8\t-\t0.046\tHTTP/2.0\t5000")
            .unwrap();
        assert_eq!((line.took, line.port), (Some(46_000_000), Some(5000)));
        assert_eq!(line.protocol, Some(intact_ledger::Protocol::Http2));
    }

    #[test]
    fn a_line_with_other_columns_is_not_read() {
        let columns = Columns::find("#Fields: date time c-ip\n").unwrap();
        assert!(columns.read("2026-11-21 08:00:01 ::1").is_some());
        assert!(columns.read("2026-11-21 08:00:01").is_none());
        assert!(columns.read("2026-11-21 08:00:01 ::1 x").is_none());
        assert_eq!(Columns::find("2026-11-21 08:00:01 ::1\n"), None);
        assert_eq!(Columns::find("#Fields: uid\n"), None);
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_trouble(text in ".{0,200}") {
            Columns::find(&format!("#Fields: date time {text}\n")).map(|columns| columns.read(&text));
        }
    }
}
