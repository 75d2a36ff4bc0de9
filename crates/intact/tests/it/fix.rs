//! The catalogue as a person asks it.

use crate::program::{Schema, intact};
use serde_json::Value;

fn text(words: &[&str]) -> (i32, String, String) {
    let out = intact(words);
    (
        out.status.code().unwrap(),
        String::from_utf8(out.stdout).unwrap(),
        String::from_utf8(out.stderr).unwrap(),
    )
}

#[test]
fn the_list_has_every_client() {
    let (code, page, _) = text(&["fix", "--full"]);
    assert_eq!(code, 0);
    for client in [
        "node-http",
        "axios",
        "requests",
        "boto3",
        "go-net-http",
        "okhttp",
        "curl",
    ] {
        assert!(page.contains(&format!("  {client} ")), "{client}: {page}");
    }
}

#[test]
fn settings_are_filled_in_from_the_servers_idle_limit() {
    let (code, page, _) = text(&["fix", "node/fetch", "--server-idle", "3s"]);
    assert_eq!(code, 0);
    assert!(page.contains("keepAliveTimeout: 2000"), "{page}");
    let (_, page, _) = text(&["fix", "fetch", "--server-idle", "60s"]);
    assert!(page.contains("Nothing to set"), "{page}");
}

#[test]
fn a_client_has_what_to_set_on_one_screen_and_all_of_it_with_full() {
    for client in [
        "axios",
        "node/fetch",
        "requests",
        "go-net-http",
        "okhttp",
        "reqwest",
    ] {
        let (code, screen, printed) = text(&["fix", client]);
        assert_eq!(code, 0, "{client}: {printed}");
        assert!(screen.lines().count() <= 40, "{client}: {screen}");
        assert!(screen.contains("\nWhat to set\n"), "{client}: {screen}");
        let (_, full, _) = text(&["fix", client, "--full"]);
        assert!(full.contains("\nAll variants\n"), "{client}: {full}");
    }
}

#[test]
fn a_client_without_a_limit_says_what_it_repeats() {
    let (_, page, _) = text(&["fix", "requests", "--server-idle", "60s"]);
    assert!(page.contains("no idle limit to set"), "{page}");
    assert!(page.contains("Retry(total=1"), "{page}");
}

#[test]
fn an_unknown_client_gets_the_nearest_names() {
    let (code, _, printed) = text(&["fix", "axois"]);
    assert_eq!(code, 2);
    assert!(printed.contains("did you mean axios"), "{printed}");
    // the guide has it, the catalogue not
    let (code, _, printed) = text(&["fix", "502"]);
    assert_eq!(code, 2);
    assert!(
        printed.contains("`intact help 502-after-idle`"),
        "{printed}"
    );
}

#[test]
fn a_version_never_measured_names_those_that_were() {
    let (code, _, printed) = text(&["fix", "axios@0.21"]);
    assert_eq!(code, 2);
    assert!(
        printed.contains("never measured") && printed.contains("axios 1."),
        "{printed}"
    );
}

#[test]
fn no_line_is_wider_than_the_terminal_except_code() {
    let (_, page, _) = text(&["fix"]);
    for line in page.lines() {
        assert!(line.chars().count() <= 120, "{line}");
    }
}

#[test]
fn the_document_of_the_catalogue_is_what_its_schema_says() {
    let schema = Schema::named("fix");
    for words in [
        &["fix", "--json"][..],
        &["fix", "--json", "--server-idle", "6s"],
        &["fix", "axios", "--json"],
    ] {
        let (code, page, _) = text(words);
        assert_eq!(code, 0);
        let document: Value = serde_json::from_str(&page).unwrap();
        schema.check(&document);
    }
}

#[test]
fn json_goes_to_a_file_next_to_the_page() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("axios.json");
    let (code, page, _) = text(&["fix", "axios", &format!("--json={}", path.display())]);
    assert_eq!(code, 0);
    assert!(page.contains("By default"));
    let document: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(document["clients"][0]["id"], "axios");
}
