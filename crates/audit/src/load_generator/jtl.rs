//! JMeter: results as CSV or XML (JTL). Times are in milliseconds, and `Connect` is within the time
//! to the first byte. A request on an open connection has the connect time 0, and so has a connect
//! of less than a millisecond.
//!
//! A sample with samples inside is their sum, and no request of its own: redirects, and resources
//! of a page. CSV has the sum only.

use super::{EACH, NotARow, RowFormat, Rows};
use crate::client::{Entry, Timings};
use crate::csv_row::cells_between;
use crate::failure_words::in_words;
use crate::fields;
use crate::timestamp;
use intact_ledger::{Evidence, Outcome};

pub(super) const CSV: RowFormat = RowFormat {
    name: "JMeter's CSV (JTL)",
    program: "JMeter",
    is_first: |line| Columns::of(line).is_some(),
    rows: || Box::<Table>::default(),
    shows: &[Evidence::Attempts, Evidence::Durations],
    ..EACH
};

pub(super) const XML: RowFormat = RowFormat {
    name: "JMeter's XML (JTL)",
    is_first: |line| line.starts_with("<testResults"),
    rows: || Box::<Document>::default(),
    ..CSV
};

const MS: u64 = 1_000_000;
/// Beginning of the code of a request without a response.
const NO_RESPONSE: &str = "Non HTTP response code";

/// Values of a sample.
#[derive(Default)]
struct Sample<'a> {
    at: &'a str,
    elapsed: &'a str,
    latency: &'a str,
    connect: &'a str,
    code: &'a str,
    message: &'a str,
    success: &'a str,
    url: &'a str,
    received: &'a str,
    sent: &'a str,
}

impl Sample<'_> {
    /// The request; `Ok(None)` if the sample is not one of HTTP.
    fn entry(&self) -> Result<Option<Entry>, NotARow> {
        let ms = |text: &str| text.parse::<u64>().ok().and_then(|ms| ms.checked_mul(MS));
        // a property gives the times another form
        let formatted = || timestamp::read(self.at).map(|stamp| stamp.nanos);
        let at = ms(self.at).or_else(formatted);
        let (Some(at), Some(elapsed)) = (at, ms(self.elapsed)) else {
            return Err(NotARow::default());
        };
        let status = self.code.parse().ok().and_then(fields::status);
        let is_transaction = self.message.starts_with("Number of samples in transaction");
        let failed = self.code.starts_with(NO_RESPONSE);
        // without a URL it may be a sample of another protocol
        let is_unknown = status.is_none() && !failed;
        if is_transaction || (is_unknown && self.url.is_empty()) {
            return Ok(None);
        }
        let mut entry = Entry::begun(at);
        entry.time = elapsed;
        let first_byte = ms(self.latency).unwrap_or(elapsed).min(elapsed);
        let connect = ms(self.connect).unwrap_or(0).min(elapsed);
        entry.timings = Timings {
            connect: (connect > 0).then_some(connect),
            wait: Some(first_byte.saturating_sub(connect)),
            receive: Some(elapsed - first_byte.max(connect)),
            ..Timings::default()
        };
        entry.set_setup_step(MS);
        entry.status = status;
        if failed || (is_unknown && self.success == "false") {
            let message = format!("{} {}", self.code, self.message);
            entry.outcome = Outcome::Failed(in_words(&message));
        } else if is_unknown {
            entry.outcome = Outcome::Unknown;
        }
        entry.set_request((!self.url.is_empty()).then(|| self.url.to_owned()), None);
        entry.body = self.received.parse().ok();
        entry.request_body = self.sent.parse().ok();
        Ok(Some(entry))
    }
}

/// The columns, and what separates them: JMeter's properties select both.
#[derive(Default)]
struct Columns {
    names: Vec<String>,
    separator: u8,
}

impl Columns {
    /// The columns of a head; `None` for another line.
    fn of(line: &str) -> Option<Columns> {
        let separator = *line.strip_prefix("timeStamp")?.as_bytes().first()?;
        let has = |name| line.contains(name);
        let has_outcome = has("responseCode") || has("success");
        let is_head = b",;\t|".contains(&separator) && has("elapsed") && has_outcome;
        is_head.then(|| Columns {
            names: cells_between(separator, line),
            separator,
        })
    }
}

/// Limit of a row with line breaks, in bytes.
const LONGEST_ROW: usize = 1 << 20;

/// Rows after a head, which names the columns. A cell in quotes may have line breaks: an assertion
/// of JMeter prints what it expected and what it received.
#[derive(Default)]
struct Table {
    columns: Columns,
    /// The lines of a row so far, within quotes.
    open: String,
}

impl Rows for Table {
    fn take(&mut self, line: &str) -> Result<Option<Entry>, NotARow> {
        let is_quoted = line.matches('"').count() % 2 == 1;
        if self.open.is_empty() {
            let row = self.row(line);
            if row.is_err() && is_quoted {
                line.clone_into(&mut self.open);
                return Ok(None);
            }
            return row;
        }
        // a quote that nothing closes must not take the rows after it
        if !is_quoted && let Ok(Some(entry)) = self.row(line) {
            self.open.clear();
            return Err(NotARow(Some(Box::new(entry))));
        }
        self.open.push('\n');
        self.open.push_str(line);
        if self.open.len() > LONGEST_ROW {
            return self.finish();
        }
        match is_quoted {
            true => {
                let row = std::mem::take(&mut self.open);
                self.row(&row)
            }
            false => Ok(None),
        }
    }

    fn finish(&mut self) -> Result<Option<Entry>, NotARow> {
        match std::mem::take(&mut self.open).is_empty() {
            true => Ok(None),
            false => Err(NotARow::default()),
        }
    }
}

impl Table {
    /// Reads a whole row.
    fn row(&mut self, line: &str) -> Result<Option<Entry>, NotARow> {
        if line.is_empty() {
            return Ok(None);
        }
        if let Some(columns) = Columns::of(line) {
            self.columns = columns;
            return Ok(None);
        }
        let Columns { names, separator } = &self.columns;
        let row = cells_between(*separator, line);
        if row.len() != names.len() {
            return Err(NotARow::default());
        }
        let value = |name: &str| {
            let at = names.iter().position(|known| known == name);
            at.map_or("", |at| row[at].as_str())
        };
        let url = value("URL");
        // a sample of another protocol
        if url == "null" {
            return Ok(None);
        }
        Sample {
            at: value("timeStamp"),
            elapsed: value("elapsed"),
            latency: value("Latency"),
            connect: value("Connect"),
            code: value("responseCode"),
            message: value("responseMessage"),
            success: value("success"),
            url,
            received: value("bytes"),
            sent: value("sentBytes"),
        }
        .entry()
    }
}

/// Elements of XML, each tag on a line of its own, as JMeter writes them.
#[derive(Default)]
struct Document {
    /// The sample that is open, and its URL if that was read: it is a request unless it has samples
    /// inside.
    open: Option<(String, String)>,
}

impl Document {
    /// Ends the open sample.
    fn end(&mut self) -> Result<Option<Entry>, NotARow> {
        match self.open.take() {
            Some((tag, url)) => sample(&tag, &url),
            None => Ok(None),
        }
    }
}

impl Rows for Document {
    fn take(&mut self, line: &str) -> Result<Option<Entry>, NotARow> {
        let line = line.trim();
        let is_tag = line.starts_with("<httpSample") || line.starts_with("<sample");
        // a text has no quote and no bracket, because JMeter escapes both
        let is_inside = !line.starts_with('<') && !line.contains("</");
        let is_rest = is_inside && line.contains(['"', '>']);
        let is_rest = is_rest || (!is_tag && line.contains(" rc=\""));
        if is_rest || (!line.is_empty() && "<httpSample".starts_with(line)) {
            return Err(NotARow::default());
        }
        if is_tag {
            // the sample around it is a sum
            self.open = None;
            if !line.ends_with('>') {
                return Err(NotARow::default());
            }
            if line.starts_with("<sample") {
                return Ok(None);
            }
            if line.ends_with("/>") || line.ends_with("</httpSample>") {
                return sample(line, "");
            }
            self.open = Some((line.to_owned(), String::new()));
        } else if line.starts_with("</httpSample>") || line.starts_with("</sample>") {
            return self.end();
        } else if let Some(url) = line.strip_prefix("<java.net.URL>") {
            let url = url.strip_suffix("</java.net.URL>").unwrap_or_default();
            if let Some((_, known)) = &mut self.open {
                *known = url.to_owned();
            }
        }
        Ok(None)
    }
}

/// The request of a tag.
fn sample(tag: &str, url: &str) -> Result<Option<Entry>, NotARow> {
    let value = |name: &str| {
        let start = tag.find(&format!(" {name}=\""));
        let rest = start.map_or("", |at| &tag[at + name.len() + 3..]);
        rest.split('"').next().unwrap_or_default()
    };
    let (label, url) = (value("lb"), url.replace("&amp;", "&"));
    if label.is_empty() && url.is_empty() {
        return Err(NotARow::default());
    }
    Sample {
        at: value("ts"),
        elapsed: value("t"),
        latency: value("lt"),
        connect: value("ct"),
        code: value("rc"),
        message: value("rm"),
        success: value("s"),
        url: if url.is_empty() { label } else { &url },
        received: value("by"),
        sent: value("sby"),
    }
    .entry()
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::Failure;

    fn entries(mut rows: impl Rows, text: &str) -> Vec<Entry> {
        let taken = text.lines().map(|line| rows.take(line).unwrap());
        taken.flatten().collect()
    }

    #[test]
    fn columns_are_named_by_the_head() {
        let entries = entries(
            Table::default(),
            "timeStamp,elapsed,label,responseCode,responseMessage,success,bytes,URL,Latency,Connect\n\
             1795248000250,30,home,200,OK,true,100,http://a.example/x,25,10\n\
             1795248000290,9,home,200,\"OK, fine\",true,100,http://a.example/x,8,0\n\
             1795248000300,3,home,Non HTTP response code: java.net.ConnectException,Non HTTP response message: Connection refused,false,100,http://a.example/x,0,3\n\
             1795248000300,39,all,200,\"Number of samples in transaction : 2, number of failing samples : 0\",true,200,null,0,10\n\
             1795248000300,3,sql,200,OK,true,100,null,0,0\n",
        );
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[0].timings.connect, Some(10 * MS));
        assert_eq!(entries[0].ended_at() - entries[0].at, 30 * MS);
        assert!(!entries[1].timings.has_setup());
        assert_eq!(entries[1].status, Some(200));
        assert_eq!(entries[2].outcome, Outcome::Failed(Failure::Refused));
    }

    #[test]
    fn properties_select_the_separator_and_the_form_of_times() {
        for (separator, at) in [("\t", "1795248000250"), (";", "2026-11-21 08:00:00.250")] {
            let names = ["timeStamp", "elapsed", "label", "responseCode", "URL"];
            let row = [at, "30", "home, sweet", "200", "http://a.example/x"];
            let text = [names.join(separator), row.join(separator)].join("\n");
            let entries = entries(Table::default(), &text);
            assert_eq!(entries.len(), 1, "{text}");
            assert_eq!(entries[0].at, 1_795_248_000_250 * MS);
        }
    }

    #[test]
    fn a_request_without_a_status_is_not_lost() {
        let row = |code: &str, success: bool, url: &str| {
            let text = format!(
                "timeStamp,elapsed,responseCode,success,URL\n1795248000250,30,{code},{success},{url}\n"
            );
            entries(Table::default(), &text)
                .pop()
                .map(|one| one.outcome)
        };
        let url = "http://a.example/x";
        for code in ["0", "", "42"] {
            assert_eq!(row(code, true, url), Some(Outcome::Unknown), "{code}");
            let failed = Outcome::Failed(Failure::UnknownKind);
            assert_eq!(row(code, false, url), Some(failed), "{code}");
            assert_eq!(row(code, true, ""), None, "{code}");
        }
    }

    #[test]
    fn a_sample_with_samples_inside_is_no_request() {
        let entries = entries(
            Document::default(),
            r#"<?xml version="1.0" encoding="UTF-8"?>
<testResults version="1.2">
<httpSample t="50" it="0" lt="20" ct="5" ts="1795248000250" s="true" lb="page" rc="200" rm="OK" by="9">
  <httpSample t="30" it="0" lt="20" ct="5" ts="1795248000250" s="true" lb="http://a.example/" rc="302" rm="Found" by="9"/>
  <httpSample t="20" it="0" lt="20" ct="0" ts="1795248000280" s="true" lb="http://a.example/x" rc="200" rm="OK" by="9">
    <java.net.URL>http://a.example/x?a=1&amp;b=2</java.net.URL>
  </httpSample>
</httpSample>
<sample t="5" lt="0" ts="1795248000290" s="true" lb="sql" rc="" rm=""/>
</testResults>"#,
        );
        let targets: Vec<_> = entries
            .iter()
            .map(|one| one.full_target.as_deref())
            .collect();
        assert_eq!(targets, [Some("/"), Some("/x?a=1&b=2")]);
        assert_eq!(entries[0].timings.connect, Some(5 * MS));
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_trouble(text in ".{0,120}", value in "[0-9,]{0,60}") {
            let mut table = Table::default();
            let _ = table.take(&format!("timeStamp,elapsed,responseCode,{text}"));
            let _ = table.take(&text);
            let _ = table.take(&value);
            let mut document = Document::default();
            let _ = document.take(&format!("<httpSample ts=\"{value}\" {text}>"));
            let _ = document.take(&text);
            let _ = document.end();
        }
    }
}
