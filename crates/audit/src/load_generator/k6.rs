//! k6: a sample for each metric of a request, those of one request one behind the other, the count `http_reqs` first. Its time stamp is the
//! end of the request. `http_req_blocked` includes connecting and TLS, `http_req_duration` does not; both are 0 on a connection that was there.

use super::Rows;
use super::cells::cells;
use crate::client::{Entry, Timings, nanos_of_ms, protocol, split};
use crate::lenient::Lenient;
use crate::log::timestamp;
use intact_ledger::{Failure, Method, Outcome, SetupPhase, Target};
use serde::Deserialize;

pub(super) fn is_head(line: &str) -> bool {
    line.starts_with("metric_name,timestamp,metric_value,")
}

pub(super) fn is_object(line: &str) -> bool {
    line.starts_with('{')
        && serde_json::from_str::<Sample>(line).is_ok_and(|sample| {
            let kind = sample.kind.text();
            kind.is_some_and(|kind| kind == "Metric" || kind == "Point")
                && sample.metric.text().is_some()
        })
}

/// A line of its JSON.
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

/// What k6 says of the request that a sample belongs to.
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

pub(super) struct K6 {
    /// Columns by number; `None` for JSON.
    columns: Option<Columns>,
    open: Option<Open>,
    ready: Option<Entry>,
    is_coarse: bool,
}

#[derive(Default)]
struct Columns {
    url: Option<usize>,
    name: Option<usize>,
    method: Option<usize>,
    status: Option<usize>,
    proto: Option<usize>,
    error_code: Option<usize>,
}

/// A request whose samples are still coming. Times in milliseconds.
struct Open {
    end: u64,
    tags: Tags,
    blocked: f64,
    connecting: f64,
    tls: f64,
    send: f64,
    wait: f64,
    receive: f64,
}

impl K6 {
    pub(super) fn csv() -> K6 {
        K6 {
            columns: Some(Columns::default()),
            ..K6::json()
        }
    }

    pub(super) fn json() -> K6 {
        K6 {
            columns: None,
            open: None,
            ready: None,
            is_coarse: false,
        }
    }

    fn sample(
        &mut self,
        metric: &str,
        time: &str,
        value: f64,
        tags: impl FnOnce() -> Tags,
    ) -> bool {
        if metric == "http_reqs" {
            self.finish();
            let Some(stamp) = timestamp::read(time) else {
                return false;
            };
            self.is_coarse |= stamp.coarse;
            self.open = Some(Open {
                end: stamp.nanos,
                tags: tags(),
                blocked: 0.0,
                connecting: 0.0,
                tls: 0.0,
                send: 0.0,
                wait: 0.0,
                receive: 0.0,
            });
            return true;
        }
        let Some(open) = &mut self.open else {
            return true;
        };
        match metric {
            "http_req_blocked" => open.blocked = value,
            "http_req_connecting" => open.connecting = value,
            "http_req_tls_handshaking" => open.tls = value,
            "http_req_sending" => open.send = value,
            "http_req_waiting" => open.wait = value,
            "http_req_receiving" => open.receive = value,
            "http_req_duration" | "http_req_failed" => {}
            // another metric: the request is told
            _ => self.finish(),
        }
        true
    }

    fn csv_row(&mut self, line: &str) -> bool {
        let row = cells(line);
        let cell = |at: usize| row.get(at).map_or("", AsRef::as_ref);
        if is_head(line) {
            let find = |name: &str| row.iter().position(|cell| cell == name);
            self.columns = Some(Columns {
                url: find("url"),
                name: find("name"),
                method: find("method"),
                status: find("status"),
                proto: find("proto"),
                error_code: find("error_code"),
            });
            return true;
        }
        let Ok(value) = cell(2).parse() else {
            return false;
        };
        let columns = self.columns.take().unwrap_or_default();
        let tag = |column: Option<usize>| match column.map_or("", cell) {
            "" => Lenient::Nothing,
            text => Lenient::Text(text.to_owned()),
        };
        let is_used = self.sample(cell(0), cell(1), value, || Tags {
            url: tag(columns.url),
            name: tag(columns.name),
            method: tag(columns.method),
            status: tag(columns.status),
            proto: tag(columns.proto),
            error_code: tag(columns.error_code),
        });
        self.columns = Some(columns);
        is_used
    }
}

impl Rows for K6 {
    fn take(&mut self, line: &str) -> bool {
        if line.is_empty() {
            return true;
        }
        if self.columns.is_some() {
            return self.csv_row(line);
        }
        let Ok(sample) = serde_json::from_str::<Sample>(line) else {
            return false;
        };
        if sample.kind.text().as_deref() != Some("Point") {
            return true;
        }
        let (Some(metric), Some(time)) = (sample.metric.text(), sample.data.time.text()) else {
            return false;
        };
        let value = sample.data.value.number().unwrap_or(0.0);
        let tags = sample.data.tags;
        self.sample(&metric, &time, value, || tags.unwrap_or_default())
    }

    fn next(&mut self) -> Option<Entry> {
        self.ready.take()
    }

    fn finish(&mut self) {
        if let Some(open) = self.open.take() {
            self.ready = Some(open.entry());
        }
    }

    fn is_coarse(&self) -> bool {
        self.is_coarse
    }
}

impl Open {
    fn entry(self) -> Entry {
        let phase = |ms: f64| Some(nanos_of_ms(ms));
        let step = |ms: f64| phase(ms).filter(|&nanos| nanos > 0);
        let timings = Timings {
            // waiting for a free connection, and the name lookup
            blocked: step(self.blocked - self.connecting - self.tls),
            dns: None,
            connect: step(self.connecting),
            ssl: step(self.tls),
            send: phase(self.send),
            wait: phase(self.wait),
            receive: phase(self.receive),
        };
        let took = timings.before_send() + timings.in_flight();
        let mut entry = Entry::of_tool(self.end.saturating_sub(took));
        entry.timings = timings;
        entry.time = took;
        let url = self.tags.url.text().or(self.tags.name.text());
        if let Some((origin, path)) = url.and_then(|url| split(&url)) {
            entry.origin = Some(origin);
            entry.target = Some(Target::new(&path));
            entry.full_target = path.into();
        }
        entry.method = self.tags.method.text().map(|name| Method::new(&name));
        entry.protocol = self.tags.proto.text().and_then(|text| protocol(&text));
        let status = self.tags.status.count();
        entry.status = status
            .and_then(|status| u16::try_from(status).ok())
            .filter(|&status| status > 0);
        if entry.status.is_none() {
            let code = self.tags.error_code.count().unwrap_or(0);
            (entry.outcome, entry.dial) = failure(code);
        }
        entry
    }
}

/// k6's codes of errors (its documentation, "Error codes").
fn failure(code: u64) -> (Outcome, Option<SetupPhase>) {
    use Failure as F;
    use SetupPhase::{Connect, Dns, Ssl};
    let (kind, phase) = match code {
        1050 => (F::Timeout, None),
        1100..=1199 => (F::Lookup, Some(Dns)),
        1201 => (F::Closed, None),
        1210 => (F::Unreachable, Some(Connect)),
        1211 => (F::ConnectTimeout, Some(Connect)),
        1212 => (F::Refused, Some(Connect)),
        1220 => (F::Reset, None),
        1300..=1309 => (F::Tls, Some(Ssl)),
        1310 => (F::CertificateUnknown, Some(Ssl)),
        1311 => (F::CertificateName, Some(Ssl)),
        1312..=1399 => (F::Certificate, Some(Ssl)),
        1600..=1699 => (F::StreamReset, None),
        _ => (F::Closed, None),
    };
    (Outcome::Failed(kind), phase)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "metric_name,timestamp,metric_value,check,error,error_code,expected_response,group,method,name,proto,scenario,service,status,subproto,tls_version,url,extra_tags,metadata";

    fn read(text: &str) -> Vec<Entry> {
        let mut k6 = K6::csv();
        let mut entries = Vec::new();
        for line in text.lines() {
            assert!(k6.take(line), "{line}");
            entries.extend(k6.next());
        }
        k6.finish();
        entries.extend(k6.next());
        entries
    }

    #[test]
    fn the_samples_of_a_request_are_put_together() {
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
    fn a_refused_dial_is_one() {
        let row = "http_reqs,1795259227,1.000000,,dial: connection refused,1212,false,,GET,http://127.0.0.1:1/x,,default,,0,,,http://127.0.0.1:1/x,,";
        let entries = read(&format!("{HEAD}\n{row}\n"));
        assert_eq!(entries[0].outcome, Outcome::Failed(Failure::Refused));
        assert_eq!(entries[0].dial, Some(SetupPhase::Connect));
    }
}
