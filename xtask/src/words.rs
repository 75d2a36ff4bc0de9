//! `cargo xtask words`: checks the language of comments, messages and documentation.
//!
//! It rejects the words of `rejected.rs` in Rust files, Markdown and subjects of commits. In
//! Markdown it also rejects wide lines, long paragraphs and long sentences. It reads text only: it
//! builds nothing and changes nothing.

mod names;
mod prose;
mod rejected;
mod subjects;

use crate::tool;
use anyhow::Context;
use prose::{MAX_COLUMNS, MAX_SENTENCE, MAX_WORDS, Passage};
use rejected::Rejected;
use std::collections::BTreeMap;
use std::path::Path;

/// Exempt: texts of other people, and texts that programs read. A `README.md` is neither.
const EXEMPT: &[&str] = &["fixtures/"];

/// Names that may hold a rejected word: a file or folder, the word, and the reason.
const EXEMPT_NAMES: &[(&str, &str, &str)] = &[(
    "crates/intact/tests/it/watch/",
    "nobody",
    "the user account",
)];

/// A place where the language breaks a rule.
struct Hit {
    line: usize,
    kind: Kind,
    message: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Comment,
    Message,
    Name,
    Text,
    Layout,
}

/// Hits of a folder by kind, and what they are compared with.
#[derive(Default)]
struct Totals {
    comment_lines: usize,
    words: BTreeMap<&'static str, usize>,
}

impl Kind {
    fn label(self) -> &'static str {
        match self {
            Kind::Comment => "comment",
            Kind::Message => "message",
            Kind::Name => "name",
            Kind::Text => "text",
            Kind::Layout => "layout",
        }
    }
}

/// Checks the tracked files and the subjects of the branch's commits. `Ok(false)`: there is a hit.
/// With `count` it prints a table of all folders and always passes.
pub(crate) fn check(count: bool) -> anyhow::Result<bool> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let rejected = Rejected::new()?;
    let mut totals: BTreeMap<String, Totals> = BTreeMap::new();
    let (mut files, mut broken) = (0, 0);
    let tracked = tool::run(root, "git", &["ls-files", "*.rs", "*.md"])?;
    for name in tracked.lines().filter(|name| is_read(name)) {
        let source = std::fs::read_to_string(root.join(name)).with_context(|| name.to_owned())?;
        let (comment_lines, hits) = hits(&rejected, name, &source);
        files += 1;
        let folder = totals.entry(folder(name)).or_default();
        folder.comment_lines += comment_lines;
        for hit in &hits {
            *folder.words.entry(hit.kind.label()).or_default() += 1;
        }
        if !count {
            for hit in &hits {
                println!("{name}:{}: {}: {}", hit.line, hit.kind.label(), hit.message);
            }
            broken += hits.len();
        }
    }
    if count {
        print!("{}", table(&totals));
        return Ok(true);
    }
    match subjects::problems(root, &rejected) {
        Some(problems) => {
            broken += problems.len();
            problems.iter().for_each(|problem| println!("{problem}"));
        }
        None => println!("subjects of commits are not checked: the clone lacks the branch point"),
    }
    println!("{files} files: {broken} problems of language");
    Ok(broken == 0)
}

/// The number of comment lines of a file, and its hits.
fn hits(rejected: &Rejected, name: &str, source: &str) -> (usize, Vec<Hit>) {
    let line = |offset: usize| source[..offset].matches('\n').count() + 1;
    let layout = |offset: usize, message: String| Hit {
        line: line(offset),
        kind: Kind::Layout,
        message,
    };
    let mut hits = Vec::new();
    let mut find = |kind, passages: &[Passage]| {
        for passage in passages {
            for (offset, phrase, instead) in rejected.find(&passage.text) {
                let phrase = phrase.split_whitespace().collect::<Vec<_>>().join(" ");
                hits.push(Hit {
                    line: line(passage.start + offset),
                    kind,
                    message: format!("\"{phrase}\"; write {instead}"),
                });
            }
        }
    };
    if name.ends_with(".rs") {
        let is_test = name.contains("/tests/") || name.ends_with("/tests.rs");
        let prose = prose::of_rust(source, is_test);
        find(Kind::Comment, &prose.comments);
        find(Kind::Message, &prose.messages);
        hits.extend(name_hits(rejected, name, source, line));
        for offset in prose::wide_comments(source) {
            let message = format!("a line of a comment has more than {MAX_COLUMNS} columns");
            hits.push(layout(offset, message));
        }
        return (prose.comment_lines, hits);
    }
    let prose = prose::of_markdown(source);
    find(Kind::Text, &prose.text);
    for offset in prose.wide_lines {
        let message = format!("a line of prose has more than {MAX_COLUMNS} columns");
        hits.push(layout(offset, message));
    }
    for (what, found, most) in [
        ("paragraph", prose.long_paragraphs, MAX_WORDS),
        ("sentence", prose.long_sentences, MAX_SENTENCE),
    ] {
        for (offset, words) in found {
            let message = format!("a {what} has {words} words, more than {most}");
            hits.push(layout(offset, message));
        }
    }
    (0, hits)
}

/// The names of a Rust file that hold a rejected word.
fn name_hits(
    rejected: &Rejected,
    file: &str,
    source: &str,
    line: impl Fn(usize) -> usize,
) -> Vec<Hit> {
    let names = names::of_rust(source).into_iter();
    let hits = names.flat_map(|name| {
        let found = rejected.find_in_name(&name.words);
        let found = found.filter(|(word, _)| !is_exempt(file, word));
        let hit = |(word, instead)| Hit {
            line: line(name.start),
            kind: Kind::Name,
            message: format!("\"{word}\" in the name \"{}\"; write {instead}", name.words),
        };
        found.map(hit).collect::<Vec<_>>()
    });
    hits.collect()
}

/// Whether a file is checked.
fn is_read(name: &str) -> bool {
    !is_below(name, EXEMPT) || name.ends_with("/README.md")
}

/// Whether a file may have a name with this word.
fn is_exempt(file: &str, word: &str) -> bool {
    let is_listed = |(place, listed, _): &(&str, &str, &str)| {
        is_below(file, &[*place]) && word.eq_ignore_ascii_case(listed)
    };
    EXEMPT_NAMES.iter().any(is_listed)
}

/// Whether a file is one of `listed`, or below a folder of it that ends with `/`.
fn is_below(name: &str, listed: &[&str]) -> bool {
    let is_one =
        |listed: &&str| name == *listed || listed.ends_with('/') && name.starts_with(listed);
    listed.iter().any(is_one)
}

/// The folder that a file is counted under: a crate, or the file itself for documentation.
fn folder(name: &str) -> String {
    if name.ends_with(".md") {
        return name.to_owned();
    }
    let depth = if name.starts_with("crates/") { 2 } else { 1 };
    name.split('/').take(depth).collect::<Vec<_>>().join("/")
}

/// Hits per folder. Folders without comments and without a hit are left out.
fn table(totals: &BTreeMap<String, Totals>) -> String {
    let header = [
        "folder",
        "comment lines",
        "comment",
        "per 1,000",
        "message",
        "name",
        "text",
        "layout",
    ];
    let mut text = format!(
        "| {} |\n|{}\n",
        header.join(" | "),
        " --- |".repeat(header.len())
    );
    for (folder, totals) in totals {
        if totals.comment_lines == 0 && totals.words.is_empty() {
            continue;
        }
        let count = |kind: Kind| totals.words.get(kind.label()).copied().unwrap_or(0);
        let rate = match totals.comment_lines {
            0 => "-".to_owned(),
            lines => format!("{:.1}", 1000.0 * count(Kind::Comment) as f64 / lines as f64),
        };
        text += &format!(
            "| {folder} | {} | {} | {rate} | {} | {} | {} | {} |\n",
            totals.comment_lines,
            count(Kind::Comment),
            count(Kind::Message),
            count(Kind::Name),
            count(Kind::Text),
            count(Kind::Layout),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_have_the_line_and_the_kind() {
        let rejected = Rejected::new().unwrap();
        let source = "//! A\n\n/// Once\n/// more.\nfn told() {\n    f(\"stands beside\")\n}\n";
        let (comment_lines, hits) = hits(&rejected, "crates/a/src/lib.rs", source);
        let found = hits.iter().map(|hit| (hit.line, hit.kind.label()));
        let expected = [(3, "comment"), (6, "message"), (5, "name")];
        assert_eq!(found.collect::<Vec<_>>(), expected);
        assert_eq!(hits[0].message, "\"Once more\"; write again");
        assert_eq!(comment_lines, 3);
    }

    #[test]
    fn a_rejected_word_is_found_in_names_of_locals_fields_and_parameters() {
        let rejected = Rejected::new().unwrap();
        let source = "struct A {\n    old_books: B,\n}\nfn c(guest: D) {\n    let recipe = e;\n}\nf(|Victim { bill }| g);\n";
        let found = |file| -> Vec<(usize, String)> {
            let (_, hits) = hits(&rejected, file, source);
            hits.into_iter()
                .map(|hit| (hit.line, hit.message))
                .collect()
        };
        let expected = [
            (
                2,
                "\"books\" in the name \"old books\"; write tally, tracker, counts",
            ),
            (4, "\"guest\" in the name \"guest\"; write peer"),
            (5, "\"recipe\" in the name \"recipe\"; write plan, job"),
            (7, "\"bill\" in the name \"bill\"; write attribution"),
        ];
        let expected = expected.map(|(line, message)| (line, message.to_owned()));
        assert_eq!(found("crates/a/src/lib.rs"), expected);
    }

    #[test]
    fn an_exempt_word_is_allowed_in_names_of_its_folder_only() {
        let rejected = Rejected::new().unwrap();
        let source = "let nobody = a; let victim = b;";
        for (file, expected) in [
            ("crates/intact/tests/it/watch/rights.rs", 1),
            ("crates/intact/tests/it/serve.rs", 2),
        ] {
            assert_eq!(hits(&rejected, file, source).1.len(), expected, "{file}");
        }
        for (_, word, reason) in EXEMPT_NAMES {
            assert_eq!(rejected.find_in_name(word).count(), 1, "{word}");
            assert!(!reason.is_empty(), "{word}");
        }
    }

    #[test]
    fn literals_of_tests_are_fixtures() {
        let rejected = Rejected::new().unwrap();
        let source = "f(\"stands beside\")";
        for (name, expected) in [
            ("a/src/b.rs", 1),
            ("a/tests/it/b.rs", 0),
            ("a/src/tests.rs", 0),
        ] {
            assert_eq!(hits(&rejected, name, source).1.len(), expected, "{name}");
        }
    }

    #[test]
    fn markdown_is_checked_for_words_and_layout() {
        let rejected = Rejected::new().unwrap();
        let source = format!("told\n\n{}\n", "word ".repeat(81));
        let (_, hits) = hits(&rejected, "docs/a.md", &source);
        let found = hits.iter().map(|hit| (hit.line, hit.kind.label()));
        assert_eq!(
            found.collect::<Vec<_>>(),
            [(1, "text"), (3, "layout"), (3, "layout"), (3, "layout")]
        );
    }

    #[test]
    fn a_wide_comment_is_found_outside_code_blocks() {
        let rejected = Rejected::new().unwrap();
        let wide = "word ".repeat(21);
        let source = format!("/// ```\n/// {wide}\n/// ```\n/// {wide}\nlet x = \"{wide}\";\n");
        let (_, hits) = hits(&rejected, "crates/a/src/lib.rs", &source);
        let found = hits.iter().map(|hit| (hit.line, hit.kind.label()));
        assert_eq!(found.collect::<Vec<_>>(), [(4, "layout")]);
    }

    #[test]
    fn a_listed_folder_covers_its_files_and_no_other_folder() {
        let listed = ["crates/fix/", "README.md"];
        for name in ["crates/fix/src/lib.rs", "README.md"] {
            assert!(is_below(name, &listed), "{name}");
        }
        for name in ["crates/fixes/src/lib.rs", "docs/README.md", "crates/fix"] {
            assert!(!is_below(name, &listed), "{name}");
        }
    }

    #[test]
    fn fixtures_are_exempt_except_for_their_readmes() {
        assert!(is_read("docs/reference/fix.md"));
        assert!(is_read("fixtures/har/README.md"));
        assert!(!is_read("fixtures/golden/page.md"));
    }

    #[test]
    fn files_are_counted_by_crate_and_documents_alone() {
        assert_eq!(folder("crates/fix/src/lib.rs"), "crates/fix");
        assert_eq!(folder("xtask/src/main.rs"), "xtask");
        assert_eq!(folder("docs/reference/fix.md"), "docs/reference/fix.md");
    }
}
