//! Writes pages as one HTML file: works offline, loads nothing, light and dark, readable on a
//! phone, printable, without a script too. Must not know a document.
//!
//! Templates escape whatever is put into them; charts come as [`Svg`], which escapes by
//! itself. A content security policy allows our own script and nothing else.

use super::page::{
    Assessment, Block, Chart, File, FindingGroup, Page, Quantity, Section, Sequence, Span, Svg,
    Text, file, when,
};
use super::sequence;
use askama::Template;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use intact_document::Place;
use intact_document::requirement::Verdict;
use intact_units::plural::counted;
use sha2::{Digest, Sha256};

/// Sorts tables; the only script there is.
const SCRIPT: &str = include_str!("../templates/script.js");
/// Rows of a table; its CSV has all.
const ROWS: usize = 200;
/// Columns of letters of a sequence.
const LETTERS: usize = 100;
/// Places in the code of one case of a finding; the JSON document has all.
const PLACES: usize = 10;

#[derive(Template)]
#[template(path = "page.html")]
struct HtmlTemplate<'a> {
    title: String,
    version: &'a str,
    started: &'a str,
    pages: Vec<Prepared<'a>>,
    script: &'static str,
    script_hash: String,
}

/// A page with what its ids begin with.
struct Prepared<'a> {
    prefix: String,
    is_one_of_several: bool,
    page: &'a Page<'a>,
    links: Vec<Link>,
}

/// Why HTML could not be written.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// The template could not be filled in.
    #[error("the template of HTML pages: {0}")]
    Template(#[from] askama::Error),
    /// A document could not be written as JSON.
    #[error("the document inside the page: {0}")]
    Json(#[from] serde_json::Error),
}

/// A link that saves a file.
struct Link {
    name: String,
    href: String,
    words: String,
}

impl Link {
    fn new(name: &str, words: impl Into<String>, kind: &str, content: &str) -> Link {
        Link {
            name: name.to_owned(),
            href: format!("data:{kind};base64,{}", STANDARD.encode(content)),
            words: words.into(),
        }
    }

    fn of(file: &File<'_>) -> serde_json::Result<Link> {
        let content = file.content()?;
        Ok(Link::new(&file.name, file.words, file.kind, &content))
    }

    fn of_chart(chart: &Chart) -> Option<Link> {
        let (content, rows) = file::of_chart(chart)?;
        let words = format!("these numbers as CSV ({})", counted(rows as u64, "row"));
        let name = format!("{}.csv", chart.id);
        Some(Link::new(&name, words, file::CSV, &content))
    }
}

/// Writes the pages below one another.
///
/// # Errors
/// The template could not be filled in, or a document could not be written as JSON.
pub fn write(pages: &[Page<'_>]) -> Result<String, HtmlError> {
    let several = pages.len() > 1;
    let mut prepared = Vec::new();
    for (nth, page) in (1..).zip(pages) {
        let links: Result<Vec<Link>, _> = page.files.iter().map(Link::of).collect();
        prepared.push(Prepared {
            prefix: if several {
                format!("run{nth}-")
            } else {
                String::new()
            },
            is_one_of_several: several,
            page,
            links: links?,
        });
    }
    let mut titles: Vec<String> = pages
        .iter()
        .map(|page| format!("{} {}", page.command, page.subject))
        .collect();
    titles.dedup();
    let first = pages.first();
    let template = HtmlTemplate {
        title: format!("intact {}", titles.join(", ")),
        version: first.map_or("", |page| &page.version),
        started: first.map_or("", |page| &page.started),
        pages: prepared,
        script: SCRIPT,
        script_hash: STANDARD.encode(Sha256::digest(SCRIPT.as_bytes())),
    };
    Ok(template.render()?)
}

/// A verdict in lines: the requirement, then its subjects.
fn lines(verdict: &Verdict) -> Vec<String> {
    let verdict = verdict.to_string();
    verdict.lines().map(|line| line.trim().to_owned()).collect()
}

/// A block, or charts that stand side by side.
enum Shown<'a> {
    Block(&'a Block),
    Charts(Vec<Placed<'a>>),
}

/// A chart in a row of charts.
struct Placed<'a> {
    chart: &'a Chart,
    /// Whether it has the row for itself.
    is_wide: bool,
}

/// The blocks of a section, neighbouring charts together.
fn shown(section: &Section) -> Vec<Shown<'_>> {
    let mut all: Vec<Shown<'_>> = Vec::new();
    for (_, block) in &section.blocks {
        match (block, all.last_mut()) {
            (Block::Chart(chart), Some(Shown::Charts(charts))) => charts.push(Placed::new(chart)),
            (Block::Chart(chart), _) => all.push(Shown::Charts(vec![Placed::new(chart)])),
            (block, _) => all.push(Shown::Block(block)),
        }
    }
    for shown in &mut all {
        if let Shown::Charts(charts) = shown {
            // the last of an odd number would leave half a row empty
            for run in charts.chunk_by_mut(|a, b| a.is_wide == b.is_wide) {
                if run.len() % 2 == 1
                    && let Some(last) = run.last_mut()
                {
                    last.is_wide = true;
                }
            }
        }
    }
    all
}

impl<'a> Placed<'a> {
    fn new(chart: &'a Chart) -> Placed<'a> {
        Placed {
            chart,
            is_wide: chart.is_wide,
        }
    }
}

/// A chart at one width; the style sheet shows the one that fits.
struct SizedChart {
    class: &'static str,
    svg: Svg,
}

fn drawings(placed: &Placed<'_>) -> Vec<SizedChart> {
    let chart = placed.chart;
    let widths: &[(&'static str, f64)] = if placed.is_wide {
        &[("narrow", 300.0), ("middle", 640.0), ("wide", 1060.0)]
    } else {
        &[("narrow", 300.0), ("wide", 500.0)]
    };
    let notes: Vec<String> = chart.notes.iter().map(Text::to_string).collect();
    let (title, description) = (chart.title.to_string(), notes.join(" "));
    let drawn = widths.iter().map(|&(class, width)| SizedChart {
        class,
        svg: chart.kind.svg(width, &title, &description),
    });
    drawn.collect()
}

fn class(assessment: &Assessment) -> &'static str {
    match assessment {
        Assessment::Good => "good",
        Assessment::Bad => "bad",
        Assessment::Neutral => "neutral",
    }
}

/// The first groups, and those that are folded away: notes, where there is something worse.
fn folded(groups: &[FindingGroup]) -> (&[FindingGroup], &[FindingGroup]) {
    match groups.partition_point(|group| !group.is_note) {
        0 => (groups, &[]),
        grave => groups.split_at(grave),
    }
}

fn count(number: usize) -> Quantity {
    Quantity::Count(number as u64)
}

fn opened(place: &Place) -> String {
    counted(place.connections, "connection")
}

fn drawn(sequence: &Sequence) -> Vec<String> {
    let lines = sequence::text(sequence, LETTERS).unwrap_or_default();
    lines.into_iter().map(|(_, line)| line).collect()
}
