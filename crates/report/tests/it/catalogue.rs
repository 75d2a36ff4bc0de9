//! docs/requirements.md and docs/rules.md are what the tables say.

/// Holds a page of docs/ to what is made from the code.
fn hold(name: &str, made: &str) {
    let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("INTACT_UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/{name} is not what the code says: run the tests with INTACT_UPDATE=1"
    );
}

#[test]
fn the_page_of_requirements_is_made_from_the_tables() {
    hold("requirements.md", &intact_report::catalogue::requirements());
}

#[test]
fn the_page_of_rules_is_made_from_the_rules() {
    hold("rules.md", &intact_report::catalogue::rules());
}

#[test]
fn a_command_lists_only_what_it_knows() {
    let bench = intact_report::catalogue::text(intact_findings::requirement::Document::Bench);
    assert!(bench.contains("client-delay") && !bench.contains("idle-timeout"));
}

#[test]
fn findings_name_clients_that_the_catalogue_has() {
    use intact_findings::rules::Client;
    let catalogue = intact_fix::Catalogue::embedded().unwrap();
    for client in [
        Client::Node,
        Client::Python,
        Client::Java,
        Client::GoOrRust,
        Client::Ruby,
        Client::Php,
        Client::Curl,
    ] {
        let command = client.fix_command().unwrap();
        let name = command.strip_prefix("intact fix").unwrap().trim();
        assert!(name.is_empty() || catalogue.find(name).is_ok(), "{command}");
    }
}

#[test]
fn the_table_of_recommendations_is_made_from_the_catalogue() {
    const BEGIN: &str = "<!-- made by the tests: recommendations -->\n";
    const END: &str = "<!-- end -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fix.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the mark of the table");
    let (_, after) = rest.split_once(END).expect("the table's end");
    let table = intact_report::patterns::markdown(&intact_fix::Catalogue::embedded().unwrap());
    hold("fix.md", &format!("{before}{BEGIN}{table}{END}{after}"));
}

#[test]
fn the_table_of_clients_is_made_from_the_catalogue() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/fix-table.md");
    let made = intact_report::documents::fix_table(&intact_fix::Catalogue::embedded().unwrap());
    if std::env::var_os("INTACT_UPDATE").is_some() {
        std::fs::write(path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        kept == made,
        "docs/fix-table.md is not what the catalogue says: run the tests with INTACT_UPDATE=1"
    );
}
