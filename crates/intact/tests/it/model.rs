//! Predictions as a person asks for them.

use crate::program::{Schema, intact};
use serde_json::Value;

fn docs(path: &str) -> String {
    format!("{}/../../docs/reference/{path}", env!("CARGO_MANIFEST_DIR"))
}

/// The chain that docs/reference/model.md shows.
fn documented() -> String {
    let page = std::fs::read_to_string(docs("model.md")).unwrap();
    let from = page.split("```toml\n").nth(1).unwrap();
    from.split("```").next().unwrap().to_owned()
}

#[test]
fn the_chain_of_the_documentation_gives_a_document_of_the_schema() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.toml");
    std::fs::write(&file, documented()).unwrap();
    let drawing = folder.path().join("shop.mmd");
    let out = intact(&[
        "model",
        file.to_str().unwrap(),
        "--json",
        "--mermaid",
        drawing.to_str().unwrap(),
    ]);
    assert_eq!(out.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&out.stdout).unwrap();
    Schema::named("model").check(&document);
    // 30 + 1 + (2 + 2) + (15 + 4 + 2)
    assert_eq!(document["tcp"]["reused"]["total_ms"], 56.0);
    let drawn = std::fs::read_to_string(drawing).unwrap();
    assert!(
        drawn.starts_with("sequenceDiagram\n    participant p0 as browser\n"),
        "{drawn}"
    );
}

#[test]
fn a_mistake_has_its_line_and_a_missing_file_another_exit_code() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shop.toml");
    std::fs::write(
        &file,
        documented().replace("work = \"4ms\"", "wrok = \"4ms\""),
    )
    .unwrap();
    let out = intact(&["model", file.to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(2));
    let printed = String::from_utf8(out.stderr).unwrap();
    assert!(
        printed.contains("line 23: unknown key `wrok`: did you mean `work`?"),
        "{printed}"
    );
    assert!(printed.contains("further mistakes may follow"), "{printed}");
    let out = intact(&["model", folder.path().join("none.toml").to_str().unwrap()]);
    assert_eq!(out.status.code(), Some(5));
    let printed = String::from_utf8(out.stderr).unwrap();
    assert!(printed.contains("name a chain"), "{printed}");
}
