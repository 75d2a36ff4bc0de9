//! The first sentences of a comparison: wall time, then the changes of connections, failures and findings.

use super::count_difference::{CountDifference, CountStatistic};
use super::finding_change::{FindingChange, FindingState};
use super::variant::ProgramFacts;
use crate::finding::Severity;
use crate::time_difference::{TimeDifference, TimeStatistic};
use intact_units::number::{mean, time, whole_percent};

pub(super) fn sentences(
    programs: &[ProgramFacts],
    times: &[TimeDifference],
    counts: &[CountDifference],
    changes: &[FindingChange],
) -> Vec<String> {
    let mut said = Vec::new();
    if programs.iter().any(|one| one.rounds.is_empty()) {
        return vec!["No program has come to the end of a round: nothing to compare".to_owned()];
    }
    for other in programs.iter().skip(1) {
        let name = &other.name;
        let of = |statistic: TimeStatistic| {
            let mut times = times.iter();
            times.find(|one| one.b == *name && one.statistic == statistic)
        };
        // of stored ledgers only the requests' time is known
        if let Some(compared) = of(TimeStatistic::Wall).or_else(|| of(TimeStatistic::Outbound)) {
            said.push(time_sentence(compared));
        }
        let counted: Vec<String> = counts
            .iter()
            .filter(|one| one.b == *name && one.a_mean != one.b_mean)
            .map(count)
            .collect();
        if counted.is_empty() {
            said.push(format!(
                "{name} opens as many connections as {}",
                programs[0].name
            ));
        } else {
            said.push(format!("{name}, in each run: {}", counted.join(", ")));
        }
        for (fate, word) in [(FindingState::Gone, "Gone"), (FindingState::New, "New")] {
            let mut rules: Vec<&str> = changes
                .iter()
                .filter(|change| change.b == *name && change.fate == fate)
                .filter(|change| change.finding.severity > Severity::Info)
                .map(|change| change.finding.rule)
                .collect();
            rules.dedup();
            if !rules.is_empty() {
                said.push(format!("{word} with {name}: {}", rules.join(", ")));
            }
        }
    }
    said
}

fn time_sentence(one: &TimeDifference) -> String {
    let what = one.statistic.words();
    let (a, b) = (time(one.a_ms), time(one.b_ms));
    match (one.significant, one.saved_share, one.saved_ms) {
        (Some(true), Some(share), _) => {
            let (less, low, high) = if share.value >= 0.0 {
                ("less", share.low, share.high)
            } else {
                ("more", -share.high, -share.low)
            };
            format!(
                "{} takes {} {less} {what} than {}: {b} instead of {a} (95 %: {} to {})",
                one.b,
                whole_percent(share.value.abs()),
                one.a,
                whole_percent(low),
                whole_percent(high)
            )
        }
        (Some(false), _, Some(saved)) => format!(
            "No difference in {what} was shown between {} ({a}) and {} ({b}); the interval is {} to {}",
            one.a,
            one.b,
            time(saved.low),
            time(saved.high)
        ),
        _ => format!(
            "{} takes {b} of {what}, {} takes {a}; {}",
            one.b,
            one.a,
            one.no_interval_reason
                .as_deref()
                .unwrap_or("there is no interval")
        ),
    }
}

/// `connections 100 -> 1`.
fn count(one: &CountDifference) -> String {
    let name = match one.count {
        CountStatistic::Connections => "connections",
        CountStatistic::Avoidable => "avoidable ones",
        CountStatistic::Requests => "requests",
        CountStatistic::Failed => "failed requests",
        CountStatistic::Stale => "stale reuses",
        CountStatistic::Handshakes => "TLS handshakes",
        CountStatistic::Lookups => "lookups",
    };
    format!("{name} {} -> {}", mean(one.a_mean), mean(one.b_mean))
}
