//! Counters of programs that run: connections and requests of each upstream since the start of the
//! program. One row per source names its counters. To read another source in a known syntax, add a
//! row to `SOURCES`.
//!
//! A counter shows requests per connection, and nothing else. Must not turn sums into events.

mod syntax;

use crate::error::AuditError;
use crate::event_writer::EventWriter;
use crate::input::{Input, LONGEST_LINE};
use crate::input_summary::{InputSummary, Unit};
use intact_ledger::kinds;
use std::collections::BTreeMap;

/// Limit of upstreams.
const MOST_UPSTREAMS: usize = 10_000;

kinds! {
    /// How a program prints its counters.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CounterSyntax, as_str {
        /// Envoy's `/stats`.
        Envoy = "Envoy's counters",
        /// The text format of Prometheus.
        Prometheus = "counters in the format of Prometheus",
        /// HAProxy's `show stat`.
        HaproxyCsv = "HAProxy's counters",
        /// nginx's `stub_status`.
        StubStatus = "nginx's stub_status",
        /// Rows of DeepFlow's `l4_flow_log`, as CSV or JSON.
        DeepFlow = "DeepFlow's l4_flow_log",
    }
}

/// A program and the names of its counters.
struct Source {
    program: &'static str,
    /// Counters of opened connections.
    connections: &'static str,
    /// Counters whose sum is that of the requests.
    requests: &'static [&'static str],
    /// Labels whose values name the upstream.
    labels: &'static [&'static str],
    /// The connections are those of clients to the program.
    is_of_clients: bool,
    /// What the counters mean, for users.
    about: &'static str,
}

const LISTENERS: &str = "connections of clients to each HTTP listener of Envoy since it started";

const SOURCES: [Source; 10] = [
    Source {
        program: "Envoy",
        connections: "upstream_cx_total",
        requests: &["upstream_rq_total"],
        labels: &["cluster"],
        is_of_clients: false,
        about: "Envoy's connections to each cluster since it started",
    },
    Source {
        program: "Envoy's listeners",
        connections: "downstream_cx_total",
        requests: &["downstream_rq_total"],
        labels: &["http"],
        is_of_clients: true,
        about: LISTENERS,
    },
    Source {
        program: "Envoy's listeners",
        connections: "envoy_http_downstream_cx_total",
        requests: &["envoy_http_downstream_rq_total"],
        labels: &["envoy_http_conn_manager_prefix"],
        is_of_clients: true,
        about: LISTENERS,
    },
    Source {
        program: "Envoy",
        connections: "envoy_cluster_upstream_cx_total",
        requests: &["envoy_cluster_upstream_rq_total"],
        labels: &["envoy_cluster_name", "cluster_name"],
        is_of_clients: false,
        about: "Envoy's connections to each cluster since it started",
    },
    Source {
        program: "HAProxy",
        connections: "connect",
        requests: &["connect", "reuse"],
        labels: &["proxy", "server"],
        is_of_clients: false,
        about: "HAProxy's attempts to connect to each server since it started, failed ones included",
    },
    Source {
        program: "HAProxy",
        connections: "haproxy_server_connection_attempts_total",
        requests: &[
            "haproxy_server_connection_attempts_total",
            "haproxy_server_connection_reuses_total",
        ],
        labels: &["proxy", "server"],
        is_of_clients: false,
        about: "HAProxy's attempts to connect to each server since it started, failed ones included",
    },
    Source {
        program: "HAProxy",
        connections: "haproxy_backend_connection_attempts_total",
        requests: &[
            "haproxy_backend_connection_attempts_total",
            "haproxy_backend_connection_reuses_total",
        ],
        labels: &["proxy"],
        is_of_clients: false,
        about: "HAProxy's attempts to connect to each backend since it started, failed ones included",
    },
    Source {
        program: "nginx",
        connections: "nginx_connections_handled",
        requests: &["nginx_http_requests_total"],
        labels: &[],
        is_of_clients: true,
        about: "connections of clients to nginx since it started, not those to its upstreams",
    },
    Source {
        program: "Coroot",
        connections: "container_net_tcp_successful_connects_total",
        requests: &["container_http_requests_total"],
        labels: &["destination"],
        is_of_clients: false,
        about: "connections of each container by destination, and HTTP requests that Coroot saw on them",
    },
    Source {
        program: "DeepFlow",
        connections: "is_new_flow",
        requests: &["l7_request"],
        labels: &["upstream"],
        is_of_clients: false,
        about: "flows of HTTP at the client's side, and their requests, in the rows that were given",
    },
];

/// What the counters of one upstream show.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UpstreamCounts {
    /// The upstream, as the program names it.
    pub upstream: String,
    /// Opened connections; `None` if no counter shows them.
    pub connections: Option<u64>,
    /// Requests; `None` if no counter shows them.
    pub requests: Option<u64>,
}

impl CounterSyntax {
    /// The syntax of a file with these first bytes.
    pub(crate) fn detect(prefix: &[u8]) -> Option<CounterSyntax> {
        let text = String::from_utf8_lossy(prefix);
        CounterSyntax::ALL
            .into_iter()
            .find(|syntax| syntax::is_first(*syntax, &text))
    }
}

/// Sums of one upstream.
#[derive(Default)]
struct UpstreamSums {
    connections: Option<f64>,
    /// By counter of requests.
    requests: BTreeMap<&'static str, f64>,
}

/// Sums by upstream.
#[derive(Default)]
struct Sums {
    /// By source and upstream.
    upstreams: BTreeMap<(usize, String), UpstreamSums>,
    samples: u64,
    left_out: u64,
}

/// One value of a counter with its labels.
struct Sample<'a> {
    name: &'a str,
    labels: &'a [(&'a str, &'a str)],
    value: f64,
}

impl Sums {
    fn take(&mut self, sample: &Sample<'_>) {
        self.samples += 1;
        if !(0.0..1e18).contains(&sample.value) {
            return;
        }
        for (at, source) in SOURCES.iter().enumerate() {
            let request = source.requests.iter().find(|name| **name == sample.name);
            let is_connection = source.connections == sample.name;
            if request.is_none() && !is_connection {
                continue;
            }
            let values = source.labels.iter().filter_map(|label| {
                let found = sample.labels.iter().find(|(name, _)| name == label);
                found.map(|(_, value)| *value)
            });
            let upstream: Vec<&str> = values.collect();
            let key = (at, upstream.join("/"));
            if self.upstreams.len() >= MOST_UPSTREAMS && !self.upstreams.contains_key(&key) {
                self.left_out += 1;
                continue;
            }
            let sums = self.upstreams.entry(key).or_default();
            if is_connection {
                *sums.connections.get_or_insert(0.0) += sample.value;
            }
            if let Some(name) = request {
                *sums.requests.entry(name).or_default() += sample.value;
            }
        }
    }

    /// The upstreams of the first source of each program that has both counters, with its meaning.
    fn finish(self) -> (Vec<UpstreamCounts>, Vec<&'static str>) {
        let mut counts = Vec::new();
        let mut about = Vec::new();
        let mut chosen: BTreeMap<&str, usize> = BTreeMap::new();
        for ((at, upstream), sums) in self.upstreams {
            let UpstreamSums {
                connections,
                requests,
            } = sums;
            let source = &SOURCES[at];
            // a sum with a missing part is no sum
            let is_whole = source
                .requests
                .iter()
                .all(|name| requests.contains_key(name));
            let requests = is_whole.then(|| requests.values().sum::<f64>() as u64);
            let is_shown = connections.is_some() || requests.is_some();
            if !is_shown || *chosen.entry(source.program).or_insert(at) != at {
                continue;
            }
            if !about.contains(&source.about) {
                about.push(source.about);
            }
            let upstream = match (source.is_of_clients, upstream.as_str()) {
                (false, _) => upstream,
                (true, "") => "clients of this server".to_owned(),
                (true, listener) => format!("clients of {listener}"),
            };
            counts.push(UpstreamCounts {
                upstream,
                connections: connections.map(|sum| sum as u64),
                requests,
            });
        }
        (counts, about)
    }
}

/// Reads counters to the end of the file.
pub(crate) fn read(
    input: &mut Input,
    syntax: CounterSyntax,
    writer: &mut EventWriter<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<InputSummary, AuditError> {
    let mut sums = Sums::default();
    let mut reader = syntax::reader(syntax);
    input.each_line(LONGEST_LINE, go_on, |line| {
        reader(line.text().trim(), &mut |sample| sums.take(sample));
        true
    });
    let (samples, left_out) = (sums.samples, sums.left_out);
    let (counts, about) = sums.finish();
    if counts.is_empty() {
        let programs: Vec<&str> = SOURCES.iter().map(|source| source.connections).collect();
        return Err(input.broken(format!(
            "it has no counters of connections and requests that audit knows ({})",
            programs.join(", ")
        )));
    }
    let prefix = input.prefix();
    let words = "upstreams were left out to limit memory";
    writer.incompletes(&prefix, &[(left_out, "input-too-long", words)]);
    let mut summary = input.account(Unit::Counters, samples, 0);
    summary.evidence = Some(about.join("; "));
    summary.upstreams = counts;
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(text: &str) -> Vec<(String, Option<u64>, Option<u64>)> {
        let syntax = CounterSyntax::detect(text.as_bytes()).unwrap_or_else(|| panic!("{text}"));
        let mut sums = Sums::default();
        let mut reader = syntax::reader(syntax);
        for line in text.lines() {
            reader(line.trim(), &mut |sample| sums.take(sample));
        }
        let counts = sums.finish().0.into_iter();
        let counts = counts.map(|one| (one.upstream, one.connections, one.requests));
        counts.collect()
    }

    fn one(upstream: &str, connections: u64, requests: u64) -> (String, Option<u64>, Option<u64>) {
        (upstream.to_owned(), Some(connections), Some(requests))
    }

    #[test]
    fn envoys_clusters_are_counted_in_both_syntaxes() {
        let text = "cluster.a.b.upstream_cx_active: 1\ncluster.a.b.upstream_cx_total: 12\ncluster.a.b.upstream_rq_per_cx: P0(nan,1) P50(nan,2)\ncluster.a.b.upstream_rq_total: 34\ncluster.c.upstream_cx_total: 0\ncluster.c.upstream_rq_total: 0\nserver.uptime: 5\n";
        assert_eq!(counts(text), [one("a.b", 12, 34), one("c", 0, 0)]);
        let text = "cluster.a.upstream_cx_total: 1\ncluster.a.upstream_rq_total: 2\nhttp.in.downstream_cx_total: 3\nhttp.in.downstream_rq_total: 9\nhttp.in.user_agent.ios.downstream_cx_total: 1\nlistener.0.0.0.0_80.downstream_cx_total: 3\n";
        let clients = one("clients of in", 3, 9);
        assert_eq!(counts(text), [one("a", 1, 2), clients.clone()]);
        let text = "envoy_http_downstream_cx_total{envoy_http_conn_manager_prefix=\"in\"} 3\nenvoy_http_downstream_rq_total{envoy_http_conn_manager_prefix=\"in\"} 9\n";
        assert_eq!(counts(text), [clients]);
        let text = "# TYPE envoy_cluster_upstream_cx_total counter\nenvoy_cluster_upstream_cx_total{envoy_cluster_name=\"a \\\"b\"} 12\nenvoy_cluster_upstream_rq_total{envoy_cluster_name=\"a \\\"b\"} 34\n";
        assert_eq!(counts(text), [one("a \\\"b", 12, 34)]);
    }

    #[test]
    fn haproxys_servers_are_counted_and_not_its_backends_again() {
        let text = "# pxname,svname,qcur,stot,connect,reuse,\nfe,FRONTEND,,9,,,\nbe,s1,0,9,3,6,\nbe,BACKEND,0,9,3,6,\n";
        assert_eq!(counts(text), [one("be/s1", 3, 9)]);
        let text = "# HELP x\nhaproxy_backend_connection_attempts_total{proxy=\"be\"} 3\nhaproxy_backend_connection_reuses_total{proxy=\"be\"} 6\nhaproxy_server_connection_attempts_total{proxy=\"be\",server=\"s1\"} 3\nhaproxy_server_connection_reuses_total{proxy=\"be\",server=\"s1\"} 6\n";
        assert_eq!(counts(text), [one("be/s1", 3, 9)]);
        let without_help = text.replace("# HELP x", "# of any words");
        assert_eq!(counts(&without_help), [one("be/s1", 3, 9)]);
        // an older version does not count reuse: unknown, not zero
        let text = "# pxname,svname,qcur,stot,\nbe,s1,0,9,\n";
        assert_eq!(counts(text), []);
    }

    #[test]
    fn nginx_and_coroot_are_counted() {
        let text = "Active connections: 2 \nserver accepts handled requests\n 12 11 34 \nReading: 0 Writing: 1 Waiting: 1 \n";
        assert_eq!(counts(text), [one("clients of this server", 11, 34)]);
        let tengine = "Active connections: 2 \nserver accepts handled requests request_time\n 12 11 34 75806\nReading: 0 Writing: 1 Waiting: 1 \n";
        assert_eq!(counts(tengine), [one("clients of this server", 11, 34)]);
        let text = "# HELP c\ncontainer_net_tcp_successful_connects_total{container_id=\"/x\",destination=\"10.0.0.1:80\"} 5\ncontainer_http_requests_total{destination=\"10.0.0.1:80\",status=\"200\"} 6\ncontainer_http_requests_total{destination=\"10.0.0.1:80\",status=\"500\"} 1\ncontainer_net_tcp_successful_connects_total{destination=\"10.0.0.2:5432\"} 5\n";
        assert_eq!(
            counts(text),
            [
                one("10.0.0.1:80", 5, 7),
                ("10.0.0.2:5432".to_owned(), Some(5), None)
            ]
        );
    }

    #[test]
    fn flows_of_deepflow_are_counted_once_at_the_client() {
        let csv = "flow_id,is_new_flow,observation_point,l7_protocol_str,auto_service_1,server_port,l7_request\n1,1,c,HTTP,web,80,3\n1,0,c,HTTP,web,80,4\n1,1,s,HTTP,web,80,3\n2,1,c,MySQL,db,3306,9\n";
        assert_eq!(counts(csv), [one("web:80", 1, 7)]);
        let json = "{\"flow_id\":1,\"is_new_flow\":1,\"tap_side\":\"c\",\"l7_protocol_str\":\"HTTP2\",\"ip4_1\":\"10.0.0.1\",\"server_port\":80,\"l7_request\":3}\n";
        assert_eq!(counts(json), [one("10.0.0.1:80", 1, 3)]);
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_trouble(line in ".{0,120}", name in "[a-z_]{0,12}") {
            for syntax in CounterSyntax::ALL {
                let mut sums = Sums::default();
                let mut reader = syntax::reader(syntax);
                for text in [
                    "# pxname,svname,connect,reuse", "flow_id,is_new_flow,l7_request", &line,
                    &format!("cluster.{line}.upstream_cx_total: 1"), &format!("{name}{{{line}}} 1"),
                ] {
                    reader(text, &mut |sample| sums.take(sample));
                }
                sums.finish();
            }
        }
    }
}
