//! The page of a check: the profile of a server, its limits, and what to set clients to.

mod drain;
mod limits;
mod protocol;
mod versions;

use super::common::{findings_in_full, method, page as start};
use crate::page::*;
use intact_document::grouping::grouped;
use intact_ledger::Run;
use intact_servers::check::{Address, CheckFacts};
use intact_units::Quantity::{Time, Timer};
use limits::{below, limits};
use protocol::{http2, http3, tls, waterfall};
use versions::versions;

/// A check, as findings understand it.
#[derive(Clone, Copy)]
pub struct CheckRun<'a> {
    /// The header of its ledger.
    pub run: &'a Run,
    /// Its facts.
    pub facts: &'a CheckFacts,
}

/// Which part of the page is wanted: the limits of a connection take a while to measure.
#[derive(Clone, Copy)]
pub enum CheckPart<'a> {
    /// All of it.
    All,
    /// What a few requests show.
    Early,
    /// What follows a page that was made of these facts.
    Rest(&'a CheckFacts),
}

/// The page, or a part of it.
pub fn page<'a>(one: CheckRun<'a>, part: CheckPart<'_>) -> Page<'a> {
    let CheckRun { run, facts } = one;
    let target = facts.target.as_ref();
    let mut page = start(run, facts, || {
        target.map_or_else(String::new, |target| target.url.clone())
    });
    if let Some(target) = target {
        page.subject.clone_from(&target.url);
    }
    page.headline = headline(facts);
    let is_known = |said: &str| match part {
        CheckPart::Rest(known) => known.verdict.sentences().any(|one| one == said),
        CheckPart::All | CheckPart::Early => false,
    };
    // a sentence that a known one begins goes on from there
    let further = |said: &'a str| match said.split_once(": ") {
        Some((known, rest)) if is_known(known) => rest,
        _ => said,
    };
    let verdict = facts.verdict.sentences().filter(|said| !is_known(said));
    page.verdict = verdict.map(further).map(sentence).collect();
    page.facts(totals(facts, part));
    page.intro = intro(facts);
    // a failed first request is the verdict itself
    let found = match target {
        Some(target) if target.failed.is_some() => &[][..],
        _ => &facts.findings,
    };
    let own = facts
        .findings
        .first()
        .map_or("", |finding| finding.subject.as_str());
    // the findings need all limits
    if !matches!(part, CheckPart::Early) {
        // the limits are the verdict in figures
        page.section(limits(facts));
        page.section(findings_in_full(found, own));
        page.section(facts.drain.as_ref().map(drain::requests));
        page.section(facts.drain.as_ref().map(drain::connections));
    }
    if !matches!(part, CheckPart::Rest(_)) {
        page.section(versions(facts));
        page.section(waterfall(facts));
        page.section(tls(facts));
        page.section(facts.http2.as_ref().map(http2));
        page.section(facts.http3.as_ref().and_then(http3));
        page.section(state(facts));
        page.section(names(facts));
    }
    if matches!(part, CheckPart::Early) {
        page.caveats.clear();
        return page;
    }
    page.section(settings(facts));
    page.section(skipped(facts));
    let details = page
        .intro
        .iter()
        .map(|line| ("First request", line.clone()));
    page.method = Some(method(run, &how(facts), details.collect()));
    page
}

/// What a kept connection saves, or that none is kept.
fn headline(facts: &CheckFacts) -> Option<Headline> {
    if let Some(drain) = facts.drain.as_ref().filter(|_| facts.any_success()) {
        return drain::headline(drain);
    }
    match (facts.any_success(), facts.keeps()) {
        _ if facts.errors.is_all() => {
            Headline::all_failed(text!("of the responses: {}", facts.errors.names()))
        }
        // the first sentence has the reason
        (false, _) if facts.has_stopped() => None,
        (false, _) => Headline::all_failed("of the requests: the first had no response"),
        (true, Some(false)) => match facts.kept_by_version() {
            Some((not, _)) => Headline::all_failed(format!(
                "of the requests of HTTP/{not} needed a new connection"
            )),
            None => Headline::all_failed("of the requests needed a new connection"),
        },
        (true, _) => {
            let caption = "of the time of a request, on a kept connection";
            let saved = facts.phases_ms.saved_share().filter(|share| *share > 0.0)?;
            Headline::new(HeadlineShare::saved(saved), Assessment::Good, caption)
        }
    }
}

fn totals(facts: &CheckFacts, part: CheckPart<'_>) -> [Fact; 4] {
    let idle = facts.idle_timeout.as_ref();
    let limit = idle.and_then(|idle| match (idle.silent_s(), &idle.measured_s) {
        (Some(silent), _) => Some(below(silent)),
        (None, unknown) if unknown.is_unknown() => None,
        (None, limit) => Some(limit.shown(|limit| Timer(limit * 1e3).to_string())),
    });
    let limit = limit.filter(|_| facts.keeps() == Some(true));
    let status = facts.target.as_ref().and_then(|target| target.status);
    // the first part has it
    let status = status.filter(|_| !matches!(part, CheckPart::Rest(_)));
    let status = status.map(|status| format!("status {status}"));
    let counted = &facts.counted;
    let requests = match part {
        CheckPart::Early => Fact::counted_as(counted.requests.total, "request", "so far"),
        _ => Fact::counted(counted.requests.total, "request"),
    };
    [
        Fact::new("idle limit of a connection", limit),
        requests,
        Fact::counted_as(counted.connections.opened, "connection", "opened"),
        Fact::new("in the first response", status),
    ]
}

/// The circumstances of the first request.
fn intro(facts: &CheckFacts) -> Vec<Text> {
    let Some(target) = &facts.target else {
        return Vec::new();
    };
    let server = target
        .server
        .as_ref()
        .map(|server| text!("Server: {}", server));
    let followed = target
        .followed
        .iter()
        .map(|hop| text!("followed: {} to {}", hop.status.to_string(), &hop.to));
    let cut = (target.status.is_some() && !target.is_complete())
        .then(|| Text::plain("The response was not complete"));
    let by_head = target
        .by_head
        .then(|| Text::plain("later requests used HEAD because the body is large"));
    server
        .into_iter()
        .chain(followed)
        .chain(cut)
        .chain(by_head)
        .collect()
}

/// Addresses of the name, asked of the system and of name servers.
fn names(facts: &CheckFacts) -> Option<Section> {
    let names = facts.names.as_ref()?;
    let system = Address {
        kind: "both".to_owned(),
        server: "getaddrinfo".to_owned(),
        lookup_ms: names.lookup_ms.unwrap_or_default(),
        addresses: names.addresses.clone(),
        ttl_s: None,
        aliases: Vec::new(),
        error: names.error.clone(),
    };
    let rows: Vec<&Address> = std::iter::once(&system).chain(&names.asked).collect();
    let table = Rows::of(&rows)
        .column("asked", |one| &one.server)
        .column("for", |one| &one.kind)
        .column("took", |one| Time(one.lookup_ms))
        .column("TTL", |one| {
            one.ttl_s.map(|ttl| Timer(f64::from(ttl) * 1e3))
        })
        .about("the smallest on the way")
        .column("addresses", |one| {
            let addresses: Vec<String> = one.addresses.iter().map(ToString::to_string).collect();
            match &one.error {
                Some(error) => error.clone(),
                None if addresses.is_empty() => "no address".to_owned(),
                None => addresses.join(", "),
            }
        })
        .ranked(1, "by way of", |one| one.aliases.join(", "));
    let section = Section::new("names", text!("Name {}", &names.name));
    let is_found = rows.iter().all(|one| one.error.is_none());
    Some(section.detail_if(is_found).summary(table.table()))
}

fn state(facts: &CheckFacts) -> Option<Section> {
    let state = facts.state.as_ref()?;
    let parts = [
        ("cookies", &state.cookies),
        ("authentication", &state.authentication),
        ("differs between connections", &state.affinity),
    ];
    let parts = parts.into_iter().filter(|(_, names)| !names.is_empty());
    let parts = parts.map(|(what, names)| (what, Text::plain(names.join(", "))));
    let title = "State that ties a client to a connection or a server";
    Some(Section::new("state", title).summary(Block::Facts(parts.collect())))
}

fn settings(facts: &CheckFacts) -> Section {
    let table = Rows::of(&facts.settings)
        .column("client", |one| one.client)
        .column("option", |one| &one.option)
        .table();
    Section::new("settings", "Client settings for this idle limit").summary(table)
}

/// Probes that did not run; those with one reason together.
fn skipped(facts: &CheckFacts) -> Section {
    let skipped = facts.skipped.iter();
    let reasons = grouped(skipped.map(|one| (&one.why, one.probe.as_str())));
    let lines = reasons
        .iter()
        .map(|(why, probes)| note(sentence(&format!("{}: {why}", probes.join(", ")))));
    Section::new("skipped", "Not probed")
        .weighing(Weight::Detail)
        .summary(lines.collect::<Vec<Block>>())
}

fn how(facts: &CheckFacts) -> Vec<Text> {
    if facts.drain.is_some() {
        return vec![Text::plain(drain::HOW)];
    }
    vec![
        Text::plain(
            "Probes ran one after the other, each on connections of its own, within a budget that was printed first. Idle time runs from the kernel's receive \
             timestamp of the last byte of a response to that of the server's end. A limit that was not reached is a lower bound.",
        ),
        Text::plain(
            "The report shows the median of five or ten samples. Percentiles would need more samples.",
        ),
    ]
}
