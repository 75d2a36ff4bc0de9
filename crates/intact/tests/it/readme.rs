//! The transcript in README.md is what the program says, but for the figures.

use crate::program::{Server, intact};

/// A line without its figures, their units and the width of its columns.
fn shape(line: &str) -> String {
    let mut out = String::new();
    for word in line.split_whitespace() {
        let figure = word.trim_matches(|c: char| "(),%-".contains(c));
        let is_figure = figure.starts_with(|c: char| c.is_ascii_digit())
            && figure
                .chars()
                .all(|c| c.is_ascii_digit() || ".,-".contains(c));
        let word = if is_figure {
            "#"
        } else if ["µs", "ms", "s"].contains(&word) {
            "time"
        } else {
            word
        };
        out.push_str(word);
        out.push(' ');
    }
    out
}

/// The lines of `said` that have the shapes of `shown`, in order; the first shape that is missing otherwise.
fn find<'a>(shown: &str, said: &'a str) -> Result<Vec<&'a str>, String> {
    let mut lines = said.lines();
    shown
        .lines()
        .map(|line| {
            if line.trim().is_empty() {
                return Ok("");
            }
            lines
                .find(|said| shape(said) == shape(line))
                .ok_or_else(|| line.to_owned())
        })
        .collect()
}

#[test]
fn the_transcript_in_the_readme_is_what_bench_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let (before, rest) = readme
        .split_once("$ intact bench http://127.0.0.1:8080/ -n 400\n")
        .expect("README.md shows the command");
    let (shown, after) = rest.split_once("```").unwrap();

    let server = Server::start(&["--max-requests", "5", "--first-request-cost", "5ms"]);
    let out = intact(&["bench", &server.plain(), "-n", "400"]);
    let said = String::from_utf8(out.stdout).unwrap();
    let found = find(shown, &said).unwrap_or_else(|line| {
        panic!("README.md shows a line that bench does not say: {line}\n{said}")
    });

    if std::env::var_os("INTACT_UPDATE").is_some() {
        let indented = |line: &&str| line.strip_prefix("  ").unwrap_or(line).to_owned();
        let block = found.iter().map(indented).collect::<Vec<_>>().join("\n");
        let command = "$ intact bench http://127.0.0.1:8080/ -n 400";
        std::fs::write(path, format!("{before}{command}\n{block}\n```{after}")).unwrap();
    }
}

#[test]
fn a_line_of_another_shape_is_not_found() {
    let said = "  one     1,234  5.6 µs\n  -> raise the limit";
    assert!(find("one 7 3 ms\n-> raise the limit", said).is_ok());
    assert_eq!(
        find("one 7 3 ms\n-> raise a limit", said),
        Err("-> raise a limit".to_owned())
    );
    assert_eq!(
        find("-> raise the limit\none 7 3 ms", said),
        Err("one 7 3 ms".to_owned())
    );
}
