//! What the pictures of a bench show beyond its tables. Computed here, because a report only
//! formats.

use super::BenchFacts;
use super::variant::{RoundFigures, VariantFacts};
use intact_document::grouping::grouped;
use intact_document::population::Population;
use intact_ledger::{Cell, Histogram, RoundSockets, Run, Tally};
use intact_statistics::{
    ChangePoint, Interval, change_point, mean, paired_difference, typical_difference,
};
use intact_traffic::DestinationKey;
use intact_traffic::timeline::{Timeline, TimelineGroup};
use serde::Serialize;

/// A change of level is marked when chance shows as good a one this rarely.
const LEVEL: f64 = 0.01;
/// Upper ends of the classes of exchanges per connection; above 256 a histogram's bucket may
/// straddle one by 0.2 %.
const CLASSES: [u64; 8] = [1, 2, 5, 10, 30, 100, 300, 1000];

/// Everything that the page draws.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Charts {
    /// Latency, fresh against reused; one for each combination of the axes but keep-alive.
    pub latency: Vec<LatencyPanel>,
    /// The level of each variant over the rounds, in the run's order.
    pub levels: Vec<Level>,
    /// Time for a thousand requests, and what goes with it, by concurrency; empty unless
    /// concurrency was varied.
    pub sweeps: Vec<Sweep>,
    /// Exchanges per connection, of each variant, in the run's order.
    pub per_connection: Vec<PerConnection>,
    /// The first exchanges of each variant on their connections.
    pub timeline: Vec<TimelineGroup>,
}

/// Latencies that differ in nothing but the connection.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LatencyPanel {
    /// The axes that it stands for; empty when nothing but keep-alive was varied.
    pub name: String,
    /// Fresh, then reused; one of them when there are no others.
    pub populations: Vec<Population>,
}

/// How steady a variant was.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Level {
    /// The variant.
    pub name: String,
    /// Typical latency: the mean over the rounds with its own 95 % interval, in milliseconds;
    /// absent with fewer than 8 rounds. Whether two variants differ is for the paired
    /// comparison to say, not for two of these.
    pub typical_ms: Option<Interval>,
    /// Where the level changed within the run; `at` is an index into its rounds.
    pub change: Option<ChangePoint>,
}

/// One curve over concurrency.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Sweep {
    /// The other axes.
    pub name: String,
    /// Whether connections were kept.
    pub keepalive: bool,
    /// By rising concurrency.
    pub points: Vec<SweepPoint>,
}

/// One concurrency.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct SweepPoint {
    /// Connections at once.
    pub concurrency: u64,
    /// Seconds that a thousand requests take: the mean over rounds.
    pub seconds: f64,
    /// Its 95 % interval; absent with fewer than 8 rounds.
    pub interval: Option<Interval>,
    /// Complete requests a second: the mean over rounds.
    pub rate_per_s: f64,
    /// Typical latency: the mean over rounds, in milliseconds.
    pub typical_ms: Option<f64>,
    /// Its 95 % interval; absent with fewer than 8 rounds.
    pub typical_interval: Option<Interval>,
    /// 99th percentile of the latency of all rounds, in milliseconds.
    pub p99_ms: Option<f64>,
    /// CPU of the engine's threads per request, in microseconds.
    pub client_cpu_us: Option<f64>,
    /// CPU of the server per request, in microseconds.
    pub server_cpu_us: Option<f64>,
    /// The sockets of the client's machine before and after the first round; absent where they
    /// were not counted.
    pub sockets: Option<RoundSockets>,
}

/// How many exchanges connections carried.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PerConnection {
    /// The variant.
    pub name: String,
    /// Class in words, and the connections in it.
    pub classes: Vec<(String, u64)>,
}

impl Charts {
    /// Works them out. `facts` are those of the same run and tally.
    pub fn new(run: &Run, tally: &Tally, facts: &BenchFacts, timeline: &Timeline) -> Charts {
        let cells: Vec<Cell> = (0..run.variants.len() as u32)
            .map(|index| {
                let mut all = Cell::new(Some(index), None);
                for cell in tally.of_variant(index) {
                    if cell.round.is_some_and(|round| round > 0) {
                        all.merge(cell);
                    }
                }
                all
            })
            .collect();
        Charts {
            latency: latency(run, &cells),
            levels: facts.variants.iter().map(level).collect(),
            sweeps: sweeps(run, &facts.variants),
            per_connection: run
                .variants
                .iter()
                .zip(&cells)
                .map(|(variant, cell)| PerConnection {
                    name: variant.name.clone(),
                    classes: classes(&cell.connections.exchanges),
                })
                .collect(),
            timeline: timeline.lanes(run, DestinationKey::name),
        }
    }
}

/// The values of the varied axes but one, in words.
fn rest(run: &Run, index: usize, without: &str) -> String {
    let axes = run.varied.iter().filter(|axis| *axis != without);
    let shown: Vec<String> = axes
        .filter_map(|axis| Some(format!("{axis}={}", run.variants[index].axes.get(axis)?)))
        .collect();
    shown.join(" ")
}

fn latency(run: &Run, cells: &[Cell]) -> Vec<LatencyPanel> {
    let all = 0..run.variants.len();
    let families = grouped(all.map(|index| (rest(run, index, "keepalive"), index)));
    let mut panels = Vec::new();
    for (name, members) in families {
        let keepalive = |index: usize| run.variants[index].axes.get("keepalive");
        let twins = members.iter().enumerate().any(|(nth, &one)| {
            members[..nth]
                .iter()
                .any(|&other| keepalive(one) == keepalive(other))
        });
        // variants that differ in nothing are kept apart: that is what such a run is for
        let groups: Vec<(String, Vec<usize>)> = if twins {
            members
                .iter()
                .map(|&index| (run.variants[index].name.clone(), vec![index]))
                .collect()
        } else {
            vec![(name, members)]
        };
        for (name, members) in groups {
            let members: Vec<&Cell> = members.iter().map(|&index| &cells[index]).collect();
            let populations = Population::all(&members);
            if !populations.is_empty() {
                panels.push(LatencyPanel { name, populations });
            }
        }
    }
    panels
}

fn level(variant: &VariantFacts) -> Level {
    let rounds = variant.rounds.iter();
    let rounds: Vec<f64> = rounds.filter_map(|round| round.typical_ms).collect();
    Level {
        name: variant.name.clone(),
        typical_ms: around_typical(&rounds),
        change: change_point(&rounds, f64::ln).filter(|change| change.p_value <= LEVEL),
    }
}

/// The t interval of a mean over rounds: a difference to nothing.
fn around_mean(values: &[f64]) -> Option<Interval> {
    let nothing = vec![0.0; values.len()];
    let compared = paired_difference(values, &nothing).ok();
    compared.map(|compared| compared.interval())
}

/// The same of the typical latency.
fn around_typical(values: &[f64]) -> Option<Interval> {
    let nothing = vec![0.0; values.len()];
    let compared = typical_difference(values, &nothing).ok();
    compared.map(|compared| compared.interval())
}

fn sweeps(run: &Run, variants: &[VariantFacts]) -> Vec<Sweep> {
    if !run.varied.iter().any(|axis| axis == "c") {
        return Vec::new();
    }
    let named = variants.iter().map(|variant| {
        let name = rest(run, variant.index as usize, "c");
        (name, variant)
    });
    let curves = grouped(named).into_iter();
    let curves = curves.filter_map(|(name, variants)| {
        let points = variants.iter().filter_map(|variant| point(variant));
        let mut points: Vec<SweepPoint> = points.collect();
        points.sort_by_key(|point| point.concurrency);
        let keepalive = variants.first()?.keepalive;
        (!points.is_empty()).then_some(Sweep {
            name,
            keepalive,
            points,
        })
    });
    curves.collect()
}

fn point(variant: &VariantFacts) -> Option<SweepPoint> {
    let per_thousand =
        |round: &RoundFigures| Some(1000.0 / round.rate_per_s.filter(|rate| *rate > 0.0)?);
    let seconds: Vec<f64> = variant.rounds.iter().filter_map(per_thousand).collect();
    let mean = mean(&seconds)?;
    let rounds = variant.rounds.iter();
    let typical: Vec<f64> = rounds.filter_map(|round| round.typical_ms).collect();
    Some(SweepPoint {
        concurrency: variant.concurrency,
        seconds: mean,
        interval: around_mean(&seconds),
        // as in the table: all requests in all the time
        rate_per_s: (variant.rate_per_s.value()).unwrap_or_else(|| 1000.0 / mean),
        typical_ms: variant.typical_ms.best(),
        typical_interval: around_typical(&typical),
        p99_ms: variant.latency_ms.p99.best(),
        client_cpu_us: variant.cpu_us_per_request.value(),
        server_cpu_us: variant.server_cpu_us_per_request.value(),
        sockets: variant.sockets,
    })
}

fn classes(exchanges: &Histogram) -> Vec<(String, u64)> {
    let mut counts = [0u64; CLASSES.len() + 1];
    for (low, _, count) in exchanges.buckets() {
        let class = CLASSES.partition_point(|&end| end < low);
        // nothing was carried: not in the classes, which begin at one
        if low > 0 {
            counts[class] += count;
        }
    }
    let words = |class: usize| match class {
        0 => "1".to_owned(),
        1 => "2".to_owned(),
        class if class == CLASSES.len() => format!("> {}", CLASSES[class - 1]),
        class => format!("{}-{}", CLASSES[class - 1] + 1, CLASSES[class]),
    };
    counts
        .iter()
        .enumerate()
        .map(|(class, &count)| (words(class), count))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_experiment::{AxisValues, ConnectionSettings, TlsChoice};
    use intact_ledger::{
        Event, Exchange, Nanos, Producer, Protocol, Reuse, Round, Sink, Span, Vantage, Variant,
    };

    const MS: u64 = 1_000_000;

    /// Off, 90 ms a request, and on, 30 ms, at 1 and at 10 connections; on slows down after round
    /// 6.
    fn made() -> (Run, Tally) {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
        run.varied = vec!["keepalive".to_owned(), "c".to_owned()];
        let mut tally = Tally::new();
        for (index, (on, c)) in [("on", 1), ("off", 1), ("on", 10), ("off", 10)]
            .into_iter()
            .enumerate()
        {
            run.variants.push(Variant {
                name: format!("keepalive={on} c={c}"),
                axes: AxisValues {
                    keepalive: on == "on",
                    http: Protocol::Http11,
                    tls: TlsChoice::None,
                    resume: false,
                    early_data: None,
                    dns: None,
                    concurrency: c,
                    streams: 1,
                    connection: ConnectionSettings::default(),
                    open_loop: None,
                }
                .axes(),
            });
            for round in 1..=12u32 {
                let begin = u64::from(round) * 1000 * MS;
                for nth in 0..10 {
                    let mut one = Exchange::new(nth, Nanos(begin));
                    one.variant = Some(index as u32);
                    one.round = Some(round);
                    one.reuse = Some(if on == "off" {
                        Reuse::Fresh
                    } else {
                        Reuse::Reused
                    });
                    let setup = if on == "off" { 60 } else { 0 };
                    let slow = if on == "on" && round > 6 { 20 } else { 0 };
                    one.spans.connect =
                        (setup > 0).then(|| Span::new(Nanos(begin), Nanos(begin + setup * MS)));
                    let end = begin + (setup + 30 + slow + nth % 3) * MS;
                    one.spans.wait = Some(Span::new(Nanos(begin + setup * MS), Nanos(end)));
                    one.end = Nanos(end);
                    tally.record(Event::Exchange(&one));
                }
                tally.record(Event::Round(&Round::new(
                    index as u32,
                    round,
                    Span::new(Nanos(begin), Nanos(begin + 1000 * MS / u64::from(c))),
                )));
            }
        }
        (run, tally)
    }

    #[test]
    fn fresh_and_reused_of_one_setting_share_a_panel_and_their_phases_add_up() {
        let (run, tally) = made();
        let facts = BenchFacts::new(&run, &tally, &[]).unwrap();
        let pictures = Charts::new(&run, &tally, &facts, &Timeline::of_variants());
        let names: Vec<&str> = pictures
            .latency
            .iter()
            .map(|panel| panel.name.as_str())
            .collect();
        assert_eq!(names, ["c=1", "c=10"]);
        for population in pictures.latency.iter().flat_map(|panel| &panel.populations) {
            let sum: f64 = population.phases_ms.iter().map(|phase| phase.1).sum();
            assert!((sum - population.mean_ms).abs() < 1e-6, "{population:?}");
            let counted: u64 = population.buckets.iter().map(|bucket| bucket.2).sum();
            assert_eq!((population.count, counted), (120, 120));
        }
        assert_eq!(pictures.latency[0].populations[0].reuse, Some(Reuse::Fresh));
    }

    #[test]
    fn a_change_within_the_run_is_marked_where_it_was_and_nowhere_else() {
        let (run, tally) = made();
        let facts = BenchFacts::new(&run, &tally, &[]).unwrap();
        let pictures = Charts::new(&run, &tally, &facts, &Timeline::of_variants());
        let changes: Vec<Option<usize>> = pictures
            .levels
            .iter()
            .map(|level| level.change.map(|change| change.at))
            .collect();
        assert_eq!(changes, [Some(6), None, Some(6), None]);
    }

    #[test]
    fn a_sweep_has_a_curve_for_each_setting_and_a_point_for_each_concurrency() {
        let (run, tally) = made();
        let facts = BenchFacts::new(&run, &tally, &[]).unwrap();
        let pictures = Charts::new(&run, &tally, &facts, &Timeline::of_variants());
        assert_eq!(pictures.sweeps.len(), 2);
        for sweep in &pictures.sweeps {
            let at: Vec<u64> = sweep.points.iter().map(|point| point.concurrency).collect();
            assert_eq!(at, [1, 10]);
            assert!((sweep.points[0].seconds / sweep.points[1].seconds - 10.0).abs() < 1e-6);
            let [rate, at_ten] = [0, 1].map(|nth: usize| sweep.points[nth].rate_per_s);
            assert!((at_ten / rate - 10.0).abs() < 1e-6);
            assert!(
                sweep
                    .points
                    .iter()
                    .all(|point| point.typical_interval.is_some())
            );
        }
    }

    #[test]
    fn connections_are_classed_by_what_they_carried() {
        let mut exchanges = Histogram::new();
        for carried in [0, 1, 1, 2, 5, 6, 1000, 1100] {
            exchanges.record(carried);
        }
        let shown: Vec<(String, u64)> = classes(&exchanges);
        let counts: Vec<u64> = shown.iter().map(|class| class.1).collect();
        assert_eq!(counts, [2, 1, 1, 1, 0, 0, 0, 1, 1]);
        assert_eq!(shown[2].0, "3-5");
        assert_eq!(shown[8].0, "> 1000");
    }
}
