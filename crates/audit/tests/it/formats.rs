//! What each format shows: one file per format, its counts, and the table in the reference.

use crate::reading::{self, Outcome};
use intact_audit::{Input, InputOptions, KeyLog};
use intact_ledger::{Certainty, Evidence, EvidenceSet, Row, Vantage};

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

const SAMPLES: [Sample; 29] = [
    sample(
        "capture, without TLS",
        "captures/nginx-curl.pcap",
        [10, 15, 3, 0],
        OnPath,
    ),
    sample("HAR of Chrome", "har/chrome-devtools.har", [0; 4], Client),
    sample(
        "HAR of other programs",
        "har/mitm-firefox.har",
        [0; 4],
        Client,
    ),
    sample("NetLog", "netlog/chromium.json", [0; 4], Client),
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
    sample("hey", "tools/hey.csv", [40, 6, 34, 0], Client),
    sample("oha", "tools/oha.csv", [40, 6, 34, 0], Client),
    sample("k6", "tools/k6.csv.gz", [40, 6, 34, 0], Client),
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
    sample("Gatling", "tools/gatling.log", [4, 1, 0, 1], Client),
    sample(
        "nginx, `combined`",
        "logs/nginx-combined.log",
        [0; 4],
        Server,
    ),
    sample(
        "nginx, recommended format",
        "logs/nginx-intact.log",
        [0; 4],
        Server,
    ),
    sample("nginx, JSON", "logs/nginx-json.log", [0; 4], Server),
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
    sample("lines in CRI's envelope", "logs/cri.log", [0; 4], Server),
    sample(
        "lines in Docker's envelope",
        "logs/docker-json.log",
        [0; 4],
        Server,
    ),
    sample(
        "Suricata `eve.json`",
        "logs/suricata-eve.json",
        [3, 2, 1, 0],
        OnPath,
    ),
    sample("Zeek `conn.log`", "logs/zeek/conn.log", [0; 4], OnPath),
    sample("Zeek `ssl.log`", "logs/zeek/ssl.log", [0; 4], OnPath),
    sample("Zeek `http.log`", "logs/zeek/http.log", [0; 4], OnPath),
    sample("Zeek `http.log` ", "logs/zeek/http.log", [0; 4], OnPath),
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
        .filter(|one| one.reuse == Some(intact_ledger::Reuse::Reused));
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

#[test]
fn print_counts() {
    for sample in &SAMPLES {
        let (shown, outcome) = sample.read();
        let caveats: Vec<_> = outcome.caveats().iter().map(|c| c.id.clone()).collect();
        eprintln!(
            "{} {:?} {:?} {:?} {:?}",
            sample.name,
            counts(&outcome),
            outcome.accounts[0].evidence,
            caveats,
            shown
        );
    }
}
