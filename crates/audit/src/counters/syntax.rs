//! The lines of counters as samples: a name, labels, a value. Must not know which of them count
//! connections.

use super::{CounterSyntax, Sample};
use crate::csv_row::cells;
use crate::lenient::Lenient;
use std::collections::HashMap;

/// Takes the samples of a line.
type Reader = Box<dyn FnMut(&str, &mut dyn FnMut(&Sample<'_>))>;

/// Columns of DeepFlow that name the server, in the order of preference.
const SERVERS: [&str; 6] = [
    "auto_service_1",
    "auto_instance_1",
    "chost_1",
    "ip4_1",
    "ip_1",
    "ip6_1",
];

/// Whether a file that begins with this text has the syntax.
pub(super) fn is_first(syntax: CounterSyntax, text: &str) -> bool {
    let first = text.lines().find(|line| !line.trim().is_empty());
    let first = first.unwrap_or_default().trim();
    match syntax {
        CounterSyntax::Envoy => {
            let is_counter = |line: &str| envoy(line).is_some();
            first
                .split_once(": ")
                .is_some_and(|(name, _)| name.contains('.') && !name.contains(' '))
                && text.lines().any(is_counter)
        }
        CounterSyntax::Prometheus => {
            let is_comment = first.starts_with("# HELP ") || first.starts_with("# TYPE ");
            let known = ["envoy_", "haproxy_", "nginx_", "container_net_tcp_"];
            // a comment of any words may come first
            let mut samples = text
                .lines()
                .filter(|line| !line.is_empty() && !line.starts_with('#'));
            let sample = samples.next().unwrap_or_default();
            let is_known = known.iter().any(|name| sample.starts_with(name));
            is_comment || (is_known && sample.contains(['{', ' ']))
        }
        CounterSyntax::HaproxyCsv => first.starts_with("# pxname,svname,"),
        CounterSyntax::StubStatus => first.starts_with("Active connections: "),
        CounterSyntax::DeepFlow => {
            let names = ["is_new_flow", "l7_request", "server_port"];
            names.iter().all(|name| first.contains(name))
        }
    }
}

/// The reader of the lines of a file.
pub(super) fn reader(syntax: CounterSyntax) -> Reader {
    match syntax {
        CounterSyntax::Envoy => Box::new(|line, take| {
            if let Some((label, name, value)) = envoy(line) {
                take(&Sample {
                    name,
                    labels: &[label],
                    value,
                });
            }
        }),
        CounterSyntax::Prometheus => Box::new(|line, take| {
            if let Some((name, labels, value)) = prometheus(line) {
                take(&Sample {
                    name,
                    labels: &labels,
                    value,
                });
            }
        }),
        CounterSyntax::HaproxyCsv => haproxy(),
        CounterSyntax::StubStatus => Box::new(|line, take| {
            let numbers: Option<Vec<f64>> = line
                .split_whitespace()
                .map(|word| word.parse().ok())
                .collect();
            // Tengine adds the sum of durations
            if let Some([_, handled, requests] | [_, handled, requests, _]) = numbers.as_deref() {
                let each = [
                    ("nginx_connections_handled", handled),
                    ("nginx_http_requests_total", requests),
                ];
                for (name, value) in each {
                    take(&Sample {
                        name,
                        labels: &[],
                        value: *value,
                    });
                }
            }
        }),
        CounterSyntax::DeepFlow => deepflow(),
    }
}

/// `cluster.NAME.COUNTER: VALUE`, or `http.NAME.COUNTER: VALUE` of a listener; a name may have
/// dots.
fn envoy(line: &str) -> Option<((&str, &str), &str, f64)> {
    let (path, value) = line.split_once(": ")?;
    let (kind, path) = path.split_once('.')?;
    let (of, name) = path.rsplit_once('.')?;
    // a part of the clients of a listener has counters of its own
    let is_known = kind == "cluster" || (kind == "http" && !of.contains(".user_agent."));
    is_known.then_some(((kind, of), name, value.trim().parse().ok()?))
}

type Labels<'a> = Vec<(&'a str, &'a str)>;

/// `NAME{LABEL="VALUE",...} VALUE`.
fn prometheus(line: &str) -> Option<(&str, Labels<'_>, f64)> {
    if line.starts_with('#') {
        return None;
    }
    let end = line.find(['{', ' '])?;
    let (name, mut rest) = line.split_at(end);
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            rest = rest.trim_start_matches([',', ' ']);
            if let Some(after) = rest.strip_prefix('}') {
                rest = after;
                break;
            }
            let (label, value) = rest.split_once("=\"")?;
            let end = closing_quote(value)?;
            labels.push((label, &value[..end]));
            rest = &value[end + 1..];
        }
    }
    let value = rest.split_whitespace().next()?.parse().ok()?;
    Some((name, labels, value))
}

/// The first quote that no backslash precedes.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.bytes().position(|byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    })
}

/// Rows of servers. Those of frontends and backends repeat them.
fn haproxy() -> Reader {
    let mut names: Vec<String> = Vec::new();
    Box::new(move |line, take| {
        if let Some(head) = line.strip_prefix("# ") {
            names = cells(head);
            return;
        }
        let row = cells(line);
        let [proxy, server, ..] = &row[..] else {
            return;
        };
        if matches!(server.as_str(), "FRONTEND" | "BACKEND") {
            return;
        }
        for (name, cell) in names.iter().zip(&row) {
            if let Ok(value) = cell.parse() {
                take(&Sample {
                    name,
                    labels: &[("proxy", proxy), ("server", server)],
                    value,
                });
            }
        }
    })
}

/// Rows of flows: those of HTTP at the client. A flow has a row per minute.
fn deepflow() -> Reader {
    let mut names: Option<Vec<String>> = None;
    Box::new(move |line, take| {
        let row: HashMap<String, String> = if line.starts_with('{') {
            let row = serde_json::from_str::<HashMap<String, Lenient>>(line).unwrap_or_default();
            let texts = row.into_iter();
            let texts = texts.filter_map(|(name, value)| Some((name, value.text()?)));
            texts.collect()
        } else if let Some(names) = &names {
            names.iter().cloned().zip(cells(line)).collect()
        } else {
            names = Some(cells(line));
            return;
        };
        let value = |name: &str| row.get(name).map(String::as_str);
        let side = value("observation_point").or(value("tap_side"));
        let protocol = value("l7_protocol_str").or(value("l7_protocol"));
        let is_http = protocol.is_none_or(|name| {
            let name = name.to_ascii_uppercase();
            name.starts_with("HTTP") || name == "GRPC" || matches!(&*name, "20" | "21" | "22")
        });
        if side.is_some_and(|side| side != "c") || !is_http {
            return;
        }
        let server = SERVERS.into_iter().find_map(value).unwrap_or("unknown");
        let upstream = match value("server_port") {
            Some(port) => format!("{server}:{port}"),
            None => server.to_owned(),
        };
        for name in ["is_new_flow", "l7_request"] {
            if let Some(value) = value(name).and_then(|text| text.parse().ok()) {
                take(&Sample {
                    name,
                    labels: &[("upstream", &upstream)],
                    value,
                });
            }
        }
    })
}
