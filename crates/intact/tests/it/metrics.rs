//! `--otlp` and `--prometheus`: what leaves is compared with the page's own figures, by readers
//! that are not ours.

use crate::observed::store;
use crate::peers::{CLOSED, program};
use crate::program::intact;
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsPartialSuccess, ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{Metric, number_data_point};
use prost::Message;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::JoinHandle;

/// 2026-01-01T00:00:00Z, when [`store`]'s ledgers begin.
const STARTED: u64 = 1_767_225_600_000_000_000;
const PROTOBUF: &str = "content-type: application/x-protobuf\r\n";

/// A collector that takes one request.
struct Collector {
    url: String,
    taken: JoinHandle<(String, Vec<u8>)>,
}

impl Collector {
    /// Answers each connection with one of these: whole answers, the length left to us; `None`
    /// never answers.
    fn answering(answers: Vec<Option<(&'static str, &'static str, Vec<u8>)>>) -> Collector {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let taken = std::thread::spawn(move || {
            let mut last = (String::new(), Vec::new());
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                last = request(&mut stream);
                match answer {
                    Some((status, head, body)) => {
                        let length = body.len();
                        let close = "connection: close\r\n";
                        write!(
                            stream,
                            "HTTP/1.1 {status}\r\n{head}{close}content-length: {length}\r\n\r\n"
                        )
                        .unwrap();
                        stream.write_all(&body).unwrap();
                    }
                    // until the client gives up
                    None => drop(stream.read_to_end(&mut Vec::new())),
                }
            }
            last
        });
        Collector { url, taken }
    }

    fn taking() -> Collector {
        Collector::answering(vec![Some(("200 OK", PROTOBUF, Vec::new()))])
    }

    fn request(self) -> (String, Vec<u8>) {
        self.taken.join().unwrap()
    }
}

fn request(stream: &mut TcpStream) -> (String, Vec<u8>) {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "{head}");
    }
    let head = head.to_ascii_lowercase();
    let (_, length) = head.split_once("content-length: ").unwrap();
    let length = length.lines().next().unwrap().parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (head, body)
}

/// Audits a ledger that opens a connection for each of five requests.
fn audit(folder: &Path, words: &[&str], environment: &[(&str, &str)]) -> Output {
    let ledger = store(&folder.join("ledger"), "new-connection-per-request/fires");
    Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["audit", &ledger, "--json"])
        .args(words)
        .envs(environment.iter().copied())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// What a document says could not be written.
fn not_written(out: &Output) -> Vec<String> {
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let caveats = document["caveats"].as_array().unwrap();
    caveats
        .iter()
        .filter(|caveat| caveat["id"] == "not-written")
        .map(|caveat| caveat["message"].as_str().unwrap().to_owned())
        .collect()
}

/// Attributes as the labels that they become in Prometheus.
fn labels(attributes: &[KeyValue]) -> String {
    let one = |attribute: &KeyValue| {
        let value = match attribute.value.as_ref().unwrap().value.as_ref().unwrap() {
            Value::StringValue(text) => text.clone(),
            Value::IntValue(number) => number.to_string(),
            Value::BoolValue(flag) => flag.to_string(),
            other => panic!("{other:?}"),
        };
        format!("{}=\"{value}\"", attribute.key.replace('.', "_"))
    };
    attributes.iter().map(one).collect::<Vec<_>>().join(",")
}

/// A metric's values by the names that they have in Prometheus, after OpenTelemetry's rules for
/// that.
fn as_prometheus(metric: &Metric, into: &mut BTreeMap<String, f64>) {
    let unit = match metric.unit.as_str() {
        "s" => "_seconds",
        "By" => "_bytes",
        _ => "",
    };
    let name = format!("{}{unit}", metric.name.replace('.', "_"));
    match metric.data.as_ref().unwrap() {
        Data::Sum(sum) => {
            let total = if sum.is_monotonic { "_total" } else { "" };
            for point in &sum.data_points {
                let Some(number_data_point::Value::AsInt(value)) = point.value else {
                    panic!("{point:?}");
                };
                let series = format!("{name}{total}{{{}}}", labels(&point.attributes));
                into.insert(series, value as f64);
            }
        }
        Data::Histogram(histogram) => {
            for point in &histogram.data_points {
                let labels = labels(&point.attributes);
                into.insert(format!("{name}_sum{{{labels}}}"), point.sum.unwrap());
                into.insert(format!("{name}_count{{{labels}}}"), point.count as f64);
                let bounds = point
                    .explicit_bounds
                    .iter()
                    .map(|bound| format!("{bound:?}"));
                let mut below = 0;
                for (bound, count) in bounds.chain(["+Inf".to_owned()]).zip(&point.bucket_counts) {
                    below += count;
                    // the library writes it before the others
                    let series = format!("{name}_bucket{{le=\"{bound}\",{labels}}}");
                    into.insert(series, below as f64);
                }
                assert_eq!(below, point.count);
            }
        }
        other => panic!("{other:?}"),
    }
}

fn metrics(message: &ExportMetricsServiceRequest) -> &[Metric] {
    &message.resource_metrics[0].scope_metrics[0].metrics
}

/// The series of a file with their values.
fn written(file: &Path) -> BTreeMap<String, f64> {
    let text = std::fs::read_to_string(file).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let series = lines.map(|line| {
        let (series, value) = line.rsplit_once(' ').unwrap();
        (series.to_owned(), value.parse().unwrap())
    });
    series.collect()
}

#[test]
fn a_bench_exports_the_measured_requests_of_each_variant() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("metrics.prom");
    let collector = Collector::taking();
    let out = intact(&[
        "bench",
        "--json",
        "-n",
        "400",
        "--rounds",
        "2",
        &format!("--otlp={}", collector.url),
        "--prometheus",
        file.to_str().unwrap(),
    ]);
    assert_eq!(not_written(&out), [] as [&str; 0]);
    let message = ExportMetricsServiceRequest::decode(&collector.request().1[..]).unwrap();
    let mut exported = BTreeMap::new();
    for metric in metrics(&message) {
        as_prometheus(metric, &mut exported);
    }
    let written = written(&file);
    assert_eq!(exported, written);
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    for variant in document["variants"].as_array().unwrap() {
        let name = variant["name"].as_str().unwrap();
        let is_own = |series: &str, prefix: &str| {
            series.starts_with(prefix) && series.contains(&format!("intact_variant=\"{name}\""))
        };
        let sum = |prefix: &str| -> f64 {
            let own = written.iter().filter(|(series, _)| is_own(series, prefix));
            own.map(|(_, value)| value).sum()
        };
        assert_eq!(variant["requests"]["total"], 400);
        assert_eq!(sum("http_client_request_duration_seconds_count{"), 400.0);
        assert_eq!(sum("intact_requests_total{"), 400.0);
        let opened = variant["connections"]["opened"].as_f64().unwrap();
        assert_eq!(sum("intact_connections_opened_total{"), opened);
    }
}

#[test]
fn a_bench_on_a_link_refuses_a_collector_that_its_client_cannot_reach() {
    let out = intact(&["bench", "--link", "rtt=1ms", "--otlp"]);
    assert_eq!(out.status.code(), Some(2), "{out:?}");
    let words = String::from_utf8_lossy(&out.stderr).into_owned();
    assert!(words.contains("--otlp: the client of a link"), "{words}");
}

#[test]
fn a_collector_gets_what_the_text_has_with_the_times_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("metrics.prom");
    let collector = Collector::taking();
    let words = [
        &format!("--otlp={}", collector.url),
        "--prometheus",
        file.to_str().unwrap(),
    ];
    let out = audit(dir.path(), &words, &[]);
    assert_eq!(not_written(&out), [] as [&str; 0]);
    let (head, body) = collector.request();
    assert!(head.starts_with("post /v1/metrics http/1.1\r\n"), "{head}");
    assert!(
        head.contains("content-type: application/x-protobuf\r\n"),
        "{head}"
    );
    let message = ExportMetricsServiceRequest::decode(&body[..]).unwrap();
    let mut exported = BTreeMap::new();
    for metric in metrics(&message) {
        as_prometheus(metric, &mut exported);
        let times: Vec<(u64, u64)> = match metric.data.as_ref().unwrap() {
            Data::Sum(sum) => sum
                .data_points
                .iter()
                .map(|point| (point.start_time_unix_nano, point.time_unix_nano))
                .collect(),
            Data::Histogram(histogram) => histogram
                .data_points
                .iter()
                .map(|point| (point.start_time_unix_nano, point.time_unix_nano))
                .collect(),
            other => panic!("{other:?}"),
        };
        // the ledger lasts less than a minute
        for (start, end) in times {
            assert_eq!(start, STARTED);
            assert!(
                (STARTED + 1..STARTED + 60_000_000_000).contains(&end),
                "{end}"
            );
        }
    }
    let written = written(&file);
    assert_eq!(exported, written);
    // and both what the page says
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    let sum = |prefix: &str| -> f64 {
        let those = written
            .iter()
            .filter(|(series, _)| series.starts_with(prefix));
        those.map(|(_, value)| value).sum()
    };
    let totals = &document["totals"];
    assert_eq!(totals["requests"]["total"], 5);
    assert_eq!(sum("http_client_request_duration_seconds_count{"), 5.0);
    assert_eq!(sum("intact_requests_total{"), 5.0);
    assert_eq!(totals["connections"]["opened"], 5);
    assert_eq!(sum("intact_connections_opened_total{"), 5.0);
}

#[test]
fn promtool_finds_nothing_wrong_with_the_text() {
    let Some(promtool) = program("promtool", "promtool-reads-metrics") else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("metrics.prom");
    let out = audit(dir.path(), &["--prometheus", file.to_str().unwrap()], &[]);
    assert_eq!(not_written(&out), [] as [&str; 0]);
    let checked = Command::new(promtool)
        .args(["check", "metrics"])
        .stdin(std::fs::File::open(file).unwrap())
        .output()
        .unwrap();
    // it names on standard error what it would have otherwise
    assert!(checked.status.success(), "{checked:?}");
    assert!(checked.stderr.is_empty(), "{checked:?}");
}

#[test]
fn a_collector_that_takes_nothing_is_named_and_the_rest_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let refused = b"\x08\x03\x12\x0bunsupported".to_vec();
    let partial = ExportMetricsServiceResponse {
        partial_success: Some(ExportMetricsPartialSuccess {
            rejected_data_points: 3,
            error_message: "too\x1b[31m old".to_owned(),
        }),
    };
    let html = "content-type: text/html\r\n";
    for (case, answer, expected) in [
        (
            "4xx",
            ("400 Bad Request", PROTOBUF, refused),
            "answered 400 Bad Request: unsupported; it did not accept the metrics",
        ),
        (
            "5xx",
            (
                "500 Internal Server Error",
                "content-type: text/plain\r\n",
                b"no\ndisk".to_vec(),
            ),
            "answered 500 Internal Server Error: no disk; it did not accept the metrics",
        ),
        (
            "elsewhere",
            (
                "307 Temporary Redirect",
                "location: http://192.0.2.1/\r\n",
                Vec::new(),
            ),
            "answered 307 Temporary Redirect; it did not accept the metrics",
        ),
        (
            "partial",
            ("200 OK", PROTOBUF, partial.encode_to_vec()),
            "rejected 3 data points: too\u{1b}[31m old",
        ),
        (
            "web",
            ("200 OK", html, b"<html>hello</html>".to_vec()),
            "answered 200, but not as a collector",
        ),
    ] {
        let folder = dir.path().join(case);
        let csv = dir.path().join(format!("{case}.csv"));
        std::fs::create_dir(&folder).unwrap();
        let collector = Collector::answering(vec![Some(answer)]);
        let words = [
            &format!("--otlp={}", collector.url),
            "--csv",
            csv.to_str().unwrap(),
        ];
        let out = audit(&folder, &words, &[]);
        let messages = not_written(&out);
        collector.request();
        // the same text in JSON, where its control characters are escaped
        let is_escape = |byte: &u8| *byte == 0x1b;
        assert!(
            !out.stdout.iter().chain(&out.stderr).any(is_escape),
            "{case}"
        );
        assert_eq!(messages.len(), 1, "{case}: {messages:?}");
        assert!(messages[0].contains(expected), "{case}: {messages:?}");
        let rows = std::fs::read_to_string(csv).unwrap();
        assert_eq!(rows.lines().count(), 6, "{case}");
    }
}

#[test]
fn a_collector_that_is_away_or_never_answers_ends_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let messages = not_written(&audit(
        &dir.path().join("away"),
        &[&format!("--otlp=http://{CLOSED}")],
        &[],
    ));
    assert!(
        messages[0].contains("is a collector listening there?"),
        "{messages:?}"
    );
    let silent = Collector::answering(vec![None]);
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", silent.url.as_str()),
        ("OTEL_EXPORTER_OTLP_TIMEOUT", "300"),
    ];
    let messages = not_written(&audit(
        &dir.path().join("silent"),
        &["--otlp"],
        &environment,
    ));
    assert!(
        messages[0].contains("no answer within 300ms"),
        "{messages:?}"
    );
    silent.request();
}

#[test]
fn a_collector_that_is_busy_is_asked_again() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::answering(vec![
        Some(("503 Service Unavailable", "retry-after: 0\r\n", Vec::new())),
        Some(("429 Too Many Requests", "retry-after: 0\r\n", Vec::new())),
        Some(("200 OK", PROTOBUF, Vec::new())),
    ]);
    let out = audit(dir.path(), &[&format!("--otlp={}", collector.url)], &[]);
    assert_eq!(not_written(&out), [] as [&str; 0]);
    assert!(!collector.request().1.is_empty());
}

#[test]
fn headers_of_the_environment_are_sent_only_to_its_endpoint() {
    let dir = tempfile::tempdir().unwrap();
    let named = Collector::taking();
    let own = Collector::taking();
    let environment = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", own.url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=secret"),
    ];
    let to_named = format!("--otlp={}", named.url);
    audit(&dir.path().join("named"), &[&to_named], &environment);
    assert!(!named.request().0.contains("secret"));
    audit(&dir.path().join("own"), &["--otlp"], &environment);
    assert!(own.request().0.contains("\r\napi-key: secret\r\n"));
}

#[test]
fn proxies_of_the_environment_are_not_asked() {
    let dir = tempfile::tempdir().unwrap();
    let collector = Collector::taking();
    let environment = ["ALL_PROXY", "HTTP_PROXY", "http_proxy"].map(|name| (name, CLOSED));
    let to = format!("--otlp={}", collector.url);
    let out = audit(dir.path(), &[&to], &environment);
    assert_eq!(not_written(&out), [] as [&str; 0]);
    assert!(!collector.request().1.is_empty());
}

#[test]
fn a_collector_that_cannot_be_meant_is_a_usage_error() {
    for words in ["--otlp=localhost:4317", "--otlp=http://u:p@localhost"] {
        let out = intact(&["audit", "x", words]);
        assert_eq!(out.status.code(), Some(2), "{out:?}");
    }
}
