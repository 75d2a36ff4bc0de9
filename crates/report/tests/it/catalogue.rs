//! `--require help`, and the names that findings and the catalogue share.

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
        Client::Go,
        Client::Rust,
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
