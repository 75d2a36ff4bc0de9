//! The pages of `fix`: all clients, and one client, proxy or server with what to set.
//!
//! [`measured`] has the columns of a measurement, for every page. The terminal shows the most
//! important ones.

use super::common::page_without_run;
use crate::page::*;
use intact_document::grouping::grouped;
use intact_fix::{
    Advice, Catalogue, Client, ClientFacts, Cookies, Count, DnsCaching, Hop, Idle, KeepAliveHeader,
    Language, Library, LifetimeFacts, Load, Measurement, RequestOutcome, RequestOutcomes, Role,
    TcpKeepalive, Variant,
};
use intact_units::Quantity::{self, Timer};
use intact_units::plural::counted;
use std::time::Duration;

/// Which versions of a client are meant, and the idle limit of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixRequest<'a> {
    /// The server's idle limit, if it is known.
    pub server_idle: Option<Duration>,
    /// A version of the client, or the beginning of one.
    pub version: Option<&'a str>,
}

impl FixRequest<'_> {
    fn includes(&self, one: &Measurement) -> bool {
        self.version.is_none_or(|wanted| one.is_of(wanted))
    }
}

/// A measurement of a variant.
#[derive(Clone, Copy)]
struct Row<'a> {
    client: &'a Client,
    variant: &'a Variant,
    one: &'a Measurement,
}

/// The measurements of a variant, the newest runtime last.
fn rows<'a>(catalogue: &'a Catalogue, client: &'a Client, variant: &'a Variant) -> Vec<Row<'a>> {
    let measured = catalogue.of(client, variant);
    let mut rows: Vec<Row<'_>> = measured
        .map(|one| Row {
            client,
            variant,
            one,
        })
        .collect();
    rows.sort_by_key(|row| version_key(row.runtime()));
    rows
}

impl Row<'_> {
    fn runtime(&self) -> Option<&String> {
        self.one.versions.get(self.client.language.id())
    }
}

/// Versions in the order of their numbers.
pub(crate) fn version_key(version: Option<&String>) -> Vec<u64> {
    let parts = version.map(|version| version.split(|letter: char| !letter.is_ascii_digit()));
    let numbers = parts.into_iter().flatten();
    numbers.filter_map(|part| part.parse().ok()).collect()
}

/// A table while its columns are added.
type Columns<'a> = Rows<'a, Row<'a>>;

/// Adds what was measured to a table that names its rows.
fn measured<'a>(table: Columns<'a>) -> Table {
    type Facts<'f> = &'f ClientFacts;
    let facts = |row: &'a Row<'a>| -> Facts<'a> { &row.one.facts };
    let plain = move |row| facts(row).plain.as_ref();
    let tls = move |row| facts(row).tls.as_ref();
    table
        .column("10", move |row| connections(in_turn(plain(row))))
        .about("connections for 10 requests in turn")
        .ranked(1, "3x10", move |row| connections(at_once(plain(row))))
        .about("connections for 3 rounds of 10 requests at once")
        .full("TLS 10 / 3x10", move |row| {
            both(tls(row), |count| connections(count).text())
        })
        .about("connections over TLS, 10 requests in turn / 3 rounds of 10 at once")
        .full("resumed", move |row| both(tls(row), resumed))
        .about("TLS sessions resumed, 10 requests in turn / 3 rounds of 10 at once")
        .column("idle limit", move |row| facts(row).idle.map(idle))
        .about("idle connections are kept")
        .ranked(4, "hint", move |row| facts(row).keep_alive_header.map(hint))
        .about("Keep-Alive: timeout=3 of the server")
        .ranked(3, "race", move |row| {
            let stale = &facts(row).stale;
            outcome(&[stale.race_fin, stale.race_rst])
        })
        .about("request that arrives as the server closes, GET / POST")
        .full("dead", move |row| {
            let stale = &facts(row).stale;
            outcome(&[stale.fin, stale.rst])
        })
        .about("request 1 s after the server closed, GET / POST")
        .ranked(5, "hang", hang::waits)
        .about("wait of a GET / POST on a connection that went silent")
        .full("hang over HTTP/2", hang::over_http2)
        .about("wait of a GET on a connection of HTTP/2 that went silent")
        .full("reset", hang::after_reset)
        .about("GET / POST whose response is reset after the server has processed it")
        .full("cut", hang::cut)
        .about("response that ends within its body")
        .full("TCP_USER_TIMEOUT", hang::user_timeout)
        .about("TCP_USER_TIMEOUT of its connections")
        .full("unread", move |row| {
            let (small, large) = (&facts(row).unread_small, &facts(row).unread_large);
            pair([small, large].map(|count| connections(count.as_ref()).text()))
        })
        .about("connections for 10 unread bodies of 100 bytes / 1 MB")
        .full("404", move |row| connections(facts(row).not_found.as_ref()))
        .about("connections for 10 responses with status 404")
        .full("probes", move |row| facts(row).tcp_keepalive.map(probes))
        .about("TCP keep-alive probes")
        .full("cookies", move |row| facts(row).cookies.map(cookies))
        .about("cookies that the server sets")
        .full("lookups", move |row| {
            let lookups = facts(row).lookups?;
            Some(text!("{} / {}", lookups.kept, lookups.closed))
        })
        .about("lookups for 10 requests in turn, connections kept / closed by the server")
        .full("TTL 1 s", move |row| {
            facts(row).lookups?.dns_cached.map(cached)
        })
        .about("an address with a TTL of 1 s is used for")
        .full("longest life", move |row| facts(row).life.map(life))
        .about("limit on the life of a connection in use")
        .full("`Connection`", move |row| {
            let field = facts(row).connection_field.as_deref();
            field.map(|field| if field.is_empty() { "none" } else { field })
        })
        .about("value of the request's field `Connection`")
        .full("measured", |row| &row.one.date)
        .about("day of the measurement")
        .table()
}

fn in_turn(load: Option<&Load>) -> Option<&Count> {
    load.map(|load| &load.sequential)
}

fn at_once(load: Option<&Load>) -> Option<&Count> {
    load?.concurrent.as_ref()
}

fn connections(count: Option<&Count>) -> Cell {
    let Some(count) = count else {
        return Cell::default();
    };
    let http = match count.http.as_str() {
        "1.1" | "" => String::new(),
        // the table of a language has no room for more
        "2" => " h2".to_owned(),
        http => format!(" (HTTP/{http})"),
    };
    let failed = match count.failed {
        0 => String::new(),
        failed => format!(", {failed} failed"),
    };
    let up_to = match count.connections_at_most {
        Some(most) => format!("–{most}"),
        None => String::new(),
    };
    if http.is_empty() && failed.is_empty() && up_to.is_empty() {
        return count.connections.into();
    }
    let counted = text!("{}{}{}{}", count.connections, up_to, http, failed);
    Cell::from(counted).alarm_if(count.failed > 0)
}

fn resumed(count: Option<&Count>) -> Option<Text> {
    let count = count?;
    Some(text!("{} of {}", count.resumed?, count.connections))
}

/// In turn / at once, each as `of` has it.
fn both(load: Option<&Load>, of: fn(Option<&Count>) -> Option<Text>) -> Option<Text> {
    pair([of(in_turn(load)), of(at_once(load))])
}

/// Two values; absent if both are.
fn pair([one, other]: [Option<Text>; 2]) -> Option<Text> {
    let text = |text: Option<Text>| text.unwrap_or_else(|| "-".into());
    (one.is_some() || other.is_some()).then(|| text!("{} / {}", text(one), text(other)))
}

fn seconds(seconds: f64) -> Quantity {
    Timer(seconds * 1e3)
}

fn at_least(least: f64) -> Cell {
    Value::AtLeast(seconds(least)).into()
}

fn idle(idle: Idle) -> Cell {
    match idle {
        Idle::NotKept => "not kept".into(),
        Idle::Closed { after_s } => seconds(after_s).into(),
        Idle::Abandoned => "left open, unused".into(),
        Idle::DiscardedAtNextUse { within_s } => text!("{}, at next use", seconds(within_s)).into(),
        Idle::Kept { for_s } => at_least(for_s),
    }
}

fn hint(header: KeepAliveHeader) -> &'static str {
    match header {
        KeepAliveHeader::Obeyed => "obeyed",
        KeepAliveHeader::Ignored => "ignored",
    }
}

/// GET / POST, the worse of several ways to close.
fn outcome(ways: &[Option<RequestOutcomes>]) -> Option<Text> {
    let words = |outcome| match outcome {
        RequestOutcome::Fine => (0, "fine"),
        RequestOutcome::SentTwice => (1, "sent twice"),
        RequestOutcome::Error => (2, "error"),
        RequestOutcome::SentTwiceInVain => (3, "sent twice, error"),
    };
    let worst = |pick: fn(&RequestOutcomes) -> Option<RequestOutcome>| {
        let outcomes = ways.iter().flatten().filter_map(pick);
        outcomes.map(words).max().map(|(_, words)| words.into())
    };
    pair([worst(|one| one.get), worst(|one| one.post)])
}

fn probes(probes: TcpKeepalive) -> Text {
    match probes {
        TcpKeepalive::Off => "off".into(),
        TcpKeepalive::On { after_s } => text!("after {}", seconds(f64::from(after_s))),
    }
}

fn cookies(cookies: Cookies) -> &'static str {
    match cookies {
        Cookies::Kept => "kept",
        Cookies::Dropped => "dropped",
    }
}

fn cached(cached: DnsCaching) -> Cell {
    match cached {
        DnsCaching::Until { after_s } => seconds(after_s).into(),
        DnsCaching::Throughout { for_s } => at_least(for_s),
    }
}

fn life(life: LifetimeFacts) -> Cell {
    match life {
        LifetimeFacts::Ended { after_s } => seconds(after_s).into(),
        LifetimeFacts::Unlimited { for_s } => text!("none in {}", seconds(for_s)).into(),
    }
}

/// The title of a language.
fn title(language: Language) -> &'static str {
    match language {
        Language::Node => "Node",
        Language::Bun => "Bun",
        Language::Deno => "Deno",
        Language::Python => "Python",
        Language::Go => "Go",
        Language::Java => "Java",
        Language::Dotnet => ".NET",
        Language::Rust => "Rust",
        Language::Php => "PHP",
        Language::Ruby => "Ruby",
        Language::Perl => "Perl",
        Language::Shell => "Commands",
    }
}

/// The clients of each language that has some.
fn by_language<'a>(clients: &[&'a Client]) -> Vec<(Language, Vec<&'a Client>)> {
    let of = |language| {
        let clients = clients
            .iter()
            .filter(move |client| client.language == language);
        (language, clients.copied().collect::<Vec<&Client>>())
    };
    let mut all: Vec<_> = Language::ALL.into_iter().map(of).collect();
    all.retain(|(_, clients)| !clients.is_empty());
    all
}

/// The clients of a language, by what their defaults do on the newest runtime.
struct Defaults<'a> {
    language: Language,
    newest: Vec<Row<'a>>,
}

impl<'a> Defaults<'a> {
    fn all(catalogue: &'a Catalogue, clients: &[&'a Client]) -> Vec<Defaults<'a>> {
        let newest = |clients: Vec<&'a Client>| {
            let newest = clients.into_iter().filter_map(|client| {
                let default = client.variant(Role::Default)?;
                rows(catalogue, client, default).pop()
            });
            newest.collect()
        };
        let all = by_language(clients).into_iter();
        all.map(|(language, clients)| Defaults {
            language,
            newest: newest(clients),
        })
        .collect()
    }

    /// The ids of those that reuse connections for requests in turn, or of those that do not.
    fn names(&self, reuse: bool) -> Vec<&str> {
        let reuses = |row: &&Row<'_>| {
            let plain = row.one.facts.plain.as_ref();
            plain.is_some_and(|load| (load.sequential.connections < IN_TURN) == reuse)
        };
        let rows = self.newest.iter().filter(reuses);
        rows.map(|row| row.client.id.as_str()).collect()
    }
}

/// Requests in turn of a measurement.
const IN_TURN: u64 = 10;

/// Which clients of each language reuse connections by default.
pub fn fix_overview(catalogue: &Catalogue, clients: &[&Client]) -> Page<'static> {
    let all = Defaults::all(catalogue, clients);
    let without: usize = all.iter().map(|one| one.names(false).len()).sum();
    let listed = |names: Vec<&str>| (!names.is_empty()).then(|| names.join(", "));
    let table = Rows::of(&all)
        .column("language", |one| title(one.language))
        .column("a connection for each request", |one| {
            listed(one.names(false))
        })
        .column("connections are reused", |one| listed(one.names(true)))
        .table();
    let mut page = page_without_run("fix", counted(clients.len() as u64, "client"));
    let words = "By default, {} of {} clients open a connection for each request.";
    page.verdict = vec![text!(words, without, clients.len()), Text::prose(NEXT)];
    page.section(Section::new("defaults", "What the defaults do").summary(table));
    page.section(hops::summary(catalogue));
    page
}

/// What the other pages of the catalogue have.
const NEXT: &str =
    "`intact fix NAME` prints what to set. A language and an error find clients too.";

/// The clients, a row each: what the default does with the newest runtime.
pub fn fix_list(catalogue: &Catalogue, clients: &[&Client], hops: &[&Hop]) -> Page<'static> {
    let mut page = page_without_run("fix", listed(clients, hops));
    if !clients.is_empty() {
        page.verdict = ABOUT.map(Text::prose).to_vec();
    }
    for Defaults { language, newest } in Defaults::all(catalogue, clients) {
        let table = Rows::of(&newest)
            .column("client", |row| &row.client.id)
            .full("versions", |row| row.one.versions());
        let of_language = clients.iter().filter(|client| client.language == language);
        let is_missing = |client: &&&Client| newest.iter().all(|row| row.client.id != client.id);
        let missing = of_language.filter(is_missing);
        let missing = not_measured(missing.map(|client| client.id.as_str()));
        page.section(
            Section::new(language.id(), title(language))
                .summary(measured(table))
                .summary(missing),
        );
    }
    page.section(hops::list(catalogue, hops));
    page
}

/// How many there are.
fn listed(clients: &[&Client], hops: &[&Hop]) -> String {
    let hops = match hops.len() {
        0 => None,
        1 => Some("1 proxy or server".to_owned()),
        more => Some(format!("{more} proxies and servers")),
    };
    let clients = (!clients.is_empty()).then(|| counted(clients.len() as u64, "client"));
    let both: Vec<String> = clients.into_iter().chain(hops).collect();
    both.join(", ")
}

const ABOUT: [&str; 3] = [
    "The defaults of each client, on the newest version measured.",
    "`10` and `3x10` are the connections for 10 requests in turn and for 3 rounds of 10 at once: 1 and 10 are the best values. `race` is the outcome of a \
     GET / POST that arrives as the server closes.",
    "`intact fix CLIENT` prints what to set; `--server-idle 60s` is for a server that closes idle connections after 60 s.",
];

/// The page of a library above clients, or of a driver.
pub fn fix_library(library: &Library) -> Page<'static> {
    let mut page = page_without_run("fix", library.names[0].clone());
    page.verdict = vec![Text::prose(&library.says)];
    let lines: Vec<String> = library
        .clients
        .iter()
        .map(|id| format!("intact fix {id}"))
        .collect();
    page.section(Section::new("clients", "What it uses").summary(Block::Code(lines)));
    page
}

/// One client: whether it reuses connections, what to set, and the effect.
pub fn fix_client(
    catalogue: &Catalogue,
    client: &Client,
    request: FixRequest<'_>,
) -> Page<'static> {
    let subject = match client.id == client.name {
        true => client.name.clone(),
        false => format!("{}: {}", client.id, client.name),
    };
    let mut page = page_without_run("fix", subject);
    let of = |variant| {
        let mut rows = rows(catalogue, client, variant);
        rows.retain(|row| request.includes(row.one));
        rows
    };
    let default = client.variant(Role::Default);
    let defaults = default.map_or_else(Vec::new, of);
    let unknown = || text!("{}: not measured, so its reuse is unknown.", &client.name);
    let newest = defaults.last();
    page.verdict = vec![newest.map_or_else(unknown, |row| {
        let remedy = client
            .variant(Role::Remedy)
            .filter(|remedy| of(remedy).last().is_some_and(|row| is_kept(row.one)));
        verdict(client, row, remedy)
    })];
    let reuse = |row: &Row<'_>| text!("{}: {}", row.one.versions(), reuse(&row.one.facts));
    let since = client
        .since
        .iter()
        .map(|since| text!("Reuses connections: {}", Text::prose(since)));
    let items = defaults.iter().map(reuse).chain(since);
    let heading = text!("By default: {}", default.map_or("", |one| &one.title));
    page.section(advice(catalogue, client, &defaults, request));
    for trap in &client.variants {
        let instead = trap.instead.iter();
        let mut variants =
            instead.filter_map(|id| client.variants.iter().find(|one| one.id == *id));
        let row = variants.find_map(|variant| of(variant).pop());
        page.section(row.map(|row| {
            let title = text!("In place of {}", code(&trap.title));
            let lines = copied(&row.variant.snippet(row.one));
            Section::new("instead", title).summary(Block::Code(lines))
        }));
    }
    let reusing = [Role::Default, Role::Remedy].into_iter().find_map(|role| {
        let newest = of(client.variant(role)?).pop()?;
        is_kept(newest.one).then_some(newest)
    });
    page.section(note(notes(client)[1]));
    page.section(hang::limit(catalogue, client, reusing.as_ref(), newest));
    page.section(Section::new("default", heading).summary(Block::List(items.collect())));
    page.section(hang::life(catalogue, client, newest));
    page.section(newest.map(|newest| behaviour(client, newest)));
    let all: Vec<Row<'_>> = client.variants.iter().flat_map(of).collect();
    let table = Rows::of(&all)
        .column("variant", |row| &row.variant.id)
        .ranked(2, "runtime", |row| row.runtime());
    let titles = client
        .variants
        .iter()
        .map(|one| text!("{}: {}", &one.id, Text::prose(&one.title)));
    let mut variants = measured(table);
    variants.columns.retain(|column| !is_further(column));
    let words = "`10` and `3x10` are the connections for 10 requests in turn and for 3 rounds of 10 at once.";
    page.section(
        Section::new("variants", "All variants")
            .summary(variants.note(Text::prose(words)))
            .summary(unmeasured_variants(client, &all))
            .summary(Block::List(titles.collect())),
    );
    page.section(further_figures(&all));
    page.section(note(notes(client)[0]));
    page
}

/// A section of what people wrote.
fn note((id, title, lines): (&'static str, &'static str, &[String])) -> Section {
    let lines = lines.iter().map(|line| Text::prose(line));
    Section::new(id, title).summary(Block::List(lines.collect()))
}

/// Columns of a table of further figures, next to the two that name the row.
const FURTHER: usize = 4;

/// Whether the table of variants has no room for a column of [`measured`].
fn is_further(column: &Column) -> bool {
    const WIDEST: u8 = 5;
    column.is_full || column.rank >= WIDEST
}

/// What was measured in addition to the table of variants, in tables that fit on a terminal, and
/// what each column holds.
fn further_figures(all: &[Row<'_>]) -> Section {
    let section = Section::new("further-figures", "Further figures of all variants");
    let named = || {
        let table = Rows::of(all).column("variant", |row| &row.variant.id);
        table.column("runtime", |row| row.runtime())
    };
    let is_known = |column: &Column| column.cells.iter().any(|cell| cell.text().is_some());
    let mut columns = measured(named()).columns;
    columns.retain(|column| is_further(column) && is_known(column));
    let meaning = |column: &Column| text!("{}: {}", Text::prose(&column.head), column.meaning);
    let meanings: Vec<Text> = columns.iter().map(meaning).collect();
    let mut columns = columns.into_iter();
    let tables = std::iter::from_fn(|| {
        let mut table = named().table();
        let shown = columns.by_ref().take(FURTHER);
        table.columns.extend(shown.map(|column| Column {
            is_full: false,
            rank: 0,
            ..column
        }));
        (table.columns.len() > 2).then_some(table)
    });
    let section = tables.fold(section, Section::summary);
    section.summary(Block::List(meanings))
}

/// The variants of a client without a row.
fn unmeasured_variants(client: &Client, rows: &[Row<'_>]) -> Option<Text> {
    let variants = client.variants.iter();
    let missing = variants.filter(|one| rows.iter().all(|row| row.variant.id != one.id));
    not_measured(missing.map(|one| one.id.as_str()))
}

/// The names without a measurement, where a table has no row for them.
fn not_measured<'a>(names: impl Iterator<Item = &'a str>) -> Option<Text> {
    let names: Vec<&str> = names.collect();
    (!names.is_empty()).then(|| text!("Not measured: {}.", names.join(", ")))
}

/// What people wrote about a client.
fn notes(client: &Client) -> [(&'static str, &'static str, &[String]); 2] {
    [
        ("options", "Options", &client.options),
        ("traps", "Traps", &client.traps),
    ]
}

/// Whether requests in turn shared connections.
fn is_kept(one: &Measurement) -> bool {
    let load = one.facts.plain.as_ref();
    load.is_some_and(|load| load.sequential.is_reused())
}

/// Whether the newest version reuses connections by default. Where another way to call it does, a
/// client is not at fault.
fn verdict(client: &Client, newest: &Row<'_>, remedy: Option<&Variant>) -> Text {
    let versions = newest.one.versions();
    let load = newest.one.facts.plain.as_ref();
    match (load.map(|load| load.sequential.is_reused()), remedy) {
        (Some(true), _) => text!(
            "{} reuses connections by default ({}).",
            &client.name,
            versions
        ),
        (Some(false), Some(remedy)) => text!(
            "{} opens a connection for each request with {}, and reuses them with {} ({}).",
            &client.name,
            code(&newest.variant.title),
            code(&remedy.title),
            versions
        ),
        (Some(false), None) => text!(
            "{} does not reuse connections by default ({}).",
            &client.name,
            versions
        ),
        (None, _) => text!("Reuse by {} was not measured ({}).", &client.name, versions),
    }
}

/// A title in which code is marked, or that is code.
fn code(title: &str) -> Text {
    match title.contains('`') {
        true => Text::prose(title),
        false => Text::prose(&format!("`{title}`")),
    }
}

/// Whether the default reuses connections, and the counts.
fn reuse(facts: &ClientFacts) -> Text {
    let Some(load) = &facts.plain else {
        return "not measured".into();
    };
    let count = &load.sequential;
    let answer = if count.is_reused() { "yes" } else { "no" };
    let opened = counted(count.connections, "connection");
    let burst = load.concurrent.as_ref().filter(|_| count.is_reused());
    let burst = burst.map_or_else(Text::default, |burst| {
        text!(", 3 rounds of 10 at once took {}", burst.connections)
    });
    text!(
        "{}, {} requests in turn took {}{}",
        answer,
        count.requests,
        opened,
        burst
    )
}

/// What to set, for the versions that differ.
fn advice(
    catalogue: &Catalogue,
    client: &Client,
    defaults: &[Row<'_>],
    request: FixRequest<'_>,
) -> Section {
    let all = grouped(defaults.iter().filter_map(|row| {
        let advice = catalogue.advise(client, row.one, request.server_idle)?;
        Some((advice, row.one.versions()))
    }));
    let is_for_all = all.len() == 1 && all[0].1.len() == defaults.len();
    let server = request.server_idle.map_or_else(Text::default, |idle| {
        text!(
            "The server closes idle connections after {}. ",
            seconds(idle.as_secs_f64())
        )
    });
    let mut section = Section::new("advice", "What to set");
    for (advice, versions) in all {
        let versions = (!is_for_all).then(|| text!("With {}:", versions.join(", or with ")));
        let (words, snippet) = one_advice(client, &advice);
        section = section
            .summary(versions)
            .summary(text!("{}{}", server.clone(), words))
            .summary(Block::Code(copied(snippet)));
    }
    section
}

/// Lines to copy; a writer escapes a tab, which is a control character.
fn copied(snippet: &str) -> Vec<String> {
    let lines = snippet.lines();
    lines.map(|line| line.replace('\t', "    ")).collect()
}

/// An advice in words, and the lines to copy.
fn one_advice<'a>(client: &Client, advice: &'a Advice) -> (Text, &'a str) {
    match advice {
        Advice::Nothing {
            client_idle_s,
            snippet,
            ..
        } => {
            let words = "Nothing to set: the client closes them after {}, before the server does.";
            (text!(words, seconds(*client_idle_s)), snippet)
        }
        Advice::Keep { snippet, .. } => ("Nothing to set. Used like this:".into(), snippet),
        Advice::Set {
            client_idle_s,
            snippet,
            variant,
        } => {
            let variant = client.variants.iter().find(|one| one.id == *variant);
            let is_environment = variant.is_some_and(|one| one.program.is_some());
            let words = match client_idle_s {
                Some(idle) => text!(
                    "Keep them for at most {}, so that the client closes first:",
                    seconds(*idle)
                ),
                None if is_environment => {
                    "Turn reuse on, in the environment of the program:".into()
                }
                None => "Turn reuse on:".into(),
            };
            (words, snippet)
        }
        Advice::Survive {
            snippet, get, post, ..
        } => {
            let of = |method: &str, outcome: &Option<RequestOutcome>| match outcome {
                Some(RequestOutcome::Fine) => format!("A {method} gets a response all the same."),
                Some(RequestOutcome::SentTwice) => {
                    format!("It repeats a {method} by itself, and the server may process it twice.")
                }
                Some(RequestOutcome::Error) => {
                    format!("A {method} fails: decide whether to repeat it.")
                }
                Some(RequestOutcome::SentTwiceInVain) => {
                    format!("It repeats a {method} by itself, and it fails all the same.")
                }
                None => format!("The outcome of a {method} was not measured."),
            };
            let words =
                "{} has no idle limit to set, so a request may arrive as the server closes. {} {}";
            (
                text!(words, &client.name, of("GET", get), of("POST", post)),
                snippet,
            )
        }
        Advice::Impossible { instead, snippet } => {
            let words = match instead {
                Some(other) => text!(
                    "{} cannot reuse connections: see the traps below. Use {} instead:",
                    &client.name,
                    other
                ),
                None => text!(
                    "{} cannot reuse connections: see the traps below.",
                    &client.name
                ),
            };
            (words, snippet)
        }
    }
}

/// What the default does, with all that was measured of the newest version.
fn behaviour(client: &Client, row: &Row<'_>) -> Section {
    let rows = [*row];
    let table = measured(Rows::of(&rows));
    let seen = table.columns.into_iter().filter_map(|column| {
        let value = column.cells.into_iter().next()?.text()?;
        Some(text!("{}: {}", Text::prose(column.meaning), value))
    });
    let options = [
        ("the longest life", &client.life),
        ("HTTP/2 PING", &client.pings),
    ];
    let documented = options.into_iter().filter_map(|(name, option)| {
        let option = option.as_ref()?;
        let words = "option for {}, its default as documented: {}";
        Some(text!(words, name, option))
    });
    let title = text!("What the default does: {}", row.one.versions());
    Section::new("behaviour", title).summary(Block::List(seen.chain(documented).collect()))
}

mod articles;
mod hang;
mod hops;

pub use articles::fix_articles;
pub use hops::fix_hop;

#[cfg(test)]
mod tests;
