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
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

type Axes = BTreeMap<String, String>;

/// Axes that are the load, and no remedy.
const LOAD: [&str; 5] = ["c", "rate", "arrivals", "when-busy", "idle"];
/// Axes that a baseline may have at any value: the first one of the run.
const PROTOCOL: [&str; 4] = ["http", "tls", "streams", "congestion"];

/// A remedy.
#[derive(Clone, Copy)]
struct Remedy {
    axis: &'static str,
    /// The value of the axis, where only one is a remedy.
    value: Option<&'static str>,
    name: &'static str,
    risk: &'static str,
    /// What shows that it acted; absent where nothing counts that.
    sign: Option<Sign>,
    /// The value of the axis in the variant that it is compared with; absent: the baseline.
    against: Option<&'static str>,
}

/// What shows that a remedy acted.
#[derive(Clone, Copy)]
struct Sign {
    /// How often, of how many times: of a variant, and what it is compared with.
    count: fn(&VariantFacts, &VariantFacts) -> Option<(u64, u64)>,
    /// What was counted.
    what: &'static str,
    /// Why it never acted.
    never: fn(&VariantFacts) -> &'static str,
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
        sign: None,
        against: None,
    }
}

impl Remedy {
    const fn counted(
        self,
        what: &'static str,
        never: fn(&VariantFacts) -> &'static str,
        count: fn(&VariantFacts, &VariantFacts) -> Option<(u64, u64)>,
    ) -> Remedy {
        let sign = Some(Sign { count, what, never });
        Remedy { sign, ..self }
    }

    const fn against(self, value: &'static str) -> Remedy {
        let against = Some(value);
        Remedy { against, ..self }
    }

    /// How often it acted in `variant`, compared with `reference`; absent where that is not known.
    fn acted(&self, variant: &VariantFacts, reference: &VariantFacts) -> Option<Acted> {
        let sign = self.sign?;
        let (times, of) = (sign.count)(variant, reference)?;
        (of > 0).then_some(Acted {
            remedy: self.name,
            times,
            of,
            what: sign.what,
        })
    }
}

/// How often a remedy acted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Acted {
    /// The remedy.
    pub remedy: &'static str,
    /// How often it acted.
    pub times: u64,
    /// How often it could have.
    pub of: u64,
    /// What was counted.
    pub what: &'static str,
}

fn complete(variant: &VariantFacts) -> Option<(u64, u64)> {
    let requests = &variant.counted.requests;
    Some((requests.ok, requests.total))
}

/// The remedies, in the order in which a combination names them.
const REMEDIES: [Remedy; 16] = [
    remedy(
        "keepalive",
        Some("on"),
        "keep-alive",
        "a request can meet the server's close (stale reuse), and stays with one server behind a balancer",
    )
    .counted(
        "requests reused",
        |_| "no request reused a connection",
        |variant, _| Some((variant.counted.reused, variant.counted.requests.ok)),
    ),
    remedy(
        "cache",
        Some("revalidate"),
        "revalidation",
        "an ETag that stays when the content changes makes the client use a stale response",
    )
    .counted(
        "responses 304",
        |_| "no response was 304 (Not Modified)",
        |variant, _| variant.not_modified,
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
    )
    .counted(
        "requests over HTTP/2",
        |_| "no request over HTTP/2 succeeded",
        |variant, _| complete(variant),
    ),
    remedy(
        "http",
        Some("3"),
        "HTTP/3",
        "networks may block UDP, so a client needs TCP as well",
    )
    .counted(
        "requests over HTTP/3",
        |_| "no request over HTTP/3 succeeded",
        |variant, _| complete(variant),
    ),
    remedy(
        "as-grpc",
        Some("on"),
        "gRPC",
        "needs HTTP/2 up to the server, and a generated client; no cache stores a response to POST",
    )
    .counted(
        "calls with grpc-status 0",
        |_| "no call had grpc-status 0",
        |variant, _| complete(variant),
    )
    .against("off"),
    remedy(
        "header-table",
        Some("on"),
        "header compression",
        "the length shows an attacker whether a guess of a field is right (CRIME), so secrets must not be indexed",
    )
    .counted(
        "bytes of header sections saved",
        |_| "the header sections are as long without it",
        |variant, reference| {
            let heads = |one: &VariantFacts| one.bytes_per_request.as_ref()?.heads.value();
            let (with, without) = (heads(variant)?.round(), heads(reference)?.round());
            // with another version of HTTP the header sections differ in other ways
            let is_alike = variant.http == reference.http;
            is_alike.then_some(((without - with).max(0.0) as u64, without as u64))
        },
    )
    .against("off"),
    remedy(
        "tls",
        Some("1.3"),
        "TLS 1.3",
        "boxes that inspect TLS may refuse it",
    )
    .counted(
        "handshakes of TLS 1.3",
        |_| "no handshake was of TLS 1.3",
        |variant, _| Some((variant.handshakes.of_tls13, variant.handshakes.all)),
    ),
    remedy(
        "resume",
        Some("on"),
        "resumption",
        "a ticket links a client's connections, and who has the ticket key reads resumed TLS 1.2",
    )
    .counted(
        "handshakes resumed",
        |_| "no session was resumed",
        |variant, _| Some((variant.handshakes.resumed, variant.handshakes.all)),
    ),
    remedy(
        "early-data",
        Some("on"),
        "0-RTT",
        "an attacker can replay the first request: safe methods only, and no side effects of GET",
    )
    .counted(
        "handshakes with early data",
        early_data_unused,
        |variant, _| Some((variant.handshakes.early, variant.handshakes.all)),
    ),
    remedy(
        "tcp-fastopen",
        Some("on"),
        "TCP Fast Open",
        "the network may deliver the first data twice, and some boxes drop such a SYN",
    )
    .counted(
        "connections with data in the SYN",
        |_| "no connection sent data with its SYN",
        |variant, _| Some((variant.with_syn?, variant.counted.connections.opened)),
    ),
    remedy(
        "dns",
        Some("cached"),
        "cached lookups",
        "the client follows a failover only after the TTL",
    )
    .counted(
        "connections without lookup",
        |_| "each connection had a lookup",
        |variant, _| {
            let opened = variant.counted.connections.opened;
            Some((opened.saturating_sub(variant.lookups_seen), opened))
        },
    )
    .against("per-connection"),
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

/// A variant with remedies, and what it is compared with, as indices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compared {
    pub(super) reference: usize,
    pub(super) variant: usize,
    /// The reference is no baseline: it has all settings but one.
    pub(super) is_partner: bool,
}

impl Compared {
    pub(super) fn indices(&self) -> (usize, usize) {
        (self.reference, self.variant)
    }
}

/// The variants with a remedy; empty where the run has no baseline, or no remedy other than
/// keep-alive.
pub(super) fn compared(run: &Run) -> Vec<Compared> {
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
    let compared = all.clone().filter_map(|variant| {
        let of = |is_it: &dyn Fn(&Axes) -> bool| all.clone().find(|&other| is_it(axes(other)));
        let partner = of(&|other| is_partner(other, axes(variant)));
        let baseline = of(&|other| is_bare(other) && has_same_load(other, axes(variant)))?;
        let reference = partner.unwrap_or(baseline);
        let changed = changed(axes(reference), axes(variant));
        let mut remedies = changed.iter().map(|(axis, value)| remedy_of(axis, value));
        // the baseline again, or a remedy: not the reference of another
        let has_remedy = changed.is_empty() || remedies.any(|one| one.is_some());
        (reference != variant && has_remedy).then_some(Compared {
            reference,
            variant,
            is_partner: partner.is_some(),
        })
    });
    compared.collect()
}

/// The baselines of all loads.
pub(super) fn baselines(run: &Run) -> Vec<usize> {
    let all = compared(run).into_iter().filter(|one| !one.is_partner);
    let baselines: BTreeSet<usize> = all.map(|one| one.reference).collect();
    baselines.into_iter().collect()
}

/// Whether `b` has one setting more than `a`, a remedy that is compared with `a`.
fn is_partner(a: &Axes, b: &Axes) -> bool {
    let differing = differing(b, a);
    let [axis] = &differing[..] else {
        return false;
    };
    let value = b.get(axis).map_or("", String::as_str);
    let against = remedy_of(axis, value).and_then(|one| one.against);
    against.is_some() && a.get(axis).map(String::as_str) == against
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

/// The load of a variant, where it varies, and its connections at once.
pub(super) fn load_of(run: &Run, variant: usize) -> String {
    let load = LOAD.iter().filter_map(|&axis| {
        let value = run.variants[variant].axes.get(axis)?;
        (axis == "c" || run.varied.iter().any(|varied| varied == axis)).then(|| match axis {
            "c" => format!("-c {value}"),
            _ => format!("{axis}={value}"),
        })
    });
    load.collect::<Vec<String>>().join(" ")
}

/// What each variant with a remedy saves.
pub(super) fn effects(
    run: &Run,
    variants: &[VariantFacts],
    comparisons: &[TimeDifference],
) -> Vec<Effect> {
    let typical = comparisons
        .iter()
        .filter(|one| one.statistic == TimeStatistic::Typical);
    // the last: that of the family of this table
    let of_pair = |pair: (usize, usize)| typical.clone().rfind(|one| one.indices == pair);
    let all = compared(run);
    let baseline = |load: &Axes| {
        let mut bases = all.iter().filter(|one| !one.is_partner);
        let base = bases.find(|one| has_same_load(&run.variants[one.reference].axes, load))?;
        Some(base.reference)
    };
    let effects = all.iter().filter_map(|one| {
        let difference = of_pair(one.indices())?;
        let (a, b) = one.indices();
        let inactive = inactive(&variants[b], &variants[a]);
        let axes = [a, b].map(|index| &run.variants[index].axes);
        let changed = changed(axes[0], axes[1]);
        let has_acted = |axis: &str| inactive.iter().all(|(one, _)| *one != axis);
        let result = match changed.iter().any(|(axis, _)| has_acted(axis)) || changed.is_empty() {
            true => result_of(difference, &variants[b]),
            false => EffectResult::NothingActed,
        };
        let remedies = changed
            .iter()
            .filter_map(|(axis, value)| remedy_of(axis, value));
        let acted = remedies.filter_map(|one| one.acted(&variants[b], &variants[a]));
        let with = one.is_partner.then(|| baseline(axes[1])).flatten();
        let with = with.filter(|&base| base != a);
        Some(Effect {
            at: load_of(run, b),
            with: with.map(|base| names(run, (base, a), &[])),
            risks: risks(axes[0], axes[1]),
            acted: acted.filter(|one| one.times > 0).collect(),
            inactive: inactive.iter().map(|(_, words)| *words).collect(),
            ..Effect::new(names(run, (a, b), &inactive), result, difference)
        })
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

/// What the variant was to do and the reference was not, and what never did: the axis, and words.
pub(super) fn inactive(
    variant: &VariantFacts,
    reference: &VariantFacts,
) -> Vec<(&'static str, &'static str)> {
    let changed = changed(&reference.settings, &variant.settings);
    let remedies = changed.iter().filter_map(|(axis, value)| {
        let remedy = remedy_of(axis, value)?;
        let never = remedy.acted(variant, reference)?.times == 0;
        let words = (remedy.sign?.never)(variant);
        never.then_some((remedy.axis, words))
    });
    remedies.collect()
}

/// Why no request was early data that the server accepted, where some were to be.
pub(super) fn early_data_unused(variant: &VariantFacts) -> &'static str {
    match (variant.tls.as_deref(), variant.resumed_share.value()) {
        (Some("1.2"), _) => "TLS 1.2 has no early data",
        (_, Some(resumed)) if resumed > 0.0 => {
            "sessions were resumed, but no early data was accepted: the server's tickets do not allow it, or it refused it"
        }
        _ => "no session was resumed, so no early data could be sent",
    }
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
        let pairs: Vec<_> = compared(&run).iter().map(Compared::indices).collect();
        assert_eq!(pairs, [(0, 1), (0, 2), (4, 3)]);
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
        assert!(compared(&run).is_empty());
    }

    #[test]
    fn a_remedy_of_what_another_needs_is_compared_with_that() {
        let run = run(&[
            "c=1 http=1.1 keepalive=off",
            "c=1 http=2 keepalive=off as-grpc=off",
            "c=1 http=2 keepalive=off as-grpc=on",
            "c=1 http=2 keepalive=on as-grpc=off header-table=off",
            "c=1 http=2 keepalive=on as-grpc=off header-table=on",
            // what cached lookups are compared with is no remedy
            "c=1 http=1.1 keepalive=off dns=per-connection",
            "c=1 http=1.1 keepalive=off dns=cached",
        ]);
        let all = compared(&run);
        let pairs: Vec<_> = all.iter().map(Compared::indices).collect();
        assert_eq!(pairs, [(0, 1), (1, 2), (0, 3), (3, 4), (5, 6)]);
        let partners: Vec<bool> = all.iter().map(|one| one.is_partner).collect();
        assert_eq!(partners, [false, true, false, true, true]);
        assert_eq!(names(&run, (1, 2), &[]), "gRPC");
        assert_eq!(names(&run, (3, 4), &[]), "header compression");
        assert_eq!(names(&run, (0, 5), &[]), "dns=per-connection");
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
            ("header-table", "on"),
            ("as-grpc", "on"),
        ] {
            assert!(!remedy_of(axis, value).unwrap().risk.is_empty());
        }
        assert!(remedy_of("keepalive", "off").is_none());
        assert!(remedy_of("http", "1.1").is_none());
        assert!(remedy_of("cache", "off").is_none());
    }
}
