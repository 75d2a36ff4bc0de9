//! The card in sentences: the worst outcome first, then what was not applied. Must not decide.

use super::card::{FaultCell, FaultOutcome, FaultRun, Obstacle};
use intact_document::grouping::grouped;
use intact_document::statement::requests;
use intact_document::unobserved::Unobserved;
use intact_document::{Claim, ClaimKind, Claims};
use intact_ledger::{FaultKind, StallEnd};
use intact_units::number::{time, timer};
use intact_units::plural::counted;

/// Reasons that the sentences name.
const REASONS: usize = 4;

/// Whether the card shows that reuse is safe: each kind that suits the connections was applied, and
/// nothing was lost or doubled.
pub(super) fn is_safe(cells: &[FaultCell]) -> bool {
    let has_each = |kind: &FaultKind| cells.iter().any(|cell| cell.kind == *kind);
    FaultKind::ALL.iter().all(has_each) && is_fine(cells)
}

/// Whether each kind that was asked for was applied, and nothing was lost or doubled.
fn is_fine(cells: &[FaultCell]) -> bool {
    let is_fine = |cell: &FaultCell| {
        matches!(
            cell.outcome,
            FaultOutcome::Unsuited | FaultOutcome::Unaffected | FaultOutcome::Recovered
        ) && !cell.is_partly_seen
            && !cell.has_held
    };
    cells.iter().any(FaultCell::is_suited) && cells.iter().all(is_fine)
}

pub(super) fn claims(
    runs: &[FaultRun],
    cells: &[FaultCell],
    is_safe: bool,
    unobserved: &Unobserved,
) -> Claims {
    if let Some(words) = refused(runs, cells) {
        return Claims::ranked([Claim::new(ClaimKind::Failed, 1.0, words)]);
    }
    if is_safe || (is_fine(cells) && unobserved.missing().is_none()) {
        return Claims::ranked([Claim::new(ClaimKind::Well, 0.0, fine(cells, is_safe))]);
    }
    let is_any_applied = cells.iter().any(|cell| cell.not_applied.is_none());
    let reasons = reasons(cells);
    let not_applied = match (is_any_applied, reasons) {
        (true, None) => None,
        (true, Some(reasons)) => {
            let text = format!("Not shown: {reasons}");
            Some(Claim::new(ClaimKind::Unseen, 0.5, text))
        }
        (false, None) => {
            let text = "No fault was applied, so nothing was shown";
            Some(Claim::new(ClaimKind::Failed, 1.0, text))
        }
        (false, Some(reasons)) => {
            let text = format!("No fault was applied, so nothing was shown: {reasons}");
            Some(Claim::new(ClaimKind::Failed, 1.0, text))
        }
    };
    let missing = unobserved.missing().map(|reason| {
        let text = format!("a part of the traffic was not observed: {reason}");
        Claim::new(ClaimKind::Unseen, 0.0, text)
    });
    let harm = HARM.iter().filter_map(|(outcome, kind)| {
        let is_alike = |cell: &&FaultCell| is_bad(cell) && cell.outcome == *outcome;
        let alike: Vec<&FaultCell> = cells.iter().filter(is_alike).collect();
        let text = of_outcome(*outcome, &alike)?;
        Some(Claim::new(*kind, 1.0, text))
    });
    Claims::ranked(harm.chain(not_applied).chain(missing))
}

/// Outcomes that harm a request or a connection, the worst first, and what they are: what failed or
/// hung comes before what is not decided.
const HARM: &[(FaultOutcome, ClaimKind)] = &[
    (FaultOutcome::Duplicated, ClaimKind::Failed),
    (FaultOutcome::Misled, ClaimKind::Failed),
    (FaultOutcome::Hung, ClaimKind::Failed),
    (FaultOutcome::Failed, ClaimKind::Failed),
    (FaultOutcome::PossiblyDuplicated, ClaimKind::Unseen),
    (FaultOutcome::Truncated, ClaimKind::Unseen),
    (FaultOutcome::Undecided, ClaimKind::Unseen),
    (FaultOutcome::Leaked, ClaimKind::Warned),
];

fn is_bad(cell: &FaultCell) -> bool {
    cell.outcome >= FaultOutcome::Leaked && cell.not_applied.is_none()
}

/// Why there is no verdict.
fn refused(runs: &[FaultRun], cells: &[FaultCell]) -> Option<String> {
    let has_failed = |cell: &FaultCell| cell.not_applied == Some(Obstacle::BaselineFailed);
    let failed = cells.iter().any(has_failed) || cells.is_empty();
    let baseline = runs.iter().find(|run| run.is_baseline)?;
    let ending = baseline.ending().filter(|_| !baseline.is_success)?;
    failed.then(|| format!("no verdict: the program failed without a fault ({ending})"))
}

fn fine(cells: &[FaultCell], is_safe: bool) -> String {
    let applied: Vec<&FaultCell> = cells.iter().filter(|cell| cell.is_suited()).collect();
    let kinds: std::collections::BTreeSet<_> = applied.iter().map(|cell| cell.kind).collect();
    let applied_kinds = match is_safe {
        true => format!(
            "Safe to reuse: {} of faults were applied",
            counted(kinds.len() as u64, "kind")
        ),
        false => {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.id()).collect();
            format!("The program coped with {}", names.join(", "))
        }
    };
    let unsuited = cells.iter().filter(|cell| !cell.is_suited());
    let unsuited: std::collections::BTreeSet<&str> = unsuited.map(|cell| cell.kind.id()).collect();
    let recovered = applied
        .iter()
        .map(|cell| cell.counted.recovered.low() as u64);
    let recovered: u64 = recovered.sum();
    let longest = applied
        .iter()
        .filter_map(|cell| cell.cost_ms.or(cell.counted.hung_ms));
    let longest = longest.fold(0.0, f64::max);
    let again = match recovered {
        0 => "no request failed".to_owned(),
        _ => format!("{:#} sent again with success", requests(recovered)),
    };
    let left_out = match unsuited.is_empty() {
        true => String::new(),
        false => format!(
            "; without {}, which the connections do not have",
            unsuited.into_iter().collect::<Vec<_>>().join(", ")
        ),
    };
    format!(
        "{applied_kinds}: {again}, none reached the server twice, at a cost of at most {}{left_out}",
        time(longest)
    )
}

/// `POST /orders`, or a word for what cannot be read.
fn example(cell: &FaultCell) -> &str {
    cell.example.as_deref().unwrap_or("a request")
}

fn names(cells: &[&FaultCell]) -> String {
    let mut names: Vec<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
    names.dedup();
    names.join(", ")
}

fn of_outcome(outcome: FaultOutcome, alike: &[&FaultCell]) -> Option<String> {
    let first = alike.first()?;
    let example = example(first);
    let names = names(alike);
    Some(match outcome {
        FaultOutcome::Duplicated => format!(
            "The program sent {example} twice: the server had received at least a part of the first ({names})"
        ),
        FaultOutcome::PossiblyDuplicated => {
            format!("The program may have sent {example} to the server twice ({names})")
        }
        FaultOutcome::Truncated => {
            format!("{example} failed, or the program took its cut response as complete ({names})")
        }
        FaultOutcome::Misled => format!(
            "{example} got the response of another server, which has the address now ({names})"
        ),
        FaultOutcome::Hung => hung(alike, &names),
        FaultOutcome::Failed if alike.iter().any(|cell| cell.counted.met_again > 0) => {
            let meets_again = |cell: &&&FaultCell| cell.counted.met_again > 0;
            let met: Vec<&FaultCell> = alike.iter().filter(meets_again).copied().collect();
            let met = self::names(&met);
            let met = match met == names {
                true => String::new(),
                false => format!(" ({met})"),
            };
            format!(
                "{example} failed to the caller ({names}): the retry took the next dead connection of the pool{met}; retry on a new connection"
            )
        }
        FaultOutcome::Failed => {
            format!(
                "{example} failed to the caller, and no further attempt got a response ({names})"
            )
        }
        FaultOutcome::Undecided => format!(
            "Whether {example} was sent again is not decided ({names}): {}",
            first.undecided.unwrap_or_default()
        ),
        FaultOutcome::Leaked => {
            format!("The program kept closed connections open until its end ({names})")
        }
        _ => return None,
    })
}

fn hung(alike: &[&FaultCell], names: &str) -> String {
    let hung_ms = |cell: &FaultCell| cell.counted.hung_ms.unwrap_or(0.0);
    let longest = |cell: &&&FaultCell| (cell.is_open_ended(), hung_ms(cell) as u64);
    let Some(worst) = alike.iter().max_by_key(longest) else {
        return String::new();
    };
    let example = example(worst);
    let waited = timer((hung_ms(worst) / 100.0).round() * 100.0);
    let until = match (worst.is_open_ended(), worst.hung_until) {
        (true, Some(StallEnd::Limit)) => {
            format!("at least {waited}: no timeout of the program ended the wait")
        }
        (true, Some(StallEnd::ProgramClosed)) => {
            format!("at least {waited}: its kernel did not send what the program wrote then")
        }
        (true, _) => format!("{waited}, until the program was ended"),
        (false, Some(StallEnd::EndOfRun)) => format!("{waited}, until the program ended"),
        (false, _) => format!("{waited}, until the program gave up and it failed"),
    };
    format!("{example} hung on a dead connection for {until} ({names})")
}

/// What was not applied, by reason.
fn reasons(cells: &[FaultCell]) -> Option<String> {
    let is_shown = |obstacle: &Obstacle| !obstacle.is_unsuited();
    let reasons = grouped(cells.iter().filter_map(|cell| {
        let obstacle = cell.not_applied.filter(is_shown)?;
        Some((obstacle, cell.name.as_str()))
    }));
    let each = reasons
        .into_iter()
        .take(REASONS)
        .map(|(obstacle, mut names)| {
            names.dedup();
            format!("{} ({})", names.join(", "), obstacle.words())
        });
    let each: Vec<String> = each.collect();
    (!each.is_empty()).then(|| each.join("; "))
}
