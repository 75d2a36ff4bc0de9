//! The pages of `docs/guide`, for `intact help TOPIC`, laid out for a terminal.

use intact_report::page::{Block, Rows, Section, Table, Text};

/// The pages of `docs/guide` by their file names, as `[(name, text)]`.
macro_rules! pages {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../../docs/guide/", $name, ".md")))),*]
    };
}

/// The pages, with the names that are their topics.
const PAGES: [(&str, &str); 15] = pages![
    "502-after-idle",
    "audit-a-capture-or-log",
    "cannot-assign-requested-address",
    "econnreset",
    "enotfound-under-load",
    "gate-in-ci",
    "is-my-program-reusing-connections",
    "is-my-proxy-reusing-connections",
    "it-runs-in-production",
    "prove-a-fix",
    "read-a-bench-page",
    "realistic-load-test",
    "second-peak",
    "slow-lambda",
    "which-timeout-where",
];

/// The files that the pages name, as `[(name, text)]`.
macro_rules! files {
    ($($name:literal),* $(,)?) => {
        [
            ("access.log", include_str!("../../../../../fixtures/logs/nginx-intact.log")),
            $(($name, include_str!(concat!("../../../../../docs/guide/programs/", $name)))),*
        ]
    };
}

/// The files that the pages name.
const FILES: [(&str, &str); 16] = files![
    "bare.conf",
    "calls.js",
    "calls.py",
    "complete.conf",
    "default.caddy",
    "function.js",
    "idle.js",
    "keepalive-alone.conf",
    "off.caddy",
    "proxypass.conf",
    "reuse.cfg",
    "rewrite.conf",
    "server-close.cfg",
    "service.js",
    "through.sh",
];

/// The text of a file that a page names.
pub(super) fn file(name: &str) -> Option<&'static str> {
    let file = FILES.iter().find(|(own, _)| *own == name);
    file.map(|(_, text)| *text)
}

/// The list of pages.
const INDEX: &str = include_str!("../../../../../docs/guide/README.md");

/// The page of a topic; `guide` is the list of pages.
pub(super) fn page(topic: &str) -> Option<Vec<Section>> {
    let text = match topic {
        "guide" => INDEX,
        _ => PAGES.iter().find(|(name, _)| *name == topic)?.1,
    };
    Some(sections(&without_targets(text)))
}

/// The heading of a topic's page.
pub(in crate::cmd) fn title(topic: &str) -> String {
    let text = PAGES.iter().find(|(name, _)| *name == topic);
    let first = text.and_then(|(_, text)| text.lines().next());
    let first = first.unwrap_or_default().trim_start_matches('#');
    without_stars(first.trim())
}

/// The topic of the page whose heading has these words.
pub(in crate::cmd) fn titled(words: &str) -> Option<&'static str> {
    let wanted = words.trim().to_lowercase();
    let mut topics = PAGES.iter().map(|(name, _)| *name);
    topics.find(|name| has_words(&title(name).to_lowercase(), &wanted))
}

/// The topics of the pages that have these words: in the name, the heading or the list of pages,
/// else anywhere.
pub(in crate::cmd) fn about(words: &str) -> Vec<&'static str> {
    let wanted = words.trim().to_lowercase();
    let has = |text: &str| has_words(&text.to_lowercase(), &wanted);
    let topics = |is: &dyn Fn(&str, &str) -> bool| -> Vec<&'static str> {
        let pages = PAGES.iter().filter(|(name, text)| is(name, text));
        pages.map(|(name, _)| *name).collect()
    };
    let in_list = |name: &str| {
        let link = format!("]({name}.md)");
        let row = INDEX.lines().find(|line| line.contains(&link));
        row.and_then(|row| row.split('|').nth(1)).is_some_and(has)
    };
    let named =
        topics(&|name, _| has(&name.replace('-', " ")) || has(&title(name)) || in_list(name));
    if named.is_empty() {
        return topics(&|_, text| has(text));
    }
    named
}

/// Whether a text has the words, not inside of others; `502` is also in `502s`.
fn has_words(text: &str, wanted: &str) -> bool {
    let is_inside = |one: Option<char>| one.is_some_and(char::is_alphanumeric);
    !wanted.is_empty()
        && text.match_indices(wanted).any(|(at, _)| {
            let after = text[at + wanted.len()..].strip_prefix('s');
            let after = after.unwrap_or(&text[at + wanted.len()..]);
            !is_inside(text[..at].chars().next_back()) && !is_inside(after.chars().next())
        })
}

/// A page of Markdown as the guide uses it: a section for each heading, with paragraphs, lists,
/// tables and blocks of code.
fn sections(text: &str) -> Vec<Section> {
    let mut sections: Vec<Section> = Vec::new();
    let mut after_table = false;
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let block = if line.is_empty() {
            continue;
        } else if line.starts_with('#') {
            let title = line.trim_start_matches('#').trim();
            sections.push(Section::new("guide", title));
            after_table = false;
            continue;
        } else if line.starts_with("```") {
            let code = lines.by_ref().take_while(|line| *line != "```");
            Block::Code(code.map(str::to_owned).collect())
        } else {
            let mut block = vec![line];
            while let Some(more) = lines.next_if(|more| belongs(more)) {
                block.push(more);
            }
            of_lines(&block)
        };
        // an untitled section begins with a blank line
        if after_table {
            sections.push(Section::new("guide", ""));
        }
        after_table = matches!(block, Block::Table(_));
        if let Some(section) = sections.pop() {
            sections.push(section.summary(block));
        }
    }
    sections
}

/// Whether a line goes on with the block before it.
fn belongs(line: &str) -> bool {
    !line.is_empty() && !line.starts_with('#') && !line.starts_with("```")
}

/// A table, a list or a paragraph.
fn of_lines(lines: &[&str]) -> Block {
    if lines[0].starts_with('|') {
        return Block::Table(table(lines));
    }
    if item(lines[0]).is_none() {
        return Text::prose(&without_stars(&lines.join(" "))).into();
    }
    let mut items: Vec<String> = Vec::new();
    for line in lines {
        match (item(line), items.last_mut()) {
            (None, Some(begun)) => *begun = format!("{begun} {}", line.trim()),
            (words, _) => items.push(words.unwrap_or(line).to_owned()),
        }
    }
    let items = items.iter().map(|item| Text::prose(&without_stars(item)));
    Block::List(items.collect())
}

/// The words of an item of a list. A numbered one keeps its number.
fn item(line: &str) -> Option<&str> {
    let is_numbered = line.split_once(". ").is_some_and(|(number, _)| {
        !number.is_empty() && number.chars().all(|one| one.is_ascii_digit())
    });
    line.strip_prefix("- ").or(is_numbered.then_some(line))
}

/// A table; its second line has no content.
fn table(lines: &[&str]) -> Table {
    let cells = |line: &&str| -> Vec<String> {
        let cells = line.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().to_owned()).collect()
    };
    let heads = cells(&lines[0]);
    let rows: Vec<Vec<String>> = lines.iter().skip(2).map(cells).collect();
    let mut table = Rows::of(&rows);
    for (nth, head) in heads.into_iter().enumerate() {
        table = table.column(head, move |row| {
            Text::prose(&without_stars(row.get(nth).map_or("", String::as_str)))
        });
    }
    table.table()
}

/// Words without the marks of emphasis. Inline code keeps its asterisks.
fn without_stars(words: &str) -> String {
    let parts = words.split('`').enumerate();
    let parts = parts.map(|(nth, part)| match nth % 2 {
        0 => part.replace('*', ""),
        _ => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("`")
}

/// Markdown without the targets of its links: `[text](target)` becomes `text`. A file is followed
/// by the command that writes it.
fn without_targets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        out.push_str(before);
        rest = link;
        match link.split_once("](") {
            Some((label, target))
                if !label.contains('[') && !label.contains("\n\n") && target.contains(')') =>
            {
                out.push_str(label);
                if file(label).is_some() {
                    out.push_str(&format!(" (`intact help {label} > {label}`)"));
                }
                rest = target.split_once(')').map_or("", |(_, rest)| rest);
            }
            _ => out.push('['),
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_report::terminal::{TerminalOptions, write_sections};
    use std::path::Path;

    #[test]
    fn every_file_that_a_page_names_can_be_printed() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/programs");
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(file(&name).is_some(), "{name}");
        }
        let words = without_targets("[idle.js](programs/idle.js) sends, [gates](gates.md) do not.");
        let printed = "idle.js (`intact help idle.js > idle.js`) sends, gates do not.";
        assert_eq!(words, printed);
    }

    #[test]
    fn every_page_of_the_guide_is_a_topic() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .filter(|name| name != "README")
            .collect();
        names.sort();
        let topics: Vec<_> = PAGES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, topics);
        assert!(
            topics
                .iter()
                .all(|topic| INDEX.contains(&format!("]({topic}.md)")))
        );
    }

    #[test]
    fn a_page_keeps_its_words_and_has_no_line_that_is_too_wide() {
        for (name, text) in PAGES {
            let options = TerminalOptions::plain(80);
            let printed = write_sections(&page(name).unwrap(), options);
            for line in printed.lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}");
            }
            let words = |text: &str| -> String {
                let marks = [' ', '\n', '`', '|', '*', '#', '-'];
                text.chars().filter(|one| !marks.contains(one)).collect()
            };
            for paragraph in without_targets(text).split("\n\n") {
                let is_prose = paragraph.starts_with(char::is_alphabetic);
                let is_there = words(&printed).contains(&words(paragraph));
                assert!(is_there || !is_prose, "{name}: {paragraph}");
            }
        }
    }

    #[test]
    fn a_paragraph_goes_on_in_a_line_that_begins_with_code() {
        let page = sections("# Title\nset\n`keepAliveTimeout` of Node\n```text\ncode\n```\n");
        let printed = write_sections(&page, TerminalOptions::plain(80));
        assert!(
            printed.contains("set `keepAliveTimeout` of Node"),
            "{printed}"
        );
    }

    #[test]
    fn a_paragraph_after_a_table_stands_apart() {
        let page =
            sections("# Title\n| a | b |\n| --- | --- |\n| c | d |\n\nWords\n\n# Next\nMore\n");
        let printed = write_sections(&page, TerminalOptions::plain(80));
        let lines: Vec<&str> = printed.lines().collect();
        let expected = [
            "", "Title", "  a  b", "  c  d", "", "  Words", "", "Next", "  More",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn emphasis_loses_its_asterisks_and_code_keeps_them() {
        assert_eq!(
            without_stars("**On** *each* hop `*.js` and `a * b`"),
            "On each hop `*.js` and `a * b`"
        );
    }

    #[test]
    fn words_of_an_error_lead_to_a_page() {
        for (words, topics) in [
            ("502", &["502-after-idle"][..]),
            ("ECONNRESET", &["econnreset"]),
            ("socket hang up", &["econnreset"]),
            ("RemoteDisconnected", &["econnreset"]),
            ("EADDRNOTAVAIL", &["cannot-assign-requested-address"]),
            ("eai_again", &["enotfound-under-load"]),
            ("lambda", &["slow-lambda"]),
            ("nonsense", &[]),
            ("", &[]),
        ] {
            assert_eq!(about(words), topics, "{words}");
        }
        assert!(about("keepAliveTimeout").len() > 1);
    }

    #[test]
    fn links_lose_their_targets_only() {
        assert_eq!(
            without_targets("see [the page](a/b.md), `destinations[]` and [x]"),
            "see the page, `destinations[]` and [x]"
        );
    }
}
