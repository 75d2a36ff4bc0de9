//! Logs with named columns: the W3C extended log format of IIS and CloudFront, where a `#Fields`
//! directive names them, and tables of times and durations, where the first line does. Must not
//! guess a column that nothing names.

use super::line::{Field, Line};
use crate::csv_row::cells;
use crate::timestamp;
use std::borrow::Cow;

const FIELDS: &str = "#Fields:";
/// The day of lines that have a time only.
const DATE: &str = "#Date:";

/// The columns of CloudFront's standard log, for files without their directives.
const CLOUDFRONT: &str = "date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header cs-protocol cs-bytes time-taken x-forwarded-for ssl-protocol ssl-cipher x-edge-response-result-type cs-protocol-version fle-status fle-encrypted-fields c-port time-to-first-byte x-edge-detailed-result-type sc-content-type sc-content-len sc-range-start sc-range-end";
/// Smallest number of columns that CloudFront ever wrote.
const CLOUDFRONT_LEAST: usize = 19;

/// The columns, in the order of the last directive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Columns {
    columns: Vec<Column>,
    /// What separates the values of a table, and its first line; `None` for the W3C format.
    table: Option<(char, Box<str>)>,
    /// The day of the last directive.
    day: Box<str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Date,
    Time,
    /// Without a zone: read as UTC, where no other time is in the line.
    LocalDate,
    LocalTime,
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
            "date" | "date-utc" => return Column::Date,
            "time" | "time-utc" => return Column::Time,
            "date-local" => return Column::LocalDate,
            "time-local" => return Column::LocalTime,
            "time-taken" | "timetakenms" => return Column::TimeTaken,
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

    /// The column of a table. The unit of a duration must be in its name: a guess would be wrong
    /// by a factor of 1,000.
    fn of_table(name: &str) -> Column {
        // a query of CloudWatch Logs names its columns so
        let name = name.trim().to_ascii_lowercase().replace([' ', '-'], "_");
        let unit = name.rsplit(['_', '(']).next().unwrap_or_default();
        let is_duration = ["duration", "latency", "elapsed", "took", "response_time"]
            .iter()
            .any(|word| name.starts_with(word));
        Column::Value(match (name.as_str(), unit.trim_end_matches(')')) {
            ("@duration", _) => Field::Millis,
            ("time" | "timestamp" | "@timestamp" | "ts" | "date" | "datetime" | "end", _) => {
                Field::End
            }
            ("start" | "started" | "start_time" | "started_at", _) => Field::Start,
            (_, "ms" | "millis" | "milliseconds") if is_duration => Field::Millis,
            (_, "s" | "sec" | "seconds") if is_duration => Field::Seconds,
            (_, "us" | "usec" | "micros" | "microseconds") if is_duration => Field::Micros,
            (_, "ns" | "nanos" | "nanoseconds") if is_duration => Field::Nanos,
            ("ms" | "millis" | "milliseconds", _) => Field::Millis,
            ("seconds", _) => Field::Seconds,
            ("duration", _) => Field::Other,
            ("error" | "exception", _) => Field::Error,
            (name, _) => Field::named(name),
        })
    }

    fn is_duration(self) -> bool {
        use Field::{Micros, Millis, Nanos, Seconds};
        matches!(self, Column::Value(Millis | Seconds | Micros | Nanos))
    }
}

impl Columns {
    /// Reads the first directive of the prefix, or detects CloudFront's columns without one; `None`
    /// for other texts.
    pub(super) fn find(prefix: &str) -> Option<Columns> {
        let mut columns = Columns::default();
        let is_found = prefix.lines().any(|line| columns.take(line));
        is_found.then_some(columns).or_else(|| {
            let line = prefix.lines().find(|line| !line.starts_with('#'))?;
            let count = line.split('\t').count();
            let columns = Columns {
                columns: CLOUDFRONT
                    .split(' ')
                    .take(count)
                    .map(Column::named)
                    .collect(),
                ..Columns::default()
            };
            let is_read = columns.read(line).is_some_and(|line| line.status.is_some());
            (count >= CLOUDFRONT_LEAST && is_read).then_some(columns)
        })
    }

    /// Reads the columns of a table by its first line; `None` without a time and a duration.
    pub(super) fn of_table(prefix: &str) -> Option<Columns> {
        let first = prefix.lines().next()?.trim();
        let separator = [',', '\t', ';']
            .into_iter()
            .find(|mark| first.contains(*mark))?;
        let names = values(first, separator);
        let columns: Vec<Column> = names.iter().map(|name| Column::of_table(name)).collect();
        let has_time = [Field::Start, Field::End].map(Column::Value);
        let is_timed = columns.iter().any(|column| has_time.contains(column));
        let is_table = is_timed && columns.iter().any(|column| column.is_duration());
        is_table.then(|| Columns {
            columns,
            table: Some((separator, first.into())),
            ..Columns::default()
        })
    }

    /// Whether the line names the columns of the table.
    pub(super) fn is_head(&self, line: &str) -> bool {
        self.table.as_ref().is_some_and(|(_, head)| **head == *line)
    }

    /// Reads the columns of a directive. Returns whether the line is one.
    pub(super) fn take(&mut self, line: &str) -> bool {
        if let Some(day) = line.strip_prefix(DATE) {
            self.day = day.split_whitespace().next().unwrap_or_default().into();
        }
        let Some(names) = line.strip_prefix(FIELDS) else {
            return false;
        };
        self.columns = names.split_whitespace().map(Column::named).collect();
        let is_time = |column: &Column| matches!(column, Column::Time | Column::LocalTime);
        self.columns.iter().any(is_time)
    }

    /// Parses a line; `None` if it has another number of columns, or no time.
    pub(super) fn read<'a>(&self, text: &'a str) -> Option<Line<'a>> {
        match &self.table {
            Some((separator, _)) => self.read_row(text, *separator),
            None => self.read_values(text),
        }
    }

    /// Parses a row of a table: a request with a time and a duration.
    fn read_row<'a>(&self, text: &'a str, separator: char) -> Option<Line<'a>> {
        let values = values(text, separator);
        if values.len() != self.columns.len() {
            return None;
        }
        let mut line = Line {
            is_row: true,
            ..Line::default()
        };
        for (column, value) in self.columns.iter().zip(values) {
            if let Column::Value(field) = column {
                line.set(*field, value);
            }
        }
        // a client also reports a response that it does not like
        line.failure = line.failure.filter(|_| line.has_no_status);
        line.took.map(|_| line)
    }

    fn read_values<'a>(&self, text: &'a str) -> Option<Line<'a>> {
        let mut line = Line::default();
        let mut rest = text;
        let (mut date, mut time) = ("", "");
        let mut local = (&*self.day, "");
        for column in &self.columns {
            let value = next_value(&mut rest)?;
            match column {
                Column::Date => date = value,
                Column::Time => time = value,
                Column::LocalDate => local.0 = value,
                Column::LocalTime => local.1 = value,
                Column::TimeTaken if value.contains('.') => {
                    line.set(Field::Seconds, Cow::Borrowed(value));
                }
                Column::TimeTaken => line.set(Field::Millis, Cow::Borrowed(value)),
                Column::Agent => line.set(Field::Agent, blanks(value)),
                Column::Value(field) => line.set(*field, Cow::Borrowed(value)),
            }
        }
        // a command of FTP is marked with its session
        let is_http = |method: &str| !method.starts_with('[');
        if next_value(&mut rest).is_some() || !line.method.as_deref().is_none_or(is_http) {
            return None;
        }
        let date = [date, local.0].into_iter().find(|day| !day.is_empty())?;
        let time = [time, local.1].into_iter().find(|time| !time.is_empty())?;
        line.end = Some(timestamp::read(&format!("{date}T{time}Z"))?);
        Some(line)
    }
}

/// The next value of a line. One in quotes may have blanks; a quote in it is doubled.
fn next_value<'a>(rest: &mut &'a str) -> Option<&'a str> {
    let text = rest.trim_ascii_start();
    let is_end = |at: usize| text.as_bytes().get(at).is_none_or(u8::is_ascii_whitespace);
    let quoted = text.strip_prefix('"').and_then(|quoted| {
        let mut quotes = memchr::memchr_iter(b'"', quoted.as_bytes()).peekable();
        let mut end = quotes.next()?;
        while quotes.next_if_eq(&(end + 1)).is_some() {
            end = quotes.next()?;
        }
        is_end(end + 2).then(|| &quoted[..end])
    });
    let (value, len) = match quoted {
        Some(value) => (value, value.len() + 2),
        None => {
            let end = text.find(|one: char| one.is_ascii_whitespace());
            let end = end.unwrap_or(text.len());
            (&text[..end], end)
        }
    };
    *rest = &text[len..];
    (len > 0).then_some(value)
}

/// The values of a row, without their quotes.
fn values(text: &str, separator: char) -> Vec<Cow<'_, str>> {
    match text.contains('"') && separator == ',' {
        true => cells(text).into_iter().map(Cow::Owned).collect(),
        false => text
            .split(separator)
            .map(|value| Cow::Borrowed(value.trim()))
            .collect(),
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
    fn values_in_quotes_have_blanks() {
        let columns = Columns::find(
            "#Fields:  c-ip  date  time  cs(Cookie)  cs-method  cs-uri-stem  sc-status\n",
        )
        .unwrap();
        let read = |cookie: &str| {
            let text = format!("192.0.2.1   2026-11-21  08:00:01  {cookie}  GET  /a  200");
            columns.read(&text).and_then(|line| line.status)
        };
        for cookie in [
            "-",
            "a=1",
            "\"a=1; b=2\"",
            "\"\"",
            "\"a \"\"b\"\" c\"",
            "\"\"\"a\"\" b\"",
            "\"a",
        ] {
            assert_eq!(read(cookie), Some(200), "{cookie}");
        }
        assert_eq!(read("\"a b"), None);
    }

    #[test]
    fn a_day_comes_from_the_line_or_from_the_directive() {
        let end = |fields: &str, line: &str| {
            let columns =
                Columns::find(&format!("#Date: 2026-11-20 23:00:00\n#Fields: {fields}\n"))?;
            Some(columns.read(line)?.end?.nanos)
        };
        let day = 86_400 * 1_000_000_000;
        let noted = 1_795_248_001_000_000_000;
        assert_eq!(
            end("time c-ip cs-method", "08:00:01 ::1 GET"),
            Some(noted - day)
        );
        let local = "date-local time-local c-ip";
        assert_eq!(end(local, "2026-11-21 08:00:01 ::1"), Some(noted));
        let both = "date-local time-local date-UTC time-UTC";
        assert_eq!(
            end(both, "2026-11-21 09:00:01 2026-11-21 08:00:01"),
            Some(noted)
        );
        // commands of FTP
        assert_eq!(end("time c-ip cs-method", "08:00:01 ::1 [2]USER"), None);
    }

    #[test]
    fn cloudfront_is_known_without_its_head() {
        let line = "2026-11-21\t08:00:01\tFRA2\t392\t192.0.2.1\tGET\td.cloudfront.net\t/a\t200\t-\tcurl/8\t-\t-\tHit\tSOX4==\td.example\thttps\t23\t0.046\t-\tTLSv1.3\tTLS_AES_128_GCM_SHA256\tHit\tHTTP/2.0\t-\t-\t11040\t0.001\tHit\ttext/html\t78\t-\t-";
        for count in [19, 26, 33] {
            let line: Vec<&str> = line.split('\t').take(count).collect();
            let line = line.join("\t");
            let columns = Columns::find(&line).unwrap();
            let read = columns.read(&line).unwrap();
            assert_eq!((read.took, read.status), (Some(46_000_000), Some(200)));
            assert_eq!(read.port, (count == 33).then_some(11040));
        }
        assert_eq!(Columns::find(&line.replace('\t', " ")), None);
    }

    #[test]
    fn a_table_needs_a_time_and_a_duration_with_its_unit() {
        for (head, row) in [
            ("time,duration_ms", "2026-11-21T08:00:00.250Z,412.5"),
            ("@timestamp,@duration", "2026-11-21 08:00:00.250,412.5"),
            ("Timestamp;Latency (s);status", "1795248000250;0.4125;200"),
            (
                "url,timestamp,elapsed_us",
                "\"http://a/x,y\",1795248000.25,412500",
            ),
        ] {
            let columns = Columns::of_table(head).unwrap_or_else(|| panic!("{head}"));
            let line = columns.read(row).unwrap_or_else(|| panic!("{row}"));
            assert_eq!(line.took, Some(412_500_000), "{head}");
            assert_eq!(line.end.unwrap().nanos, 1_795_248_000_250_000_000, "{head}");
            assert!(columns.is_head(head) && !columns.is_head(row));
        }
        for other in ["time,duration", "duration_ms,status", "a,b,c", ""] {
            assert_eq!(Columns::of_table(other), None, "{other}");
        }
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
            Columns::find(&text);
            Columns::of_table(&format!("time,duration_ms,{text}\n")).map(|columns| columns.read(&text));
        }
    }
}
