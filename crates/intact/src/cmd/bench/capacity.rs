//! `intact bench --find-max` and `--overload`: steps at rates that the results of earlier steps
//! choose.

use super::capacity_options::CapacityPlan;
use super::measurement::Measurement;
use super::{Args, bench_config, usage_or_own};
use crate::console;
use crate::exit::Failed;
use anyhow::anyhow;
use intact_bench::{Bench, LoadTurn, LoadWindow};
use intact_client::Clock;
use intact_experiment::{RateSearch, SearchStep};
use intact_experiments::capacity::{CapacityFacts, Recovery, judge};
use intact_findings::{Document, Parts};
use intact_ledger::{Caveat, LoadPurpose, Run, Tally};
use intact_units::duration;
use intact_units::number::per_second;
use intact_units::plural::counted;
use std::time::{Duration, Instant};

/// Time without traffic after a step that missed the conditions, so that the next one finds no
/// queue.
const SETTLE: Duration = Duration::from_secs(1);
/// The same after an overload from which the server did not recover.
const PAUSE: Duration = Duration::from_secs(5);
/// The part of a step that comes first and is in no figure.
const LEAD_IN: u32 = 5;
/// The least length of that part.
const LEAST_LEAD_IN: Duration = Duration::from_millis(300);

/// Searches.
pub(super) fn measure(args: &Args, measurement: &mut Measurement<'_>) -> Result<Document, Failed> {
    let plan = CapacityPlan::new(args)?;
    if args.url.is_none() {
        measurement.start_server()?;
    }
    let ready = measurement.ready();
    let url = args.url.clone().or(ready.map(|ready| ready.url()));
    let url = url.ok_or_else(|| Failed::usage(anyhow!("name a URL")))?;
    let bench_config = bench_config(&plan.arguments(args), url, ready)?;
    let is_local = ready.is_some() || bench_config.is_local().map_err(Failed::usage)?;
    plan.check_polite(args, is_local)?;
    let bench = Bench::new(bench_config).map_err(usage_or_own)?;
    announce(&plan, bench.variants().len());
    let head = measurement.head(|head| {
        bench.describe(head);
        head.capacity = Some(plan.terms.clone());
    });
    let mut recording = measurement.record(head.clone(), bench.gauge())?;
    let mut director = Director::new(&plan, head);
    let next_turn = |tally: &Tally| director.next_turn(tally);
    let mut tally = bench
        .run_steps(Clock::start(), &mut recording, next_turn)
        .map_err(usage_or_own)?;
    let mut caveats = director.caveats;
    caveats.extend(measurement.caveats()?);
    if is_local && !measurement.is_on_link() {
        caveats.push(Caveat::new(
            "same-machine",
            "client and server share this machine's processors: the server alone may carry more",
        ));
    }
    let recorded = recording.finish(&mut tally, caveats);
    let facts = CapacityFacts::new(&recorded.run, &tally);
    Ok(Document::new(
        recorded.run,
        Parts::Capacity(Box::new(facts)),
    ))
}

/// What will be sent, before it is.
fn announce(plan: &CapacityPlan, variants: usize) {
    if let Some(search) = plan.terms.search {
        let requests = match plan.most {
            u64::MAX => String::new(),
            most => format!(" and {most} requests"),
        };
        console::note(&format!(
            "searching from {} up to {} requests/s, at most {}{requests} for each of {}; Ctrl-C keeps what was found",
            per_second(search.start),
            per_second(search.most),
            duration::write(plan.limit),
            counted(variants as u64, "variant"),
        ));
    }
    if let Some(overload) = plan.terms.overload {
        console::note(&format!(
            "overload: {} times the rate for {:.0} s, then {:.0} % of it for {:.0} s",
            overload.factor,
            overload.lasts.0 as f64 / 1e9,
            overload.share * 100.0,
            overload.follows.0 as f64 / 1e9
        ));
    }
}

/// The search of one variant.
struct VariantSearch {
    search: Option<RateSearch>,
    /// Time and requests that its steps took.
    took: Duration,
    sent: u64,
    /// Whether its last step missed the conditions.
    missed: bool,
    is_overloaded: bool,
    is_restarted: bool,
}

/// A step under way.
struct Pending {
    variant: usize,
    step: u32,
    began: Instant,
    purpose: LoadPurpose,
}

/// Chooses the steps.
struct Director<'a> {
    plan: &'a CapacityPlan,
    run: Run,
    variants: Vec<VariantSearch>,
    /// The variant whose turn it is.
    turn: usize,
    steps: u32,
    pending: Option<Pending>,
    caveats: Vec<Caveat>,
}

impl<'a> Director<'a> {
    fn new(plan: &'a CapacityPlan, run: Run) -> Director<'a> {
        let variants = run.variants.iter().map(|_| VariantSearch {
            search: plan.terms.search.map(RateSearch::new),
            took: Duration::ZERO,
            sent: 0,
            missed: false,
            is_overloaded: false,
            is_restarted: false,
        });
        Director {
            variants: variants.collect(),
            plan,
            run,
            turn: 0,
            steps: 0,
            pending: None,
            caveats: Vec::new(),
        }
    }

    /// The next step, by what was counted so far; `None` ends the run.
    fn next_turn(&mut self, tally: &Tally) -> Option<LoadTurn> {
        if !self.judge_last(tally) {
            return None;
        }
        self.next_search().or_else(|| self.next_overload(tally))
    }

    /// Takes the result of the step that is over. Whether the search goes on.
    fn judge_last(&mut self, tally: &Tally) -> bool {
        let Some(pending) = self.pending.take() else {
            return true;
        };
        let variant = &mut self.variants[pending.variant];
        let purpose = pending.purpose;
        if !matches!(purpose, LoadPurpose::Search | LoadPurpose::Confirm) {
            variant.missed = true;
            return true;
        }
        let figures = judge(&self.run, tally, &self.plan.conditions, pending.step);
        // without figures it was cut off
        let Some(figures) = figures else { return false };
        variant.took += pending.began.elapsed();
        variant.sent += figures.requests;
        variant.missed = !figures.is_met();
        if let Some(search) = &mut variant.search {
            search.record(figures.step_outcome());
        }
        true
    }

    /// The next step of a search; the variants take turns.
    fn next_search(&mut self) -> Option<LoadTurn> {
        let all = self.variants.len();
        for nth in 0..all {
            let index = (self.turn + nth) % all;
            let Some(step) = self.affordable(index) else {
                continue;
            };
            self.turn = (index + 1) % all;
            let purpose = match step.confirms {
                true => LoadPurpose::Confirm,
                false => LoadPurpose::Search,
            };
            let turn = self.at_one_rate(index, step.rate, purpose, None);
            return Some(LoadTurn {
                warm: step.warm,
                ..turn
            });
        }
        None
    }

    /// The next step of a variant's search, if time and requests suffice for it.
    fn affordable(&self, index: usize) -> Option<SearchStep> {
        let variant = &self.variants[index];
        let step = variant.search.as_ref()?.next()?;
        let (length, requests) = self.plan.size_of_step(step.rate);
        let has_time = variant.took + length <= self.plan.limit;
        (has_time && variant.sent + requests <= self.plan.most).then_some(step)
    }

    /// A step with a lead-in and two halves.
    fn at_one_rate(
        &mut self,
        index: usize,
        rate: f64,
        purpose: LoadPurpose,
        pause: Option<Duration>,
    ) -> LoadTurn {
        let length = self.plan.step_at(rate);
        let window = |length, warmup| LoadWindow {
            purpose,
            rate,
            length,
            warmup,
        };
        let lead_in = (length / LEAD_IN).max(LEAST_LEAD_IN);
        let settle = match self.variants.iter().any(|one| one.missed) {
            true => SETTLE,
            false => Duration::ZERO,
        };
        let words = format!(
            "step {}: {}, {} requests/s",
            self.steps + 1,
            self.run.variants[index].name,
            per_second(rate)
        );
        let windows = vec![
            window(lead_in, true),
            window(length / 2, false),
            window(length / 2, false),
        ];
        self.begin(index, purpose, words, pause.unwrap_or(settle), windows)
    }

    fn begin(
        &mut self,
        index: usize,
        purpose: LoadPurpose,
        words: String,
        pause: Duration,
        windows: Vec<LoadWindow>,
    ) -> LoadTurn {
        self.steps += 1;
        self.pending = Some(Pending {
            variant: index,
            step: self.steps,
            began: Instant::now(),
            purpose,
        });
        LoadTurn {
            variant: index as u32,
            words,
            pause,
            warm: false,
            windows,
        }
    }

    /// The overload of the next variant that has had none, or the step after one that it did not
    /// recover from.
    fn next_overload(&mut self, tally: &Tally) -> Option<LoadTurn> {
        let terms = self.plan.terms.overload?;
        for index in 0..self.variants.len() {
            let found = self.variants[index].search.as_ref();
            let found = found.and_then(|search| search.found().low);
            let Some(base) = terms.rate.or(found) else {
                if !std::mem::replace(&mut self.variants[index].is_overloaded, true) {
                    let name = &self.run.variants[index].name;
                    self.caveats.push(Caveat::new(
                        "no-overload",
                        format!("{name}: no rate met the conditions, so there was no overload"),
                    ));
                }
                continue;
            };
            if !std::mem::replace(&mut self.variants[index].is_overloaded, true) {
                return Some(self.overload(index, base));
            }
            let conditions = &self.plan.conditions;
            let recovery = Recovery::of(&self.run, tally, conditions, index as u32);
            let is_lost = recovery.is_some_and(|one| one.is_lost());
            if is_lost && !std::mem::replace(&mut self.variants[index].is_restarted, true) {
                let rate = base * terms.share;
                let purpose = LoadPurpose::Restart;
                return Some(self.at_one_rate(index, rate, purpose, Some(PAUSE)));
            }
        }
        None
    }

    /// 80 %, the overload, 80 %: one step, so that the same connections go through all of it.
    fn overload(&mut self, index: usize, base: f64) -> LoadTurn {
        let terms = self.plan.terms.overload.unwrap_or_else(|| unreachable!());
        let lower = base * terms.share;
        let higher = base * terms.factor;
        let window = self.plan.window_at(lower);
        let lead_in = LEAST_LEAD_IN.max(window / LEAD_IN);
        let of = |purpose, rate, length, warmup| LoadWindow {
            purpose,
            rate,
            length,
            warmup,
        };
        let parts = |purpose, rate, whole: u64| {
            let whole = Duration::from_nanos(whole);
            let count = (whole.as_secs_f64() / window.as_secs_f64())
                .floor()
                .max(1.0) as u32;
            (0..count).map(move |_| of(purpose, rate, whole / count, false))
        };
        let mut windows = vec![
            of(LoadPurpose::Before, lower, lead_in, true),
            of(LoadPurpose::Before, lower, self.plan.step_at(lower), false),
        ];
        windows.extend(parts(LoadPurpose::Overload, higher, terms.lasts.0));
        windows.extend(parts(LoadPurpose::After, lower, terms.follows.0));
        let words = format!(
            "overload: {}, {} requests/s, then {}",
            self.run.variants[index].name,
            per_second(higher),
            per_second(lower)
        );
        self.begin(index, LoadPurpose::Overload, words, SETTLE, windows)
    }
}
