//! `--require help`, and the names that findings and the catalogue share.

use intact_document::requirement::DocumentKind;

#[test]
fn a_command_lists_only_what_it_knows() {
    let bench = intact_report::catalogue::text(DocumentKind::Bench, 120);
    assert!(bench.contains("client-delay") && !bench.contains("idle-timeout"));
}

#[test]
fn meanings_have_a_column_of_their_own() {
    let watch = intact_report::catalogue::text(DocumentKind::Watch, 80);
    for line in watch.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let further = watch
        .lines()
        .filter(|line| line.starts_with(&" ".repeat(29)));
    assert!(further.count() > 5, "{watch}");
    let last = watch.lines().find(|line| line.starts_with("  origin "));
    assert!(last.is_some(), "{watch}");
}

#[test]
fn findings_name_clients_that_the_catalogue_has() {
    let catalogue = intact_fix::Catalogue::embedded().unwrap();
    for client in intact_advice::clients() {
        let name = client.fix.as_deref().unwrap_or_default();
        assert!(name.is_empty() || catalogue.find(name).is_ok(), "{name}");
    }
}
