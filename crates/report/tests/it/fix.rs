//! The pages of the catalogue of clients.

use crate::written;
use intact_fix::Catalogue;
use intact_report::documents::{FixRequest, fix_client, fix_list, fix_overview};
use std::time::Duration;

#[test]
fn all_clients_of_a_language_are_in_a_table() {
    let catalogue = Catalogue::embedded().unwrap();
    let found = catalogue.find("python").unwrap();
    let page = || fix_list(&catalogue, &found.clients, &[]);
    insta::assert_snapshot!(written::terminal(&[page()]));
    let (markdown, html) = written::files("fix-clients", &[page()]);
    for head in ["resumed", "unread", "longest life"] {
        assert!(markdown.contains(head) && html.contains(head), "{head}");
    }
}

#[test]
fn the_overview_names_each_client_once() {
    let catalogue = Catalogue::embedded().unwrap();
    let clients: Vec<_> = catalogue.clients.iter().collect();
    let page = written::terminal(&[fix_overview(&catalogue, &clients)]);
    assert!(page.lines().count() <= 40, "{page}");
    let words: Vec<&str> = page.split([' ', ',', '\n']).collect();
    for client in clients {
        assert!(words.contains(&client.id.as_str()), "{} {page}", client.id);
    }
}

#[test]
fn a_client_has_what_to_set_for_the_limit_of_the_server() {
    let catalogue = Catalogue::embedded().unwrap();
    let found = catalogue.find("axios").unwrap();
    let request = FixRequest {
        server_idle: Some(Duration::from_secs(6)),
        version: found.version,
    };
    let page = || fix_client(&catalogue, found.clients[0], request);
    insta::assert_snapshot!(written::terminal(&[page()]));
    let (markdown, html) = written::files("fix-client", &[page()]);
    for words in ["timeout: 4000", "idle connections are kept"] {
        assert!(markdown.contains(words) && html.contains(words), "{words}");
    }
}

#[test]
fn a_version_that_is_asked_for_leaves_out_the_others() {
    let catalogue = Catalogue::embedded().unwrap();
    let found = catalogue.find("node-http").unwrap();
    let client = found.clients[0];
    let of = |version| {
        let request = FixRequest {
            version,
            ..FixRequest::default()
        };
        written::terminal(&[fix_client(&catalogue, client, request)])
    };
    assert!(of(None).contains("node 24") && of(None).contains("node 18"));
    assert!(of(Some("18")).contains("node 18") && !of(Some("18")).contains("node 24"));
    assert!(!of(Some("1")).contains("node 18"));
}

#[test]
fn every_client_has_a_page() {
    let catalogue = Catalogue::embedded().unwrap();
    for client in &catalogue.clients {
        let page = fix_client(&catalogue, client, FixRequest::default());
        let page = written::terminal(&[page]);
        assert!(!page.contains("\\t"), "{page}");
        assert!(
            page.contains("By default: ") && page.contains("All variants"),
            "{page}"
        );
    }
}
