//! The page of a check: the card of a server, and what to set clients to.

use super::number::{count, maybe_time, time};
use super::page::Page;
use super::table::Column;
use super::{Ink, Paper, escape};
use findings::check::{
    CheckFacts, Closing, Http2Facts, IdleTimeout, MaxRequests, RaceFacts, Resumption, VersionFacts,
};
use findings::{Finding, Severity};
use ledger::Run;
use ledger::card::{EarlyData, State};

/// Addresses of a name that the page shows.
const ADDRESSES: usize = 4;

/// The page of a check.
pub fn check(run: &Run, facts: &CheckFacts, paper: Paper) -> String {
    let mut card = Card {
        page: Page::on(paper),
    };
    card.head(run, facts);
    card.names(facts);
    card.versions(facts);
    card.limits(facts);
    card.waterfall(facts);
    card.tls(facts);
    if let Some(http2) = &facts.http2 {
        card.http2(http2);
    }
    if let Some(state) = &facts.state {
        card.state(state);
    }
    card.findings(facts);
    card.settings(facts);
    card.foot(facts);
    card.page.text
}

/// A page that becomes a card.
struct Card {
    page: Page,
}

impl Card {
    fn head(&mut self, run: &Run, facts: &CheckFacts) {
        let target = facts.target.as_ref();
        let url = target
            .map(|target| &*target.url)
            .or(run.subject.as_deref())
            .unwrap_or("");
        self.page.line(&format!(
            "{} {}",
            self.page.paper.ink(Ink::Strong, "intact check"),
            escape(url)
        ));
        let mut told = format!(
            "{} requests on {} connections",
            count(facts.requests.total),
            count(facts.connections.opened)
        );
        if let Some(status) = target.and_then(|target| target.status) {
            told.push_str(&format!(", answered with {status}"));
        }
        if let Some(server) = target.and_then(|target| target.server.as_deref()) {
            told.push_str(&format!(", Server: {}", escape(server)));
        }
        if target.is_some_and(|target| target.by_head) {
            told.push_str(", by HEAD because the body is large");
        }
        self.page.wrapped(Some(Ink::Faint), &told, "");
        for hop in target.iter().flat_map(|target| &target.followed) {
            let told = format!("followed: {} to {}", hop.status, escape(&hop.to));
            self.page.wrapped(Some(Ink::Faint), &told, "");
        }
        self.page.line("");
        for (nth, sentence) in facts.verdict.iter().enumerate() {
            let ink = (nth == 0).then_some(Ink::Strong);
            self.page.wrapped(ink, &escape(sentence), "  ");
        }
    }

    fn names(&mut self, facts: &CheckFacts) {
        let Some(names) = &facts.names else { return };
        self.page.title(&format!("Name {}", escape(&names.name)));
        let list = |addresses: &[std::net::IpAddr]| {
            let mut told: Vec<String> = addresses
                .iter()
                .take(ADDRESSES)
                .map(ToString::to_string)
                .collect();
            if addresses.len() > ADDRESSES {
                told.push(format!("{} more", addresses.len() - ADDRESSES));
            }
            if told.is_empty() {
                "no address".to_owned()
            } else {
                told.join(", ")
            }
        };
        let outcome = |addresses: &[std::net::IpAddr], error: Option<&str>| {
            error.map_or_else(|| list(addresses), escape)
        };
        self.page.wrapped(
            None,
            &format!(
                "getaddrinfo, {}: {}",
                maybe_time(names.lookup_ms),
                outcome(&names.addresses, names.error.as_deref())
            ),
            "  ",
        );
        for asked in &names.asked {
            let ttl = asked.ttl_s.map_or_else(String::new, |ttl| {
                format!(", TTL {} s", count(u64::from(ttl)))
            });
            let by = if asked.aliases.is_empty() {
                String::new()
            } else {
                format!(", by way of {}", escape(&asked.aliases.join(", ")))
            };
            let told = format!(
                "{} from {}, {}: {}{ttl}{by}",
                asked.kind,
                asked.server,
                time(asked.lookup_ms),
                outcome(&asked.addresses, asked.error.as_deref())
            );
            self.page.wrapped(Some(Ink::Faint), &told, "  ");
        }
    }

    fn versions(&mut self, facts: &CheckFacts) {
        if facts.versions.is_empty() {
            return;
        }
        self.page
            .title("Versions: is a second request answered on the same connection?");
        // a TLS version that is not spoken at all takes one line, not one for each version of HTTP
        let silent = |version: &VersionFacts| {
            let all = facts.versions.iter().filter(|one| one.tls == version.tls);
            version.tls.is_some() && all.clone().all(|one| one.failed == Some("tls-version"))
        };
        let shown: Vec<&VersionFacts> = facts
            .versions
            .iter()
            .filter(|version| !silent(version))
            .collect();
        let of = |cell: &dyn Fn(&VersionFacts) -> String| {
            shown.iter().map(|version| cell(version)).collect()
        };
        let column = |head, rank, cell: &dyn Fn(&VersionFacts) -> String| Column {
            head,
            rank,
            cells: of(cell),
        };
        let said = |value: &Option<String>| {
            value
                .as_ref()
                .map_or_else(|| "-".to_owned(), |value| shorten(&escape(value), 24))
        };
        let mut columns = vec![
            column("HTTP", 0, &VersionFacts::name),
            column("reused", 0, &reused),
            column("curl says", 1, &|version| {
                version.curl.unwrap_or("-").to_owned()
            }),
            column("Connection", 2, &|version| said(&version.connection)),
            column("Keep-Alive", 3, &|version| said(&version.keep_alive)),
        ];
        if facts.versions.iter().any(|version| version.tls.is_some()) {
            columns.insert(
                1,
                column("TLS", 0, &|version| version.tls.unwrap_or("-").to_owned()),
            );
        }
        self.page.table(columns);
        let mut silent: Vec<&str> = facts
            .versions
            .iter()
            .filter(|version| silent(version))
            .filter_map(|version| version.tls)
            .collect();
        silent.dedup();
        for version in silent {
            let told = format!("TLS {version} offered: refused");
            self.page.wrapped(Some(Ink::Faint), &told, "  ");
        }
        for old in &facts.tls_older {
            let said = match old.accepted {
                Some(true) => "accepted",
                Some(false) => "refused",
                None => "no answer",
            };
            let detail = old
                .detail
                .as_ref()
                .map_or_else(String::new, |detail| format!(" ({})", escape(detail)));
            let told = format!("TLS {} offered: {said}{detail}", old.version);
            self.page.wrapped(Some(Ink::Faint), &told, "  ");
        }
        let kept = |kept: Option<bool>| match kept {
            Some(true) => "kept",
            Some(false) => "closed",
            None => "not answered",
        };
        for method in &facts.methods {
            let told = format!("after {}: {}", escape(&method.what), kept(method.kept));
            self.page.wrapped(Some(Ink::Faint), &told, "  ");
        }
    }

    fn limits(&mut self, facts: &CheckFacts) {
        let mut rows: Vec<[String; 4]> = Vec::new();
        if let Some(idle) = &facts.idle_timeout {
            rows.extend(idle_rows(idle, facts.keeps() != Some(false)));
        }
        if let Some(max) = &facts.max_requests {
            rows.push(max_row(max));
        }
        if rows.is_empty() {
            return;
        }
        self.page.title("Limits of a connection");
        let column = |head, rank, at: usize| Column {
            head,
            rank,
            cells: rows.iter().map(|row| row[at].clone()).collect(),
        };
        self.page.table(vec![
            column("limit", 0, 0),
            column("announced", 0, 1),
            column("measured", 0, 2),
            column("ended by", 1, 3),
        ]);
        if let Some(race) = &facts.race {
            self.race(race);
        }
    }

    fn race(&mut self, race: &RaceFacts) {
        for attempt in &race.attempts {
            let apart = (attempt.idle_s - race.limit_s) * 1e3;
            let what = match (attempt.answered, attempt.sent) {
                (true, _) => "answered".to_owned(),
                (false, false) => "not sent, the server had closed".to_owned(),
                (false, true) => format!("lost ({})", attempt.failed.unwrap_or("failed")),
            };
            let ink = if attempt.is_lost() {
                Ink::Alarm
            } else {
                Ink::Faint
            };
            let when = if apart < 0.0 { "before" } else { "after" };
            let told = format!(
                "a request {} {when} the idle limit: {what}",
                time(apart.abs())
            );
            self.page.wrapped(Some(ink), &told, "  ");
        }
    }

    fn waterfall(&mut self, facts: &CheckFacts) {
        let fall = &facts.phases_ms;
        let mut rows = vec![("first request", &fall.cold), ("next requests", &fall.warm)];
        rows.retain(|(_, phases)| phases.values().any(Option::is_some));
        if rows.is_empty() {
            return;
        }
        let taken = |phases: &std::collections::BTreeMap<&'static str, Option<_>>| {
            let total: Option<&findings::check::Few> = phases.get("total").and_then(Option::as_ref);
            total.map_or(0, |few| few.count)
        };
        self.page.title(&format!(
            "One request, phase by phase (the middle one of {} and {})",
            taken(&fall.cold),
            taken(&fall.warm)
        ));
        let mut columns = vec![Column {
            head: "",
            rank: 0,
            cells: rows.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }];
        for key in findings::check::PHASES {
            let cells: Vec<Option<f64>> = rows
                .iter()
                .map(|(_, phases)| Some(phases.get(key)?.as_ref()?.middle))
                .collect();
            if key == "without_setup" || cells.iter().all(Option::is_none) {
                continue;
            }
            columns.push(Column {
                head: match key {
                    "ssl" => "TLS",
                    "headers_to_body" => "head-body",
                    key => key,
                },
                rank: 0,
                cells: cells.into_iter().map(maybe_time).collect(),
            });
        }
        self.page.table(columns);
        self.bars(facts);
    }

    /// Both requests as bars to one scale.
    fn bars(&mut self, facts: &CheckFacts) {
        const LETTERS: [(&str, char); 6] = [
            ("dns", 'd'),
            ("connect", 'c'),
            ("ssl", 's'),
            ("wait", '█'),
            ("headers_to_body", 'g'),
            ("receive", 'r'),
        ];
        let fall = &facts.phases_ms;
        let total =
            |phases: &std::collections::BTreeMap<&'static str, Option<findings::check::Few>>| {
                LETTERS
                    .iter()
                    .filter_map(|(key, _)| phases.get(key)?.as_ref())
                    .map(|few| few.middle)
                    .sum::<f64>()
            };
        let most = total(&fall.cold).max(total(&fall.warm));
        if most <= 0.0 {
            return;
        }
        let room = self.page.paper.width.saturating_sub(19).clamp(10, 60) as f64;
        for (name, phases, ink) in [
            ("first", &fall.cold, Ink::Fresh),
            ("next", &fall.warm, Ink::Reused),
        ] {
            let mut bar = String::new();
            for (key, letter) in LETTERS {
                let Some(few) = phases.get(key).and_then(Option::as_ref) else {
                    continue;
                };
                let cells = (few.middle / most * room).round() as usize;
                bar.extend(std::iter::repeat_n(letter, cells));
            }
            if bar.is_empty() {
                continue;
            }
            let bar = self.page.paper.ink(ink, &bar);
            self.page.line(&format!("  {name:>13}  {bar}"));
        }
        self.page.wrapped(
            Some(Ink::Faint),
            "d name, c connect, s TLS, █ wait for the answer, g gap between head and body, r receive",
            "  ",
        );
    }

    fn tls(&mut self, facts: &CheckFacts) {
        if facts.tls.is_empty() {
            return;
        }
        self.page.title("TLS");
        let again = |version: &str| -> Option<&Resumption> {
            facts.resumption.iter().find(|one| one.version == version)
        };
        let cells = |cell: &dyn Fn(&findings::check::TlsFacts) -> String| {
            facts.tls.iter().map(cell).collect::<Vec<String>>()
        };
        let column = |head, rank, cells| Column { head, rank, cells };
        self.page.table(vec![
            column("version", 0, cells(&|tls| tls.version.to_owned())),
            column("full", 0, cells(&|tls| time(tls.handshake_ms))),
            column(
                "resumed",
                0,
                cells(&|tls| match again(tls.version) {
                    Some(one) if one.accepted => time(one.handshake_ms),
                    Some(_) => "refused".to_owned(),
                    None => "-".to_owned(),
                }),
            ),
            column(
                "0-RTT",
                0,
                cells(&|tls| {
                    match again(tls.version).and_then(|one| one.early_data) {
                        Some(EarlyData::Accepted) => "accepted",
                        Some(EarlyData::Rejected) => "rejected",
                        Some(EarlyData::NotOffered) => "not offered",
                        None => "-",
                    }
                    .to_owned()
                }),
            ),
            column(
                "tickets",
                2,
                cells(&|tls| {
                    tls.tickets
                        .map_or_else(|| "-".to_owned(), |tickets| tickets.to_string())
                }),
            ),
            column(
                "first answer",
                1,
                cells(&|tls| maybe_time(tls.to_first_answer_ms)),
            ),
            column("rest", 1, cells(&|tls| maybe_time(tls.rest_ms))),
        ]);
        for tls in &facts.tls {
            let told = format!(
                "TLS {}: {}, {} certificates of {} bytes",
                tls.version,
                escape(tls.cipher.as_deref().unwrap_or("cipher unknown")),
                tls.certificates,
                count(tls.chain_bytes)
            );
            self.page.wrapped(Some(Ink::Faint), &told, "  ");
        }
    }

    fn http2(&mut self, http2: &Http2Facts) {
        self.page.title("HTTP/2");
        let settings: Vec<String> = http2
            .settings
            .iter()
            .map(|(name, value)| format!("{} {}", escape(name), count(u64::from(*value))))
            .collect();
        if !settings.is_empty() {
            self.page
                .wrapped(None, &format!("SETTINGS: {}", settings.join(", ")), "  ");
        }
        let gaps: Vec<String> = http2
            .headers_to_data_ms
            .iter()
            .map(|gap| match gap {
                None => "no body".to_owned(),
                Some(0.0) => "together".to_owned(),
                Some(gap) => time(*gap),
            })
            .collect();
        if !gaps.is_empty() {
            let told = format!("HEADERS to DATA, answer by answer: {}", gaps.join(", "));
            self.page.wrapped(None, &told, "  ");
        }
        let bytes = |all: &[u64]| {
            let told: Vec<String> = all.iter().map(|&one| count(one)).collect();
            told.join(", ")
        };
        if !http2.request_head_bytes.is_empty() {
            let told = format!(
                "bytes of header blocks: requests {}; answers {}",
                bytes(&http2.request_head_bytes),
                bytes(&http2.answer_head_bytes)
            );
            self.page.wrapped(None, &told, "  ");
        }
    }

    fn state(&mut self, state: &State) {
        let parts = [
            ("cookies", &state.cookies),
            ("authentication", &state.authentication),
            ("differs between connections", &state.affinity),
        ];
        let told: Vec<String> = parts
            .iter()
            .filter(|(_, names)| !names.is_empty())
            .map(|(what, names)| format!("{what}: {}", escape(&names.join(", "))))
            .collect();
        if told.is_empty() {
            return;
        }
        self.page.title("State");
        self.page.wrapped(None, &told.join("; "), "  ");
    }

    fn findings(&mut self, facts: &CheckFacts) {
        let worth = |finding: &&Finding| finding.rule != "unreachable";
        if !facts.findings.iter().any(|finding| worth(&finding)) {
            return;
        }
        self.page.title("What stands out");
        for finding in facts.findings.iter().filter(worth) {
            let ink = (finding.severity != Severity::Info).then_some(Ink::Alarm);
            let word = match finding.severity {
                Severity::Error => "error: ",
                Severity::Warning => "warning: ",
                Severity::Info => "",
            };
            let said = format!("{word}{} [{}]", escape(&finding.claim), finding.rule);
            self.page.wrapped(ink, &said, "  ");
            // the race is told under the limits
            let told_above = finding.rule == "idle-timeout-race" && facts.race.is_some();
            if !finding.evidence.is_empty() && !told_above {
                self.page
                    .wrapped(None, &format!("  {}", escape(&finding.evidence)), "  ");
            }
            self.page.wrapped(
                Some(Ink::Faint),
                &format!("  -> {}", escape(&finding.fix)),
                "     ",
            );
            if let Some(risk) = &finding.risk {
                self.page.wrapped(
                    Some(Ink::Faint),
                    &format!("  but: {}", escape(risk)),
                    "     ",
                );
            }
        }
    }

    fn settings(&mut self, facts: &CheckFacts) {
        if facts.settings.is_empty() {
            return;
        }
        self.page.title("Client settings for this idle limit");
        let widest = facts
            .settings
            .iter()
            .map(|setting| setting.client.len())
            .max()
            .unwrap_or(0);
        for setting in &facts.settings {
            self.page
                .line(&format!("  {:widest$}  {}", setting.client, setting.option));
        }
    }

    fn foot(&mut self, facts: &CheckFacts) {
        if facts.skipped.is_empty() && facts.caveats.is_empty() {
            return;
        }
        self.page.line("");
        // probes that fell to one reason are told together
        let mut told: Vec<(&str, Vec<&str>)> = Vec::new();
        for skipped in &facts.skipped {
            match told.iter_mut().find(|(why, _)| *why == skipped.why) {
                Some((_, probes)) => probes.push(&skipped.probe),
                None => told.push((&skipped.why, vec![&skipped.probe])),
            }
        }
        for (why, probes) in told {
            let words = format!("not probed: {} ({})", probes.join(", "), escape(why));
            self.page.wrapped(Some(Ink::Faint), &words, "  ");
        }
        for caveat in &facts.caveats {
            let words = format!("caveat: {}", escape(&caveat.words));
            self.page.wrapped(Some(Ink::Alarm), &words, "  ");
        }
    }
}

/// Whether the connection was reused, or why there was nothing to reuse.
fn reused(version: &VersionFacts) -> String {
    match (version.reused, version.failed) {
        (Some(true), _) => "yes".to_owned(),
        (Some(false), _) => "no".to_owned(),
        (None, Some("tls-alpn" | "tls-version")) => "not spoken".to_owned(),
        (None, Some(_)) if version.http == "2" && version.tls.is_none() => "not spoken".to_owned(),
        (None, Some(kind)) => kind.to_owned(),
        (None, None) => "-".to_owned(),
    }
}

fn idle_rows(idle: &IdleTimeout, kept: bool) -> Vec<[String; 4]> {
    let announced = idle
        .announced_s
        .map_or_else(|| "-".to_owned(), |seconds| format!("{seconds} s"));
    let mut rows = vec![[
        "idle between requests".to_owned(),
        announced,
        if kept {
            measured(idle.measured_s, idle.at_least_s)
        } else {
            "not kept".to_owned()
        },
        ended(idle.ended.as_ref()),
    ]];
    let (before, least) = (
        idle.before_first_request_s,
        idle.before_first_request_at_least_s,
    );
    if before.is_some() || least.is_some() {
        rows.push([
            "idle before the first".to_owned(),
            "-".to_owned(),
            measured(before, least),
            ended(idle.before_first_request_ended.as_ref()),
        ]);
    }
    rows
}

fn max_row(max: &MaxRequests) -> [String; 4] {
    let number = |number: Option<u32>| number.map(|number| count(u64::from(number)));
    [
        "requests".to_owned(),
        number(max.announced).unwrap_or_else(|| "-".to_owned()),
        number(max.measured)
            .or_else(|| number(max.at_least).map(|least| format!("{least} and more")))
            .unwrap_or_else(|| "-".to_owned()),
        match &max.ended {
            None if max.last_said => "the client, as announced".to_owned(),
            closing => ended(closing.as_ref()),
        },
    ]
}

/// Seconds to a hundredth below ten, or a lower bound.
fn measured(seconds: Option<f64>, at_least: Option<f64>) -> String {
    let told = |seconds: f64| match seconds {
        seconds if seconds < 1.0 => time(seconds * 1e3),
        seconds if seconds < 10.0 => format!("{seconds:.2} s"),
        seconds => format!("{seconds:.1} s"),
    };
    match (seconds, at_least) {
        (Some(seconds), _) => told(seconds),
        (None, Some(least)) => format!("{} and more", told(least)),
        (None, None) => "-".to_owned(),
    }
}

fn ended(closing: Option<&Closing>) -> String {
    closing.map_or_else(
        || "-".to_owned(),
        |closing| {
            let announced = if closing.announced { ", announced" } else { "" };
            format!("{}{announced}", closing.words())
        },
    )
}

/// The beginning of what a server said.
fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most - 1).collect();
    short.push('…');
    short
}
