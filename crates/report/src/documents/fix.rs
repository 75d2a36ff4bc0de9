//! The catalogue of HTTP clients: all clients in tables, one client with what to set, and the table of docs/fix-table.md.

use crate::markdown;
use crate::page::*;
use intact_fix::{
    Advice, Catalogue, Client, ClientFacts, Cookies, Count, DnsCaching, Idle, KeepAliveHeader,
    Language, LifetimeFacts, Measurement, RequestOutcome, RequestOutcomes, Role, TcpKeepalive,
    Variant,
};
use std::fmt::Write;
use std::time::Duration;

/// What is asked: how long the server keeps idle connections, if that is known, and which version is meant.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixRequest<'a> {
    /// The server's idle limit.
    pub server_idle: Option<Duration>,
    /// A version of the client, or the beginning of one.
    pub version: Option<&'a str>,
}

impl FixRequest<'_> {
    fn is_about(&self, one: &Measurement) -> bool {
        let begins = |version: &String, wanted: &str| {
            let rest = version.strip_prefix(wanted);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        self.version
            .is_none_or(|wanted| one.versions.values().any(|version| begins(version, wanted)))
    }
}

/// One measured behaviour of a client.
struct Trait {
    /// The head of its column.
    head: &'static str,
    /// The same on the page of one client; empty where that page has it elsewhere.
    question: &'static str,
    value: fn(&ClientFacts) -> Option<String>,
}

const fn row(
    head: &'static str,
    question: &'static str,
    value: fn(&ClientFacts) -> Option<String>,
) -> Trait {
    Trait {
        head,
        question,
        value,
    }
}

const IN_TURN: Trait = row("10", "", |facts| {
    Some(connections(&facts.plain.as_ref()?.sequential))
});
const AT_ONCE: Trait = row("3x10", "", |facts| {
    Some(connections(facts.plain.as_ref()?.concurrent.as_ref()?))
});
const IDLE: Trait = row("idle limit", "idle connections are kept", |facts| {
    facts.idle.map(idle)
});
const HINT: Trait = row("hint", "Keep-Alive: timeout=N of the server", |facts| {
    Some(match facts.keep_alive_header? {
        KeepAliveHeader::Obeyed => "obeyed".to_owned(),
        KeepAliveHeader::Ignored => "ignored".to_owned(),
    })
});
const RACE: Trait = row(
    "race",
    "closed by the server as the request arrives, GET / POST",
    |facts| worst(&[facts.stale.race_fin, facts.stale.race_rst]),
);

/// All behaviours, in the order of the table in docs/.
const TRAITS: [Trait; 16] = [
    IN_TURN,
    AT_ONCE,
    row("TLS 10 / 3x10", "", |facts| {
        let tls = facts.tls.as_ref()?;
        both(
            Some(connections(&tls.sequential)),
            tls.concurrent.as_ref().map(connections),
        )
    }),
    row(
        "resumed",
        "TLS sessions resumed, in turn / at once",
        |facts| {
            let tls = facts.tls.as_ref()?;
            both(
                resumed(&tls.sequential),
                tls.concurrent.as_ref().and_then(resumed),
            )
        },
    ),
    IDLE,
    HINT,
    row(
        "dead",
        "closed by the server a second ago, GET / POST",
        |facts| worst(&[facts.stale.fin, facts.stale.rst]),
    ),
    RACE,
    row(
        "unread",
        "ten unread bodies, small / large, took connections",
        |facts| {
            let [small, large] = [&facts.unread_small, &facts.unread_large];
            both(
                small.as_ref().map(connections),
                large.as_ref().map(connections),
            )
        },
    ),
    row("404", "", |facts| facts.not_found.as_ref().map(connections)),
    row("probes", "TCP keep-alive probes", |facts| {
        Some(match facts.tcp_keepalive? {
            TcpKeepalive::Off => "off".to_owned(),
            TcpKeepalive::On { after_s } => format!("after {after_s} s"),
        })
    }),
    row("cookies", "cookies that the server sets", |facts| {
        Some(match facts.cookies? {
            Cookies::Kept => "kept".to_owned(),
            Cookies::Dropped => "dropped".to_owned(),
        })
    }),
    row(
        "lookups",
        "lookups of the server's name for ten requests, connections kept / closed",
        |facts| {
            facts
                .lookups
                .map(|lookups| format!("{} / {}", lookups.kept, lookups.closed))
        },
    ),
    row(
        "TTL 1 s",
        "an address whose name is valid for 1 s is used for",
        |facts| {
            Some(match facts.lookups?.dns_cached? {
                DnsCaching::Until { after_s } => format!("{after_s} s"),
                DnsCaching::Throughout { for_s } => format!("> {for_s} s"),
            })
        },
    ),
    row(
        "longest life",
        "limit on the life of a connection in use",
        |facts| {
            Some(match facts.life? {
                LifetimeFacts::Ended { after_s } => format!("{after_s} s"),
                LifetimeFacts::Unlimited { for_s } => format!("none in {for_s} s"),
            })
        },
    ),
    row("`Connection`", "", |facts| {
        Some(match facts.connection_field.as_deref()? {
            "" => "none".to_owned(),
            field => field.to_owned(),
        })
    }),
];

/// Both values, unless both are absent.
fn both(one: Option<String>, other: Option<String>) -> Option<String> {
    let dash = || "-".to_owned();
    match (one, other) {
        (None, None) => None,
        (one, other) => Some(format!(
            "{} / {}",
            one.unwrap_or_else(dash),
            other.unwrap_or_else(dash)
        )),
    }
}

fn connections(count: &Count) -> String {
    let mut words = count.connections.to_string();
    if count.http != "1.1" {
        let _ = write!(words, " (HTTP/{})", count.http);
    }
    if count.failed > 0 {
        let _ = write!(words, ", {} failed", count.failed);
    }
    words
}

fn resumed(count: &Count) -> Option<String> {
    Some(format!("{} of {}", count.resumed?, count.connections))
}

fn idle(idle: Idle) -> String {
    match idle {
        Idle::NotKept => "not kept".to_owned(),
        Idle::Closed { after_s } => format!("{after_s} s"),
        Idle::Abandoned => "left open, unused".to_owned(),
        Idle::DiscardedAtNextUse { within_s } => format!("{within_s} s, at next use"),
        Idle::Kept { for_s } => format!("> {for_s} s"),
    }
}

/// GET / POST: the worst outcome of several ways to close.
fn worst(ways: &[Option<RequestOutcomes>]) -> Option<String> {
    const ORDER: [(RequestOutcome, &str); 4] = [
        (RequestOutcome::Fine, "fine"),
        (RequestOutcome::SentTwice, "sent twice"),
        (RequestOutcome::Error, "error"),
        (RequestOutcome::SentTwiceInVain, "sent twice, error"),
    ];
    let of = |pick: fn(&RequestOutcomes) -> Option<RequestOutcome>| {
        let outcomes = ways.iter().flatten().filter_map(pick);
        let ranks = outcomes.filter_map(|one| ORDER.iter().position(|(known, _)| *known == one));
        Some(ORDER[ranks.max()?].1.to_owned())
    };
    both(of(|one| one.get), of(|one| one.post))
}

/// Versions in the order of their numbers.
pub(crate) fn version_key(version: Option<&String>) -> Vec<u64> {
    let parts = version.map(|version| version.split(|letter: char| !letter.is_ascii_digit()));
    parts
        .into_iter()
        .flatten()
        .filter_map(|part| part.parse().ok())
        .collect()
}

/// The measurements of a variant, the newest runtime last.
fn measured<'a>(
    catalogue: &'a Catalogue,
    client: &'a Client,
    variant: &'a Variant,
    request: FixRequest<'_>,
) -> Vec<&'a Measurement> {
    let all = catalogue
        .of(client, variant)
        .filter(|one| request.is_about(one));
    let mut all: Vec<&Measurement> = all.collect();
    all.sort_by_key(|one| version_key(one.versions.get(client.language.id())));
    all
}

/// The heading of a language.
fn language(language: Language) -> &'static str {
    match language {
        Language::Node => "Node",
        Language::Python => "Python",
        Language::Go => "Go",
        Language::Java => "Java",
        Language::Rust => "Rust",
        Language::Php => "PHP",
        Language::Ruby => "Ruby",
        Language::Shell => "Commands",
    }
}

/// A row of the terminal's tables: a client or a variant, and a measurement of it.
type Row<'a> = (&'a String, &'a Measurement);

/// The behaviours that the terminal shows in tables.
fn common<'a>(rows: Rows<'a, Row<'a>>) -> Rows<'a, Row<'a>> {
    let value = |one: &Trait| {
        let value = one.value;
        move |row: &Row<'_>| value(&row.1.facts)
    };
    rows.column("10", value(&IN_TURN))
        .ranked(1, "3 x 10", value(&AT_ONCE))
        .column("idle limit", value(&IDLE))
        .ranked(4, "hint", value(&HINT))
        .ranked(3, "race GET / POST", value(&RACE))
}

/// All clients: the defaults on the newest version measured.
pub fn fix_list<'a>(catalogue: &Catalogue, clients: &[&Client]) -> Page<'a> {
    let mut page = Page {
        command: "fix".to_owned(),
        verdict: vec![Text::prose(
            "The defaults of each client, on the newest version measured. `intact fix CLIENT` prints what to set; `--server-idle 60s` is for a server that closes \
             idle connections after 60 s.",
        )],
        ..Page::default()
    };
    for group in Language::ALL {
        let ours = clients.iter().filter(|client| client.language == group);
        let rows = ours.filter_map(|client| {
            let variant = client.variant(Role::Default)?;
            let newest = measured(catalogue, client, variant, FixRequest::default()).pop()?;
            Some((&client.id, newest))
        });
        let rows: Vec<Row<'_>> = rows.collect();
        let table = common(Rows::of(&rows).column("client", |row| row.0));
        let table = table.ranked(9, "measured with", |row| row.1.versions_told());
        page.section(Section::new(group.id(), language(group)).summary(table.table()));
    }
    let legend = [
        "10: the connections that ten requests in turn took; 1 is best",
        "3 x 10: the connections that three rounds of ten at once took; 10 is best",
        "hint: whether the client obeys `Keep-Alive: timeout` of the server",
        "race: the outcome of a request that arrives as the server closes",
    ];
    page.section(
        Section::new("legend", "Columns").summary(Block::List(legend.map(Text::prose).into())),
    );
    page
}

/// One client: whether it reuses, what to set, what happens then.
pub fn fix_client<'a>(catalogue: &Catalogue, client: &Client, request: FixRequest<'_>) -> Page<'a> {
    let mut page = Page {
        command: "fix".to_owned(),
        subject: client.name.clone(),
        ..Page::default()
    };
    let Some(default) = client.variant(Role::Default) else {
        return page;
    };
    let all = measured(catalogue, client, default, request);
    let reuses = all
        .iter()
        .map(|one| text!("{}: {}", one.versions_told(), reuse(&one.facts)));
    let since = client
        .since
        .as_ref()
        .map(|since| text!("Reuses: {}", Text::prose(since)));
    let items = Block::List(reuses.chain(since).collect());
    page.section(Section::new("default", text!("By default ({})", &default.title)).summary(items));
    page.section(advice(catalogue, client, &all, request));
    if let Some(newest) = all.last() {
        let asked = TRAITS.iter().filter(|one| !one.question.is_empty());
        let answers = asked
            .filter_map(|one| Some(text!("{}: {}", one.question, (one.value)(&newest.facts)?)));
        let life = client.life.as_ref();
        let words = "the option for the limit on its life, as documented and not measured: {}";
        let life = life.map(|life| text!(words, Text::prose(life)));
        let title = text!("The default in detail ({})", newest.versions_told());
        page.section(
            Section::new("behaviour", title).summary(Block::List(answers.chain(life).collect())),
        );
    }
    page.section(variants(catalogue, client, request));
    for (id, title, lines) in [
        ("options", "Options", &client.options),
        ("traps", "Traps", &client.traps),
    ] {
        let items = lines.iter().map(|line| Text::prose(line)).collect();
        page.section(Section::new(id, title).summary(Block::List(items)));
    }
    page
}

/// Whether the default reuses.
fn reuse(facts: &ClientFacts) -> String {
    let Some(load) = &facts.plain else {
        return "not measured".to_owned();
    };
    let Count {
        requests,
        connections,
        ..
    } = load.sequential;
    let noun = intact_units::plural::of(connections, "connection");
    if !load.sequential.is_reused() {
        return format!("no, {requests} requests in turn took {connections} {noun}");
    }
    let burst = load.concurrent.as_ref();
    let burst = burst.map_or_else(String::new, |burst| {
        format!(", 3 rounds of 10 at once took {}", burst.connections)
    });
    format!("yes, {requests} requests in turn took {connections} {noun}{burst}")
}

/// What to set, for each group of versions with one advice.
fn advice(
    catalogue: &Catalogue,
    client: &Client,
    all: &[&Measurement],
    request: FixRequest<'_>,
) -> Section {
    let mut groups: Vec<(Advice, Vec<String>)> = Vec::new();
    for one in all {
        if let Some(advice) = catalogue.advise(client, one, request.server_idle) {
            match groups.iter_mut().find(|(known, _)| *known == advice) {
                Some((_, versions)) => versions.push(one.versions_told()),
                None => groups.push((advice, vec![one.versions_told()])),
            }
        }
    }
    let all_agree = groups.len() == 1 && groups[0].1.len() == all.len();
    let mut section = Section::new("advice", "What to set");
    for (advice, versions) in &groups {
        let versions = (!all_agree).then(|| text!("With {}:", versions.join("; with ")));
        let (words, snippet) = one_advice(client, advice, request.server_idle);
        let lines = snippet.lines().map(str::to_owned).collect();
        section = section
            .summary(versions)
            .summary(words)
            .summary(Block::Code(lines));
    }
    section
}

/// An advice in words, and the lines to copy.
fn one_advice<'a>(
    client: &Client,
    advice: &'a Advice,
    server_idle: Option<Duration>,
) -> (Text, &'a str) {
    let server = server_idle.map_or_else(String::new, |idle| {
        format!(
            "The server closes idle connections after {} s. ",
            idle.as_secs_f64()
        )
    });
    match advice {
        Advice::Nothing { client_idle_s } => {
            let words =
                "{}Nothing to set: the client closes them after {} s, before the server does.";
            (text!(words, server, client_idle_s.to_string()), "")
        }
        Advice::Set {
            client_idle_s: Some(idle),
            snippet,
            ..
        } => {
            let words = "{}Keep them for at most {} s, so that the server never closes first:";
            (text!(words, server, idle.to_string()), snippet)
        }
        Advice::Set { snippet, .. } => ("Turn it on:".into(), snippet),
        Advice::Survive {
            snippet, get, post, ..
        } => {
            let outcome = match (get, post) {
                (true, true) => {
                    "A GET and a POST that meet the server's close are repeated. A repeated POST may do harm."
                }
                (true, false) => {
                    "A GET that meets the server's close is repeated. A POST fails, and you decide."
                }
                (false, _) => {
                    "A request that meets the server's close fails. Repeat those that may be repeated."
                }
            };
            (
                text!(
                    "{}{} has no idle limit to set. {}",
                    server,
                    &client.name,
                    outcome
                ),
                snippet,
            )
        }
        Advice::Impossible => {
            let words = "{} cannot reuse connections. The traps below name alternatives.";
            (text!(words, &client.name), "")
        }
    }
}

fn variants(catalogue: &Catalogue, client: &Client, request: FixRequest<'_>) -> Section {
    let rows = client.variants.iter().flat_map(|variant| {
        let all = measured(catalogue, client, variant, request);
        all.into_iter().map(move |one| (&variant.id, one))
    });
    let rows: Vec<Row<'_>> = rows.collect();
    let runtime = client.language.id();
    let table = Rows::of(&rows).column("variant", |row| row.0);
    let table = common(table.ranked(2, "runtime", |row| row.1.versions.get(runtime)));
    let titles = client
        .variants
        .iter()
        .map(|one| text!("{}: {}", &one.id, &one.title));
    let words =
        "10, 3 x 10: the connections that 10 requests in turn and 3 rounds of 10 at once took";
    Section::new("variants", "All variants")
        .summary(table.table())
        .summary(note(words))
        .summary(Block::List(titles.collect()))
}

/// The page docs/fix-table.md.
pub fn fix_table(catalogue: &Catalogue) -> String {
    let mut out = String::from(
        "# What HTTP clients do with their connections

Generated from `clients/catalogue.toml` and `clients/measured.json`; a test compares this page with them. The method and the
columns: [fix.md](fix.md).

- `10`, `3x10`: the connections that ten requests in turn and three rounds of ten at once took, counted by the server
- *dead*: the outcome of a request on a connection that the server closed a second ago, for GET / POST
- *race*: the outcome of a request that arrives as the server closes, for GET / POST
- *unread*: the connections for ten bodies of 100 bytes / 1 MB that the client did not read
- *probes*: TCP keep-alive probes, with the idle time before the first
- *cookies*: whether the next request carries the cookie that the server set
- *lookups*: of the server's name for ten requests, at a server that keeps connections / that closes each
- *TTL 1 s*: for how long the client uses an address whose name is valid for a second
- *longest life*: for how long the client uses a connection that is never idle
",
    );
    for group in Language::ALL {
        let clients = catalogue
            .clients
            .iter()
            .filter(|client| client.language == group);
        let clients: Vec<&Client> = clients.collect();
        if !clients.is_empty() {
            let _ = write!(out, "\n## {}\n", language(group));
        }
        for client in clients {
            section(&mut out, catalogue, client);
        }
    }
    out
}

fn section(out: &mut String, catalogue: &Catalogue, client: &Client) {
    let _ = write!(
        out,
        "\n### {} (`intact fix {}`)\n\n",
        client.name, client.id
    );
    if let Some(since) = &client.since {
        let _ = writeln!(out, "Reuses by default: {since}.\n");
    }
    if let Some(life) = &client.life {
        let _ = writeln!(
            out,
            "Limits a connection's life, as documented and not measured: {life}.\n"
        );
    }
    out.push_str(&markdown::table(&all_traits(catalogue, client)));
    for (head, lines) in [("Options", &client.options), ("Traps", &client.traps)] {
        if !lines.is_empty() {
            let _ = writeln!(out, "{head}:\n");
            lines
                .iter()
                .for_each(|line| out.push_str(&format!("- {line}\n")));
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
}

/// Every variant of a client in all versions, with all that was measured.
fn all_traits(catalogue: &Catalogue, client: &Client) -> Table {
    let rows = client.variants.iter().flat_map(|variant| {
        let all = measured(catalogue, client, variant, FixRequest::default());
        all.into_iter().map(move |one| (variant, one))
    });
    let rows: Vec<(&Variant, &Measurement)> = rows.collect();
    let mut table = Rows::of(&rows)
        .column("variant", |(variant, _)| {
            text!("{}: {}", &variant.id, Text::prose(&variant.title))
        })
        .column("versions", |(_, one)| one.versions_told());
    for one in &TRAITS {
        table = table.column(one.head, |row| (one.value)(&row.1.facts));
    }
    table.column("measured", |(_, one)| &one.date).table()
}
