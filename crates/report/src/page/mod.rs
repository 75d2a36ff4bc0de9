//! What a page says, free of any format: one [`Page`] per document, three writers.
//!
//! A module of [`crate::documents`] fills a page with typed blocks. A writer ([`crate::terminal`],
//! [`crate::html`], [`crate::markdown`]) lays blocks out. A document knows no writer, a writer
//! knows no document: a table column is added in one file, and a document is added as one module
//! and one arm of [`crate::documents::Source`].
//!
//! - Figures are [`Quantity`] values in spans and cells. A writer prints them with their `Display`,
//!   so that the terminal, HTML and Markdown show the same digits.
//! - Each block has a [`Depth`]. `Summary` is on every page. `Full` is in files: the terminal omits
//!   it, Markdown folds it.
//! - Blocks without content are dropped when they are added, and sections without blocks with them.
//!   A document need not ask.
//! - Text of servers and files is kept as it is. Each writer escapes it.
//! - Raw numbers of tables and charts need no code of their own: [`file`] writes any table or chart
//!   as CSV.

mod cell;
mod chart;
pub(crate) mod file;
mod findings;
mod table;
mod text;

pub use cell::{Cell, Value};
pub(crate) use chart::Svg;
pub use chart::*;
pub use file::File;
pub use findings::{Case, FindingGroup};
pub use intact_units::Quantity;
pub use table::{Column, Rows, Table};
pub use text::{Span, Text};
pub(crate) use text::{sentence, text};

use intact_document::Severity;
use intact_document::requirement::Verdict;
use intact_reading::Reading;
use intact_units::plural;

/// A document as a page.
#[derive(Default)]
pub struct Page<'a> {
    /// The command that measured.
    pub command: String,
    /// What was measured, and through what.
    pub subject: String,
    /// When, as RFC 3339; empty where nothing was run.
    pub started: String,
    /// Version of the tool that measured.
    pub version: String,
    /// Further lines below the title of the terminal's page; files have them in `method`.
    pub intro: Vec<Text>,
    /// The result as one number.
    pub headline: Option<Headline>,
    /// The result in sentences, the most important first.
    pub verdict: Vec<Text>,
    /// The figures to know at a glance; see [`Page::facts`].
    pub facts: Vec<Fact>,
    /// The requirements that were checked.
    pub requirements: Vec<Verdict>,
    /// The least severity of findings that fails a gate: those are on the page whatever its length.
    pub gate: Option<Severity>,
    /// What was found.
    pub sections: Vec<Section>,
    /// What limits the figures.
    pub caveats: Vec<Text>,
    /// How it was measured; in files only.
    pub method: Option<Section>,
    /// Documents and raw numbers to save; HTML only.
    pub files: Vec<File<'a>>,
}

impl<'a> Page<'a> {
    /// Adds figures to know at a glance, but those without a value.
    pub fn facts(&mut self, facts: impl IntoIterator<Item = Fact>) {
        let facts = facts.into_iter();
        self.facts
            .extend(facts.filter(|fact| !fact.value.is_absent()));
    }

    /// Adds a table to save as CSV.
    pub fn csv(&mut self, name: &str, words: &'static str, table: impl Fn() -> Table + 'a) {
        self.files.push(File::csv(name, words, table));
    }

    /// Adds a section, unless it is empty.
    pub fn section(&mut self, section: impl Into<Option<Section>>) {
        let section = section.into().filter(|section| !section.blocks.is_empty());
        self.sections.extend(section);
    }
}

/// Where a block is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// On every page.
    Summary,
    /// In HTML, and folded in Markdown; the terminal omits it.
    Full,
}

/// How much a section matters on a terminal that shows a part of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// An option asked for it: it has room in any case.
    Asked,
    /// It has the room that is left.
    Usual,
    /// It explains figures of others: the short page names it.
    Detail,
}

/// A part of a page with a title.
pub struct Section {
    /// A name for links, unique within the page.
    pub id: &'static str,
    /// The title.
    pub title: Text,
    /// How much it matters.
    pub weight: Weight,
    /// The content.
    pub blocks: Vec<(Depth, Block)>,
}

impl Section {
    /// A section without content.
    pub fn new(id: &'static str, title: impl Into<Text>) -> Section {
        Section {
            id,
            title: title.into(),
            weight: Weight::Usual,
            blocks: Vec::new(),
        }
    }

    /// With this weight.
    #[must_use]
    pub fn weighing(self, weight: Weight) -> Section {
        Section { weight, ..self }
    }

    /// The same; if `is_detail`, the short page only names it.
    #[must_use]
    pub fn detail_if(self, is_detail: bool) -> Section {
        match is_detail {
            true => self.weighing(Weight::Detail),
            false => self,
        }
    }

    /// Adds what every page shows.
    pub fn summary(self, content: impl Content) -> Section {
        self.with(Depth::Summary, content)
    }

    /// Adds what only files show.
    pub fn full(self, content: impl Content) -> Section {
        self.with(Depth::Full, content)
    }

    fn with(mut self, depth: Depth, content: impl Content) -> Section {
        let blocks = content
            .blocks()
            .into_iter()
            .filter(|block| !block.is_empty());
        self.blocks.extend(blocks.map(|block| (depth, block)));
        self
    }

    /// The blocks of a depth.
    pub(crate) fn of(&self, depth: Depth) -> impl Iterator<Item = &Block> {
        let blocks = self.blocks.iter();
        blocks.filter_map(move |(own, block)| (*own == depth).then_some(block))
    }
}

/// A piece of content.
pub enum Block {
    /// A paragraph.
    Paragraph(Emphasis, Text),
    /// Items of equal rank.
    List(Vec<Text>),
    /// Names and values.
    Facts(Vec<(&'static str, Text)>),
    /// A table.
    Table(Table),
    /// Findings with their remedies, the worst first.
    Findings(Vec<FindingGroup>),
    /// A chart.
    Chart(Chart),
    /// Messages between participants over time.
    Sequence(Sequence),
    /// Lines to copy; never wrapped.
    Code(Vec<String>),
}

impl Block {
    fn is_empty(&self) -> bool {
        match self {
            Block::Paragraph(_, text) => text.is_empty(),
            Block::List(items) => items.is_empty(),
            Block::Facts(facts) => facts.is_empty(),
            Block::Table(table) => table.is_empty(),
            Block::Findings(groups) => groups.is_empty(),
            Block::Chart(chart) => chart.kind.is_empty(),
            Block::Sequence(sequence) => sequence.arrows.is_empty(),
            Block::Code(lines) => lines.is_empty(),
        }
    }
}

/// How much a paragraph asks for attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Emphasis {
    /// As running text.
    Normal,
    /// The one thing to read.
    Strong,
    /// A note.
    Faint,
    /// Needs attention.
    Alarm,
}

impl Emphasis {
    /// Its name in a style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Emphasis::Normal => "normal",
            Emphasis::Strong => "strong",
            Emphasis::Faint => "under",
            Emphasis::Alarm => "alarm",
        }
    }
}

/// What can be added to a section: a block, several, or none.
pub trait Content {
    /// The blocks.
    fn blocks(self) -> Vec<Block>;
}

impl<C: Content> Content for Option<C> {
    fn blocks(self) -> Vec<Block> {
        self.map(Content::blocks).unwrap_or_default()
    }
}

macro_rules! content {
    ($(|$content:ident: $from:ty| $blocks:expr),* $(,)?) => {
        $(impl Content for $from {
            fn blocks(self) -> Vec<Block> {
                let $content = self;
                $blocks
            }
        })*
    };
}

content! {
    |block: Block| vec![block],
    |blocks: Vec<Block>| blocks,
    |text: Text| vec![text.into()],
    |table: Table| vec![Block::Table(table)],
    |chart: Chart| vec![Block::Chart(chart)],
    |groups: Vec<FindingGroup>| vec![Block::Findings(groups)],
}

impl From<Text> for Block {
    fn from(text: Text) -> Block {
        Block::Paragraph(Emphasis::Normal, text)
    }
}

/// A note below other content.
pub(crate) fn note(words: impl Into<Text>) -> Block {
    Block::Paragraph(Emphasis::Faint, words.into())
}

/// Something that needs attention.
pub(crate) fn alarm(words: impl Into<Text>) -> Block {
    Block::Paragraph(Emphasis::Alarm, words.into())
}

/// The result as one number, with one meaning on every page: what connections cost. A page without
/// such a number has no headline: its first sentence is the result.
pub struct Headline {
    /// The number, a share.
    pub number: HeadlineShare,
    /// Whether it is good news.
    pub assessment: Assessment,
    /// What the number is.
    pub caption: Text,
}

impl Headline {
    /// Everything was lost; `caption` says all of what.
    pub(crate) fn all_failed(caption: impl Into<Text>) -> Option<Headline> {
        Headline::new(HeadlineShare::lost(1.0), Assessment::Bad, caption)
    }

    /// A number with its assessment and its caption.
    pub fn new(
        number: HeadlineShare,
        assessment: Assessment,
        caption: impl Into<Text>,
    ) -> Option<Headline> {
        Some(Headline {
            number,
            assessment,
            caption: caption.into(),
        })
    }
}

/// The number of a headline: a share of the time, of requests or of connections. Without a sign it
/// is lost. With a minus it is saved, by the change that was measured or by reuse; with a plus the
/// change costs it.
#[derive(Clone)]
pub struct HeadlineShare(Text);

impl HeadlineShare {
    /// A share that is lost, 0 to 1.
    pub(crate) fn lost(share: f64) -> HeadlineShare {
        HeadlineShare(Quantity::RoundShare(share).into())
    }

    /// As [`HeadlineShare::lost`] with one more digit, where little is much.
    pub(crate) fn lost_closely(share: f64) -> HeadlineShare {
        HeadlineShare(Quantity::Share(share).into())
    }

    /// A share that is lost, inferred or known as a range; `None` without a value.
    pub(crate) fn of_cell(share: &Cell) -> Option<HeadlineShare> {
        share.text().map(HeadlineShare)
    }

    /// A share that is saved; below 0 it is paid. From twice as much on it is a multiple.
    pub(crate) fn saved(share: f64) -> HeadlineShare {
        HeadlineShare(if share <= -1.0 {
            text!("{} times", Quantity::Mean(1.0 - share))
        } else {
            let number = Quantity::RoundShare(share.abs());
            let sign = match number.to_string().as_str() {
                "0 %" => "",
                _ if share >= 0.0 => "−",
                _ => "+",
            };
            text!("{}{}", sign, number)
        })
    }

    /// The number as a text.
    pub(crate) fn text(&self) -> &Text {
        &self.0
    }
}

/// What the colour of a headline means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assessment {
    /// Something is saved, or nothing is lost.
    Good,
    /// Something is lost, and the page has a remedy.
    Bad,
    /// Not shown, or no judgement.
    Neutral,
}

impl Assessment {
    /// Good or bad.
    pub(crate) fn good_if(is_good: bool) -> Assessment {
        match is_good {
            true => Assessment::Good,
            false => Assessment::Bad,
        }
    }
}

/// A figure with its name.
pub struct Fact {
    /// The name; it reads well after the figure.
    pub name: String,
    /// The figure.
    pub value: Cell,
    /// Whether the first sentence or a table has it, so that a terminal need not repeat it.
    pub is_repeated: bool,
}

impl Fact {
    /// A figure to know.
    pub fn new(name: impl Into<String>, value: impl Into<Cell>) -> Fact {
        Fact {
            name: name.into(),
            value: value.into(),
            is_repeated: false,
        }
    }

    /// The same figure; if `is_known`, the first sentence or a table has it.
    #[must_use]
    pub fn repeated_if(self, is_known: bool) -> Fact {
        Fact {
            is_repeated: is_known,
            ..self
        }
    }

    /// A number of things.
    pub fn counted(count: u64, noun: &str) -> Fact {
        Fact::new(plural::of(count, noun), count)
    }

    /// A number of things in some state, such as `connections` that were `opened`.
    pub fn counted_as(count: u64, noun: &str, state: &str) -> Fact {
        Fact::new(format!("{} {state}", plural::of(count, noun)), count)
    }

    /// What is known of a number of things in some state: `connections opened`.
    pub fn read(count: &Reading, noun: &str, state: &str) -> Fact {
        // the noun follows the number that is written last
        let last = Some(count.high()).filter(|high| high.is_finite());
        let number = count.best().or(last).unwrap_or(count.low());
        let name = format!("{} {state}", plural::of(number as u64, noun));
        Fact::new(name.trim_end().to_owned(), Cell::count(count))
    }

    /// What is known of a number of failures; without a value unless there are any.
    pub fn failures(count: &Reading, noun: &str) -> Fact {
        let is_any = count.is_positive() || count.estimate().is_some_and(|count| count > 0.0);
        Fact {
            value: is_any.then(|| Cell::failures(count)).into(),
            ..Fact::read(count, noun, "failed")
        }
    }
}

/// Messages between participants over time.
#[derive(Clone, Debug, PartialEq)]
pub struct Sequence {
    /// Who takes part, from left to right.
    pub lanes: Vec<String>,
    /// The messages in the order of their time.
    pub arrows: Vec<Arrow>,
    /// How many further messages are not shown; `None` if there are more and their number is not
    /// known.
    pub more: Option<u64>,
}

/// One message.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrow {
    /// When it leaves, in milliseconds.
    pub at_ms: f64,
    /// When it arrives, in milliseconds; absent where only one end saw it.
    pub until_ms: Option<f64>,
    /// The lane of the sender.
    pub from: usize,
    /// The lane of the receiver. The same as that of the sender: what happens there meanwhile,
    /// such as work.
    pub to: usize,
    /// What it is.
    pub label: String,
    /// Whether it needs attention, such as a packet that was sent twice.
    pub is_alarm: bool,
}

/// `2026-01-01T00:00:00.123Z` as `2026-01-01 00:00:00 UTC`.
pub(crate) fn when(started: &str) -> String {
    let seconds = started.split('.').next().unwrap_or(started);
    match seconds.trim_end_matches('Z').split_once('T') {
        Some((day, time)) => format!("{day} {time} UTC"),
        None => started.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_printed_to_the_second() {
        assert_eq!(
            when("2026-01-01T10:20:30.123456Z"),
            "2026-01-01 10:20:30 UTC"
        );
        assert_eq!(when("2026-01-01T10:20:30Z"), "2026-01-01 10:20:30 UTC");
        assert_eq!(when("yesterday"), "yesterday");
    }

    #[test]
    fn the_number_of_a_page_is_a_share_with_its_sign() {
        let printed = |number: HeadlineShare| number.text().to_string();
        assert_eq!(printed(HeadlineShare::lost(0.471)), "47 %");
        assert_eq!(printed(HeadlineShare::saved(0.471)), "−47 %");
        assert_eq!(printed(HeadlineShare::saved(-0.2)), "+20 %");
        assert_eq!(printed(HeadlineShare::saved(-0.0)), "0 %");
        assert_eq!(printed(HeadlineShare::saved(-19.0)), "20 times");
    }

    #[test]
    fn content_that_says_nothing_is_dropped() {
        let mut page = Page::default();
        page.section(
            Section::new("a", "A")
                .summary(Block::List(Vec::new()))
                .full(None::<Table>),
        );
        assert!(page.sections.is_empty());
        page.section(Section::new("a", "A").summary(note("words")));
        assert_eq!(page.sections.len(), 1);
    }
}
