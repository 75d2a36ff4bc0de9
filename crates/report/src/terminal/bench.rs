//! The page of a bench: verdict, variants, histogram, phases, first calls, what stands out.

use super::page::Page;
use super::phases;
use super::table::Column;
use super::{Style, TerminalOptions, escape};
use crate::number::{maybe_percent, maybe_rate, maybe_time};
use intact_findings::bench::{BenchFacts, Severity, VariantFacts};
use intact_ledger::{Reuse, Run};
use intact_units::number::{count, percent, signed_percent, time};
use intact_units::plural::counted;

/// Verdicts that the page shows.
const VERDICTS: usize = 8;

const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The page of a bench.
pub fn bench(run: &Run, facts: &BenchFacts, paper: TerminalOptions) -> String {
    let mut page = Page::on(paper);
    page.head(run, facts);
    page.verdicts(facts);
    if facts.requests.total > 0 {
        page.variants(facts);
        page.histogram(facts);
        page.phases(facts);
        page.first_calls(facts);
    }
    page.findings(facts);
    page.baseline(facts);
    page.foot(facts);
    page.text
}

impl Page {
    fn head(&mut self, run: &Run, facts: &BenchFacts) {
        let subject = run.subject.as_deref().unwrap_or("the built-in server");
        let link = run
            .link
            .as_ref()
            .map_or(String::new(), |link| format!(" behind {link}"));
        self.line(&format!(
            "{} {}{}",
            self.paper.ink(Style::Strong, "intact bench"),
            escape(subject),
            escape(&link)
        ));
        let requests = facts.requests.total;
        self.wrapped(
            Some(Style::Faint),
            &format!(
                "{} in {}, {} requests measured on {} connections, seed {}",
                counted(facts.variants.len() as u64, "variant"),
                counted(u64::from(facts.rounds), "interleaved round"),
                count(requests),
                count(facts.connections.opened),
                run.seed.unwrap_or(0),
            ),
            "",
        );
    }

    fn verdicts(&mut self, facts: &BenchFacts) {
        if !facts.verdict.is_empty() {
            self.line("");
        }
        for (nth, verdict) in facts.verdict.iter().take(VERDICTS).enumerate() {
            let ink = (nth == 0).then_some(Style::Strong);
            self.wrapped(ink, verdict, "  ");
        }
        let more = facts.verdict.len().saturating_sub(VERDICTS);
        if more > 0 {
            let told = format!("{more} more comparisons: see --json");
            self.wrapped(Some(Style::Faint), &told, "");
        }
    }

    fn variants(&mut self, facts: &BenchFacts) {
        self.title("Variants (latency with setup)");
        let of = |cell: &dyn Fn(&VariantFacts) -> String| facts.variants.iter().map(cell).collect();
        let column = |head, rank, cell: &dyn Fn(&VariantFacts) -> String| Column {
            head,
            rank,
            cells: of(cell),
        };
        let any_tls = facts.variants.iter().any(|variant| variant.tls.is_some());
        let any_failed = facts
            .variants
            .iter()
            .any(|variant| variant.requests.failures() > 0);
        let mut columns = vec![
            column("variant", 0, &|variant| variant.name.clone()),
            column("requests", 3, &|variant| count(variant.requests.total)),
            column("conns", 4, &|variant| count(variant.connections.opened)),
            column("reused", 5, &|variant| maybe_percent(variant.reuse)),
            column("req/s", 2, &|variant| maybe_rate(variant.rate_per_s)),
            column("mean", 0, &|variant| maybe_time(variant.latency_ms.mean)),
            column("p50", 1, &|variant| maybe_time(variant.latency_ms.p50)),
            column("p90", 9, &|variant| maybe_time(variant.latency_ms.p90)),
            column("p99", 1, &|variant| maybe_time(variant.latency_ms.p99)),
            column("p99.9", 8, &|variant| maybe_time(variant.latency_ms.p999)),
            column("max", 7, &|variant| maybe_time(variant.latency_ms.max)),
        ];
        if any_failed {
            columns.insert(
                2,
                column("failed", 0, &|variant| count(variant.requests.failures())),
            );
        }
        if any_tls {
            columns.insert(
                1,
                column("TLS", 6, &|variant| {
                    variant.tls.clone().unwrap_or_else(|| "-".to_owned())
                }),
            );
        }
        self.table(columns);
        let columns = vec![
            column("variant", 0, &|variant| variant.name.clone()),
            column("without setup", 2, &|variant| {
                maybe_time(variant.latency_without_setup_ms.mean)
            }),
            column("setup/conn", 1, &|variant| maybe_time(variant.setup_ms)),
            column("req/conn", 3, &|variant| {
                variant
                    .requests_per_connection
                    .map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"))
            }),
            column("conns/s", 4, &|variant| maybe_rate(variant.churn_per_s)),
            column("resumed", 8, &|variant| {
                maybe_percent(variant.resumed_share)
            }),
            column("ended by", 7, &ended_by),
            column("client CPU", 5, &|variant| {
                maybe_time(variant.cpu_us_per_request.map(|us| us / 1e3))
            }),
            column("server CPU", 6, &|variant| {
                maybe_time(variant.server_cpu_us_per_request.map(|us| us / 1e3))
            }),
            column("client delay", 9, &|variant| {
                maybe_percent(variant.client_delay_ms.as_ref().map(|queue| queue.share))
            }),
            column("bytes/req", 10, &|variant| {
                maybe_bytes(variant.bytes_per_request.map(|bytes| bytes.total()))
            }),
            column("of it heads", 11, &|variant| {
                maybe_bytes(variant.bytes_per_request.map(|bytes| bytes.heads()))
            }),
        ];
        self.line("");
        self.table(columns);
    }

    /// One line per variant on a common logarithmic scale.
    fn histogram(&mut self, facts: &BenchFacts) {
        let edges = facts
            .variants
            .iter()
            .flat_map(|variant| variant.histogram.iter().flatten())
            .fold(None, |edges: Option<(f64, f64)>, &(low, high, _)| {
                let low = low.max(1e-4);
                Some(edges.map_or((low, high), |(least, most)| {
                    (least.min(low), most.max(high))
                }))
            });
        let Some((least, most)) = edges else { return };
        self.title("Latency histogram (logarithmic; each row to its own height)");
        let name_width = self.name_width(facts);
        let columns = self
            .paper
            .width
            .saturating_sub(name_width + 4)
            .clamp(20, 100);
        let scale = (most / least).ln().max(1e-9);
        let place = |ms: f64| {
            (((ms.max(least) / least).ln() / scale) * columns as f64)
                .clamp(0.0, columns as f64 - 1.0) as usize
        };
        for variant in &facts.variants {
            let mut counts = vec![[0.0f64; 2]; columns];
            for (kind, buckets) in variant.histogram.iter().enumerate() {
                for &(low, high, seen) in buckets {
                    counts[place(f64::midpoint(low, high))][kind] += seen as f64;
                }
            }
            let tallest = counts
                .iter()
                .map(|[fresh, reused]| fresh + reused)
                .fold(0.0, f64::max);
            let mut row = String::new();
            for [fresh, reused] in counts {
                let height = fresh + reused;
                if height == 0.0 {
                    row.push(' ');
                    continue;
                }
                let bar = BARS[((height / tallest * 8.0).ceil() as usize).clamp(1, 8) - 1];
                let ink = if fresh > reused {
                    Style::Fresh
                } else {
                    Style::Reused
                };
                row.push_str(&self.paper.ink(ink, &bar.to_string()));
            }
            self.line(&format!("  {:name_width$}  {row}", variant.name));
        }
        let middle = time((least * most).sqrt());
        let (left, right) = (time(least), time(most));
        let gap = columns
            .saturating_sub(left.chars().count() + middle.chars().count() + right.chars().count());
        let scale = format!(
            "{left}{}{middle}{}{right}",
            " ".repeat(gap / 2),
            " ".repeat(gap - gap / 2)
        );
        let scale = self.paper.ink(Style::Faint, &scale);
        self.line(&format!("  {:name_width$}  {scale}", ""));
        for variant in facts
            .variants
            .iter()
            .filter(|variant| !variant.modes.is_empty())
        {
            let told: Vec<String> = variant
                .modes
                .iter()
                .map(|hump| {
                    format!(
                        "{} {} at {}",
                        percent(hump.share),
                        hump.name,
                        time(hump.mean_ms)
                    )
                })
                .collect();
            self.wrapped(
                None,
                &format!("{}: {}", variant.name, told.join(", ")),
                "  ",
            );
        }
    }

    fn name_width(&self, facts: &BenchFacts) -> usize {
        facts
            .variants
            .iter()
            .map(|variant| variant.name.chars().count())
            .max()
            .unwrap_or(0)
    }

    fn phases(&mut self, facts: &BenchFacts) {
        self.title("Phases (mean over the requests that had them)");
        let names = facts.variants.iter().map(|variant| variant.name.clone());
        let columns = phases::columns("variant", names.collect(), |row, phase| {
            let phases = &facts.variants[row].phases_ms;
            Some(phases.get(phase.id())?.as_ref()?.mean)
        });
        self.table(columns);
    }

    fn first_calls(&mut self, facts: &BenchFacts) {
        let tallest = facts
            .variants
            .iter()
            .flat_map(|variant| &variant.first_calls)
            .map(|call| call.ms)
            .fold(0.0, f64::max);
        if tallest <= 0.0 {
            return;
        }
        self.title(&format!(
            "First calls, in order (full height {})",
            time(tallest)
        ));
        let name_width = self.name_width(facts);
        let room = self.paper.width.saturating_sub(name_width + 4).max(10);
        for variant in &facts.variants {
            let mut row = String::new();
            for call in variant.first_calls.iter().take(room) {
                let bar = if call.ok {
                    BARS[((call.ms / tallest * 8.0).ceil() as usize).clamp(1, 8) - 1]
                } else {
                    '×'
                };
                let ink = if call.reuse == Some(Reuse::Fresh) {
                    Style::Fresh
                } else {
                    Style::Reused
                };
                row.push_str(&self.paper.ink(ink, &bar.to_string()));
            }
            self.line(&format!("  {:name_width$}  {row}", variant.name));
        }
        for variant in &facts.variants {
            if let Some(words) = &variant.tiers {
                self.wrapped(None, &format!("{}: {words}", variant.name), "  ");
            }
        }
    }

    fn findings(&mut self, facts: &BenchFacts) {
        if facts.findings.is_empty() {
            return;
        }
        self.title("What stands out");
        for finding in &facts.findings {
            let ink = (finding.severity != Severity::Info).then_some(Style::Alarm);
            self.wrapped(
                ink,
                &format!("{}: {} [{}]", finding.subject, finding.claim, finding.rule),
                "  ",
            );
            self.wrapped(None, &format!("  {}", finding.evidence), "  ");
            self.wrapped(Some(Style::Faint), &format!("  -> {}", finding.fix), "  ");
        }
    }

    fn baseline(&mut self, facts: &BenchFacts) {
        let Some(baseline) = &facts.baseline else {
            return;
        };
        self.title(&format!("Against the run of {}", escape(&baseline.started)));
        let column =
            |head, cell: &dyn Fn(&intact_findings::bench::BaselineChange) -> String| Column {
                head,
                rank: 0,
                cells: baseline.variants.iter().map(cell).collect(),
            };
        self.table(vec![
            column("variant", &|since| since.name.clone()),
            column("then", &|since| maybe_time(since.then_ms)),
            column("now", &|since| maybe_time(since.now_ms)),
            column("change", &|since| {
                since.change.map_or_else(|| "-".to_owned(), signed_percent)
            }),
            column("reused then", &|since| maybe_percent(since.then_reuse)),
            column("now", &|since| maybe_percent(since.now_reuse)),
        ]);
        if !baseline.unmatched.is_empty() {
            let told = format!("in one run only: {}", baseline.unmatched.join(", "));
            self.wrapped(Some(Style::Faint), &told, "");
        }
        let told = "two runs at two times are no experiment: no interval; put both into one bench, or use `compare`, for one";
        self.wrapped(Some(Style::Faint), told, "");
    }

    fn foot(&mut self, facts: &BenchFacts) {
        if let [before, after] = facts.sockets.as_slice() {
            let ports = |ports: Option<u64>| ports.map_or_else(|| "?".to_owned(), count);
            let told = format!(
                "sockets in TIME_WAIT: {} before, {} after; free ephemeral ports: {} before, {} after",
                count(before.time_wait),
                count(after.time_wait),
                ports(before.free_ports),
                ports(after.free_ports)
            );
            self.line("");
            self.wrapped(Some(Style::Faint), &told, "");
        }
        let warmup: u64 = facts
            .variants
            .iter()
            .map(|variant| variant.warmup.requests)
            .sum();
        if warmup > 0 && facts.requests.total > 0 {
            let told = format!(
                "beside the measured requests the server saw {} of warm-up and preflight",
                count(warmup)
            );
            self.wrapped(Some(Style::Faint), &told, "");
        }
        for caveat in &facts.caveats {
            self.wrapped(
                Some(Style::Alarm),
                &format!("caveat: {}", escape(&caveat.message)),
                "  ",
            );
        }
    }
}

/// Bytes as a whole number.
fn maybe_bytes(bytes: Option<f64>) -> String {
    bytes.map_or_else(|| "-".to_owned(), |bytes| count(bytes.round() as u64))
}

fn ended_by(variant: &VariantFacts) -> String {
    let told: Vec<String> = variant
        .connections
        .ended_by
        .iter()
        .map(|(by, seen)| format!("{by} {}", count(*seen)))
        .collect();
    told.join(", ")
}
