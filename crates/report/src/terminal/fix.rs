//! The pages of `fix`: all clients in a table, and one client with what to set.

use super::table::{Column, lay_out};
use super::{Style, TerminalOptions, escape, wrap};
use crate::clients::{Cells, language, spoken_for, version_key};
use intact_fix::{Advice, Catalogue, Client, ClientFacts, Count, Language, Measurement, Role};
use std::fmt::Write;
use std::time::Duration;

/// What is looked at: how long the server keeps idle connections, if that is known, and which versions are meant.
#[derive(Clone, Copy, Debug, Default)]
pub struct FixRequest<'a> {
    /// The server's idle limit.
    pub server_idle: Option<Duration>,
    /// A version of the client, or the beginning of one.
    pub version: Option<&'a str>,
}

/// All clients, a row each: what their defaults do on the newest version measured.
pub fn fix_list(catalogue: &Catalogue, clients: &[&Client], paper: TerminalOptions) -> String {
    let mut out = String::new();
    for group in Language::ALL {
        let rows: Vec<(&Client, &Measurement)> = clients
            .iter()
            .filter(|client| client.language == group)
            .filter_map(|client| {
                let default = client.variant(Role::Default)?;
                Some((*client, spoken_for(catalogue, client, default)?))
            })
            .collect();
        if rows.is_empty() {
            continue;
        }
        let cells: Vec<Cells> = rows.iter().map(|(_, one)| Cells::of(&one.facts)).collect();
        let column = |head, rank, cell: &dyn Fn(usize) -> String| Column {
            head,
            rank,
            cells: (0..rows.len()).map(cell).collect(),
        };
        let columns = vec![
            column("client", 0, &|row| rows[row].0.id.clone()),
            column("10 requests", 0, &|row| cells[row].in_turn.clone()),
            column("3 x 10", 1, &|row| cells[row].at_once.clone()),
            column("idle limit", 0, &|row| cells[row].idle.clone()),
            column("hint", 4, &|row| cells[row].hint.to_owned()),
            column("race, GET / POST", 3, &|row| cells[row].race.clone()),
            column("measured with", 9, &|row| rows[row].1.versions_told()),
        ];
        let (lines, _) = lay_out(columns, paper.width);
        let _ = writeln!(out, "{}", paper.ink(Style::Strong, language(group)));
        for line in lines {
            let _ = writeln!(out, "{line}");
        }
        out.push('\n');
    }
    let told = "The defaults, on the newest version measured. Numbers under requests are the connections they took (1 is best; 3 rounds of 10 at \
                once need 10); race: what a request meets that arrives as the server closes. `intact fix CLIENT` says what to set, --server-idle 60s for a server that closes idle connections after so long.";
    for line in wrap(told, paper.width, "") {
        let _ = writeln!(out, "{line}");
    }
    out
}

/// One client: does it reuse, what to set, what happens then.
pub fn fix_client(
    catalogue: &Catalogue,
    client: &Client,
    question: FixRequest<'_>,
    paper: TerminalOptions,
) -> String {
    let mut page = Page {
        out: String::new(),
        paper,
    };
    let _ = writeln!(page.out, "{}\n", paper.ink(Style::Strong, &client.name));
    let Some(default) = client.variant(Role::Default) else {
        return page.out;
    };
    let mut measured: Vec<&Measurement> = catalogue
        .of(client, default)
        .filter(|one| question.is_about(one))
        .collect();
    measured.sort_by_key(|one| version_key(one.versions.get(client.language.id())));
    page.line(&format!("By default ({}):", default.title));
    for one in &measured {
        page.point(&format!("{}: {}", one.versions_told(), reuse(&one.facts)));
    }
    if let Some(since) = &client.since {
        page.point(&format!("Reuses: {since}"));
    }
    page.advice(catalogue, client, &measured, question);
    if let Some(newest) = measured.last() {
        page.behaviour(newest);
    }
    if let Some(life) = &client.life {
        page.point(&format!(
            "the option for that, as documented and not measured: {life}"
        ));
    }
    page.variants(catalogue, client, question);
    for (head, lines) in [("Options", &client.options), ("Traps", &client.traps)] {
        if !lines.is_empty() {
            let _ = write!(page.out, "\n{head}\n");
            for line in lines {
                page.point(line);
            }
        }
    }
    page.out
}

impl FixRequest<'_> {
    fn is_about(&self, one: &Measurement) -> bool {
        self.version.is_none_or(|wanted| {
            one.versions.values().any(|version| {
                version
                    .strip_prefix(wanted)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
            })
        })
    }
}

/// Whether the default reuses, in words.
fn reuse(facts: &ClientFacts) -> String {
    let Some(load) = &facts.plain else {
        return "not measured".to_owned();
    };
    let Count {
        requests,
        connections,
        ..
    } = load.sequential;
    if !load.sequential.is_reused() {
        return format!("no, {requests} requests in turn took {connections} connections");
    }
    let mut told = match connections {
        1 => format!("yes, {requests} requests in turn took 1 connection"),
        more => format!("yes, {requests} requests in turn took {more} connections"),
    };
    if let Some(burst) = &load.concurrent {
        let _ = write!(told, ", 3 rounds of 10 at once took {}", burst.connections);
    }
    told
}

struct Page {
    out: String,
    paper: TerminalOptions,
}

impl Page {
    fn line(&mut self, text: &str) {
        for line in wrap(&escape(text), self.paper.width, "") {
            let _ = writeln!(self.out, "{line}");
        }
    }

    fn point(&mut self, text: &str) {
        for line in wrap(&escape(text), self.paper.width.saturating_sub(4), "  ") {
            let _ = writeln!(self.out, "  {line}");
        }
    }

    fn advice(
        &mut self,
        catalogue: &Catalogue,
        client: &Client,
        measured: &[&Measurement],
        question: FixRequest<'_>,
    ) {
        let mut told: Vec<(Advice, Vec<String>)> = Vec::new();
        for one in measured {
            if let Some(advice) = catalogue.advise(client, one, question.server_idle) {
                match told.iter_mut().find(|(known, _)| *known == advice) {
                    Some((_, versions)) => versions.push(one.versions_told()),
                    None => told.push((advice, vec![one.versions_told()])),
                }
            }
        }
        let all_agree = told.len() == 1 && told[0].1.len() == measured.len();
        for (advice, versions) in told {
            self.out.push('\n');
            if !all_agree {
                self.line(&format!("With {}:", versions.join("; with ")));
            }
            self.one_advice(client, &advice, question.server_idle);
        }
    }

    fn one_advice(&mut self, client: &Client, advice: &Advice, server_idle: Option<Duration>) {
        let server = server_idle.map_or(String::new(), |idle| {
            format!(
                "The server closes idle connections after {} s. ",
                idle.as_secs_f64()
            )
        });
        match advice {
            Advice::Nothing { client_idle_s } => self.line(&format!(
                "{server}Nothing to set: it closes them itself after {client_idle_s} s, before the server does."
            )),
            Advice::Set {
                client_idle_s: Some(idle),
                snippet,
                ..
            } => {
                self.line(&format!("{server}Keep them for {idle} s at most, so that it is never the server that closes first:"));
                self.code(snippet);
            }
            Advice::Set { snippet, .. } => {
                self.line("Turn it on:");
                self.code(snippet);
            }
            Advice::Survive {
                snippet,
                get,
                post,
                ..
            } => {
                let outcome = match (get, post) {
                    (true, true) => "A GET and a POST that meet the server's close are repeated, which a POST may not survive unharmed.",
                    (true, false) => "A GET that meets the server's close is repeated; a POST fails, and you decide.",
                    (false, _) => "A request that meets the server's close fails: repeat the ones that may be repeated.",
                };
                self.line(&format!("{server}{} has no idle limit to set. {outcome}", client.name));
                self.code(snippet);
            }
            Advice::Impossible => self.line(&format!(
                "{} cannot reuse connections: see the traps below for what can.",
                client.name
            )),
        }
    }

    fn code(&mut self, snippet: &str) {
        for line in snippet.lines() {
            // code is not broken: a person copies it
            let line = format!("    {}", escape(line));
            let _ = writeln!(self.out, "{}", line.trim_end());
        }
    }

    fn behaviour(&mut self, one: &Measurement) {
        let cells = Cells::of(&one.facts);
        self.out.push('\n');
        self.line(&format!("What the default does ({}):", one.versions_told()));
        for (what, how) in [
            ("idle connections are kept", cells.idle.as_str()),
            ("Keep-Alive: timeout=N of the server", cells.hint),
            ("closed by the server a second ago, GET / POST", &cells.dead),
            (
                "closed by the server as the request arrives, GET / POST",
                &cells.race,
            ),
            (
                "ten unread bodies, small / large, took connections",
                &cells.unread,
            ),
            ("TLS sessions resumed, in turn / at once", &cells.resumed),
            (
                "lookups of the server's name for ten requests, connections kept / closed",
                &cells.lookups,
            ),
            (
                "an address whose name holds for 1 s is used for",
                &cells.remembered,
            ),
            ("TCP keep-alive probes", &cells.probes),
            ("cookies that the server sets", cells.cookies),
            ("limit on the life of a connection in use", &cells.life),
        ] {
            if how != "-" {
                self.point(&format!("{what}: {how}"));
            }
        }
    }

    fn variants(&mut self, catalogue: &Catalogue, client: &Client, question: FixRequest<'_>) {
        let mut rows: Vec<(String, &Measurement)> = Vec::new();
        for variant in &client.variants {
            let mut measured: Vec<&Measurement> = catalogue
                .of(client, variant)
                .filter(|one| question.is_about(one))
                .collect();
            measured.sort_by_key(|one| version_key(one.versions.get(client.language.id())));
            rows.extend(measured.into_iter().map(|one| (variant.id.clone(), one)));
        }
        let cells: Vec<Cells> = rows.iter().map(|(_, one)| Cells::of(&one.facts)).collect();
        let runtime = client.language.id();
        let column = |head, rank, cell: &dyn Fn(usize) -> String| Column {
            head,
            rank,
            cells: (0..rows.len()).map(cell).collect(),
        };
        let columns = vec![
            column("variant", 0, &|row| rows[row].0.clone()),
            column("runtime", 2, &|row| {
                rows[row]
                    .1
                    .versions
                    .get(runtime)
                    .cloned()
                    .unwrap_or_default()
            }),
            column("10", 0, &|row| cells[row].in_turn.clone()),
            column("3 x 10", 1, &|row| cells[row].at_once.clone()),
            column("idle limit", 0, &|row| cells[row].idle.clone()),
            column("hint", 3, &|row| cells[row].hint.to_owned()),
            column("race GET / POST", 2, &|row| cells[row].race.clone()),
        ];
        let (lines, _) = lay_out(columns, self.paper.width);
        self.out.push('\n');
        self.line("All variants, with the connections that 10 requests in turn and 3 rounds of 10 at once took:");
        for line in lines {
            let _ = writeln!(self.out, "{line}");
        }
        for variant in &client.variants {
            self.point(&format!("{}: {}", variant.id, variant.title));
        }
    }
}
