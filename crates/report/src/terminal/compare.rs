//! The page of a comparison of programs: verdict, a row for each program, differences with intervals, findings gone and new.

use super::page::Page;
use super::table::Column;
use super::{Style, TerminalOptions, escape};
use crate::number::{maybe_percent, maybe_time};
use intact_findings::Severity;
use intact_findings::compare::{
    CompareFacts, CountDifference, FindingChange, FindingState, ProgramFacts, Spread,
    TimeDifference,
};
use intact_ledger::Run;
use intact_units::number::{count, percent, time};

/// The widest that a program's name may be in a table.
const NAME: usize = 30;

/// The page of a comparison.
pub fn compare(run: &Run, facts: &CompareFacts, paper: TerminalOptions) -> String {
    let mut page = Page::on(paper);
    let link = run.link.as_ref().map(|link| format!(" behind {link}"));
    page.line(&format!(
        "{}{}",
        page.paper.ink(Style::Strong, "intact compare"),
        escape(&link.unwrap_or_default())
    ));
    let told = format!(
        "{} programs, {} rounds of each, interleaved",
        facts.variants.len(),
        facts.rounds
    );
    if facts.rounds > 1 {
        page.wrapped(Some(Style::Faint), &told, "");
    }
    page.line("");
    for (nth, sentence) in facts.verdict.iter().enumerate() {
        page.wrapped((nth == 0).then_some(Style::Strong), &escape(sentence), "  ");
    }
    page.programs(facts);
    page.differences(facts);
    page.changes(facts);
    page.caveats(facts);
    page.text
}

impl Page {
    fn programs(&mut self, facts: &CompareFacts) {
        self.title(if facts.rounds > 1 {
            "Programs, one run each on average"
        } else {
            "Programs"
        });
        let column = |head, rank, cell: &dyn Fn(&ProgramFacts) -> String| Column {
            head,
            rank,
            cells: facts.variants.iter().map(cell).collect(),
        };
        let each = |sum: u64, one: &ProgramFacts| each(sum, one.rounds.len());
        let mut columns = vec![
            column("program", 0, &|one| shorten(&escape(&one.name))),
            column("wall", 0, &|one| spread(one.wall_ms)),
            column("CPU", 3, &|one| spread(one.cpu_ms)),
            column("requests", 1, &|one| {
                let about = if one.inferred.is_empty() { "" } else { "~" };
                format!("{about}{}", each(one.requests.total, one))
            }),
            column("conns", 0, &|one| each(one.connections.opened, one)),
            column("needed", 4, &|one| each(one.connections.needed, one)),
            column("reused", 0, &|one| maybe_percent(one.reuse)),
            column("TLS", 5, &|one| each(one.handshakes.total(), one)),
            column("lookups", 6, &|one| each(one.lookups, one)),
            column("wasted", 2, &|one| {
                let rounds = one.rounds.len().max(1) as f64;
                maybe_time(one.wasted_ms.map(|ms| ms / rounds))
            }),
        ];
        if facts.variants.iter().any(|one| one.requests.failures() > 0) {
            columns.insert(
                4,
                column("failed", 0, &|one| each(one.requests.failures(), one)),
            );
        }
        self.table(columns);
    }

    fn differences(&mut self, facts: &CompareFacts) {
        if facts.comparisons.iter().all(|one| one.saved_ms.is_none()) {
            return;
        }
        self.title("Less than the first program, with 95 % intervals");
        for program in facts.variants.iter().skip(1) {
            if facts.variants.len() > 2 {
                self.wrapped(None, &escape(&program.name), "  ");
            }
            let times = facts.comparisons.iter();
            let times = times.filter(|one| one.b == program.name).filter_map(saved);
            let counts = facts.counts.iter();
            let counts = counts.filter(|one| one.b == program.name).filter_map(fewer);
            let rows: Vec<[String; 5]> = times.chain(counts).collect();
            let heads = [
                ("of one run", 0),
                ("less", 0),
                ("from - to", 2),
                ("share", 0),
                ("from - to", 1),
            ];
            let columns = heads
                .into_iter()
                .enumerate()
                .map(|(at, (head, rank))| Column {
                    head,
                    rank,
                    cells: rows.iter().map(|row| row[at].clone()).collect(),
                });
            self.table(columns.collect());
        }
    }

    fn changes(&mut self, facts: &CompareFacts) {
        for (fate, title) in [
            (FindingState::Gone, "Findings that are gone"),
            (FindingState::New, "New findings, and what to change"),
            (FindingState::Unchanged, "Findings that stay"),
        ] {
            let told: Vec<&FindingChange> = facts
                .changes
                .iter()
                .filter(|change| change.fate == fate)
                .filter(|change| change.finding.severity > Severity::Info)
                .collect();
            if told.is_empty() {
                continue;
            }
            self.title(title);
            for change in told {
                let finding = &change.finding;
                let many = facts.variants.len() > 2;
                let whose = if many {
                    format!("{}: ", change.b)
                } else {
                    String::new()
                };
                let said = format!(
                    "{}{}: {} [{}]",
                    escape(&whose),
                    escape(&finding.subject),
                    escape(&finding.claim),
                    finding.rule
                );
                let ink = (fate == FindingState::New).then_some(Style::Alarm);
                self.wrapped(ink, &said, "  ");
                if fate == FindingState::New {
                    self.wrapped(None, &format!("-> {}", escape(&finding.fix)), "   ");
                }
            }
        }
    }

    fn caveats(&mut self, facts: &CompareFacts) {
        if facts.caveats.is_empty() {
            return;
        }
        self.line("");
        for caveat in &facts.caveats {
            let told = format!("caveat: {}", escape(&caveat.message));
            self.wrapped(Some(Style::Alarm), &told, "  ");
        }
    }
}

/// What a program saves of a time: name, difference and interval, share and interval.
fn saved(one: &TimeDifference) -> Option<[String; 5]> {
    let saved = one.saved_ms?;
    let what = match one.statistic {
        "cpu" => "CPU",
        "outbound" => "waiting for answers",
        other => other,
    };
    if one.significant == Some(false) {
        let range = format!("{} - {}", time(saved.low), time(saved.high));
        let none = "not shown".to_owned();
        return Some([what.to_owned(), none, range, String::new(), String::new()]);
    }
    let (share, of_share) = one.saved_share.map_or_else(Default::default, |share| {
        (
            percent(share.value),
            format!("{} - {}", percent(share.low), percent(share.high)),
        )
    });
    Some([
        what.to_owned(),
        time(saved.value),
        format!("{} - {}", time(saved.low), time(saved.high)),
        share,
        of_share,
    ])
}

/// The same of a count.
fn fewer(one: &CountDifference) -> Option<[String; 5]> {
    let fewer = one.reduction?;
    if one.a_mean == one.b_mean && one.significant != Some(true) {
        return None;
    }
    let what = match one.count {
        "handshakes" => "TLS handshakes".to_owned(),
        "avoidable" => "avoidable connections".to_owned(),
        other => other.replace('_', "-"),
    };
    let (range, value) = match one.significant {
        Some(false) => (true, "not shown".to_owned()),
        _ => (fewer.low != fewer.high, trimmed(fewer.value)),
    };
    let range = if range {
        format!("{:.1} - {:.1}", fewer.low, fewer.high)
    } else {
        String::new()
    };
    let share = (one.a_mean > 0.0).then(|| percent(fewer.value / one.a_mean));
    let share = share.filter(|_| one.significant != Some(false));
    Some([what, value, range, share.unwrap_or_default(), String::new()])
}

/// A sum over rounds as the mean of one.
fn each(sum: u64, rounds: usize) -> String {
    let rounds = rounds as u64;
    match sum.checked_rem(rounds) {
        None => "-".to_owned(),
        Some(0) => count(sum / rounds),
        Some(_) => trimmed(sum as f64 / rounds as f64),
    }
}

fn trimmed(value: f64) -> String {
    if value.fract() == 0.0 {
        format!("{value:.0}")
    } else {
        format!("{value:.1}")
    }
}

fn spread(spread: Option<Spread>) -> String {
    maybe_time(spread.map(|spread| spread.mean))
}

/// Cuts the middle out of a long name: the ends of two command lines tell them apart.
fn shorten(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= NAME {
        return name.to_owned();
    }
    let tail = NAME / 2;
    let head: String = letters[..NAME - 1 - tail].iter().collect();
    let tail: String = letters[letters.len() - tail..].iter().collect();
    format!("{head}…{tail}")
}
