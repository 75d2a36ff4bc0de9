//! The pages of `fix` have what the catalogue has.

use super::*;
use crate::terminal::TerminalOptions;

#[test]
fn the_full_page_of_each_client_has_every_figure_of_every_variant() {
    fn texts(column: &Column) -> Vec<Option<String>> {
        let cells = column.cells.iter();
        cells.map(|cell| Some(cell.text()?.to_string())).collect()
    }
    let catalogue = Catalogue::embedded().unwrap();
    let mut columns = 0;
    for client in &catalogue.clients {
        let page = fix_client(&catalogue, client, FixRequest::default());
        let blocks = page.sections.iter().flat_map(|one| one.of(Depth::Summary));
        let tables = blocks.filter_map(|block| match block {
            Block::Table(table) => Some(table),
            _ => None,
        });
        let shown: Vec<&Column> = tables
            .flat_map(|table| table.columns.iter().filter(|column| !column.is_full))
            .collect();
        let of = |variant| rows(&catalogue, client, variant);
        let rows: Vec<Row<'_>> = client.variants.iter().flat_map(of).collect();
        for column in measured(Rows::of(&rows)).columns {
            let is_shown = |one: &&Column| one.head == column.head && texts(one) == texts(&column);
            let is_empty = texts(&column).iter().all(Option::is_none);
            assert!(
                is_empty || shown.iter().any(is_shown),
                "{}: {}",
                client.id,
                column.head
            );
            columns += usize::from(!is_empty);
        }
        let page = terminal(&page);
        assert!(!page.contains("no room for"), "{}: {page}", client.id);
        let words = page.split_whitespace().collect::<Vec<_>>().join(" ");
        let notes = notes(client).into_iter().flat_map(|(_, _, lines)| lines);
        for line in notes.chain(client.variants.iter().map(|one| &one.title)) {
            let line = Text::prose(line).to_string();
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&line), "{}: {line}", client.id);
        }
    }
    assert!(columns > 500, "{columns}");
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
    let page = terminal(&fix_client(&catalogue, axios, FixRequest::default()));
    assert!(page.contains(&missing), "{missing}");

    catalogue.measured.retain(|one| !is_axios(one));
    let page = terminal(&fix_client(&catalogue, axios, FixRequest::default()));
    assert!(
        page.contains("axios: not measured, so its reuse is unknown."),
        "{page}"
    );
    assert!(page.contains("Not measured: default, "), "{page}");
    let list = terminal(&fix_list(&catalogue, &[axios], &[]));
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
