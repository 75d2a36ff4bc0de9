//! The page of a check: the card of a server, and what to set clients to.

mod limits;
mod waterfall;

use super::page::Page;
use super::table::Column;
use super::{Style, TerminalOptions, escape};
use crate::number::maybe_time;
use intact_findings::check::{CheckFacts, Http2Facts, Resumption, VersionFacts};
use intact_findings::{Finding, Severity};
use intact_ledger::Run;
use intact_ledger::server_profile::{EarlyData, State};
use intact_units::number::{count, time};
use intact_units::plural::counted;

/// Addresses of a name that the page shows.
const ADDRESSES: usize = 4;

/// The page of a check that is over.
pub fn check(run: &Run, facts: &CheckFacts, paper: TerminalOptions) -> String {
    let mut card = Card::on(paper);
    card.at_once(run, facts);
    card.in_time(facts);
    card.page.text
}

/// The first part of a page whose second takes a while: what is known before limits are waited for.
pub fn check_card(run: &Run, facts: &CheckFacts, paper: TerminalOptions) -> String {
    let mut card = Card::on(paper);
    card.at_once(run, facts);
    card.page.text
}

/// The second part, below a first one that was made of `known`.
pub fn check_limits(known: &CheckFacts, facts: &CheckFacts, paper: TerminalOptions) -> String {
    let mut card = Card::on(paper);
    card.in_time(facts);
    card.page.line("");
    let said = |sentence: &&String| !known.verdict.contains(sentence);
    for sentence in facts.verdict.iter().filter(said) {
        card.page
            .wrapped(Some(Style::Strong), &escape(sentence), "  ");
    }
    card.page.wrapped(Some(Style::Faint), &sent(facts), "");
    card.page.text
}

/// What was sent for it.
fn sent(facts: &CheckFacts) -> String {
    let requests = counted(facts.requests.total, "request");
    let connections = counted(facts.connections.opened, "connection");
    format!("{requests} on {connections}")
}

/// A page that becomes a card.
struct Card {
    page: Page,
}

impl Card {
    fn on(paper: TerminalOptions) -> Card {
        Card {
            page: Page::on(paper),
        }
    }

    /// What a few requests tell.
    fn at_once(&mut self, run: &Run, facts: &CheckFacts) {
        self.head(run, facts);
        self.names(facts);
        self.versions(facts);
        self.waterfall(facts);
        self.tls(facts);
        if let Some(http2) = &facts.http2 {
            self.http2(http2);
        }
        if let Some(state) = &facts.state {
            self.state(state);
        }
    }

    /// What takes many requests or long waits, and what follows from all of it.
    fn in_time(&mut self, facts: &CheckFacts) {
        self.limits(facts);
        self.findings(facts);
        self.settings(facts);
        self.foot(facts);
    }

    fn head(&mut self, run: &Run, facts: &CheckFacts) {
        let target = facts.target.as_ref();
        let url = target
            .map(|target| &*target.url)
            .or(run.subject.as_deref())
            .unwrap_or("");
        self.page.line(&format!(
            "{} {}",
            self.page.paper.ink(Style::Strong, "intact check"),
            escape(url)
        ));
        let mut told = sent(facts);
        if let Some(target) = target
            && let Some(status) = target.status
        {
            let verb = if target.is_complete() {
                "answered"
            } else {
                "an answer begun"
            };
            told.push_str(&format!(", {verb} with {status}"));
        }
        if let Some(server) = target.and_then(|target| target.server.as_deref()) {
            told.push_str(&format!(", Server: {}", escape(server)));
        }
        if target.is_some_and(|target| target.by_head) {
            told.push_str(", by HEAD because the body is large");
        }
        self.page.wrapped(Some(Style::Faint), &told, "");
        for hop in target.iter().flat_map(|target| &target.followed) {
            let told = format!("followed: {} to {}", hop.status, escape(&hop.to));
            self.page.wrapped(Some(Style::Faint), &told, "");
        }
        self.page.line("");
        for (nth, sentence) in facts.verdict.iter().enumerate() {
            let ink = (nth == 0).then_some(Style::Strong);
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
            self.page.wrapped(Some(Style::Faint), &told, "  ");
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
            self.page.wrapped(Some(Style::Faint), &told, "  ");
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
            self.page.wrapped(Some(Style::Faint), &told, "  ");
        }
        let kept = |kept: Option<bool>| match kept {
            Some(true) => "kept",
            Some(false) => "closed",
            None => "not answered",
        };
        for method in &facts.methods {
            let status = method
                .status
                .map_or_else(String::new, |status| format!(" ({status})"));
            let told = format!(
                "after {}{status}: {}",
                escape(&method.what),
                kept(method.kept)
            );
            self.page.wrapped(Some(Style::Faint), &told, "  ");
        }
    }

    fn tls(&mut self, facts: &CheckFacts) {
        if facts.tls.is_empty() {
            return;
        }
        self.page.title("TLS");
        let again = |version: &str| -> Option<&Resumption> {
            facts.resumption.iter().find(|one| one.version == version)
        };
        let cells = |cell: &dyn Fn(&intact_findings::check::TlsFacts) -> String| {
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
                cells(&|tls| maybe_time(tls.to_first_response_ms)),
            ),
            column("rest", 1, cells(&|tls| maybe_time(tls.rest_ms))),
        ]);
        for tls in &facts.tls {
            let told = format!(
                "TLS {}: {}, {} of {} bytes",
                tls.version,
                escape(tls.cipher.as_deref().unwrap_or("cipher unknown")),
                counted(u64::from(tls.certificates), "certificate"),
                count(tls.chain_bytes)
            );
            self.page.wrapped(Some(Style::Faint), &told, "  ");
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
                bytes(&http2.response_header_bytes)
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
        for (nth, finding) in facts.findings.iter().filter(worth).enumerate() {
            if nth > 0 {
                self.page.line("");
            }
            let ink = (finding.severity != Severity::Info).then_some(Style::Alarm);
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
                Some(Style::Faint),
                &format!("  -> {}", escape(&finding.fix)),
                "     ",
            );
            if let Some(risk) = &finding.risk {
                self.page.wrapped(
                    Some(Style::Faint),
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
            self.page.wrapped(Some(Style::Faint), &words, "  ");
        }
        for caveat in &facts.caveats {
            let words = format!("caveat: {}", escape(&caveat.message));
            self.page.wrapped(Some(Style::Alarm), &words, "  ");
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

/// The beginning of what a server said.
fn shorten(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most - 1).collect();
    short.push('…');
    short
}
