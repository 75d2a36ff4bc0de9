//! What each format shows: one file per format, its counts, and the table in the reference.

use crate::reading::{self, Outcome};
use intact_audit::{Input, InputOptions, KeyLog};
use intact_ledger::{Evidence, EvidenceSet, Reuse, Row, Vantage};

/// A file, and what it holds.
struct Sample {
    /// The format in the table.
    name: &'static str,
    file: &'static str,
    /// Requests, opened connections, requests that reused one, and failed requests.
    counts: [usize; 4],
    vantage: Vantage,
}

const fn sample(
    name: &'static str,
    file: &'static str,
    counts: [usize; 4],
    vantage: Vantage,
) -> Sample {
    Sample {
        name,
        file,
        counts,
        vantage,
    }
}

use Vantage::{Client, OnPath, Server};

const SAMPLES: [Sample; 34] = [
    sample(
        "capture, without TLS",
        "captures/nginx-curl.pcap",
        [8, 10, 2, 0],
        OnPath,
    ),
    sample(
        "HAR of Chrome",
        "har/chrome-devtools.har",
        [9, 2, 7, 0],
        Client,
    ),
    sample(
        "HAR of other programs",
        "har/humanssuck.har",
        [4, 2, 2, 0],
        Client,
    ),
    sample("NetLog", "netlog/plain.json.gz", [16, 5, 7, 5], Client),
    sample(
        "DevTools protocol log",
        "tools/devtools.json",
        [12, 2, 8, 2],
        Client,
    ),
    sample(
        "flows of mitmproxy",
        "tools/mitmproxy.flows",
        [9, 5, 3, 1],
        Client,
    ),
    sample("hey", "tools/hey.csv", [40, 5, 0, 0], Client),
    sample("oha", "tools/oha.csv", [40, 6, 34, 0], Client),
    sample("k6", "tools/k6.csv.gz", [40, 7, 33, 0], Client),
    sample(
        "JMeter (JTL), CSV",
        "tools/jmeter.csv",
        [5, 2, 2, 1],
        Client,
    ),
    sample(
        "JMeter (JTL), XML",
        "tools/jmeter.xml",
        [3, 1, 2, 0],
        Client,
    ),
    sample("ab", "tools/ab.tsv", [12, 3, 9, 0], Client),
    sample("Gatling", "tools/gatling.log", [4, 1, 0, 1], Client),
    sample(
        "nginx, `combined`",
        "logs/nginx-combined.log",
        [15, 0, 0, 0],
        Server,
    ),
    sample(
        "nginx, recommended format",
        "logs/nginx-intact.log",
        [15, 10, 5, 0],
        Server,
    ),
    sample("nginx, JSON", "logs/nginx-json.log", [15, 10, 5, 0], Server),
    sample("nginx, LTSV", "logs/nginx-ltsv.log", [8, 5, 3, 0], Server),
    sample("uWSGI", "logs/uwsgi.log", [5, 0, 0, 0], Server),
    sample("Caddy", "logs/caddy.log", [5, 3, 2, 0], Server),
    sample("AWS ALB", "logs/alb.log", [3, 2, 1, 0], Server),
    sample(
        "AWS ALB, connections",
        "logs/alb-connections.log",
        [0, 2, 0, 0],
        Server,
    ),
    sample(
        "AWS classic load balancer",
        "logs/elb.log",
        [3, 2, 1, 0],
        Server,
    ),
    sample(
        "CloudFront",
        "logs/cloudfront-no-head.log",
        [2, 1, 1, 0],
        Server,
    ),
    sample("AWS S3", "logs/s3.log", [2, 0, 0, 0], Server),
    sample("Cloudflare", "logs/cloudflare.json", [3, 2, 1, 0], Server),
    sample(
        "W3C, with values in quotes",
        "logs/w3c-quoted.log",
        [2, 0, 0, 0],
        Server,
    ),
    sample(
        "AWS Lambda `REPORT`",
        "logs/lambda.log",
        [8, 0, 0, 1],
        Server,
    ),
    sample(
        "table of times and durations",
        "logs/durations.csv",
        [8, 0, 0, 0],
        Server,
    ),
    sample(
        "lines in CRI's envelope",
        "logs/cri.log",
        [15, 10, 5, 0],
        Server,
    ),
    sample(
        "lines in Docker's envelope",
        "logs/docker-json.log",
        [15, 10, 5, 0],
        Server,
    ),
    sample(
        "Suricata `eve.json`",
        "logs/suricata-eve.json",
        [3, 2, 1, 0],
        OnPath,
    ),
    sample(
        "Zeek `conn.log`",
        "logs/zeek/conn.log",
        [0, 17, 0, 0],
        OnPath,
    ),
    sample("Zeek `ssl.log`", "logs/zeek/ssl.log", [0, 3, 0, 0], OnPath),
    sample(
        "Zeek `http.log`",
        "logs/zeek/http.log",
        [17, 13, 4, 0],
        OnPath,
    ),
];

impl Sample {
    fn open(&self) -> Input {
        Input::open(&reading::fixture(self.file), &InputOptions::default()).unwrap()
    }

    fn read(&self) -> (EvidenceSet, Outcome) {
        let input = self.open();
        assert_eq!(input.vantage(), self.vantage, "{}", self.name);
        let shown = Input::evidence(std::slice::from_ref(&input));
        (
            shown,
            reading::inputs(vec![input], KeyLog::default()).unwrap(),
        )
    }
}

fn counts(outcome: &Outcome) -> [usize; 4] {
    let opened = outcome.connections().into_iter();
    let opened = opened.filter(|one| one.failed.is_none() && !one.open_before);
    let reused = outcome
        .exchanges()
        .filter(|one| one.reuse == Some(Reuse::Reused));
    let failed = outcome
        .exchanges()
        .filter(|one| one.outcome.failure().is_some());
    [
        outcome.exchanges().count(),
        opened.count(),
        reused.count(),
        failed.count(),
    ]
}

/// `yes`, `~` if all is inferred, or nothing.
fn mark(exact: bool, inferred: bool) -> &'static str {
    match (exact, inferred) {
        (true, _) => "yes",
        (false, true) => "~",
        (false, false) => "-",
    }
}

/// The row of a format in the table: what its reader adds, and what its rows have.
fn row(sample: &Sample) -> String {
    let (shown, outcome) = sample.read();
    let any = |is_shown: &dyn Fn(&intact_ledger::Exchange) -> bool| {
        let mut marks = [false; 2];
        for one in outcome.exchanges().filter(|one| is_shown(one)) {
            marks[usize::from(!one.certainty.is_exact())] = true;
        }
        mark(marks[0], marks[1])
    };
    let requests = outcome.exchanges().count();
    // a failed dial is known without any evidence of connections
    let connections = match requests {
        0 => mark(!outcome.connections().is_empty(), false),
        _ => any(&|one| one.connection.is_some() && one.outcome.failure().is_none()),
    };
    let has_failures = outcome.caveat("tool-without-failures").is_none();
    let evidence = |kind| mark(shown.contains(kind), false);
    let setup = outcome.connections().into_iter();
    let has_setup = setup
        .map(|one| one.setup)
        .any(|setup| setup.connect.or(setup.ssl).is_some());
    let has_lookups = outcome.rows.iter().any(|row| matches!(row, Row::Lookup(_)));
    let cells = [
        sample.name.trim(),
        mark(requests > 0, false),
        connections,
        any(&|one| one.reuse.is_some() && one.outcome.failure().is_none()),
        evidence(Evidence::Durations),
        mark(has_setup, false),
        evidence(Evidence::Ends),
        mark(shown.contains(Evidence::Attempts) && has_failures, false),
        evidence(Evidence::Handshakes),
        mark(has_lookups, false),
    ];
    format!("| {} |\n", cells.join(" | "))
}

#[test]
fn each_format_gives_the_counts_of_its_file() {
    let differing: Vec<String> = SAMPLES
        .iter()
        .map(|sample| (sample, counts(&sample.read().1)))
        .filter(|(sample, counts)| sample.counts != *counts)
        .map(|(sample, counts)| format!("{}: {counts:?}", sample.name))
        .collect();
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn the_table_of_formats_is_that_of_the_reference() {
    const BEGIN: &str = "<!-- formats: begin -->\n";
    const END: &str = "<!-- formats: end -->";
    let path = reading::fixture("../docs/reference/audit.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    let names = "format | requests | their connections | reuse | durations | setup times | ends | failed dials | TLS handshakes | lookups";
    let rule = "| --- ".repeat(names.split('|').count());
    let rows: String = SAMPLES.iter().map(row).collect();
    let table = format!("| {names} |\n{rule}|\n{rows}");
    let wanted = format!("{before}{BEGIN}{table}{END}{after}");
    if std::env::var_os("INTACT_UPDATE").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    assert!(
        std::fs::read_to_string(&path).unwrap() == wanted,
        "INTACT_UPDATE=1 cargo test -p intact-audit --test it -- formats writes it:\n{table}"
    );
}

#[test]
fn an_albs_logs_are_joined_by_its_ids_of_connections() {
    let open = |file: &str| Input::open(&reading::fixture(file), &InputOptions::default()).unwrap();
    let inputs = vec![open("logs/alb.log"), open("logs/alb-connections.log")];
    let outcome = reading::inputs(inputs, KeyLog::default()).unwrap();
    assert_eq!(counts(&outcome), [3, 2, 1, 0]);
    let first = outcome.exchanges().next().unwrap();
    assert_eq!(first.reuse, Some(Reuse::Fresh));
    let setup = outcome.connections()[0].setup;
    assert!(setup.ssl.is_some());
}

#[test]
fn two_times_of_a_request_are_its_duration() {
    let outcome = reading::file("logs/cloudflare.json", KeyLog::default());
    let took = outcome.exchanges().map(|one| one.measured_latency());
    assert!(took.eq([Some(23_000_000); 3]));
    assert!(outcome.caveat("log-without-durations").is_none());
}

#[test]
fn a_container_changes_nothing() {
    let counted = |file| counts(&reading::file(file, KeyLog::default()));
    let plain = counted("logs/nginx-intact.log");
    assert_eq!(counted("logs/cri.log"), plain);
    assert_eq!(counted("logs/docker-json.log"), plain);
}

#[test]
fn devtools_events_are_read_in_each_form() {
    let whole = String::from_utf8(reading::unpacked("tools/devtools.json")).unwrap();
    let expected = counts(&reading::bytes(whole.as_bytes(), KeyLog::default()).unwrap());
    let events = whole.trim().trim_start_matches('[').trim_end_matches(']');
    let events: Vec<&str> = events.trim().split(",\n").collect();
    let lines = events.join("\n");
    let driver: Vec<String> = events
        .iter()
        .map(|event| {
            let text = format!("{{\"message\":{event},\"webview\":\"A\"}}");
            let text = serde_json::to_string(&text).unwrap();
            format!("{{\"level\":\"INFO\",\"message\":{text},\"timestamp\":1}}")
        })
        .collect();
    for text in [lines, format!("[{}]", driver.join(","))] {
        let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
        assert_eq!(counts(&outcome), expected);
    }
}

#[test]
fn counters_show_requests_per_connection_and_nothing_else() {
    let text = "cluster.a.upstream_cx_total: 12\ncluster.a.upstream_rq_total: 34\n";
    let outcome = reading::bytes(text.as_bytes(), KeyLog::default()).unwrap();
    assert_eq!(counts(&outcome), [0; 4]);
    let upstream = &outcome.accounts[0].upstreams[0];
    assert_eq!(
        (upstream.connections, upstream.requests),
        (Some(12), Some(34))
    );
    assert!(outcome.caveat("no-connections").unwrap().incomplete);
    let unknown = reading::bytes(b"# HELP a\nnode_load1 0.5\n", KeyLog::default());
    assert!(
        unknown
            .unwrap_err()
            .to_string()
            .contains("upstream_cx_total")
    );
}
