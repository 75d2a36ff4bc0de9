//! The page of a check: the profile of a server, its limits, and what to set clients to.

mod drain;

use super::common::{caveats, findings_in_full, method, page as start, sentences};
use super::populations::{phase_words, segments};
use crate::json;
use crate::page::*;
use intact_findings::check::{
    Address, CheckFacts, CloseFacts, Http2Facts, Http3Facts, OldTls, PHASES, RaceAttempt,
    RaceFacts, Resumption, SmallSample, TlsFacts, VersionFacts,
};
use intact_ledger::server_profile::EarlyData;
use intact_ledger::{Failure, Handshake, Run};
use intact_units::Quantity::{Count, Time, Timer};
use intact_units::plural::counted;
use std::collections::BTreeMap;

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
    let mut page = start(run, || {
        target.map_or_else(String::new, |target| target.url.clone())
    });
    if let Some(target) = target {
        page.subject.clone_from(&target.url);
    }
    page.headline = headline(facts);
    let is_new = |sentence: &&String| match part {
        CheckPart::Rest(known) => !known.verdict.contains(sentence),
        CheckPart::All | CheckPart::Early => true,
    };
    let verdict: Vec<String> = facts.verdict.iter().filter(is_new).cloned().collect();
    page.verdict = sentences(&verdict);
    page.facts = totals(facts);
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
        return page;
    }
    page.section(settings(facts));
    page.section(skipped(facts));
    page.caveats = caveats(&facts.caveats);
    let details = page
        .intro
        .iter()
        .map(|line| ("First request", line.clone()));
    page.method = Some(method(run, &how(facts), details.collect()));
    page.files = vec![File::json("check.json", "everything as JSON", move || {
        json::check(run, facts)
    })];
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
        (true, Some(false)) => Headline::all_failed("of the requests needed a new connection"),
        (true, _) => {
            let caption = "of the time of a request, on a kept connection";
            let saved = facts.phases_ms.saved_share().filter(|share| *share > 0.0)?;
            Headline::new(HeadlineShare::saved(saved), Assessment::Good, caption)
        }
    }
}

fn totals(facts: &CheckFacts) -> Vec<Fact> {
    let idle = facts.idle_timeout.as_ref();
    let limit = idle.and_then(|idle| match (idle.measured_s, idle.at_least_s) {
        _ if idle.silent_s().is_some() => idle.silent_s().map(below),
        (Some(limit), _) => Some(Timer(limit * 1e3).to_string()),
        (None, least) => least.map(|limit| format!("≥ {}", Timer(limit * 1e3))),
    });
    let limit = limit.filter(|_| facts.keeps() == Some(true));
    let status = facts.target.as_ref().and_then(|target| target.status);
    let status =
        status.map(|status| Fact::new("in the first response", format!("status {status}")));
    [
        limit.map(|limit| Fact::new("idle limit of a connection", limit)),
        Some(Fact::counted(facts.requests.total, "request")),
        Some(Fact::counted_as(
            facts.connections.opened,
            "connection",
            "opened",
        )),
        status,
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A limit that is shorter than this idle time, after which there was no response.
fn below(idle_s: f64) -> String {
    format!("< {}", Timer(idle_s * 1e3))
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
    Some(Section::new("names", text!("Name {}", &names.name)).summary(table.table()))
}

/// One version of HTTP over the versions of TLS in which it was the same; at least one.
struct EqualVersions<'a>(Vec<&'a VersionFacts>);

impl<'a> EqualVersions<'a> {
    fn of(versions: impl Iterator<Item = &'a VersionFacts>) -> Vec<EqualVersions<'a>> {
        let shown = |one: &VersionFacts| {
            let fields = [one.connection.clone(), one.keep_alive.clone()];
            (one.name(), reused(one), one.curl, fields)
        };
        let mut rows: Vec<EqualVersions<'a>> = Vec::new();
        for one in versions {
            match rows.iter_mut().find(|row| shown(row.first()) == shown(one)) {
                Some(row) => row.0.push(one),
                None => rows.push(EqualVersions(vec![one])),
            }
        }
        rows
    }

    fn first(&self) -> &'a VersionFacts {
        self.0[0]
    }

    /// What each has, in order.
    fn joined(&self, what: impl Fn(&'a VersionFacts) -> Option<&'a str>) -> Option<String> {
        let all: Vec<&str> = self.0.iter().filter_map(|one| what(one)).collect();
        (!all.is_empty()).then(|| all.join(", "))
    }
}

/// HTTP and TLS versions, and whether a connection survives other methods.
fn versions(facts: &CheckFacts) -> Section {
    // a TLS version that the server refuses takes one line, not one for each version of HTTP
    let is_refused = |tls: Option<&'static str>| {
        let mut all = facts.versions.iter().filter(|one| one.tls == tls);
        tls.is_some() && all.all(|one| one.failed == Some(Failure::TlsVersion.id()))
    };
    let shown = facts.versions.iter().filter(|one| !is_refused(one.tls));
    let shown = EqualVersions::of(shown);
    let table = Rows::of(&shown)
        .column("HTTP", |all| all.first().name())
        .column("TLS", |all| all.joined(|one| one.tls))
        .column("reused", |all| {
            let one = all.first();
            Cell::from(reused(one)).alarm_if(one.reused == Some(false) && one.http != "1.0")
        })
        .about("the server responded to a second request on the same connection")
        .ranked(1, "curl says", |all| all.first().curl)
        .about("after the first response")
        .ranked(2, "Connection", |all| all.first().connection.as_ref())
        .about("as sent")
        .ranked(3, "Keep-Alive", |all| all.first().keep_alive.as_ref())
        .about("as sent")
        .full("cipher", |all| all.joined(|one| one.cipher.as_deref()))
        .table();
    let mut refused: Vec<&str> = facts.versions.iter().filter_map(|one| one.tls).collect();
    refused.retain(|tls| {
        facts
            .versions
            .iter()
            .any(|one| one.tls == Some(*tls) && is_refused(one.tls))
    });
    refused.dedup();
    let refused = refused
        .into_iter()
        .map(|tls| note(text!("TLS {} offered: refused", tls)));
    let older = offered(&facts.tls_older);
    let over_quic = facts.http3.as_ref().filter(|_| facts.drain.is_none());
    let survives = Rows::of(&facts.methods)
        .column("request", |one| &one.what)
        .column("status", |one| one.status.map(|status| status.to_string()))
        .column("connection after it", |one| {
            let word = match one.kept {
                Some(true) => "kept",
                Some(false) => "closed",
                None => one.failed.unwrap_or("no response"),
            };
            Cell::from(word).alarm_if(one.kept == Some(false))
        })
        .table()
        .caption("After other methods and statuses");
    Section::new(
        "versions",
        "Versions: does a second request reuse the connection?",
    )
    .summary(table)
    .summary(
        over_quic
            .map(alt_svc)
            .into_iter()
            .chain(refused)
            .chain(older)
            .collect::<Vec<Block>>(),
    )
    .summary(survives)
}

/// The old versions of TLS, those with one result together.
fn offered(old: &[OldTls]) -> Vec<Block> {
    let mut results: Vec<(String, Vec<&str>)> = Vec::new();
    for one in old {
        let result = match one.accepted {
            Some(true) => "accepted",
            Some(false) => "refused",
            None => "no response",
        };
        let detail = one.detail.as_ref();
        let detail = detail.map_or_else(String::new, |detail| format!(" ({detail})"));
        let result = format!("{result}{detail}");
        match results.iter_mut().find(|(other, _)| *other == result) {
            Some((_, versions)) => versions.push(one.version),
            None => results.push((result, vec![one.version])),
        }
    }
    let notes = results
        .into_iter()
        .map(|(result, versions)| note(text!("TLS {} offered: {}", versions.join(", "), result)));
    notes.collect()
}

/// The announcement of HTTP/3: whether it works.
fn alt_svc(seen: &Http3Facts) -> Block {
    let port = format!("UDP port {}", seen.port);
    let at = match &seen.host {
        Some(host) => format!("{port} of {host}"),
        None => port,
    };
    let result = match (seen.works, seen.is_blocked, seen.failed) {
        (Some(true), ..) => format!("h3 works{}", observed(seen)),
        (_, Some(true), failed) => format!("h3 is blocked ({})", failed.unwrap_or("no response")),
        (Some(false), _, failed) => format!("h3 fails ({})", failed.unwrap_or("no response")),
        (None, ..) => "not tried: this build has no HTTP/3 (feature http3)".to_owned(),
    };
    let announcement = match seen.announced {
        Some(_) => "Alt-Svc announces h3 on",
        None => "Alt-Svc does not announce h3; on",
    };
    note(text!("{} {}: {}", announcement, at, result))
}

/// What the connections of HTTP/3 showed, in words.
fn observed(seen: &Http3Facts) -> String {
    let first = seen.connections.first();
    let setup = first.and_then(|first| first.setup_ms);
    let setup = setup.map(|setup| format!(", setup {}", Time(setup)));
    let responses = seen.responses.zip(seen.wanted);
    let responses = responses.map(|(responses, wanted)| {
        let requests = counted(u64::from(wanted), "request");
        format!(", {responses} responses to {requests} on one connection")
    });
    let resumed = match seen.resumed {
        Some(true) => ", a second connection resumed the session",
        Some(false) => ", the session was not resumed",
        None => ", resumption was not observed",
    };
    let early = match seen.early_data {
        Some(EarlyData::Accepted) => ", 0-RTT was accepted",
        Some(EarlyData::Rejected) => ", 0-RTT was rejected",
        Some(EarlyData::NotOffered) => ", the ticket does not allow 0-RTT",
        // without resumption there is none
        None if seen.resumed == Some(false) => "",
        None => ", 0-RTT was not observed",
    };
    [
        setup.unwrap_or_default(),
        responses.unwrap_or_default(),
        resumed.to_owned(),
        early.to_owned(),
    ]
    .concat()
}

/// Whether the connection was reused, or why there was nothing to reuse.
fn reused(one: &VersionFacts) -> &'static str {
    let not_supported = [Failure::TlsAlpn, Failure::TlsVersion].map(Failure::id);
    match (one.reused, one.failed) {
        (Some(true), _) => "yes",
        (Some(false), _) => "no",
        (None, Some(kind)) if not_supported.contains(&kind) => "not supported",
        (None, Some(_)) if one.http == "2" && one.tls.is_none() => "not supported",
        (None, Some(kind)) => kind,
        (None, None) => "",
    }
}

type Phases = BTreeMap<&'static str, f64>;

/// The first request on a connection and the next ones.
fn waterfall(facts: &CheckFacts) -> Section {
    let all = &facts.phases_ms;
    let rows = [
        ("first request", &all.median_request.fresh),
        ("next requests", &all.median_request.reused),
    ];
    let rows: Vec<(&str, &Phases)> = rows.into_iter().filter(|row| !row.1.is_empty()).collect();
    let mut table = Rows::of(&rows).column("", |row| row.0);
    for phase in PHASES.into_iter().filter(|phase| *phase != "without_setup") {
        let (head, meaning) = match phase {
            "total" => ("total", "with setup"),
            phase => phase_words(phase),
        };
        table = table
            .column(head, move |row| row.1.get(phase).copied().map(Time))
            .about(meaning);
    }
    let bars = rows.iter().map(|(name, phases)| {
        let parts = PHASES
            .iter()
            .filter(|phase| !matches!(**phase, "total" | "without_setup"));
        let total = phases.get("total").copied();
        Bar {
            name: (*name).to_owned(),
            words: total.map_or_else(String::new, |total| Time(total).to_string()),
            parts: segments(parts.filter_map(|phase| Some((*phase, *phases.get(phase)?)))),
            interval: None,
        }
    });
    let bars = Bars(bars.collect());
    let words = "The request whose total is the median: one on a new connection, and one of those on the same connections after that. A kept connection saves what only the first request waits for.";
    let taken = |phases: &BTreeMap<&str, Option<SmallSample>>| {
        let total = phases.get("total").and_then(Option::as_ref);
        total.map_or(0, |few| few.count)
    };
    let title = match (taken(&all.fresh), taken(&all.reused)) {
        (first, 0) => text!(
            "One request, phase by phase (the median of {} first ones)",
            first
        ),
        (first, next) => text!(
            "One request, phase by phase (the median of {} first and of {} next ones)",
            first,
            next
        ),
    };
    Section::new("waterfall", title)
        .summary(table.table())
        .summary(Chart::new("waterfall", "Where the time goes", bars, words))
        .full(handshakes(facts))
}

/// The resumption that was tried with a TLS version.
fn resumption<'a>(facts: &'a CheckFacts, version: &str) -> Option<&'a Resumption> {
    facts.resumption.iter().find(|one| one.version == version)
}

/// The time of a handshake, in full and resumed.
fn handshakes(facts: &CheckFacts) -> Chart {
    let bar = |name: String, tone, ms| Bar::whole(name, tone, ms, Time(ms).to_string());
    let mut bars = Vec::new();
    for tls in &facts.tls {
        bars.push(bar(
            format!("TLS {}", tls.version),
            Tone::Fresh,
            tls.handshake_ms,
        ));
        if let Some(again) = resumption(facts, tls.version).filter(|again| again.accepted) {
            let name = format!("TLS {} resumed", tls.version);
            bars.push(bar(name, Tone::Reused, again.handshake_ms));
        }
    }
    let words = "One handshake of each kind, without the setup of TCP.";
    Chart::new("handshakes", "Time of a TLS handshake", Bars(bars), words)
}

fn tls(facts: &CheckFacts) -> Section {
    let early = |one: &TlsFacts| match resumption(facts, one.version)?.early_data? {
        EarlyData::Accepted => Some("accepted"),
        EarlyData::Rejected => Some("rejected"),
        EarlyData::NotOffered => Some("not offered"),
    };
    let table = Rows::of(&facts.tls)
        .column("TLS", |one| one.version)
        .column("full", |one| Time(one.handshake_ms))
        .about("handshake")
        .column("resumed", |one| match resumption(facts, one.version) {
            Some(again) if again.accepted => Cell::from(Time(again.handshake_ms)),
            Some(_) => Cell::from("refused"),
            None => Cell::default(),
        })
        .about("handshake of a second connection")
        .column("0-RTT", early)
        .about("a request in the first flight")
        .ranked(2, "tickets", |one| one.tickets.map(u64::from))
        .about("until the first response")
        .ranked(1, "first bytes", |one| one.to_first_response_ms.map(Time))
        .about("from our hello to the first bytes of the server")
        .ranked(1, "rest", |one| one.rest_ms.map(Time))
        .about("our checks, and with TLS 1.2 another round trip")
        .table();
    let certificates = facts.tls.iter().map(|one| {
        let cipher = one.cipher.as_deref().unwrap_or("cipher unknown");
        let certificates = counted(u64::from(one.certificates), "certificate");
        note(text!(
            "TLS {}: {}, {} of {} bytes",
            one.version,
            cipher,
            certificates,
            one.chain_bytes
        ))
    });
    Section::new("tls", "TLS")
        .summary(table)
        .summary(certificates.collect::<Vec<Block>>())
}

fn http2(http2: &Http2Facts) -> Section {
    let settings = http2
        .settings
        .iter()
        .map(|(name, value)| format!("{name} {}", Count(u64::from(*value))));
    let settings: Vec<String> = settings.collect();
    let settings = (!settings.is_empty()).then(|| text!("SETTINGS: {}", settings.join(", ")));
    let rows: Vec<usize> = (0..http2.response_header_bytes.len()).collect();
    let bytes = |all: &[u64], nth: usize| all.get(nth).copied();
    let table = Rows::of(&rows)
        .column("response", |nth| *nth as u64 + 1)
        .column("HEADERS to DATA", |nth| {
            match http2.headers_to_data_ms.get(*nth).copied().flatten() {
                Some(0.0) => Cell::from("together"),
                Some(gap) => Time(gap).into(),
                None => "no body".into(),
            }
        })
        .column("request headers", |nth| {
            bytes(&http2.request_head_bytes, *nth)
        })
        .about("bytes of the header block")
        .column("response headers", |nth| {
            bytes(&http2.response_header_bytes, *nth)
        })
        .about("bytes of the header block")
        .table();
    Section::new("http2", "HTTP/2")
        .summary(settings)
        .summary(table)
}

/// The connections of HTTP/3; `None` where none was set up.
fn http3(seen: &Http3Facts) -> Option<Section> {
    if seen.connections.is_empty() {
        return None;
    }
    let offered = ["new", "resumed", "0-RTT"];
    let rows: Vec<_> = offered.into_iter().zip(&seen.connections).collect();
    let table = Rows::of(&rows)
        .column("connection", |(offered, _)| *offered)
        .column("handshake", |(_, one)| match one.handshake {
            Handshake::Full => "full",
            Handshake::Resumed => "resumed",
            Handshake::EarlyData => "early data",
        })
        .about("as the server chose")
        .column("setup", |(_, one)| one.setup_ms.map(Time))
        .about("transport and TLS together")
        .column("round trips", |(_, one)| one.round_trips.map(u64::from))
        .about("of the setup")
        .column("first request", |(_, one)| one.first_request_ms.map(Time))
        .about("with the setup")
        .ranked(1, "first bytes", |(_, one)| {
            one.to_first_response_ms.map(Time)
        })
        .about("from our first packet to the first bytes of the server")
        .table();
    Some(Section::new("http3", "HTTP/3").summary(table))
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
    Some(
        Section::new(
            "state",
            "State that ties a client to a connection or a server",
        )
        .summary(Block::Facts(parts.collect())),
    )
}

/// How an idle connection ended; without a response after `silent` it showed no end.
fn end_of_wait(silent: Option<f64>, seen: Option<&CloseFacts>) -> String {
    match silent {
        Some(_) => NO_RESPONSE.to_owned(),
        None => ended(seen, false),
    }
}

/// How a connection ended that showed no end, and on which a request got no response.
const NO_RESPONSE: &str = "no response";

/// A limit of which only ends with error responses were seen.
const NOT_MEASURED: &str = "not measured";

/// What is limited, announced, measured, and how the connection ended.
type Limit = (String, Cell, Cell, String);

fn limits(facts: &CheckFacts) -> Section {
    let none = Cell::default;
    let seconds = |value: Option<f64>| value.map(|seconds| Time(seconds * 1e3));
    let measured = |value, least| Cell::measured(seconds(value), seconds(least));
    let limit = |value, least, silent: Option<f64>| match silent {
        Some(silent) => Cell::from(below(silent)),
        None => measured(value, least),
    };
    let mut rows: Vec<Limit> = Vec::new();
    if let Some(idle) = &facts.idle_timeout {
        let announced = idle.announced_s.map(|limit| Timer(f64::from(limit) * 1e3));
        let silent = idle.silent_s().filter(|_| facts.keeps() != Some(false));
        let between = match facts.keeps() {
            Some(false) => "not kept".into(),
            _ => limit(idle.measured_s, idle.at_least_s, silent),
        };
        let between = match facts.error_close {
            Some(_) if between.is_absent() => NOT_MEASURED.into(),
            _ => between,
        };
        let end = end_of_wait(silent, idle.ended.as_ref());
        rows.push((
            "idle between requests".to_owned(),
            announced.into(),
            between,
            end,
        ));
        let least = idle.before_first_request_at_least_s;
        let silent = idle.before_first_request_no_response_s;
        let before = limit(idle.before_first_request_s, least, silent);
        if !before.is_absent() {
            let end = end_of_wait(silent, idle.before_first_request_ended.as_ref());
            rows.push(("idle before the first".to_owned(), none(), before, end));
        }
    }
    if let Some(load) = &facts.idle_under_load {
        let name = format!("idle with {} others", load.connections);
        let measured = limit(load.measured_s, load.at_least_s, load.no_response_s);
        let end = end_of_wait(load.no_response_s, load.ended.as_ref());
        rows.push((name, none(), measured, end));
    }
    if let Some(max) = &facts.max_requests {
        let count = |count: Option<u32>| count.map(|count| Count(u64::from(count)));
        let limit = Cell::measured(count(max.measured), count(max.at_least));
        let end = ended(max.ended.as_ref(), max.last_announced);
        rows.push((
            "requests".to_owned(),
            count(max.announced).into(),
            limit,
            end,
        ));
    } else if facts.error_close.is_some() {
        let limit = (
            "requests".to_owned(),
            none(),
            NOT_MEASURED.into(),
            String::new(),
        );
        rows.push(limit);
    }
    if let Some(age) = &facts.max_age {
        let limit = measured(age.measured_s, age.at_least_s);
        let end = ended(age.ended.as_ref(), age.last_announced);
        rows.push(("age".to_owned(), none(), limit, end));
    }
    let is_shown = facts.idles_over_http3();
    let over_quic = facts.http3.iter();
    rows.extend(over_quic.flat_map(|seen| http3_limits(seen, is_shown)));
    let mut table = Rows::of(&rows)
        .column("limit", |row| &row.0)
        .column("announced", |row| row.1.clone())
        .about("by Keep-Alive (timeout, max); HTTP/3: by transport parameters")
        .column("measured", |row| row.2.clone())
        .about("until the server ended it, or the idle timeout of both sides in HTTP/3")
        .ranked(1, "ended by", |row| &row.3)
        .table();
    if rows
        .iter()
        .any(|row| matches!(row.2.value, Value::AtLeast(_)))
    {
        table = table.note("≥: the limit was not reached while the check watched.");
    }
    if let Some(error) = &facts.error_close {
        table = table.note(text!(
            "not measured: the server closes with error responses ({} after {}).",
            error.status.to_string(),
            counted(u64::from(error.requests), "request")
        ));
    }
    let race = facts.race.as_ref();
    let race = race.map(|race| {
        race.attempts
            .iter()
            .map(|one| attempt(race, one))
            .collect::<Vec<Block>>()
    });
    Section::new("limits", "Limits of a connection")
        .summary(table)
        .summary(race)
}

/// The limits of a connection of HTTP/3; `is_shown`: its idle limit has a row already.
fn http3_limits(seen: &Http3Facts, is_shown: bool) -> Vec<Limit> {
    let seconds = |value: Option<f64>| value.map(|seconds| Time(seconds * 1e3));
    let mut rows = Vec::new();
    if let Some(idle) = seen.idle_timeout.as_ref().filter(|_| !is_shown) {
        let announced = match idle.announced_s {
            Some(limit) => Cell::from(Timer(limit * 1e3)),
            None => Cell::from("none"),
        };
        let measured = Cell::measured(seconds(idle.measured_s), seconds(idle.at_least_s));
        let (measured, end) = match idle.no_response_s {
            Some(silent) => (Cell::from(below(silent)), NO_RESPONSE.to_owned()),
            None if measured.is_absent() => (Cell::from("not observed"), String::new()),
            None => (measured, ended(idle.ended.as_ref(), false)),
        };
        rows.push(("idle, HTTP/3".to_owned(), announced, measured, end));
    }
    if let Some(streams) = seen.max_request_streams {
        let name = "requests at once, HTTP/3".to_owned();
        let announced = Cell::from(Count(streams));
        rows.push((name, announced, Cell::from("not observed"), String::new()));
    }
    rows
}

/// A request around the idle limit.
fn attempt(race: &RaceFacts, one: &RaceAttempt) -> Block {
    let apart = (one.idle_s - race.limit_s) * 1e3;
    let when = if apart < 0.0 { "before" } else { "after" };
    let result = match (one.answered, one.sent) {
        (true, _) => "a response".to_owned(),
        (false, false) => "not sent, the server had closed".to_owned(),
        (false, true) => format!("lost ({})", one.failed.unwrap_or("failed")),
    };
    let words = text!(
        "A request {} {} the idle limit: {}",
        tick(apart),
        when,
        result
    );
    if one.is_lost() {
        alarm(words)
    } else {
        note(words)
    }
}

/// A time without zeros at its end.
fn tick(ms: f64) -> String {
    intact_units::number::tick(ms.abs())
}

/// How a connection ended; `announced`: the client may have closed because the server announced its
/// limit.
fn ended(closing: Option<&CloseFacts>, announced: bool) -> String {
    match closing {
        None if announced => "the client, as announced".to_owned(),
        None => String::new(),
        Some(closing) if closing.announced => format!("{}, announced", closing.words()),
        Some(closing) => closing.words(),
    }
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
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for one in &facts.skipped {
        match reasons.iter_mut().find(|(why, _)| *why == one.why) {
            Some((_, probes)) => probes.push(&one.probe),
            None => reasons.push((&one.why, vec![&one.probe])),
        }
    }
    let line = |(why, probes): &(&str, Vec<&str>)| {
        note(sentence(&format!("{}: {why}", probes.join(", "))))
    };
    Section::new("skipped", "Not probed").summary(reasons.iter().map(line).collect::<Vec<Block>>())
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
