//! `cargo xtask catalogue-page FILE`: the catalogue of clients, proxies and servers as one static
//! page.
//! It is searchable, loads nothing, and follows the light or dark setting of the reader.

use anyhow::Context;
use intact_fix::{Catalogue, Count, Hop, Measurement, Role};
use intact_units::plural;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = r#"<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Does it keep connections?</title>
<style>
:root { color-scheme: light dark; --line: #8884; --yes: #0a7d3b; --no: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --yes: #5fd38d; --no: #ff8a80; } }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 0 auto; padding: 1rem; }
input { font: inherit; width: 100%; box-sizing: border-box; padding: .5rem .7rem; margin: .5rem 0 1rem; }
article { border-top: 1px solid var(--line); padding: .7rem 0; display: grid; gap: 0 1.5rem;
  grid-template-columns: minmax(0, 15rem) minmax(0, 1fr); }
article[hidden] { display: none; }
h2 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
small { opacity: .75; }
p, ul { margin: .1rem 0; }
ul { padding-left: 1.2rem; }
.yes { color: var(--yes); } .no { color: var(--no); }
pre { overflow-x: auto; padding: .6rem; border: 1px solid var(--line); border-radius: 6px; font-size: 13px; }
code { font-size: .92em; overflow-wrap: anywhere; }
summary { cursor: pointer; }
@media (max-width: 700px) { article { grid-template-columns: minmax(0, 1fr); } }
</style>
<h1>Does it keep connections?</h1>
<p>HTTP clients, proxies and servers, each measured with the versions and on the day that its row
names. A name, a language, a package or the text of an error finds a row.</p>
<input type="search" id="q" placeholder="axios, python, nginx, socket hang up ..." autofocus aria-label="Search">
<p><small id="count"></small></p>
"#;

const TAIL: &str = r#"<script>
const rows = [...document.querySelectorAll("article")], q = document.getElementById("q");
function find() {
  const words = q.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const row of rows) {
    row.hidden = !words.every((word) => row.dataset.words.includes(word));
    shown += row.hidden ? 0 : 1;
  }
  document.getElementById("count").textContent = `${shown} of ${rows.length}`;
}
q.addEventListener("input", find);
find();
</script>
"#;

/// One row of the page.
struct Entry<'a> {
    name: &'a str,
    /// Language or kind.
    group: &'a str,
    versions: String,
    date: &'a str,
    is_kept: Option<bool>,
    /// The counts behind that.
    counted: String,
    since: Option<&'a str>,
    snippet: String,
    traps: &'a [String],
    /// All that finds it.
    words: String,
}

/// Writes the page.
pub(crate) fn write(file: &Path) -> anyhow::Result<()> {
    let catalogue = Catalogue::embedded()?;
    let clients = catalogue.clients.iter().filter_map(|client| {
        let measured = |role| catalogue.of(client, client.variant(role)?).last();
        let default = measured(Role::Default)?;
        let best = measured(Role::Remedy).unwrap_or(default);
        let count = default.facts.plain.as_ref().map(|load| &load.sequential);
        Some(Entry {
            name: &client.name,
            group: client.language.id(),
            versions: Measurement::versions(default),
            date: &default.date,
            is_kept: count.map(|count| count.is_reused()),
            counted: count.map_or_else(String::new, |count| counted_in_turn(count, "")),
            since: client.since.as_deref(),
            snippet: intact_fix::fill_in(&best.snippet, std::time::Duration::from_secs(4)),
            traps: &client.traps,
            words: words(&client.id, &client.aliases, &client.errors)
                + &words(
                    "",
                    &client.packages.keys().cloned().collect::<Vec<_>>(),
                    &[],
                ),
        })
    });
    let hops = catalogue
        .hops
        .hops
        .iter()
        .filter_map(|hop| hop_entry(&catalogue, hop));
    let mut page = HEAD.to_owned();
    for entry in hops.chain(clients) {
        page.push_str(&entry.html());
    }
    page.push_str(TAIL);
    std::fs::write(file, page).with_context(|| file.display().to_string())
}

fn hop_entry<'a>(catalogue: &'a Catalogue, hop: &'a Hop) -> Option<Entry<'a>> {
    let measured = catalogue.hops.of(hop);
    let of = |role| measured.iter().rfind(|(variant, _)| variant.role == role);
    let (_, default) = of(Role::Default)?;
    let (_, best) = of(Role::Remedy).or_else(|| of(Role::Limit))?;
    let upstream = default.upstream.as_ref();
    let accepted = default.accepted.as_ref();
    let is_kept = match (upstream, accepted) {
        (Some(upstream), _) => upstream.is_reused(),
        (None, Some(accepted)) => accepted.idle != intact_fix::AcceptedIdle::NotKept,
        (None, None) => return None,
    };
    Some(Entry {
        name: &hop.name,
        group: hop.kind.id(),
        versions: default.version.clone(),
        date: &default.date,
        is_kept: Some(is_kept),
        counted: upstream.map_or_else(
            || "towards its clients".to_owned(),
            |upstream| counted_in_turn(&upstream.one_client, " to the server behind it"),
        ),
        since: hop.since.as_deref(),
        snippet: best.snippet.clone(),
        traps: &hop.traps,
        words: words(&hop.id, &hop.aliases, &hop.errors),
    })
}

fn counted_in_turn(count: &Count, whither: &str) -> String {
    let (opened, requests) = (count.connections, count.requests);
    let opened = plural::counted(opened, "connection");
    format!("{opened}{whither} for {requests} requests in turn")
}

fn words(id: &str, aliases: &[String], errors: &[String]) -> String {
    let all = aliases.iter().chain(errors).map(String::as_str);
    all.fold(format!(" {id}"), |text, word| text + " " + word)
}

impl Entry<'_> {
    fn html(&self) -> String {
        let found = format!(
            "{} {} {} {}",
            self.name, self.group, self.versions, self.words
        );
        let (class, answer) = match self.is_kept {
            Some(true) => ("yes", "yes"),
            Some(false) => ("no", "no"),
            None => ("", "not measured"),
        };
        let mut html = String::new();
        let _ = write!(
            html,
            "<article data-words=\"{}\"><div><h2>{}</h2><small>{}, {}, {}</small></div>\
             <div><p>Keeps connections by default: <b class=\"{class}\">{answer}</b> <small>{}</small></p>",
            escaped(&found.to_lowercase()),
            escaped(self.name),
            escaped(self.group),
            escaped(&self.versions),
            self.date,
            escaped(&self.counted)
        );
        if let Some(since) = self.since {
            let _ = write!(html, "<p>Since: {}</p>", prose(since));
        }
        if !self.traps.is_empty() {
            let items: String = self
                .traps
                .iter()
                .map(|trap| format!("<li>{}</li>", prose(trap)))
                .collect();
            let _ = write!(html, "<p>What breaks:</p><ul>{items}</ul>");
        }
        let _ = writeln!(
            html,
            "<details><summary>What to write</summary><pre>{}</pre></details></div></article>",
            escaped(&self.snippet)
        );
        html
    }
}

/// Text as HTML, with its code marked.
fn prose(text: &str) -> String {
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(nth, part)| match nth % 2 {
        0 => escaped(part),
        _ => format!("<code>{}</code>", escaped(part)),
    });
    parts.collect()
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('<', "&lt;");
    text.replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_every_client_and_hop_and_loads_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("page.html");
        write(&file).unwrap();
        let page = std::fs::read_to_string(file).unwrap();
        let catalogue = Catalogue::embedded().unwrap();
        let rows = catalogue.clients.len() + catalogue.hops.hops.len();
        assert_eq!(page.matches("<article ").count(), rows);
        assert!(!page.contains(">1 connections"));
        for load in ["src=", "href=", "@import", "url("] {
            let head = &page[..HEAD.len()];
            assert!(!head.contains(load) && !TAIL.contains(load), "{load}");
        }
        assert_eq!(prose("a `<b>` c"), "a <code>&lt;b&gt;</code> c");
    }
}
