//! A bench as requirements ask for it: subjects are the variants.

use super::compare::{did_not_act, opposite_mean, without_reuse};
use super::measured_latency::CLIENT_LATE;
use super::{BenchFacts, BytesPerRequest, OpenLoopFacts, RULES, ServiceFacts, VariantFacts};
use crate::likeness::NO_PRODUCTION;
use crate::scenario::tag_subject;
use crate::time_difference::{Saving, TimeStatistic, interval, uncompared};
use intact_document::facts::{add_findings, rules_alike};
use intact_document::figures::{NANOS_PER_MS, PhaseTime};
use intact_document::requirement::SIDE;
use intact_document::unobserved::Unobserved;
use intact_document::{Conclusions, Facts, Readings, RuleState, Subject};
use intact_reading::{Reading, Why};

const NANOS_PER_US: f64 = 1e3;
/// By which variants are compared, in the headline as in requirements.
const STATISTIC: TimeStatistic = TimeStatistic::Typical;
/// The typical latency and the mean disagree on which variant is faster.
const CONTRADICTED: Why = Why::cannot_see(
    "the mean shows the opposite of the typical latency: look at the slowest requests",
);
/// The variants do the same.
const NO_REUSE: Why = Why::cannot_see("no request with keep-alive reused a connection");
/// Nothing to compare with.
const NO_PARTNER: Why =
    Why::cannot_see("no request of a variant that it is compared with succeeded");
/// A closed loop.
const NO_SCHEDULE: Why = Why::not_measured("requests have no schedule without --rate");
/// The variants are no services.
const NO_SERVICE: Why = Why::not_measured("name services with --service");

impl Facts for BenchFacts {
    fn subjects(&self) -> Vec<Subject> {
        let missing = Unobserved::by_caveats(&self.caveats);
        let rules = rules_alike(RULES, None);
        let subject = |variant: &VariantFacts| {
            let mut readings = self.readings(variant, &missing);
            let own = self.findings.iter();
            let own = own.filter(|one| one.subject == variant.name);
            add_findings(&mut readings, own, &rules, &missing);
            Subject {
                readings,
                // a count of what did not work is no figure: `failed == 0` holds where every
                // response was an error
                unjudged: variant.no_success.map(Why::cannot_see),
                ..self.labelled(variant)
            }
        };
        let services = self.services.iter();
        let outgoing = services.map(|one| one.subject(&self.findings));
        let targets = |variant: &VariantFacts| -> Vec<Subject> {
            let targets = variant.targets.iter();
            let subject = |target| tag_subject(&variant.name, target, &missing);
            targets.map(subject).collect()
        };
        let variants = self.variants.iter();
        variants
            .clone()
            .map(subject)
            .chain(outgoing)
            .chain(variants.flat_map(targets))
            .collect()
    }

    fn default_subjects(&self) -> Option<usize> {
        Some(self.variants.len() + self.services.len())
    }

    fn conclusions(&self) -> Conclusions<'_> {
        Conclusions::new(&self.verdict, &self.findings, &self.caveats)
    }

    fn rules(&self) -> Vec<RuleState> {
        let mut rules = rules_alike(RULES, None);
        for one in self.services.iter().flat_map(ServiceFacts::rules) {
            if rules.iter().all(|known| known.id != one.id) {
                rules.push(one);
            }
        }
        rules
    }

    fn any_success(&self) -> bool {
        self.variants
            .iter()
            .any(|variant| variant.no_success.is_none())
    }

    fn unobserved(&self) -> Unobserved {
        let mut all = Unobserved::by_caveats(&self.caveats);
        for variant in &self.variants {
            if let Some(why) = variant.no_success {
                all.add(&Unobserved::because(&format!("{}: {why}", variant.name)));
            }
        }
        let services = self.services.iter();
        services.for_each(|one| all.add(&one.unobserved()));
        all
    }
}

impl BenchFacts {
    /// A variant without its figures: the inbound side, where it is a service.
    fn labelled(&self, variant: &VariantFacts) -> Subject {
        let subject = labelled(variant);
        if self.services.is_empty() {
            return subject;
        }
        Subject {
            name: format!("{}, inbound", variant.name),
            ..subject.label(SIDE, "inbound")
        }
    }
}

fn labelled(variant: &VariantFacts) -> Subject {
    let on_off = |on| if on { "on" } else { "off" };
    let rate = variant.open_loop.as_ref();
    Subject::new(&*variant.name)
        .label("variant", &*variant.name)
        .label("keepalive", on_off(variant.keepalive))
        .label("http", &*variant.http)
        .label("tls", variant.tls.as_deref().unwrap_or("none"))
        .label("resume", on_off(variant.resume))
        .label("dns", variant.dns.unwrap_or("system"))
        .label("concurrency", variant.concurrency.to_string())
        .label("streams", variant.streams.to_string())
        .label("rate", rate.map_or("closed", |open| &open.rate))
}

impl BenchFacts {
    /// The figures of a variant but its findings.
    fn readings(&self, variant: &VariantFacts, missing: &Unobserved) -> Readings {
        let mut readings = Readings::default();
        variant.traffic.add_to(&mut readings);
        variant.latency_ms.add_to(&mut readings, "");
        let without_setup = &variant.latency_without_setup_ms;
        without_setup.add_to(&mut readings, "without-setup.");
        PhaseTime::add_to(&mut readings, &[&variant.phases_ms], missing);
        let scheduled = |of: &dyn Fn(&OpenLoopFacts) -> Reading| {
            let open = variant.open_loop.as_ref();
            open.map_or(Reading::unknown(NO_SCHEDULE), of)
        };
        let bytes = |of: fn(&BytesPerRequest) -> &Reading| {
            let bytes = variant.bytes_per_request.as_ref();
            bytes.map_or_else(Reading::default, |bytes| of(bytes).clone())
        };
        let error = |open: &OpenLoopFacts| open.scheduling_error_ms.p99.times(NANOS_PER_MS);
        let cpu = variant.cpu_us_per_request.times(NANOS_PER_US);
        let server_cpu = variant.server_cpu_us_per_request.times(NANOS_PER_US);
        let per_connection = variant.requests_per_connection.clone();
        let like = self.like.as_ref();
        let unlike = like.map_or(Reading::unknown(NO_PRODUCTION), |like| {
            like.unlike(variant.index as usize)
        });
        readings.set("requests-per-connection", per_connection);
        readings.set("resumed-share", variant.resumed_share.clone());
        readings.set("lookups", variant.lookups.clone());
        readings.set("throughput", variant.rate_per_s.clone());
        readings.set("churn", variant.churn_per_s.clone());
        readings.set("typical", variant.typical_ms.times(NANOS_PER_MS));
        readings.set("client-delay", variant.client_delay_ms.share.clone());
        readings.set("cpu-per-request", cpu);
        readings.set("server-cpu-per-request", server_cpu);
        readings.set("bytes-per-request", bytes(|bytes| &bytes.total));
        readings.set("header-bytes-per-request", bytes(|bytes| &bytes.heads));
        readings.set(
            "schedule.achieved",
            scheduled(&|open| open.achieved.clone()),
        );
        readings.set("schedule.error", scheduled(&error));
        readings.set(
            "schedule.queued",
            scheduled(&|open| open.queued_share.clone()),
        );
        readings.set("throughput-gain", self.gain(variant));
        readings.set("unlike", unlike);
        self.saved(variant, missing).add_to(&mut readings);
        readings
    }

    /// What more a service carries than the first one.
    fn gain(&self, variant: &VariantFacts) -> Reading {
        match self.services.get(variant.index as usize) {
            None => Reading::unknown(NO_SERVICE),
            Some(_) if variant.index == 0 => Reading::unknown(Why::Baseline),
            Some(service) => interval(service.throughput_gain, variant.rounds.len()),
        }
    }

    /// What the variant typically saves against the one that it is compared with; nothing is known
    /// where the mean shows the opposite.
    fn saved(&self, variant: &VariantFacts, missing: &Unobserved) -> Saving {
        let variants = &self.variants;
        let uncompared = match variants.iter().any(|one| one.no_success.is_some()) {
            true => NO_PARTNER,
            false if variants.iter().any(VariantFacts::may_be_late) => CLIENT_LATE,
            false => uncompared(&self.comparisons, &variant.name),
        };
        let b = (&*variant.name, variant.rounds.len());
        let mut comparisons = self.comparisons.iter();
        let compared = comparisons.find(|one| one.statistic == STATISTIC && one.b == b.0);
        if compared.is_some_and(|one| without_reuse(one, &self.variants).is_some()) {
            return Saving::unknown(NO_REUSE);
        }
        if let Some(why) = compared.and_then(|one| did_not_act(one, &self.variants)) {
            return Saving::unknown(Why::cannot_see(why));
        }
        if compared.is_some_and(|one| opposite_mean(one, &self.comparisons).is_some()) {
            return Saving::unknown(CONTRADICTED);
        }
        Saving::of(&self.comparisons, b, STATISTIC, uncompared).observed(missing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_document::requirement::Requirement;
    use intact_experiment::{AxisValues, ConnectionSettings, TlsChoice};
    use intact_ledger::{
        Caveat, Event, Exchange, Failure, Nanos, Outcome, Producer, Protocol, Reuse, Run, Sink,
        Span, Tally, Vantage, Variant,
    };
    use std::collections::BTreeMap;

    /// Two variants, ten rounds: 1 ms kept, 3 ms not kept.
    fn facts() -> BenchFacts {
        made(|_, _| {})
    }

    /// The same with exchanges changed; `nth` counts those of a variant and round, from 0.
    fn made(change: impl Fn(&mut Exchange, u64)) -> BenchFacts {
        let mut run = Run::new(
            Producer::Bench,
            "0",
            Vantage::Client,
            "2026-01-01T00:00:00Z".parse().unwrap(),
            1,
            &[],
        );
        run.varied = vec!["keepalive".to_owned()];
        for on in ["on", "off"] {
            run.variants.push(Variant {
                name: format!("keepalive={on}"),
                axes: AxisValues {
                    keepalive: on == "on",
                    http: Protocol::Http11,
                    tls: TlsChoice::None,
                    resume: false,
                    early_data: None,
                    dns: None,
                    concurrency: 1,
                    streams: 1,
                    connection: ConnectionSettings::default(),
                    open_loop: None,
                }
                .axes(),
            });
        }
        let mut tally = Tally::new();
        for round in 1..=10 {
            for variant in 0..2u32 {
                for nth in 0..30u64 {
                    let mut one = Exchange::new(nth, Nanos(0));
                    one.variant = Some(variant);
                    one.round = Some(round);
                    one.status = Some(200);
                    one.reuse = Some(if variant == 1 {
                        Reuse::Fresh
                    } else {
                        Reuse::Reused
                    });
                    one.end =
                        Nanos(1_000_000 + u64::from(variant) * 2_000_000 + nth + u64::from(round));
                    change(&mut one, nth);
                    tally.record(Event::Exchange(&one));
                }
                let bounds = intact_ledger::Round::new(
                    variant,
                    round,
                    Span::new(Nanos(0), Nanos(100_000_000)),
                );
                tally.record(Event::Round(&bounds));
            }
        }
        BenchFacts::new(&run, &tally, &[]).unwrap()
    }

    #[test]
    fn warm_up_is_in_no_count_and_its_failures_are_reported_and_fail_a_gate() {
        // the first of each round is warm-up; in two rounds it fails
        let facts = made(|one, nth| {
            one.warmup = nth == 0;
            if nth == 0 && one.round <= Some(2) {
                one.outcome = Outcome::Failed(Failure::Reset);
            }
        });
        let kept = &facts.variants[0];
        assert_eq!(
            (
                kept.counted.requests.total,
                kept.counted.requests.failures()
            ),
            (290, 0)
        );
        assert_eq!(kept.counted.requests.status, BTreeMap::from([(200, 290)]));
        assert_eq!((kept.warmup.requests, kept.warmup.ok), (10, 8));
        assert_eq!(kept.warmup.status, BTreeMap::from([(200, 8)]));
        assert_eq!(kept.warmup.failed, BTreeMap::from([("reset", 2)]));
        let finding = facts
            .findings
            .iter()
            .find(|one| one.rule == "failed-requests");
        assert_eq!(
            &*finding.unwrap().claim,
            "2 of 10 requests of warm-up failed"
        );
        let holds = |expression: &str| {
            let requirement: Requirement = expression.parse().unwrap();
            requirement.evaluate(&facts).passed()
        };
        assert!(holds("keepalive=on: status.200 == 290"));
        assert!(!holds("keepalive=on: failed == 0"));
        assert!(holds("keepalive=on: failed == 2"));
        assert!(holds("keepalive=on: failed.reset == 2"));
        assert!(holds("keepalive=on: requests == 290"));
    }

    #[test]
    fn one_slow_request_does_not_hide_a_difference() {
        // 10 s in one round of the faster variant: its mean is that of ten rounds of 36 ms
        let facts = made(|one, nth| {
            if one.variant == Some(0) && one.round == Some(4) && nth == 7 {
                one.end = Nanos(10_000_000_000);
            }
        });
        let mean = facts
            .comparisons
            .iter()
            .find(|one| one.statistic == TimeStatistic::Mean);
        assert_eq!(mean.unwrap().significant, Some(false));
        assert!(
            facts.verdict[0]
                .statement
                .starts_with("At -c 1, keep-alive saves 2.00 ms of 3.00 ms")
        );
        let headline = facts.headline().unwrap();
        assert_eq!(Some(headline.b_ms), facts.variants[0].typical_ms.value());
        assert_eq!(Some(headline.a_ms), facts.variants[1].typical_ms.value());
        let saved = headline.saved_share.unwrap().value;
        assert!((saved - (1.0 - headline.b_ms / headline.a_ms)).abs() < 1e-12);
    }

    #[test]
    fn keep_alive_that_no_request_used_saves_nothing_that_is_known() {
        let facts = made(|one, nth| {
            one.reuse = Some(Reuse::Fresh);
            // a mean that shows the opposite is no news then
            if one.variant == Some(0) && nth.is_multiple_of(8) {
                one.end = Nanos(100_000_000 + nth);
            }
        });
        assert!(
            !facts.verdict[0].statement.contains("outweigh"),
            "{:?}",
            facts.verdict
        );
        assert!(
            facts.verdict[0]
                .statement
                .starts_with("At -c 1, no request of keepalive=on reused"),
            "{:?}",
            facts.verdict
        );
        let saved: Requirement = "saved > 0ms".parse().unwrap();
        assert!(!saved.evaluate(&facts).passed());
        assert!(facts.headline_is_without_reuse());
    }

    #[test]
    fn a_mean_that_shows_the_opposite_is_named_and_no_gate_passes() {
        // every eighth request of the faster variant takes 100 ms
        let facts = made(|one, nth| {
            if one.variant == Some(0) && nth.is_multiple_of(8) {
                one.end = Nanos(100_000_000 + nth);
            }
        });
        assert!(facts.headline_is_contradicted());
        let sentence = &*facts.verdict[0].statement;
        assert!(
            sentence.contains(
                "the slowest requests outweigh that: the mean is 14.2 ms instead of 3.00 ms"
            ),
            "{sentence}"
        );
        let requirement: Requirement = "keepalive=on: saved > 0ms".parse().unwrap();
        assert!(!requirement.evaluate(&facts).passed());
    }

    fn holds(expression: &str) -> bool {
        let requirement: Requirement = expression.parse().unwrap();
        requirement.evaluate(&facts()).passed()
    }

    #[test]
    fn requirements_are_checked_for_variants() {
        assert!(holds("keepalive=on: mean < 1.1ms"));
        assert!(!holds("mean < 1.1ms"));
        assert!(holds("keepalive=on: typical < 1.1ms"));
        assert!(!holds("typical < 1.1ms"));
        assert!(holds("keepalive=on: reuse >= 99%"));
        assert!(
            holds("reuse >= 99%"),
            "keep-alive off fixes reuse, so it is left out"
        );
        assert!(holds("keepalive=on: saved > 1.9ms"));
        assert!(
            holds("saved > 1.9ms"),
            "the others are compared with keep-alive off, so it is left out"
        );
        assert!(!holds("saved > 3ms"));
        assert!(!holds("keepalive=off: saved > -1s"));
        assert!(holds("status.2xx == 300"));
        assert!(holds("failed == 0"));
        assert!(holds("p90 < 4ms"));
    }

    #[test]
    fn a_saving_is_its_interval_and_a_gate_asks_for_all_of_it() {
        // rounds that vary, so that the interval is wide
        let facts = made(|one, _| {
            if one.variant == Some(0) && one.round > Some(5) {
                one.end = Nanos(one.end.0 + 500_000);
            }
        });
        let share = facts.headline().unwrap().saved_share.unwrap();
        let requirement = |percent: f64| -> Requirement {
            let expression = format!("keepalive=on: saved-share > {percent:.1}%");
            expression.parse().unwrap()
        };
        assert!(
            requirement(share.low * 100.0 - 1.0)
                .evaluate(&facts)
                .passed()
        );
        let inside = requirement(share.value * 100.0).evaluate(&facts);
        assert!(!inside.passed());
        let words = inside.results()[0].words();
        assert!(
            words.contains(" to ") && words.contains("the lower end is below"),
            "{words}"
        );
    }

    #[test]
    fn what_failed_is_the_first_sentence() {
        let facts = made(|one, nth| {
            if nth.is_multiple_of(3) {
                one.outcome = Outcome::Failed(Failure::Reset);
            } else if nth.is_multiple_of(2) {
                one.status = Some(503);
            }
        });
        let sentences: Vec<&str> = facts.verdict.sentences().collect();
        let first = "33 % of 600 requests failed, so the other sentences are about the rest only";
        assert_eq!(sentences[0], first);
        assert!(sentences[1].contains("had the status 503"), "{sentences:?}");
        assert!(sentences[2].contains("keep-alive saves"), "{sentences:?}");
    }

    #[test]
    fn a_variant_without_success_is_missing_traffic() {
        let mut facts = facts();
        assert_eq!(facts.unobserved().reason(), None);
        facts.variants[1].no_success = Some("no request got a complete response");
        assert_eq!(
            facts.unobserved().reason().unwrap(),
            "keepalive=off: no request got a complete response"
        );
    }

    #[test]
    fn missing_traffic_decides_nothing() {
        let mut facts = facts();
        facts.add_caveats([Caveat::incomplete("cut", "the ledger was cut")]);
        let kept = &facts.variants[0];
        assert!(kept.latency_ms.mean.is_unknown() && kept.typical_ms.is_unknown());
        assert_eq!(kept.traffic.requests.total.low(), 300.0);
        assert_eq!(facts.traffic.requests.total.to_string(), "at least 600");
        for expression in ["failed == 0", "findings == 0", "mean < 1s", "reuse >= 0.1%"] {
            let requirement: Requirement = format!("keepalive=on: {expression}").parse().unwrap();
            assert!(!requirement.evaluate(&facts).passed(), "{expression}");
        }
    }

    #[test]
    fn a_metric_without_data_fails() {
        assert!(!holds("server-cpu-per-request < 1s"));
        assert!(!holds("p999 < 1s"), "300 exchanges do not support p99.9");
        assert!(!holds("keepalive=off: saved < 1s"), "it is the baseline");
    }

    #[test]
    fn the_verdict_says_what_keep_alive_saves() {
        let facts = facts();
        let sentence = &*facts.verdict[0].statement;
        assert_eq!(
            sentence,
            "At -c 1, keep-alive saves 2.00 ms of 3.00 ms per request (67 %, 67 % to 67 %)"
        );
    }
}
