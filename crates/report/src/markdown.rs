//! A page as Markdown (GitHub's), for a pull request or a CI summary: verdict, counts, findings, the main table; the rest folded away.
//!
//! No pictures: what renders Markdown drops inline SVG. Foreign text is escaped, so that it can neither format nor link nor tag.

use crate::escape::is_hidden;
use crate::page::{Assessment, Case, FindingGroup, Page, Section, Table, pieces, when};
use std::fmt::Write;

/// Rows of a table that are written; a summary has a size limit.
const ROWS: usize = 50;
/// Cases of one finding that are written.
const CASES: usize = 10;

/// Writes a page.
pub fn write(page: &Page) -> String {
    let mut out = String::new();
    let subject = plain(&page.subject);
    let _ = writeln!(out, "## intact {} {subject}\n", page.command);
    for chapter in &page.chapters {
        write_chapter(&mut out, chapter);
    }
    let _ = writeln!(
        out,
        "<sub>intact {}, {}</sub>",
        plain(&page.version),
        plain(&when(&page.started))
    );
    out
}

fn write_chapter(out: &mut String, chapter: &Section) {
    if let Some(heading) = &chapter.heading {
        let _ = writeln!(out, "### {}\n", plain(heading));
    }
    let headline = &chapter.headline;
    let sign = match headline.standing {
        Assessment::Good => "✅ ",
        Assessment::Bad => "⚠️ ",
        Assessment::Neutral => "",
    };
    let _ = writeln!(
        out,
        "{sign}**{}** {}\n",
        plain(&headline.number),
        plain(&headline.caption)
    );
    let _ = writeln!(out, "**{}**\n", prose(&headline.sentences));
    for words in &chapter.further {
        let _ = writeln!(out, "- {}", prose(words));
    }
    let counts: Vec<String> = chapter
        .facts
        .iter()
        .map(|fact| format!("{} {}", plain(&fact.words), fact.name))
        .collect();
    let _ = writeln!(out, "\n{}\n", counts.join(" · "));
    if let Some(table) = chapter.tables.first() {
        write_table(out, table);
    }
    if !chapter.findings.is_empty() {
        let _ = writeln!(out, "#### What stands out\n");
        for group in &chapter.findings {
            write_group(out, group);
        }
        out.push('\n');
    }
    if !chapter.caveats.is_empty() {
        let _ = writeln!(out, "#### What limits these figures\n");
        for caveat in &chapter.caveats {
            let _ = writeln!(out, "- {}", prose(caveat));
        }
        out.push('\n');
    }
    for table in chapter.tables.iter().skip(1) {
        let _ = writeln!(
            out,
            "<details><summary>{}</summary>\n",
            plain(&table.caption)
        );
        write_rows(out, table);
        let _ = writeln!(out, "</details>\n");
    }
    let _ = writeln!(out, "<details><summary>How it was measured</summary>\n");
    for paragraph in &chapter.method.paragraphs {
        let _ = writeln!(out, "{}\n", prose(paragraph));
    }
    let _ = writeln!(out, "| | |\n| --- | --- |");
    for (term, words) in &chapter.method.facts {
        let _ = writeln!(out, "| {term} | {} |", plain(words));
    }
    let _ = writeln!(out, "\n</details>\n");
}

fn write_group(out: &mut String, group: &FindingGroup) {
    let case = |case: &Case| {
        let cost = case.cost.as_ref();
        let cost = cost.map_or(String::new(), |cost| format!(", costs {}", plain(cost)));
        format!(
            "{} ({}{cost}) {}",
            prose(&case.claim),
            plain(&case.subject),
            prose(&case.evidence)
        )
    };
    let _ = writeln!(
        out,
        "- **{}** `{}`: {}",
        group.severity.as_str(),
        group.rule,
        case(&group.first)
    );
    for other in group.others.iter().take(CASES) {
        let _ = writeln!(out, "  - {}", case(other));
    }
    let more = group.others.len().saturating_sub(CASES);
    if more > 0 {
        let _ = writeln!(out, "  - and {more} more");
    }
    let _ = writeln!(out, "  - **What to do:** {}", prose(&group.fix));
    if let Some(risk) = &group.risk {
        let _ = writeln!(out, "  - **Mind:** {}", prose(risk));
    }
}

fn write_table(out: &mut String, table: &Table) {
    let _ = writeln!(out, "#### {}\n", plain(&table.caption));
    write_rows(out, table);
}

fn write_rows(out: &mut String, table: &Table) {
    for head in &table.heads {
        let _ = write!(out, "| {} ", plain(&head.words));
    }
    out.push_str("|\n");
    for nth in 0..table.heads.len() {
        out.push_str(if nth == 0 { "| --- " } else { "| ---: " });
    }
    out.push_str("|\n");
    for row in table.rows.iter().take(ROWS) {
        for cell in row {
            let words = plain(&cell.words);
            let _ = if cell.alarm {
                write!(out, "| **{words}** ")
            } else {
                write!(out, "| {words} ")
            };
        }
        out.push_str("|\n");
    }
    out.push('\n');
    if table.rows.len() > ROWS {
        let _ = writeln!(out, "{ROWS} of {} rows.\n", table.rows.len());
    }
    for note in &table.notes {
        let _ = writeln!(out, "{}\n", prose(note));
    }
}

/// Prose with its code.
pub(crate) fn prose(text: &str) -> String {
    let mut out = String::new();
    for (nth, piece) in pieces(text).enumerate() {
        if nth % 2 == 1 {
            // what is in code cannot be escaped: it must not end the line or the cell
            let code: String = piece
                .chars()
                .map(|letter| {
                    if is_hidden(letter) || letter == '|' {
                        ' '
                    } else {
                        letter
                    }
                })
                .collect();
            let _ = write!(out, "`{code}`");
        } else {
            out.push_str(&plain(piece));
        }
    }
    out
}

/// Text that formats nothing.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            letter if is_hidden(letter) => {
                let _ = write!(out, "{}", letter.escape_unicode());
            }
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '#' | '$' => {
                out.push('\\');
                out.push(letter);
            }
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            // a comment between keeps `@name` from calling somebody
            '@' => out.push_str("@<!-- -->"),
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_said_formats_nothing() {
        assert_eq!(
            plain("<b>|*x*_y_[a](b)`@me#1\n"),
            "&lt;b&gt;\\|\\*x\\*\\_y\\_\\[a\\](b)\\`@<!-- -->me\\#1\\u{a}"
        );
        assert_eq!(prose("set `keep|alive` to *"), "set `keep alive` to \\*");
    }
}
