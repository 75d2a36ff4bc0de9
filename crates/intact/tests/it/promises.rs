//! docs/reference/promises.md names a test for each promise. Each of them exists and is a test.

use std::path::Path;

const PROMISES: &str = include_str!("../../../../docs/reference/promises.md");

/// The rows of the tables, without headings.
fn rows() -> impl Iterator<Item = Vec<&'static str>> {
    PROMISES
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---"))
        .map(|line| line.trim_matches('|').split(" | ").map(str::trim).collect())
        .filter(|cells: &Vec<&str>| cells[0] != "promise")
}

/// Whether a source has a test of that name, written out or as a property.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let head = format!("fn {name}(");
    lines.iter().enumerate().any(|(at, line)| {
        // attributes stand between `#[test]` and the function
        let before = lines[..at].iter().rev();
        let attributes: Vec<_> = before.take_while(|line| line.starts_with("#[")).collect();
        let is_ignored = attributes.iter().any(|line| line.starts_with("#[ignore"));
        line.starts_with(&head) && attributes.contains(&&"#[test]") && !is_ignored
    })
}

#[test]
fn every_promise_names_a_test_that_exists() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut wrong = Vec::new();
    let mut count = 0;
    for cells in rows() {
        count += 1;
        let [_, _, test] = cells[..] else {
            wrong.push(format!("not three cells: {cells:?}"));
            continue;
        };
        let words: Vec<&str> = test
            .split('`')
            .filter(|word| !word.trim().is_empty())
            .collect();
        let [file, name] = words[..] else {
            wrong.push(format!("not a file and a function: {test}"));
            continue;
        };
        match std::fs::read_to_string(root.join(file)) {
            Ok(source) if has_test(&source, name) => {}
            Ok(_) => wrong.push(format!("{file} has no test {name}")),
            Err(error) => wrong.push(format!("{file}: {error}")),
        }
    }
    assert!(count >= 40, "rows are missing: {count}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_function_is_a_test_only_with_its_attribute() {
    let source =
        "#[test]\n#[cfg(unix)]\nfn one() {\n}\nfn two() {\n    #[test]\n    fn three(a in 0..1) {
        #[test]\n#[ignore]\nfn four() {";
    assert!(has_test(source, "one") && has_test(source, "three"));
    assert!(!has_test(source, "two") && !has_test(source, "thre") && !has_test(source, "four"));
}
