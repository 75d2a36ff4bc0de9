//! Writes pages as Markdown (GitHub's), for a pull request or a CI summary. Must not know a
//! document.
//!
//! Blocks of depth `Full` are folded away. No charts: what renders Markdown drops inline SVG.
//! Foreign text is escaped, so that it can neither format nor link nor mention.

use super::page::{
    Assessment, Block, Case, Cell, Depth, Emphasis, FindingGroup, Page, Section, Span, Table, Text,
    when,
};
use super::sequence;
use intact_units::foreign_text::{escape, is_hidden};
use intact_units::plural::counted;
use std::fmt::Write;

/// Rows of a table: a CI summary has a size limit.
const ROWS: usize = 50;
/// Cases of one finding.
const CASES: usize = 10;
/// Places in the code of one case.
const PLACES: usize = 10;

/// Writes the pages below one another.
pub fn write(pages: &[Page<'_>]) -> String {
    let mut out = String::new();
    for (nth, page) in (1..).zip(pages) {
        let (command, subject) = (plain(&page.command), plain(&page.subject));
        let started = plain(&when(&page.started));
        let _ = match pages.len() {
            1 => writeln!(out, "## intact {command} {subject}\n"),
            _ => writeln!(out, "## Run {nth}: intact {command} {subject}, {started}\n"),
        };
        write_page(&mut out, page);
    }
    out
}

fn write_page(out: &mut String, page: &Page<'_>) {
    if let Some(headline) = &page.headline {
        let sign = match headline.assessment {
            Assessment::Good => "✅ ",
            Assessment::Bad => "⚠️ ",
            Assessment::Neutral => "",
        };
        let number = text(headline.number.text());
        let _ = writeln!(out, "{sign}**{number}** {}\n", text(&headline.caption));
    }
    if let Some((first, further)) = page.verdict.split_first() {
        let _ = writeln!(out, "**{}**\n", text(first));
        list(out, further);
    }
    let facts = page
        .facts
        .iter()
        .map(|fact| format!("{} {}", cell(&fact.value), plain(&fact.name)));
    let _ = writeln!(out, "{}\n", facts.collect::<Vec<String>>().join(" · "));
    if !page.requirements.is_empty() {
        out.push_str("#### Requirements\n\n");
        for verdict in &page.requirements {
            let sign = if verdict.passed() { "✅" } else { "❌" };
            for (nth, line) in verdict.to_string().lines().enumerate() {
                let mark = if nth == 0 {
                    format!("- {sign}")
                } else {
                    "  -".to_owned()
                };
                let _ = writeln!(out, "{mark} {}", plain(line.trim()));
            }
        }
        out.push('\n');
    }
    for section in &page.sections {
        write_section(out, section);
    }
    if !page.caveats.is_empty() {
        out.push_str("#### What limits these figures\n\n");
        list(out, &page.caveats);
    }
    if let Some(method) = &page.method {
        write_section(out, method);
    }
    if !page.started.is_empty() {
        let (version, started) = (plain(&page.version), plain(&when(&page.started)));
        let _ = writeln!(out, "<sub>intact {version}, {started}</sub>\n");
    }
}

fn write_section(out: &mut String, section: &Section) {
    let title = text(&section.title);
    let [summary, full] = [Depth::Summary, Depth::Full].map(|depth| {
        let mut blocks = String::new();
        section
            .of(depth)
            .for_each(|block| write_block(&mut blocks, block));
        blocks
    });
    if !summary.is_empty() {
        let _ = write!(out, "#### {title}\n\n{summary}");
    }
    if !full.is_empty() {
        let more = if summary.is_empty() { "" } else { ": more" };
        let _ = write!(
            out,
            "<details><summary>{title}{more}</summary>\n\n{full}</details>\n\n"
        );
    }
}

fn write_block(out: &mut String, block: &Block) {
    let _ = match block {
        Block::Paragraph(Emphasis::Strong | Emphasis::Alarm, words) => {
            writeln!(out, "**{}**\n", text(words))
        }
        Block::Paragraph(_, words) => writeln!(out, "{}\n", text(words)),
        Block::List(items) => {
            list(out, items);
            Ok(())
        }
        Block::Facts(facts) => {
            out.push_str("| fact | value |\n| --- | --- |\n");
            for (name, value) in facts {
                let _ = writeln!(out, "| {name} | {} |", text(value));
            }
            writeln!(out)
        }
        Block::Table(one) => {
            out.push_str(&beginning(one, ROWS));
            Ok(())
        }
        Block::Findings(groups) => {
            groups.iter().for_each(|group| write_group(out, group));
            writeln!(out)
        }
        Block::Chart(_) => Ok(()),
        Block::Sequence(sequence) => {
            writeln!(out, "```mermaid\n{}```\n", sequence::mermaid(sequence))
        }
        Block::Code(lines) => {
            // a line must not end the block
            let lines: Vec<String> = lines
                .iter()
                .map(|line| escape(line).replace("```", "'''"))
                .collect();
            writeln!(out, "```\n{}\n```\n", lines.join("\n"))
        }
    };
}

fn list(out: &mut String, items: &[Text]) {
    for item in items {
        let _ = writeln!(out, "- {}", text(item));
    }
    if !items.is_empty() {
        out.push('\n');
    }
}

fn write_group(out: &mut String, group: &FindingGroup) {
    let case = |case: &Case| {
        let subject = match case.subject.as_str() {
            "" => String::new(),
            subject => format!("{}: ", plain(subject)),
        };
        let cost = case.cost.as_ref();
        let cost = cost.map_or_else(String::new, |cost| format!(" Costs {}.", text(cost)));
        format!(
            "{subject}{}{cost} {}",
            text(&case.claim),
            text(&case.evidence)
        )
    };
    let severity = group.severity.as_str();
    let _ = writeln!(
        out,
        "- **{severity}** `{}`: {}",
        group.rule,
        case(&group.cases[0])
    );
    write_places(out, &group.cases[0], "  ");
    for other in group.cases.iter().skip(1).take(CASES) {
        let _ = writeln!(out, "  - {}", case(other));
        write_places(out, other, "    ");
    }
    let more = group.cases.len().saturating_sub(CASES + 1);
    if more > 0 {
        let _ = writeln!(out, "  - and {more} more");
    }
    if !group.fix.is_empty() {
        let _ = writeln!(out, "  - **Fix:** {}", text(&group.fix));
    }
    if let Some(risk) = &group.risk {
        let _ = writeln!(out, "  - **Risk:** {}", text(risk));
    }
}

/// Where in the code the connections of a case were opened.
fn write_places(out: &mut String, case: &Case, indent: &str) {
    let (lines, more) = case.place_lines(PLACES);
    for [position, function, count] in lines {
        let _ = writeln!(
            out,
            "{indent}- {} {}: {count}",
            plain(&position),
            plain(&function)
        );
    }
    if more > 0 {
        let _ = writeln!(out, "{indent}- and {}", counted(more as u64, "more place"));
    }
}

/// A table with at most `rows` rows.
pub(crate) fn beginning(table: &Table, rows: usize) -> String {
    let mut out = String::new();
    if let Some(caption) = &table.caption {
        let _ = writeln!(out, "{}\n", text(caption));
    }
    for column in &table.columns {
        let _ = write!(out, "| {} ", text(&Text::prose(&column.head)));
    }
    out.push_str("|\n");
    for column in &table.columns {
        out.push_str(if column.is_numeric() {
            "| ---: "
        } else {
            "| --- "
        });
    }
    out.push_str("|\n");
    for row in 0..table.rows().min(rows) {
        for column in &table.columns {
            let _ = write!(out, "| {} ", cell(&column.cells[row]));
        }
        out.push_str("|\n");
    }
    out.push('\n');
    if table.rows() > rows {
        let _ = writeln!(out, "{rows} of {} rows.\n", table.rows());
    }
    for note in &table.notes {
        let _ = writeln!(out, "{}\n", text(note));
    }
    out
}

fn cell(cell: &Cell) -> String {
    let words = cell
        .text()
        .map_or_else(|| "-".to_owned(), |words| text(&words));
    if cell.is_alarm {
        format!("**{words}**")
    } else {
        words
    }
}

/// Text with its code.
fn text(text: &Text) -> String {
    let spans = text.spans().iter().map(|span| match span {
        Span::Words(words) => plain(words),
        // what is in code cannot be escaped: it must not end the code, the line or the cell
        Span::Code(code) => {
            let breaks = |letter: char| is_hidden(letter) || matches!(letter, '|' | '`');
            format!("`{}`", code.replace(breaks, " "))
        }
        Span::Value(value) => plain(&value.to_string()),
    });
    spans.collect()
}

/// Text that formats nothing.
fn plain(text: &str) -> String {
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
            // a comment between keeps `@name` from mentioning a user
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
    fn text_of_a_server_formats_nothing() {
        assert_eq!(
            plain("<b>|*x*_y_[a](b)`@me#1\n"),
            "&lt;b&gt;\\|\\*x\\*\\_y\\_\\[a\\](b)\\`@<!-- -->me\\#1\\u{a}"
        );
        assert_eq!(
            text(&Text::prose("set `keep|alive` to *")),
            "set `keep alive` to \\*"
        );
    }
}
