//! k6: one sample per metric of a request. The samples of a request are consecutive, and
//! `http_reqs` is the first one.
//!
//! Its timestamp is the end of the request. `http_req_blocked` includes connecting and TLS,
//! `http_req_duration` does not. Both are 0 on an open connection.

use super::{EACH, NotARow, RowFormat, Rows, WITH_URL};
use crate::client::{Entry, Timings};
use crate::csv_row::cells;
use crate::fields::{nanos_of_ms, protocol};
use crate::lenient::Lenient;
use crate::timestamp;
use intact_ledger::{Failure, Outcome};
use serde::Deserialize;

pub(super) const CSV: RowFormat = RowFormat {
    name: "k6's CSV",
    is_first: is_head,
    rows: || Box::new(K6::csv()),
    ..JSON
};

pub(super) const JSON: RowFormat = RowFormat {
    name: "k6's JSON",
    program: "k6",
    is_first: is_object,
    rows: || Box::<K6>::default(),
    shows: WITH_URL,
    ..EACH
};

/// The metric of a request's first sample.
const FIRST: &str = "http_reqs";

fn is_head(line: &str) -> bool {
    line.starts_with("metric_name,timestamp,metric_value,")
}

fn is_object(line: &str) -> bool {
    line.starts_with('{')
        && serde_json::from_str::<Sample>(line).is_ok_and(|sample| {
            let kind = sample.kind.text();
            kind.is_some_and(|kind| kind == "Metric" || kind == "Point")
                && sample.metric.text().is_some()
        })
}

/// A line of k6's JSON.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Sample {
    #[serde(rename = "type")]
    kind: Lenient,
    metric: Lenient,
    data: Data,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Data {
    time: Lenient,
    value: Lenient,
    tags: Option<Tags>,
}

/// The properties of the request that a sample belongs to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Tags {
    url: Lenient,
    name: Lenient,
    method: Lenient,
    status: Lenient,
    proto: Lenient,
    error_code: Lenient,
}

#[derive(Default)]
pub(super) struct K6 {
    /// Names of the columns; `None` for JSON.
    columns: Option<Vec<String>>,
    open: Option<OpenRequest>,
    is_coarse: bool,
}

/// The metrics of a request's phases, in the order of [`OpenRequest::phases`].
const PHASES: [&str; 6] = [
    "http_req_blocked",
    "http_req_connecting",
    "http_req_tls_handshaking",
    "http_req_sending",
    "http_req_waiting",
    "http_req_receiving",
];

/// A request with samples that may still follow.
struct OpenRequest {
    end: u64,
    tags: Tags,
    /// Milliseconds per phase.
    phases: [f64; PHASES.len()],
}

impl K6 {
    pub(super) fn csv() -> K6 {
        K6 {
            columns: Some(Vec::new()),
            ..K6::default()
        }
    }

    /// Ends the open request.
    fn end(&mut self) -> Option<Entry> {
        self.open.take().map(OpenRequest::entry)
    }

    /// Adds a sample. `tags` are those of the request's first sample.
    fn sample(
        &mut self,
        metric: &str,
        time: &str,
        value: f64,
        tags: Option<Tags>,
    ) -> Result<Option<Entry>, NotARow> {
        if metric == FIRST {
            let done = self.end();
            let Some(stamp) = timestamp::read(time) else {
                return Err(NotARow(done.map(Box::new)));
            };
            self.is_coarse |= stamp.coarse;
            self.open = Some(OpenRequest {
                end: stamp.nanos,
                tags: tags.unwrap_or_default(),
                phases: [0.0; PHASES.len()],
            });
            return Ok(done);
        }
        let Some(open) = &mut self.open else {
            // the first sample of the request is missing
            let is_orphan = metric.starts_with("http_req_");
            return if is_orphan {
                Err(NotARow::default())
            } else {
                Ok(None)
            };
        };
        if let Some(phase) = PHASES.iter().position(|name| *name == metric) {
            open.phases[phase] = value;
        } else if !matches!(metric, "http_req_duration" | "http_req_failed") {
            // another metric ends the request
            return Ok(self.end());
        }
        Ok(None)
    }

    fn csv_row(&mut self, line: &str) -> Result<Option<Entry>, NotARow> {
        let row = cells(line);
        if is_head(line) {
            self.columns = Some(row);
            return Ok(None);
        }
        let cell = |at: usize| row.get(at).map_or("", String::as_str);
        let value = cell(2).parse().map_err(|_| NotARow::default())?;
        let tag = |name: &str| {
            let mut columns = self.columns.iter().flatten();
            match columns.position(|column| column == name).map_or("", cell) {
                "" => Lenient::Nothing,
                text => Lenient::Text(text.to_owned()),
            }
        };
        let tags = (cell(0) == FIRST).then(|| Tags {
            url: tag("url"),
            name: tag("name"),
            method: tag("method"),
            status: tag("status"),
            proto: tag("proto"),
            error_code: tag("error_code"),
        });
        self.sample(cell(0), cell(1), value, tags)
    }
}

impl Rows for K6 {
    fn take(&mut self, line: &str) -> Result<Option<Entry>, NotARow> {
        if line.is_empty() {
            return Ok(None);
        }
        if self.columns.is_some() {
            return self.csv_row(line);
        }
        let sample: Sample = serde_json::from_str(line).map_err(|_| NotARow::default())?;
        if sample.kind.text().as_deref() != Some("Point") {
            return Ok(None);
        }
        let metric = sample.metric.text().ok_or_else(NotARow::default)?;
        let time = sample.data.time.text().ok_or_else(NotARow::default)?;
        let value = sample.data.value.number().unwrap_or(0.0);
        self.sample(&metric, &time, value, sample.data.tags)
    }

    fn finish(&mut self) -> Result<Option<Entry>, NotARow> {
        Ok(self.end())
    }

    fn is_coarse(&self) -> bool {
        self.is_coarse
    }
}

impl OpenRequest {
    fn entry(self) -> Entry {
        let phase = |ms: f64| Some(nanos_of_ms(ms));
        let step = |ms: f64| phase(ms).filter(|&nanos| nanos > 0);
        let [blocked, connecting, tls, send, wait, receive] = self.phases;
        let timings = Timings {
            // the wait for a free connection, and the lookup
            blocked: step(blocked - connecting - tls),
            dns: None,
            connect: step(connecting),
            ssl: step(tls),
            send: phase(send),
            wait: phase(wait),
            receive: phase(receive),
        };
        let took = timings.before_send() + timings.in_flight();
        let mut entry = Entry::begun(self.end.saturating_sub(took));
        entry.timings = timings;
        entry.time = took;
        let tags = &self.tags;
        entry.set_request(tags.url.text().or(tags.name.text()), tags.method.text());
        entry.protocol = tags.proto.text().and_then(|text| protocol(&text));
        entry.set_status(tags.status.count());
        if entry.status.is_none() {
            entry.outcome = Outcome::Failed(failure(tags.error_code.count().unwrap_or(0)));
        }
        entry
    }
}

/// The failure of k6's error codes (k6 documentation, "Error codes").
fn failure(code: u64) -> Failure {
    use Failure as F;
    match code {
        1050 => F::Timeout,
        1100..=1199 => F::Lookup,
        1201 => F::Closed,
        1210 => F::Unreachable,
        1211 => F::ConnectTimeout,
        1212 => F::Refused,
        1220 => F::Reset,
        1300..=1309 => F::Tls,
        1310 => F::CertificateUnknown,
        1311 => F::CertificateName,
        1312..=1399 => F::Certificate,
        1600..=1699 => F::StreamReset,
        _ => F::Closed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags,metadata";

    fn read(text: &str) -> Vec<Entry> {
        let mut k6 = K6::csv();
        let mut entries = Vec::new();
        for line in text.lines() {
            entries.extend(k6.take(line).expect(line));
        }
        entries.extend(k6.end());
        entries
    }

    #[test]
    fn the_samples_of_a_request_are_joined() {
        let tags = ",,,,true,,GET,https://localhost:18443/x,HTTP/2.0,default,,200,,tls1.3,https://localhost:18443/x,,";
        let text = [
            ("http_reqs", "1.0"),
            ("http_req_duration", "0.22325"),
            ("http_req_blocked", "5.761994"),
            ("http_req_connecting", "0.58917"),
            ("http_req_tls_handshaking", "5.065684"),
            ("http_req_sending", "0.16379"),
            ("http_req_waiting", "0.03172"),
            ("http_req_receiving", "0.02774"),
            ("data_sent", "72.0"),
            ("http_reqs", "1.0"),
            ("http_req_waiting", "0.5"),
        ]
        .map(|(name, value)| format!("{name},1795259227,{value}{tags}\n"))
        .concat();
        let entries = read(&format!("{HEAD}\n{text}"));
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].timings.blocked, Some(107_139));
        assert_eq!(entries[0].timings.ssl, Some(5_065_684));
        assert!(entries[0].ended_at().abs_diff(1_795_259_227_000_000_000) <= 7);
        assert!(!entries[1].timings.has_setup());
        assert_eq!(entries[1].origin.as_ref().unwrap().port, 18443);
    }

    #[test]
    fn a_refused_dial_is_a_failed_request() {
        let row = "http_reqs,1795259227,1.000000,,dial: connection refused,1212,false,,GET,http://127.0.0.1:1/x,,default,,0,,,http://127.0.0.1:1/x,,";
        let entries = read(&format!("{HEAD}\n{row}\n"));
        assert_eq!(entries[0].outcome, Outcome::Failed(Failure::Refused));
        assert_eq!(entries[0].outcome, Outcome::Failed(Failure::Refused));
    }
}
