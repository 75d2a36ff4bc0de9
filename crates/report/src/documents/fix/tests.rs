//! The tables of docs/reference/fix.md and docs/reference/fix-table.md, made from the catalogue.

use super::*;
use crate::terminal::TerminalOptions;
use crate::tests::{hold, whole, wrapped};
use std::fmt::Write;

#[test]
fn the_table_of_recommendations_is_made_from_the_catalogue() {
    const BEGIN: &str = "<!-- made by the tests: recommendations -->\n";
    const END: &str = "<!-- end -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/fix.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the mark of the table");
    let (_, after) = rest.split_once(END).expect("the table's end");
    let table = recommendations(&Catalogue::embedded().unwrap());
    hold("fix.md", &format!("{before}{BEGIN}{table}{END}{after}"));
}

#[test]
fn the_table_of_clients_is_made_from_the_catalogue() {
    let catalogue = Catalogue::embedded().unwrap();
    hold("fix-table.md", &wrapped(&fix_table(&catalogue)));
}

#[test]
fn every_client_is_in_the_reference() {
    let catalogue = Catalogue::embedded().unwrap();
    let reference = fix_table(&catalogue);
    for client in &catalogue.clients {
        assert!(reference.contains(&format!("(`intact fix {}`)", client.id)));
        let measured = catalogue
            .measured
            .iter()
            .filter(|one| one.client == client.id);
        let rows = reference.lines().filter(|line| line.starts_with("| "));
        assert!(rows.count() >= measured.count());
    }
}

#[test]
fn a_client_that_was_not_measured_is_named_as_such() {
    let mut catalogue = Catalogue::embedded().unwrap();
    let is_axios = |one: &Measurement| one.client == "axios";
    catalogue
        .measured
        .retain(|one| !is_axios(one) || one.variant == "keepalive");
    let axios = catalogue.clients.iter().find(|one| one.id == "axios");
    let axios = axios.unwrap();
    let others = axios.variants.iter().filter(|one| one.id != "keepalive");
    let others: Vec<&str> = others.map(|one| one.id.as_str()).collect();
    let missing = format!("Not measured: {}.", others.join(", "));
    assert!(fix_table(&catalogue).contains(&missing), "{missing}");

    catalogue.measured.retain(|one| !is_axios(one));
    let page = terminal(&fix_client(&catalogue, axios, FixRequest::default()));
    assert!(
        page.contains("axios: not measured, so its reuse is unknown."),
        "{page}"
    );
    assert!(page.contains("Not measured: default, "), "{page}");
    let list = terminal(&fix_list(&catalogue, &[axios]));
    assert!(list.contains("Not measured: axios."), "{list}");
}

#[test]
fn the_page_says_how_long_a_request_hung_with_and_without_the_limit() {
    let catalogue = Catalogue::embedded().unwrap();
    let client = catalogue.find("go-net-http").unwrap().clients[0];
    let page = terminal(&fix_client(&catalogue, client, FixRequest::default()));
    for words in [
        "What limits a hang",
        "Without it (`default`) a GET on a silent connection waited for at least 20 s;",
        "With a limit of 2 s (`timeout`) it waited 2 s.",
        "limit := time.Duration(10000) * time.Millisecond",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("timeout_ms"), "{page}");
}

fn terminal(page: &Page<'_>) -> String {
    let options = TerminalOptions::plain(100);
    crate::terminal::write(page, options)
}

#[test]
fn the_page_of_articles_has_each_snippet_verdict_and_alternative() {
    let catalogue = Catalogue::embedded().unwrap();
    let page = fix_articles(&catalogue);
    let text = crate::terminal::write(&page, TerminalOptions::plain(200));
    for article in &catalogue.articles {
        let (client, variant) = catalogue.variant_of(article, &article.with).unwrap();
        let newest = rows(&catalogue, client, variant).pop().unwrap();
        for line in variant.snippet(newest.one).lines() {
            let line = line.replace('\t', "    ");
            assert!(text.contains(line.trim_end()), "{}: {line}", article.advice);
        }
        for trial in catalogue.trials(article) {
            assert!(text.contains(&trial.with.versions()), "{}", article.advice);
            assert!(text.contains(trial.effect().words()), "{}", article.advice);
        }
        if let Some(other) = &article.instead {
            assert!(
                text.contains(&format!("{}/{other}", client.id)),
                "{}",
                article.advice
            );
        }
    }
}

/// The page docs/reference/fix-table.md.
fn fix_table(catalogue: &Catalogue) -> String {
    let mut out = REFERENCE.to_owned();
    let all: Vec<&Client> = catalogue.clients.iter().collect();
    let variants = all
        .iter()
        .flat_map(|client| client.variants.iter().map(move |one| (*client, one)));
    let every: Vec<Row<'_>> = variants
        .flat_map(|(client, one)| rows(catalogue, client, one))
        .collect();
    for column in measured(Rows::of(&every)).columns {
        let _ = writeln!(out, "- *{}*: {}", column.head, column.meaning);
    }
    for (language, clients) in by_language(&all) {
        let _ = write!(out, "\n## {}\n", title(language));
        for client in clients {
            let _ = write!(
                out,
                "\n### {} (`intact fix {}`)\n\n",
                client.name, client.id
            );
            if let Some(since) = &client.since {
                let _ = writeln!(out, "Reuses connections by default: {since}.\n");
            }
            if let Some(life) = &client.life {
                let _ = writeln!(
                    out,
                    "Option that limits a connection's life, its default as documented: {life}.\n"
                );
            }
            let of = |variant| rows(catalogue, client, variant);
            let rows: Vec<Row<'_>> = client.variants.iter().flat_map(of).collect();
            let table = Rows::of(&rows)
                .column("variant", |row| {
                    text!("{}: {}", &row.variant.id, Text::prose(&row.variant.title))
                })
                .column("versions", |row| row.one.versions());
            out.push_str(&whole(&measured(table)));
            if let Some(missing) = unmeasured_variants(client, &rows) {
                let _ = writeln!(out, "{missing}\n");
            }
            for (_, title, lines) in notes(client).into_iter().filter(|one| !one.2.is_empty()) {
                let _ = write!(out, "{title}:\n\n");
                lines.iter().for_each(|line| {
                    let _ = writeln!(out, "- {line}");
                });
                out.push('\n');
            }
        }
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

const REFERENCE: &str = "# What HTTP clients do with their connections

Generated from `clients/catalogue.toml` and `clients/measured.json`; a test compares this page with them. [fix.md](fix.md) describes the measurement. The server
counts connections. The columns:

";

/// The table of recommendations, a row for each runtime.
fn recommendations(catalogue: &Catalogue) -> String {
    let of = |article| {
        trials(catalogue, article)
            .into_iter()
            .map(move |one| (article, one))
    };
    let rows: Vec<(&Article, Trial<'_>)> = catalogue.articles.iter().flat_map(of).collect();
    let table = Rows::of(&rows)
        .column("recommended", |(article, _)| Text::prose(&article.advice))
        .column("measured as", |(article, _)| {
            Text::prose(&format!("`{}/{}`", article.client, article.with))
        });
    whole(&effects(table).table())
}
