//! What is known of the processors of the client's machine while a step missed the conditions. Must
//! not judge a step.

use super::VariantCapacity;
use crate::bench::SERVER_UNKNOWN;
use intact_ledger::Caveat;
use intact_units::number::{per_second, whole_percent};

/// How busy the machine was, at the lowest rate at which it was the limit.
pub(super) fn limit(one: &VariantCapacity) -> Option<Caveat> {
    let limited = one
        .all_figures()
        .filter(|one| one.outcome == "machine-limit");
    let lowest = limited.min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))?;
    let machine = lowest.machine.as_ref()?;
    let figure =
        |words: &str, share: Option<f64>| Some(format!("{words} {}", whole_percent(share?)));
    let figures = [
        figure("processors busy", machine.busy),
        figure("of them neither client nor server", machine.others),
        figure("time in which a task waited for one", machine.waiting),
        figure("taken by the hypervisor", machine.steal),
    ];
    let remedy = match machine.others {
        Some(_) => "",
        None => "; --server-pid separates the server from other processes",
    };
    Some(Caveat::new(
        "machine-limit",
        format!(
            "{}: at {} requests/s the machine was the limit ({}){remedy}",
            one.name,
            per_second(lowest.rate_per_s),
            figures.into_iter().flatten().collect::<Vec<_>>().join(", ")
        ),
    ))
}

/// How busy the machine was, at the lowest rate that missed although requests started on time.
pub(super) fn busy(one: &VariantCapacity) -> Option<Caveat> {
    // a busy machine slows responses, it does not keep all of them back
    let missed = one.all_figures();
    let missed = missed.filter(|one| one.outcome == "missed" && one.failed < one.requests);
    let busy = missed.filter_map(|one| Some((one.rate_per_s, one.machine?.may_limit_server()?)));
    let (rate, busy) = busy.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let name = &one.name;
    let rate = per_second(rate);
    Some(Caveat::new(
        "machine-busy",
        format!("{name}: at {rate} requests/s {busy}: {SERVER_UNKNOWN}"),
    ))
}

/// What was not observed of the machine in a step that missed, so that other processes may have
/// been the limit.
pub(super) fn unobserved(one: &VariantCapacity) -> Option<Caveat> {
    let mut missed = one.all_figures().filter(|one| one.outcome == "missed");
    let absent = missed.find_map(|step| match &step.machine {
        None => Some("the processors of this machine".to_owned()),
        Some(machine) => {
            let absent = machine.unobserved();
            (!absent.is_empty()).then(|| absent.join(", "))
        }
    })?;
    Some(Caveat::new(
        "machine-unobserved",
        format!(
            "{}: not observed: {absent}; other processes on this machine may have been the limit rather than the server",
            one.name
        ),
    ))
}
