//! The catalogue of clients in words: cells that the terminal page and docs/fix.md share, and that page.

use intact_fix::{
    Catalogue, Client, ClientFacts, Cookies, Count, DnsCaching, Idle, KeepAliveHeader, Language,
    LifetimeFacts, Measurement, RequestOutcome, RequestOutcomes, TcpKeepalive, Variant,
};
use std::fmt::Write;

/// One measurement in a row of words.
pub(crate) struct Cells {
    /// Connections for ten requests in turn.
    pub(crate) in_turn: String,
    /// Connections for three rounds of ten at once.
    pub(crate) at_once: String,
    /// The same over TLS, in turn and at once.
    pub(crate) tls: String,
    /// Resumed of all TLS handshakes, in turn and at once.
    pub(crate) resumed: String,
    /// What becomes of an idle connection.
    pub(crate) idle: String,
    /// Whether the server's hint is obeyed.
    pub(crate) hint: &'static str,
    /// GET and POST on a connection that died a second ago.
    pub(crate) dead: String,
    /// GET and POST that meet the server's close.
    pub(crate) race: String,
    /// Connections for ten unread bodies, small and large.
    pub(crate) unread: String,
    /// Connections for ten answers with status 404.
    pub(crate) not_found: String,
    /// Whether TCP keep-alive probes are on, and after how long.
    pub(crate) probes: String,
    /// What becomes of cookies.
    pub(crate) cookies: &'static str,
    /// Lookups for ten requests, connections kept / closed.
    pub(crate) lookups: String,
    /// For how long an address is used whose name holds for a second.
    pub(crate) remembered: String,
    /// For how long a busy connection is used.
    pub(crate) life: String,
}

const NOTHING: &str = "-";

impl Cells {
    pub(crate) fn of(facts: &ClientFacts) -> Cells {
        let load = facts.plain.as_ref();
        let tls = facts.tls.as_ref();
        let both = |one: String, other: String| {
            if one == NOTHING && other == NOTHING {
                one
            } else {
                format!("{one} / {other}")
            }
        };
        let tls_in_turn = tls.map(|load| &load.sequential);
        let tls_at_once = tls.and_then(|load| load.concurrent.as_ref());
        Cells {
            in_turn: connections(load.map(|load| &load.sequential)),
            at_once: connections(load.and_then(|load| load.concurrent.as_ref())),
            tls: both(connections(tls_in_turn), connections(tls_at_once)),
            resumed: both(resumed(tls_in_turn), resumed(tls_at_once)),
            idle: facts.idle.map_or(NOTHING.to_owned(), idle),
            hint: match facts.keep_alive_header {
                Some(KeepAliveHeader::Obeyed) => "obeyed",
                Some(KeepAliveHeader::Ignored) => "ignored",
                None => NOTHING,
            },
            dead: worst(&[facts.stale.fin, facts.stale.rst]),
            race: worst(&[facts.stale.race_fin, facts.stale.race_rst]),
            unread: both(
                connections(facts.unread_small.as_ref()),
                connections(facts.unread_large.as_ref()),
            ),
            not_found: connections(facts.not_found.as_ref()),
            probes: facts.tcp_keepalive.map_or(NOTHING.to_owned(), probing),
            cookies: match facts.cookies {
                Some(Cookies::Kept) => "kept",
                Some(Cookies::Dropped) => "dropped",
                None => NOTHING,
            },
            lookups: facts.lookups.map_or(NOTHING.to_owned(), |lookups| {
                format!("{} / {}", lookups.kept, lookups.closed)
            }),
            remembered: facts.lookups.and_then(|lookups| lookups.dns_cached).map_or(
                NOTHING.to_owned(),
                |remembered| match remembered {
                    DnsCaching::Until { after_s } => format!("{after_s} s"),
                    DnsCaching::Throughout { for_s } => format!("> {for_s} s"),
                },
            ),
            life: facts.life.map_or(NOTHING.to_owned(), |life| match life {
                LifetimeFacts::Ended { after_s } => format!("{after_s} s"),
                LifetimeFacts::Unlimited { for_s } => format!("none in {for_s} s"),
            }),
        }
    }
}

fn connections(count: Option<&Count>) -> String {
    let Some(count) = count else {
        return NOTHING.to_owned();
    };
    let mut told = count.connections.to_string();
    if count.http != "1.1" {
        let _ = write!(told, " (HTTP/{})", count.http);
    }
    if count.failed > 0 {
        let _ = write!(told, ", {} failed", count.failed);
    }
    told
}

fn resumed(count: Option<&Count>) -> String {
    match count.and_then(|count| Some((count.resumed?, count.connections))) {
        Some((resumed, all)) => format!("{resumed} of {all}"),
        None => NOTHING.to_owned(),
    }
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

fn probing(probing: TcpKeepalive) -> String {
    match probing {
        TcpKeepalive::Off => "off".to_owned(),
        TcpKeepalive::On { after_s } => format!("after {after_s} s"),
    }
}

fn fate(fate: RequestOutcome) -> &'static str {
    match fate {
        RequestOutcome::Fine => "fine",
        RequestOutcome::SentTwice => "sent twice",
        RequestOutcome::Error => "error",
        RequestOutcome::SentTwiceInVain => "sent twice, error",
    }
}

/// GET / POST, as bad as the worse of the ways to die.
fn worst(ways: &[Option<RequestOutcomes>]) -> String {
    let rank = |fate: &RequestOutcome| match fate {
        RequestOutcome::Fine => 0,
        RequestOutcome::SentTwice => 1,
        RequestOutcome::Error => 2,
        RequestOutcome::SentTwiceInVain => 3,
    };
    let of = |pick: &dyn Fn(&RequestOutcomes) -> Option<RequestOutcome>| {
        let fates = ways.iter().flatten().filter_map(pick);
        fates.max_by_key(rank).map_or(NOTHING, fate)
    };
    let (get, post) = (of(&|fates| fates.get), of(&|fates| fates.post));
    if get == NOTHING && post == NOTHING {
        return NOTHING.to_owned();
    }
    format!("{get} / {post}")
}

/// The measurement that speaks for a client: its first variant's, with the newest runtime.
pub(crate) fn spoken_for<'a>(
    catalogue: &'a Catalogue,
    client: &'a Client,
    variant: &'a Variant,
) -> Option<&'a Measurement> {
    catalogue
        .of(client, variant)
        .max_by_key(|one| version_key(one.versions.get(client.language.id())))
}

/// Versions in the order of their numbers.
pub(crate) fn version_key(version: Option<&String>) -> Vec<u64> {
    version
        .map(|version| {
            version
                .split(|letter: char| !letter.is_ascii_digit())
                .filter_map(|part| part.parse().ok())
                .collect()
        })
        .unwrap_or_default()
}

/// The heading of a language.
pub(crate) fn language(language: Language) -> &'static str {
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

/// The page docs/fix-table.md.
pub fn markdown(catalogue: &Catalogue) -> String {
    let mut out = String::from(
        "# What HTTP clients do with their connections

Made from `clients/catalogue.toml` and `clients/measured.json`; a test holds this page to them. How it was measured and what the
columns mean: [fix.md](fix.md). `10` and `3x10` are the connections that ten requests in turn and three rounds of ten at once took,
counted by the server; *dead* is a request on a connection that the server closed a second ago, *race* one that arrives as the
server closes, each for GET / POST; *unread* is ten bodies of 100 bytes / 1 MB that nobody read; *probes* are TCP's keep-alive
probes, with the idle time before the first; *cookies*: whether the next request carries what the server set; *lookups* are those
of the server's name for ten requests in turn, at a server that keeps connections / that closes each; *TTL 1 s*: for how long an
address is used whose name holds for a second; *longest life*: for how long a connection is used that is never idle.
",
    );
    for group in Language::ALL {
        let clients: Vec<&Client> = catalogue
            .clients
            .iter()
            .filter(|client| client.language == group)
            .collect();
        if clients.is_empty() {
            continue;
        }
        let _ = write!(out, "\n## {}\n", language(group));
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
    out.push_str(
        "| variant | versions | 10 | 3x10 | TLS 10 / 3x10 | resumed | idle limit | hint | dead | race | unread | 404 | probes | cookies | lookups | TTL 1 s | longest life | `Connection` | measured |
| --- | --- | --: | --: | --: | --: | --- | --- | --- | --- | --- | --: | --- | --- | --: | --- | --- | --- | --- |
",
    );
    for variant in &client.variants {
        let mut measured: Vec<&Measurement> = catalogue.of(client, variant).collect();
        measured.sort_by_key(|one| version_key(one.versions.get(client.language.id())));
        for one in measured {
            let cells = Cells::of(&one.facts);
            let _ = writeln!(
                out,
                "| {}: {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
                variant.id,
                variant.title.replace('|', "\\|"),
                one.versions_told(),
                cells.in_turn,
                cells.at_once,
                cells.tls,
                cells.resumed,
                cells.idle,
                cells.hint,
                cells.dead,
                cells.race,
                cells.unread,
                cells.not_found,
                cells.probes,
                cells.cookies,
                cells.lookups,
                cells.remembered,
                cells.life,
                one.facts.connection_field.as_deref().map_or(
                    NOTHING,
                    |field| if field.is_empty() { "none" } else { field }
                ),
                one.date,
            );
        }
    }
    for (head, lines) in [("Options", &client.options), ("Traps", &client.traps)] {
        if !lines.is_empty() {
            let _ = writeln!(out, "\n{head}:");
            for line in lines {
                let _ = writeln!(out, "- {line}");
            }
        }
    }
}
