//! What each remedy saves against the baseline, a new connection per request with a full handshake,
//! and the risk of each.
//!
//! A run has a baseline for each load if it has a remedy other than keep-alive. Must not compute
//! statistics.

use super::effects::{Effect, EffectResult, result_of};
use super::variant::VariantFacts;
use crate::time_difference::{TimeDifference, TimeStatistic};
use intact_experiment::differing;
use intact_ledger::Run;
use std::collections::BTreeMap;

type Axes = BTreeMap<String, String>;

/// Axes that are the load, and no remedy.
const LOAD: [&str; 5] = ["c", "rate", "arrivals", "when-busy", "idle"];
/// Axes that a baseline may have at any value: the first one of the run.
const PROTOCOL: [&str; 4] = ["http", "tls", "streams", "congestion"];

/// A remedy: its axis, its value where only one is a remedy, what it is called, and its risk.
struct Remedy {
    axis: &'static str,
    value: Option<&'static str>,
    name: &'static str,
    risk: &'static str,
}

const fn remedy(
    axis: &'static str,
    value: Option<&'static str>,
    name: &'static str,
    risk: &'static str,
) -> Remedy {
    Remedy {
        axis,
        value,
        name,
        risk,
    }
}

/// The remedies, in the order in which a combination names them.
const REMEDIES: [Remedy; 14] = [
    remedy(
        "keepalive",
        Some("on"),
        "keep-alive",
        "a request can meet the server's close (stale reuse), and stays with one server behind a balancer",
    ),
    remedy(
        "cache",
        Some("revalidate"),
        "revalidation",
        "an ETag that stays when the content changes makes the client use a stale response",
    ),
    remedy(
        "reuse",
        None,
        "reuse",
        "every connection that ends costs a setup",
    ),
    remedy(
        "max-age",
        None,
        "max-age",
        "every connection that ends costs a setup",
    ),
    remedy(
        "http",
        Some("2"),
        "HTTP/2",
        "the end of one connection, or a lost packet, affects all its requests",
    ),
    remedy(
        "http",
        Some("3"),
        "HTTP/3",
        "networks may block UDP, so a client needs TCP as well",
    ),
    remedy(
        "tls",
        Some("1.3"),
        "TLS 1.3",
        "boxes that inspect TLS may refuse it",
    ),
    remedy(
        "resume",
        Some("on"),
        "resumption",
        "a ticket links a client's connections, and who has the ticket key reads resumed TLS 1.2",
    ),
    remedy(
        "early-data",
        Some("on"),
        "0-RTT",
        "an attacker can replay the first request: safe methods only, and no side effects of GET",
    ),
    remedy(
        "tcp-fastopen",
        Some("on"),
        "TCP Fast Open",
        "the network may deliver the first data twice, and some boxes drop such a SYN",
    ),
    remedy(
        "dns",
        Some("cached"),
        "cached lookups",
        "the client follows a failover only after the TTL",
    ),
    remedy(
        "congestion",
        None,
        "congestion",
        "may take a larger share of a link than other flows get",
    ),
    remedy(
        "tcp-keepalive",
        None,
        "TCP keep-alive",
        "traffic while idle; it shows that a host is there, not that its program responds",
    ),
    remedy(
        "ping",
        None,
        "PING",
        "traffic while idle; servers end connections that send too many (ENHANCE_YOUR_CALM)",
    ),
];

/// The remedy that this value of an axis is.
fn remedy_of(axis: &str, value: &str) -> Option<&'static Remedy> {
    let mut all = REMEDIES.iter();
    all.find(|one| one.axis == axis && one.value.is_none_or(|wanted| wanted == value))
}

/// For each variant with a baseline other than itself, the two indices; empty where the run has no
/// baseline, or no remedy other than keep-alive.
pub(super) fn pairs(run: &Run) -> Vec<(usize, usize)> {
    let is_about_remedies = run.variants.iter().any(|one| {
        let mut axes = one.axes.iter();
        let known = |axis: &str| axis == "keepalive" || PROTOCOL.contains(&axis);
        axes.any(|(axis, value)| !known(axis) && value != "off" && remedy_of(axis, value).is_some())
    });
    if !is_about_remedies {
        return Vec::new();
    }
    let axes = |index: usize| &run.variants[index].axes;
    let all = 0..run.variants.len();
    let pairs = all.clone().filter_map(|index| {
        let mut candidates = all.clone();
        let baseline = candidates
            .find(|&other| is_bare(axes(other)) && has_same_load(axes(other), axes(index)))?;
        (baseline != index).then_some((baseline, index))
    });
    pairs.collect()
}

/// Whether these settings have no remedy.
fn is_bare(axes: &Axes) -> bool {
    let mut axes = axes.iter();
    let known = |axis: &str| PROTOCOL.contains(&axis);
    !axes.any(|(axis, value)| !known(axis) && value != "off" && remedy_of(axis, value).is_some())
}

fn has_same_load(a: &Axes, b: &Axes) -> bool {
    LOAD.iter().all(|axis| a.get(*axis) == b.get(*axis))
}

/// The axes in which `b` has another setting than `a`, in the order of the remedies, with their
/// values.
fn changed<'a>(a: &Axes, b: &'a Axes) -> Vec<(String, &'a str)> {
    let mut axes: Vec<(String, &str)> = differing(b, a)
        .into_iter()
        .filter_map(|axis| {
            let value = b.get(&axis)?;
            Some((axis, value.as_str()))
        })
        .collect();
    let place = |axis: &str| REMEDIES.iter().position(|one| one.axis == axis);
    axes.sort_by_key(|(axis, _)| place(axis).unwrap_or(usize::MAX));
    axes
}

/// What `b` has that `a` does not, such as `keep-alive + HTTP/2`.
/// What never acted is not among them, unless nothing did.
pub(super) fn names(run: &Run, (a, b): (usize, usize), inactive: &[(&str, &str)]) -> String {
    let (a, b) = (&run.variants[a].axes, &run.variants[b].axes);
    let is_inactive = |axis: &str| inactive.iter().any(|(one, _)| *one == axis);
    let mut changed = changed(a, b);
    if !changed.iter().all(|(axis, _)| is_inactive(axis)) {
        changed.retain(|(axis, _)| !is_inactive(axis));
    }
    let names = changed.into_iter().map(|(axis, value)| {
        match remedy_of(&axis, value).filter(|one| one.value.is_some()) {
            Some(remedy) => remedy.name.to_owned(),
            None => format!("{axis}={value}"),
        }
    });
    let names: Vec<String> = names.collect();
    match names.is_empty() {
        true => "nothing (the baseline again)".to_owned(),
        false => names.join(" + "),
    }
}

/// What each variant saves against the baseline of its load: those that were shown first, the
/// largest share first.
pub(super) fn effects(
    run: &Run,
    variants: &[VariantFacts],
    comparisons: &[TimeDifference],
) -> Vec<Effect> {
    let typical = comparisons
        .iter()
        .filter(|one| one.statistic == TimeStatistic::Typical);
    let of_pair = |pair: (usize, usize)| typical.clone().find(|one| one.indices == pair);
    let compared = pairs(run)
        .into_iter()
        .filter_map(|pair| Some((pair, of_pair(pair)?)));
    let effects = compared.map(|((a, b), one)| {
        let load = LOAD.iter().filter_map(|&axis| {
            let value = run.variants[b].axes.get(axis)?;
            (axis == "c" || run.varied.iter().any(|varied| varied == axis)).then(|| match axis {
                "c" => format!("-c {value}"),
                _ => format!("{axis}={value}"),
            })
        });
        let inactive = inactive(&variants[b]);
        let axes = [a, b].map(|index| &run.variants[index].axes);
        let names = names(run, (a, b), &inactive);
        let changed = changed(axes[0], axes[1]);
        let acted = |axis: &str| inactive.iter().all(|(one, _)| *one != axis);
        let result = match changed.iter().any(|(axis, _)| acted(axis)) || changed.is_empty() {
            true => result_of(one, &variants[b]),
            false => EffectResult::NothingActed,
        };
        Effect {
            at: load.collect::<Vec<String>>().join(" "),
            risks: risks(axes[0], axes[1]),
            inactive: inactive.into_iter().map(|(_, words)| words).collect(),
            ..Effect::new(names, result, one)
        }
    });
    effects.collect()
}

/// The risk of each remedy that `b` has in addition.
fn risks(a: &Axes, b: &Axes) -> BTreeMap<&'static str, &'static str> {
    let remedies = changed(a, b).into_iter();
    remedies
        .filter_map(|(axis, value)| remedy_of(&axis, value))
        .map(|one| (one.name, one.risk))
        .collect()
}

/// What the variant was to do, and never did: the axis, and words.
pub(super) fn inactive(variant: &VariantFacts) -> Vec<(&'static str, &'static str)> {
    let mut inactive = Vec::new();
    if variant.keepalive && variant.counted.requests.ok > 0 && variant.counted.reused == 0 {
        inactive.push(("keepalive", "no request reused a connection"));
    }
    if variant.resume && variant.resumed_share.value() == Some(0.0) {
        inactive.push(("resume", "no session was resumed"));
    }
    if let Some(why) = early_data_unused(variant) {
        inactive.push(("early-data", why));
    }
    if variant.not_modified_share == Some(0.0) {
        inactive.push(("cache", "no response was 304 (Not Modified)"));
    }
    inactive
}

/// Why no request was early data that the server accepted, where some were to be.
pub(super) fn early_data_unused(variant: &VariantFacts) -> Option<&'static str> {
    if variant.early_data_share != Some(0.0) {
        return None;
    }
    Some(
        match (variant.tls.as_deref(), variant.resumed_share.value()) {
            (Some("1.2"), _) => "TLS 1.2 has no early data",
            (_, Some(resumed)) if resumed > 0.0 => {
                "sessions were resumed, but no early data was accepted: the server's tickets do not allow it, or it refused it"
            }
            _ => "no session was resumed, so no early data could be sent",
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::{Producer, Vantage, Variant};

    fn axes(words: &str) -> Axes {
        let pairs = words.split(' ').filter_map(|word| word.split_once('='));
        pairs
            .map(|(axis, value)| (axis.to_owned(), value.to_owned()))
            .collect()
    }

    fn run(variants: &[&str]) -> Run {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
        let variants = variants.iter();
        run.variants = variants
            .map(|words| Variant {
                name: (*words).to_owned(),
                axes: axes(words),
            })
            .collect();
        run
    }

    #[test]
    fn a_remedy_is_compared_with_the_bare_variant_of_its_load() {
        let run = run(&[
            "c=1 http=1.1 keepalive=off resume=off",
            "c=1 http=1.1 keepalive=off resume=on early-data=off",
            "c=1 http=2 keepalive=on resume=on early-data=on",
            "c=9 http=1.1 keepalive=on resume=on",
            "c=9 http=2 keepalive=off resume=off",
        ]);
        assert_eq!(pairs(&run), [(0, 1), (0, 2), (4, 3)]);
        let all = "keep-alive + HTTP/2 + resumption + 0-RTT";
        assert_eq!(names(&run, (0, 1), &[]), "resumption");
        assert_eq!(names(&run, (0, 2), &[]), all);
        // what never acted is credited with nothing
        let inactive = [("early-data", "TLS 1.2 has no early data")];
        let acted = "keep-alive + HTTP/2 + resumption";
        assert_eq!(names(&run, (0, 2), &inactive), acted);
        let risks = risks(&run.variants[0].axes, &run.variants[2].axes);
        assert_eq!(risks.len(), 4);
        assert!(risks["0-RTT"].contains("replay"));
    }

    #[test]
    fn a_run_of_keep_alive_and_versions_has_no_table_of_remedies() {
        let run = run(&[
            "c=1 http=1.1 keepalive=off resume=off",
            "c=1 http=2 keepalive=on resume=off",
        ]);
        assert!(pairs(&run).is_empty());
    }

    #[test]
    fn each_setting_that_can_be_a_remedy_has_a_risk() {
        for (axis, value) in [
            ("keepalive", "on"),
            ("cache", "revalidate"),
            ("reuse", "10"),
            ("max-age", "5s"),
            ("http", "3"),
            ("resume", "on"),
            ("early-data", "on"),
            ("tcp-fastopen", "on"),
            ("dns", intact_experiment::NameLookup::Cached.as_str()),
            ("congestion", "bbr"),
            ("tcp-keepalive", "5s"),
            ("ping", "5s"),
        ] {
            assert!(!remedy_of(axis, value).unwrap().risk.is_empty());
        }
        assert!(remedy_of("keepalive", "off").is_none());
        assert!(remedy_of("http", "1.1").is_none());
        assert!(remedy_of("cache", "off").is_none());
    }
}
