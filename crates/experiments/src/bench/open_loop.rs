//! What an open loop adds to the figures of a variant: requested and achieved rate, waiting for a
//! connection, and how late the client was. Must not compare variants.

use super::measured_rounds::MeasuredRounds;
use intact_document::figures::{Latency, Requests, share};
use intact_experiment::OpenLoop;
use intact_ledger::{Failure, OpenLoopTimes};
use intact_reading::{Reading, Why};
use serde::Serialize;

/// The share of the requested rate from which on it is reached.
const REACHED: f64 = 0.98;
/// The least lateness of 1 % of the requests, in milliseconds, that is no mere wake-up of a thread.
const LATE_MS: f64 = 1.0;

/// The schedule of a variant, and how requests kept to it.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OpenLoopFacts {
    /// The rate as requested, such as `500/s` or `100/s..2000/s`.
    pub rate: String,
    /// How requests were spaced: `constant` or `poisson`.
    pub arrivals: &'static str,
    /// What requests did that were due while every connection was busy: `queue` or `open`.
    pub when_busy: &'static str,
    /// Requests that fell due; each is in `requests`.
    pub due: u64,
    /// Requests a second that fell due.
    pub requested_per_s: Option<f64>,
    /// Complete requests a second as a share of those that fell due.
    pub achieved: Reading,
    /// The same of all that were over in time, failed or not: a request that the server resets is
    /// not one that it is too slow for.
    #[serde(skip)]
    over: Option<f64>,
    /// Requests that were never sent, because no connection was free until the time limit.
    pub unsent: u64,
    /// Requests that waited because every connection was busy.
    pub queued: u64,
    /// Their share of those that fell due.
    pub queued_share: Reading,
    /// How long these waited, in milliseconds.
    pub queued_ms: Latency,
    /// From the moment a request was due and a connection was free to its start, in milliseconds:
    /// the client's own lateness.
    pub scheduling_error_ms: Latency,
    /// Its sum as a share of the sum of latencies.
    pub scheduling_error_share: Option<f64>,
    /// The percentiles of the latency that the client itself may have made: their lower end is
    /// without its lateness, their upper one with it.
    pub late_percentiles: Vec<&'static str>,
    /// From the moment a request was due to the client's reading the end of the response, in
    /// milliseconds; `latency_ms` ends at the kernel's receive timestamp. Absent without these
    /// timestamps.
    pub until_read_ms: Latency,
}

impl OpenLoopFacts {
    pub(super) fn new(
        open: &OpenLoop,
        measured: &MeasuredRounds,
        requests: &Requests,
        late_percentiles: Vec<&'static str>,
    ) -> OpenLoopFacts {
        let mut times = OpenLoopTimes::default();
        let mut latencies = 0u64;
        let mut unsent = 0;
        for group in measured.all.groups.iter().filter(|one| !one.key.warmup) {
            if let Some(more) = &group.open_loop {
                times.merge(more);
                latencies = latencies.saturating_add(group.latency.sum());
            } else if group.key.reuse.is_none() {
                unsent += group.count();
            }
        }
        let requested = measured.requested_per_s(requests.total);
        let share_of_requested = |count: u64| {
            let rate = count as f64 / measured.seconds()?;
            requested.filter(|rate| *rate > 0.0).map(|of| rate / of)
        };
        let late = [Failure::Timeout, Failure::Aborted].map(|kind| requests.failed_with(kind));
        let over = requests.total - late.iter().sum::<u64>();
        let queued = times.queued.count() + unsent;
        OpenLoopFacts {
            rate: open.rate.to_string(),
            arrivals: open.arrivals.as_str(),
            when_busy: open.when_busy.as_str(),
            due: requests.total,
            requested_per_s: requested,
            achieved: Reading::of(share_of_requested(requests.ok), Why::NothingHappened),
            over: share_of_requested(over),
            late_percentiles,
            unsent,
            queued,
            queued_share: Reading::of(share(queued, requests.total), Why::NothingHappened),
            queued_ms: Latency::of(&times.queued),
            scheduling_error_share: share(times.scheduling_error.sum(), latencies),
            scheduling_error_ms: Latency::of(&times.scheduling_error),
            until_read_ms: Latency::beyond(
                &times.until_read,
                requests.failed_with(Failure::Timeout),
            ),
        }
    }

    /// Whether requests were over about as fast as they fell due.
    pub(super) fn is_reached(&self) -> bool {
        self.over.is_none_or(|share| share >= REACHED)
    }

    /// Whether the client's own lateness may be a large part of a percentile.
    pub(crate) fn client_may_be_late(&self) -> bool {
        !self.late_percentiles.is_empty()
    }

    /// The same where the lateness is more than a thread takes to wake up.
    pub(crate) fn client_is_late(&self) -> bool {
        let error = &self.scheduling_error_ms;
        let error = error.p99.value().or(error.max.value());
        self.client_may_be_late() && error.is_some_and(|late| late >= LATE_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BenchFacts, Saturation};
    use intact_document::requirement::Requirement;
    use intact_experiment::{
        Arrivals, AxisValues, ConnectionSettings, OpenLoop, RequestRate, TlsChoice, WhenBusy,
    };
    use intact_ledger::{
        Event, Exchange, Failure, MachineUse, Nanos, Outcome, Producer, Protocol, Reuse, Round,
        RoundSchedule, Run, Sink, Span, Tally, Vantage, Variant,
    };
    use intact_reading::Reading;

    const MS: u64 = 1_000_000;
    const SECOND: u64 = 1_000 * MS;

    /// One round in which 2,000 requests fell due in 2 s, each 1 ms long; it took `took`. `change`
    /// gets the number of a request.
    fn facts(took: u64, change: impl Fn(&mut Exchange, u64)) -> BenchFacts {
        facts_on(None, took, change)
    }

    /// The same on a machine whose processors were used like this.
    fn facts_on(
        machine: Option<MachineUse>,
        took: u64,
        change: impl Fn(&mut Exchange, u64),
    ) -> BenchFacts {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
        let axes = AxisValues {
            keepalive: true,
            http: Protocol::Http11,
            tls: TlsChoice::None,
            resume: false,
            early_data: None,
            dns: None,
            concurrency: 10,
            streams: 1,
            connection: ConnectionSettings::default(),
            open_loop: Some(OpenLoop {
                rate: RequestRate::constant(1_000.0),
                arrivals: Arrivals::Constant,
                when_busy: WhenBusy::Queue,
            }),
        };
        run.variants.push(Variant {
            name: "kept".to_owned(),
            axes: axes.axes(),
        });
        let mut tally = Tally::new();
        for nth in 0..2_000 {
            let due = Nanos(nth * MS);
            let mut one = Exchange::new(nth, due);
            one.variant = Some(0);
            one.round = Some(1);
            one.status = Some(200);
            one.reuse = Some(Reuse::Reused);
            one.end = due.after(MS);
            one.scheduling_error = Some(Span::new(due, due.after(10_000)));
            one.client_delay = Some(Span::new(one.end, one.end.after(20_000)));
            change(&mut one, nth);
            tally.record(Event::Exchange(&one));
        }
        tally.record(Event::Round(&Round {
            variant: 0,
            round: 1,
            span: Span::new(Nanos(0), Nanos(took)),
            load: None,
            schedule: Some(RoundSchedule {
                due: Span::new(Nanos(0), Nanos(2 * SECOND)),
                at_once: 10,
            }),
            client_cpu: Some(took / 10),
            client_threads: None,
            server_cpu: Some(took),
            machine,
            ..Round::default()
        }));
        BenchFacts::new(&run, &tally, &[]).unwrap()
    }

    fn ids(facts: &BenchFacts) -> Vec<&str> {
        facts.caveats.iter().map(|one| &*one.id).collect()
    }

    fn passes(facts: &BenchFacts, expression: &str) -> bool {
        let requirement: Requirement = expression.parse().unwrap();
        requirement.evaluate(facts).passed()
    }

    #[test]
    fn a_rate_that_was_reached_has_its_figures_and_no_caveat_of_its_own() {
        let facts = facts(2 * SECOND, |_, _| {});
        let open = facts.variants[0].open_loop.as_ref().unwrap();
        assert_eq!((open.due, open.unsent, open.queued), (2_000, 0, 0));
        assert_eq!(open.requested_per_s, Some(1_000.0));
        assert_eq!(open.achieved, Reading::known(1.0));
        let share = open.scheduling_error_share.unwrap();
        assert!((share - 0.01).abs() < 1e-6, "{share}");
        let read = open.until_read_ms.p99.value().unwrap();
        assert!((read - 1.02).abs() < 0.01, "{read}");
        assert_eq!(ids(&facts), ["server-saturated"]);
        assert!(passes(&facts, "schedule.achieved >= 99%"));
        assert!(passes(&facts, "rate=1000/s: schedule.error < 1ms"));
        assert!(passes(&facts, "schedule.queued == 0"));
        assert!(passes(&facts, "p99 < 2ms"));
    }

    #[test]
    fn a_client_that_is_late_is_the_limit_and_the_server_is_not_called_saturated() {
        let facts = facts(3 * SECOND, |one, _| {
            one.end = one.at.after(100 * MS);
            one.scheduling_error = Some(Span::new(one.at, one.at.after(99 * MS)));
        });
        assert_eq!(facts.variants[0].saturation, Some(Saturation::Client));
        assert_eq!(ids(&facts), ["client-late", "client-behind-schedule"]);
        assert!(!passes(&facts, "schedule.error < 50ms"));
        assert!(!passes(&facts, "schedule.achieved >= 98%"));
    }

    #[test]
    fn a_client_that_waits_for_a_busy_machine_is_not_the_limit_nor_is_the_server() {
        let machine = MachineUse {
            nanos: 3 * SECOND,
            cpus: 2,
            busy: Some(6 * SECOND),
            steal: Some(0),
            waited: Some(3 * SECOND),
        };
        let facts = facts_on(Some(machine), 3 * SECOND, |one, _| {
            one.end = one.at.after(100 * MS);
            one.scheduling_error = Some(Span::new(one.at, one.at.after(99 * MS)));
        });
        assert_eq!(facts.variants[0].saturation, Some(Saturation::Machine));
        assert_eq!(ids(&facts), ["client-late", "machine-behind-schedule"]);
        // a rate that was reached is no limit
        let reached = facts_on(Some(machine), 2 * SECOND, |_, _| {});
        assert_ne!(reached.variants[0].saturation, Some(Saturation::Machine));
    }

    #[test]
    fn requests_that_waited_for_a_connection_are_no_lateness_of_the_client() {
        let facts = facts(3 * SECOND, |one, _| {
            let free = one.at.after(90 * MS);
            one.end = one.at.after(100 * MS);
            one.scheduling_error = Some(Span::new(free, free.after(10_000)));
        });
        let open = facts.variants[0].open_loop.as_ref().unwrap();
        assert_eq!(open.queued, 2_000);
        assert!(open.queued_ms.p50.value().unwrap() >= 89.0);
        assert_eq!(facts.variants[0].saturation, Some(Saturation::Server));
        let all = ["server-saturated", "behind-schedule", "connections-busy"];
        assert_eq!(ids(&facts), all);
        assert!(!passes(&facts, "schedule.queued < 50%"));
    }

    #[test]
    fn a_percentile_that_timeouts_reach_has_no_value_and_passes_no_requirement() {
        // 5 % were not over in time, and of these every second was never sent
        let facts = facts(2 * SECOND, |one, nth| {
            if nth % 20 == 0 {
                one.outcome = Outcome::Failed(Failure::Timeout);
                one.end = one.at.after(SECOND);
                if nth % 40 == 0 {
                    (one.reuse, one.scheduling_error) = (None, None);
                }
            }
        });
        let kept = &facts.variants[0];
        assert_eq!(kept.open_loop.as_ref().unwrap().unsent, 50);
        let latency = &kept.latency_ms;
        assert!(latency.p90.is_known());
        for unknown in [&latency.p99, &latency.mean, &latency.max] {
            assert!(unknown.is_unknown());
        }
        for expression in ["p99 < 1h", "max < 1h", "mean < 1h"] {
            assert!(!passes(&facts, expression), "{expression}");
        }
        assert!(passes(&facts, "p90 < 2ms"));
        let failed = facts.findings.iter();
        let mut failed = failed.filter(|one| one.rule == "failed-requests");
        let evidence = failed.next().unwrap().evidence.to_string();
        assert!(evidence.contains("50 of them never sent"), "{evidence}");
        assert_eq!(kept.counted.reuse, Some(1.0));
    }

    #[test]
    fn a_round_in_which_most_requests_were_not_over_in_time_has_no_typical_latency() {
        let facts = facts(2 * SECOND, |one, nth| {
            if nth % 2 == 0 {
                one.outcome = Outcome::Failed(Failure::Timeout);
            }
        });
        assert!(facts.variants[0].typical_ms.is_unknown());
    }
}
