//! Searches the highest rate that meets conditions: doubling, bisection, then fresh runs at both
//! ends of the interval.
//!
//! Rates are rungs of a ladder with a constant ratio. Doubling and bisection find two neighbouring
//! rungs; the lower one met the conditions. Fresh runs then confirm each end by a sign test: 5 of 5
//! runs, or 7 of 8, must agree. Otherwise the end moves outwards and the interval becomes wider.
//! Must not run or judge anything.

use intact_ledger::{SearchTerms, kinds};
use std::collections::BTreeMap;

/// Fresh runs that suffice if all agree.
const ALL_AGREE: u32 = 5;
/// Fresh runs that suffice if all but one agree.
const ONE_DISAGREES: u32 = 8;
/// Steps after which a search ends.
const MOST_STEPS: u32 = 80;

kinds! {
    /// What a step showed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StepOutcome, as_str {
        /// The conditions held.
        Met = "met",
        /// They did not.
        Missed = "missed",
        /// The conditions did not hold because of the client's limit, so the step does not show the
        /// server's limit.
        ClientLimit = "client-limit",
        /// The conditions did not hold because the processors of the client's machine were busy;
        /// also not the server's limit.
        MachineLimit = "machine-limit",
        /// What the conditions are about had no value, such as a percentile of too few requests:
        /// they were neither met nor missed.
        Undecided = "undecided",
        /// The conditions did not hold while connections were opened, which may cost more than the
        /// requests: the same step on open connections decides.
        ColdStart = "cold-start",
    }
}

kinds! {
    /// What bounds a rate from above.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Ceiling, as_str {
        /// The conditions did not hold there.
        Missed = "server",
        /// The client could send no more.
        Client = "client",
        /// The processors of the client's machine were busy.
        Machine = "machine",
        /// No higher rate was to be tried.
        Most = "most-rate",
        /// The steps did not decide the conditions there.
        Undecided = "undecided",
    }
}

impl StepOutcome {
    /// The limit that was not the server's, if there was one.
    pub fn other_limit(self) -> Option<Ceiling> {
        match self {
            StepOutcome::Met | StepOutcome::Missed | StepOutcome::ColdStart => None,
            StepOutcome::ClientLimit => Some(Ceiling::Client),
            StepOutcome::MachineLimit => Some(Ceiling::Machine),
            StepOutcome::Undecided => Some(Ceiling::Undecided),
        }
    }
}

/// The next step of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchStep {
    /// Requests a second.
    pub rate: f64,
    /// Whether it is a fresh run at an end of the interval.
    pub confirms: bool,
    /// Whether its connections are open before the first request is due.
    pub warm: bool,
}

/// Fresh runs at one rate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FreshRuns {
    /// Those in which the conditions held.
    pub met: u32,
    /// All of them.
    pub all: u32,
}

/// What a search has found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateInterval {
    /// The highest rate that met the conditions; absent if none did.
    pub low: Option<f64>,
    /// The lowest rate that did not meet the conditions; absent if no rate bounds the interval
    /// from above.
    pub high: Option<f64>,
    /// What bounds it from above; absent where the search ended before that was known.
    pub ceiling: Option<Ceiling>,
    /// Whether fresh runs confirmed each end that there is.
    pub is_confirmed: bool,
    /// Fresh runs at the lower end.
    pub at_low: FreshRuns,
    /// Fresh runs at the upper end.
    pub at_high: FreshRuns,
}

/// A search under way. The same outcomes give the same steps.
#[derive(Clone, Debug)]
pub struct RateSearch {
    terms: SearchTerms,
    /// Rungs of a doubling.
    octave: i32,
    low: Option<i32>,
    high: Option<i32>,
    ceiling: Option<Ceiling>,
    /// Steps at a rung at which the client or its machine was the limit.
    other_limits: u32,
    next: Option<i32>,
    fresh: BTreeMap<i32, (FreshRuns, u32)>,
    shifts: [i32; 2],
    confirms_high_next: bool,
    steps: u32,
    /// Whether the next step repeats the last one on open connections.
    repeats_warm: bool,
    /// Whether such a step once met conditions that new connections missed: then all begin so.
    is_warm: bool,
}

impl RateSearch {
    /// A search from the first rate on. The ratio of the terms is above 1.
    pub fn new(terms: SearchTerms) -> RateSearch {
        RateSearch {
            octave: (2f64.ln() / terms.ratio.ln()).round().max(1.0) as i32,
            terms,
            low: None,
            high: None,
            ceiling: None,
            other_limits: 0,
            next: Some(0),
            fresh: BTreeMap::new(),
            shifts: [1, 1],
            confirms_high_next: false,
            steps: 0,
            repeats_warm: false,
            is_warm: false,
        }
    }

    /// The rate of a rung, to three digits.
    fn rate(&self, rung: i32) -> f64 {
        let exact = self.terms.start * self.terms.ratio.powi(rung);
        let exact = exact.clamp(self.terms.least, self.terms.most);
        let digits = 10f64.powf(exact.log10().floor() - 2.0);
        ((exact / digits).round() * digits * 1e6).round() / 1e6
    }

    fn is_top(&self, rung: i32) -> bool {
        self.terms.start * self.terms.ratio.powi(rung) >= self.terms.most
    }

    fn is_bottom(&self, rung: i32) -> bool {
        self.terms.start * self.terms.ratio.powi(rung) <= self.terms.least
    }

    /// The next step; absent when the search is over.
    pub fn next(&self) -> Option<SearchStep> {
        if self.steps >= MOST_STEPS {
            return None;
        }
        let step = |rung, confirms| SearchStep {
            rate: self.rate(rung),
            confirms,
            warm: self.is_warm || self.repeats_warm,
        };
        if let Some(rung) = self.next {
            return Some(step(rung, false));
        }
        self.to_confirm().map(|(rung, _)| step(rung, true))
    }

    /// The end that needs a fresh run, and whether it is the upper end. The ends alternate.
    fn to_confirm(&self) -> Option<(i32, bool)> {
        let low = self.low?;
        let low = (!self.is_decided(low, true)).then_some((low, false));
        let missed = self.ceiling == Some(Ceiling::Missed);
        let high = self.high.filter(|_| missed);
        let high = high.filter(|rung| !self.is_decided(*rung, false));
        let high = high.map(|rung| (rung, true));
        match self.confirms_high_next {
            true => high.or(low),
            false => low.or(high),
        }
    }

    fn fresh(&self, rung: i32) -> FreshRuns {
        self.fresh.get(&rung).copied().unwrap_or_default().0
    }

    /// Whether the fresh runs at a rung agree that the conditions hold there, or that they do not.
    fn is_decided(&self, rung: i32, holds: bool) -> bool {
        let FreshRuns { met, all } = self.fresh(rung);
        let against = if holds { all - met } else { met };
        match against {
            0 => all >= ALL_AGREE,
            1 => all >= ONE_DISAGREES,
            _ => false,
        }
    }

    /// Takes the outcome of [`RateSearch::next`].
    pub fn record(&mut self, outcome: StepOutcome) {
        self.steps += 1;
        let was_repeated = std::mem::take(&mut self.repeats_warm);
        match outcome {
            // a fresh run is at a rate that open connections missed, too
            StepOutcome::ColdStart if !self.is_warm && self.next.is_some() => {
                self.repeats_warm = true;
                return;
            }
            StepOutcome::Met => self.is_warm |= was_repeated,
            _ => {}
        }
        match self.next {
            Some(rung) => self.record_search(rung, outcome),
            None => self.record_confirmation(outcome),
        }
    }

    fn record_search(&mut self, rung: i32, outcome: StepOutcome) {
        if outcome.other_limit().is_some() {
            self.other_limits += 1;
            // it may have been a hiccup of this machine
            if self.other_limits < 2 {
                return;
            }
        }
        self.other_limits = 0;
        match outcome {
            StepOutcome::Met => self.low = Some(rung),
            StepOutcome::Missed
            | StepOutcome::ColdStart
            | StepOutcome::ClientLimit
            | StepOutcome::MachineLimit
            | StepOutcome::Undecided => {
                let ceiling = outcome.other_limit().unwrap_or(Ceiling::Missed);
                (self.high, self.ceiling) = (Some(rung), Some(ceiling));
            }
        }
        self.next = match (self.low, self.high) {
            (Some(low), None) if self.is_top(low) => {
                self.ceiling = Some(Ceiling::Most);
                None
            }
            (Some(low), None) => Some(low + self.octave),
            (None, Some(high)) if self.is_bottom(high) => None,
            (None, Some(high)) => Some(high - self.octave),
            (Some(low), Some(high)) if high - low > 1 => Some(low.midpoint(high)),
            _ => None,
        };
    }

    fn record_confirmation(&mut self, outcome: StepOutcome) {
        let Some((rung, is_high)) = self.to_confirm() else {
            return;
        };
        self.confirms_high_next = !is_high;
        let (fresh, other_limits) = self.fresh.entry(rung).or_default();
        let limit = outcome.other_limit();
        if limit.is_some() {
            *other_limits += 1;
            if is_high {
                if *other_limits >= 2 {
                    self.ceiling = limit;
                }
                return;
            }
            // a run that decides nothing is no run against the lower end, but some of them are
            if limit == Some(Ceiling::Undecided) && *other_limits <= 2 {
                return;
            }
        }
        fresh.all += 1;
        fresh.met += u32::from(outcome == StepOutcome::Met);
        let against = if is_high {
            fresh.met
        } else {
            fresh.all - fresh.met
        };
        if against >= 2 {
            self.move_away(is_high);
        }
    }

    /// Moves an end whose fresh runs disagree away from the other end, twice as far each time.
    fn move_away(&mut self, is_high: bool) {
        let shift = self.shifts[usize::from(is_high)];
        self.shifts[usize::from(is_high)] *= 2;
        if is_high {
            let high = self.high.filter(|rung| !self.is_top(*rung));
            self.high = high.map(|rung| rung + shift);
            if high.is_none() {
                self.ceiling = Some(Ceiling::Most);
            }
        } else {
            let low = self.low.filter(|rung| !self.is_bottom(*rung));
            self.low = low.map(|rung| rung - shift);
        }
    }

    /// What is known so far.
    pub fn found(&self) -> RateInterval {
        let is_open = self.ceiling != Some(Ceiling::Missed);
        let fresh = |rung: Option<i32>| rung.map(|rung| self.fresh(rung)).unwrap_or_default();
        let low_holds = self.low.is_none_or(|rung| self.is_decided(rung, true));
        let high_holds = is_open || self.high.is_none_or(|rung| self.is_decided(rung, false));
        let is_through = self.next.is_none() && self.ceiling.is_some();
        RateInterval {
            low: self.low.map(|rung| self.rate(rung)),
            high: self.high.filter(|_| !is_open).map(|rung| self.rate(rung)),
            ceiling: self.ceiling,
            is_confirmed: is_through && low_holds && high_holds && self.low.is_some(),
            at_low: fresh(self.low),
            at_high: fresh(self.high.filter(|_| !is_open)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    fn terms() -> SearchTerms {
        SearchTerms {
            start: 100.0,
            least: 10.0,
            most: 50_000.0,
            ratio: 1.05,
        }
    }

    /// Runs a search to its end; `outcome` gets the rate.
    fn run(terms: SearchTerms, mut outcome: impl FnMut(f64) -> StepOutcome) -> (RateInterval, u32) {
        let mut search = RateSearch::new(terms);
        while let Some(step) = search.next() {
            search.record(outcome(step.rate));
        }
        (search.found(), search.steps)
    }

    fn up_to(limit: f64) -> impl FnMut(f64) -> StepOutcome {
        move |rate| match rate <= limit {
            true => StepOutcome::Met,
            false => StepOutcome::Missed,
        }
    }

    #[test]
    fn a_sharp_limit_is_found_between_two_neighbouring_rates() {
        for limit in [11.0, 57.0, 100.0, 480.0, 9_999.0, 43_210.0] {
            let (found, steps) = run(terms(), up_to(limit));
            let (low, high) = (found.low.unwrap(), found.high.unwrap());
            assert!(low <= limit && limit < high, "{limit}: {found:?}");
            assert!(high / low < 1.06, "{limit}: {found:?}");
            assert!(found.is_confirmed && found.ceiling == Some(Ceiling::Missed));
            assert_eq!((found.at_low.met, found.at_low.all), (5, 5));
            assert_eq!((found.at_high.met, found.at_high.all), (0, 5));
            assert!(steps <= 26, "{limit}: {steps} steps");
        }
    }

    #[test]
    fn no_bound_is_invented_where_every_rate_or_none_held() {
        let (all, _) = run(terms(), |_| StepOutcome::Met);
        assert_eq!((all.low, all.high), (Some(50_000.0), None));
        assert_eq!(all.ceiling, Some(Ceiling::Most));
        assert!(all.is_confirmed);
        let (none, _) = run(terms(), |_| StepOutcome::Missed);
        assert_eq!((none.low, none.high), (None, Some(10.0)));
        assert!(!none.is_confirmed);
    }

    #[test]
    fn a_client_at_its_limit_bounds_nothing() {
        let (found, _) = run(terms(), |rate| match rate <= 480.0 {
            true => StepOutcome::Met,
            false => StepOutcome::ClientLimit,
        });
        assert_eq!((found.high, found.ceiling), (None, Some(Ceiling::Client)));
        let low = found.low.unwrap();
        assert!((450.0..=480.0).contains(&low), "{low}");
        assert!(found.is_confirmed);
        let (found, _) = run(terms(), |rate| match rate <= 480.0 {
            true => StepOutcome::Met,
            false => StepOutcome::MachineLimit,
        });
        assert_eq!((found.high, found.ceiling), (None, Some(Ceiling::Machine)));
        // a machine that gets busy during the fresh runs leaves no upper end
        let mut at_high = 0;
        let (found, _) = run(terms(), |rate| {
            at_high += u32::from(rate > 480.0 && rate < 505.0);
            match at_high {
                0 | 1 => up_to(480.0)(rate),
                _ if rate <= 480.0 => StepOutcome::Met,
                _ => StepOutcome::MachineLimit,
            }
        });
        assert_eq!((found.high, found.ceiling), (None, Some(Ceiling::Machine)));
        // one hiccup does not end the search
        let mut steps = 0;
        let (found, _) = run(terms(), |rate| {
            steps += 1;
            if steps == 2 {
                return StepOutcome::ClientLimit;
            }
            up_to(480.0)(rate)
        });
        assert_eq!(found.ceiling, Some(Ceiling::Missed));
    }

    #[test]
    fn a_step_that_decides_nothing_is_no_miss() {
        // every third step has too few requests for its percentile
        let mut steps = 0;
        let (found, _) = run(terms(), |rate| {
            steps += 1;
            match steps % 3 {
                0 => StepOutcome::Undecided,
                _ => up_to(480.0)(rate),
            }
        });
        let (low, high) = (found.low.unwrap(), found.high);
        assert!(low <= 480.0 && low > 450.0, "{found:?}");
        assert!(high.is_none_or(|high| high > 480.0), "{found:?}");
        let (none, _) = run(terms(), |_| StepOutcome::Undecided);
        assert_eq!((none.low, none.high), (None, None));
        assert_eq!(none.ceiling, Some(Ceiling::Undecided));
    }

    /// As [`run`]; `outcome` also gets whether the connections were open.
    fn run_warm(mut outcome: impl FnMut(f64, bool) -> StepOutcome) -> (RateInterval, u32) {
        let mut search = RateSearch::new(terms());
        while let Some(step) = search.next() {
            search.record(outcome(step.rate, step.warm));
        }
        (search.found(), search.steps)
    }

    #[test]
    fn connections_that_cost_much_are_opened_before_a_step() {
        let (found, steps) = run_warm(|rate, warm| match (rate <= 480.0, warm) {
            (true, true) => StepOutcome::Met,
            (false, true) => StepOutcome::Missed,
            // what new connections cost
            (_, false) if rate <= 400.0 => StepOutcome::Met,
            (_, false) => StepOutcome::ColdStart,
        });
        let (low, high) = (found.low.unwrap(), found.high.unwrap());
        assert!(
            low <= 480.0 && 480.0 < high && high / low < 1.06,
            "{found:?}"
        );
        assert!(found.is_confirmed && steps < 32, "{steps}");
        // where they cost nothing, each rate of the search that misses is run twice
        let (found, steps) = run_warm(|rate, warm| match (rate <= 480.0, warm) {
            (true, _) => StepOutcome::Met,
            (false, true) => StepOutcome::Missed,
            (false, false) => StepOutcome::ColdStart,
        });
        assert!(found.low.unwrap() <= 480.0 && 480.0 < found.high.unwrap());
        assert!(found.is_confirmed && steps <= 32, "{steps}");
    }

    #[test]
    fn a_search_that_is_cut_off_is_not_confirmed() {
        let mut search = RateSearch::new(terms());
        for _ in 0..12 {
            let rate = search.next().unwrap().rate;
            search.record(up_to(480.0)(rate));
        }
        let found = search.found();
        assert!(!found.is_confirmed && found.low.is_some(), "{found:?}");
    }

    /// The rate at which half of the runs hold lies inside the interval as often as two sign tests
    /// promise.
    #[test]
    fn the_interval_covers_the_rate_at_which_half_of_the_runs_hold() {
        for width in [0.01, 0.05, 0.15] {
            let mut random = Rng::seeded(7);
            let mut covered = 0;
            let runs = 400;
            for nth in 0..runs {
                let half = 200.0 * (1.0 + f64::from(nth) / 400.0);
                let (found, _) = run(terms(), |rate| {
                    let position = (rate / half).ln() / width;
                    let holds = 1.0 / (1.0 + position.exp());
                    match random.unit() < holds {
                        true => StepOutcome::Met,
                        false => StepOutcome::Missed,
                    }
                });
                let above = found.low.is_some_and(|low| low <= half);
                covered += u32::from(above && found.high.is_none_or(|high| half <= high));
            }
            let share = f64::from(covered) / f64::from(runs);
            assert!(share >= 0.9, "width {width}: {share}");
        }
    }
}
