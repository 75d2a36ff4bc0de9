//! Writes a page for a terminal or a pipe. Width and colour are the caller's. Must not know a
//! document.
//!
//! Only blocks of depth `Summary` are written. A page longer than a screen is shortened
//! ([`screen`]), unless the caller wants all of it. Every line goes through [`Painted`], which
//! escapes foreign text.

mod requirements;
mod screen;
mod table;

pub use requirements::requirements;

use super::page::{Block, Case, Depth, Emphasis, FindingGroup, Page, Section, Text, Weight};
use super::sequence;
use crate::escape::glue_units;
use crate::painted::{ALARM, FAINT, PLAIN, Painted, STRONG, Style, shorten};
use intact_document::Severity;
use intact_units::foreign_text::escape;
use intact_units::plural::counted;

use screen::LeftOut;

/// Findings with evidence and remedy; `--json` has all.
const FINDINGS: usize = 12;
/// Findings of severity `info`, a line each.
const NOTES: usize = 8;
/// Subjects of one finding.
const CASES: usize = 4;
/// Places in the code of one case.
const PLACES: usize = 5;
/// Calls of one place, the innermost.
const CALLS: usize = 40;
/// Places in the code of one case on a page that fits the screen.
const SHORT_PLACES: usize = 2;
/// Lines of a sequence.
const MESSAGES: usize = 60;
/// Columns that are used at least.
const NARROWEST: usize = 40;
/// Lines of each of many pages at least.
const FEWEST: usize = 12;

/// What the page is written on.
#[derive(Clone, Copy, Debug)]
pub struct TerminalOptions {
    /// Columns; at least 40 are used.
    pub width: usize,
    /// Whether escape sequences for colour are understood.
    pub colour: bool,
    /// Lines of the terminal. A longer page ends with its verdict. `None`: no terminal.
    pub height: Option<usize>,
    /// How much of a page is written.
    pub length: Length,
}

impl TerminalOptions {
    /// Whole pages of this width, without colour, for no terminal.
    #[must_use]
    pub const fn plain(width: usize) -> TerminalOptions {
        TerminalOptions {
            width,
            colour: false,
            height: None,
            length: Length::Full,
        }
    }
}

/// How much of a page is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// At most this number of lines at 80 columns or more; what is left out is named.
    Lines(usize),
    /// All lines.
    Full,
}

impl Length {
    /// One screen.
    pub const SCREEN: Length = Length::Lines(40);

    /// Two fifths for the first part of a page in two parts, and the rest, without `notes` lines
    /// of other text around them.
    pub fn split(self, notes: usize) -> (Length, Length) {
        match self {
            Length::Lines(lines) => {
                let room = lines.saturating_sub(notes);
                let first = room * 2 / 5;
                (Length::Lines(first), Length::Lines(room - first))
            }
            Length::Full => (Length::Full, Length::Full),
        }
    }

    /// The part of each of `pages` that are written one below the other: the same for each, and
    /// enough for a verdict.
    #[must_use]
    pub fn among(self, pages: usize) -> Length {
        match self {
            Length::Lines(lines) => Length::Lines((lines / pages.max(1)).max(FEWEST)),
            Length::Full => Length::Full,
        }
    }

    /// The lines, if these are more.
    fn exceeded_by(self, text: &str) -> Option<usize> {
        match self {
            Length::Lines(most) => (lines(text) > most).then_some(most),
            Length::Full => None,
        }
    }
}

fn of_emphasis(emphasis: Emphasis) -> Style {
    match emphasis {
        Emphasis::Normal => PLAIN,
        Emphasis::Strong => STRONG,
        Emphasis::Faint => FAINT,
        Emphasis::Alarm => ALARM,
    }
}

/// The page. Its verdict comes again at the end if the page is longer than the terminal.
pub fn write(page: &Page<'_>, options: TerminalOptions) -> String {
    let (mut text, left_out) = within(page, options, titled(page, options), screen::FOOTER);
    text.push_str(&screen::footer(&left_out, options));
    let is_longer = options.height.is_some_and(|height| lines(&text) >= height);
    if is_longer {
        text.push_str(&verdict_again(page, options));
    }
    text
}

/// The first part of a page that is written in two parts.
pub struct FirstPart {
    /// The text.
    pub text: String,
    /// What the text has no room for: the second part names it.
    left_out: LeftOut,
}

/// The first part of a page, of which the rest follows.
pub fn write_first(page: &Page<'_>, options: TerminalOptions) -> FirstPart {
    let (text, left_out) = within(page, options, titled(page, options), 0);
    FirstPart { text, left_out }
}

/// The title of a page.
fn titled(page: &Page<'_>, options: TerminalOptions) -> String {
    let mut out = Output::new(options);
    out.title(page);
    out.text
}

/// The page below `title`, within its length without `footer` lines, and what it has no room for.
fn within(
    page: &Page<'_>,
    options: TerminalOptions,
    title: String,
    footer: usize,
) -> (String, LeftOut) {
    let options = options.before(&page.requirements);
    let mut out = Output::new(options);
    out.text.push_str(&title);
    if !page.verdict.is_empty() {
        out.blank_line();
    }
    let left_out = out.body(page);
    match options.length.exceeded_by(&out.text) {
        Some(most) => screen::shortened(page, options, title, most.saturating_sub(footer)),
        None => (out.text, left_out),
    }
}

/// The first sentence of the verdict, at the end of a long page.
fn verdict_again(page: &Page<'_>, options: TerminalOptions) -> String {
    let mut out = Output::new(options);
    if let Some(verdict) = page.verdict.first() {
        out.blank_line();
        out.prose(STRONG, verdict, "  ");
    }
    out.text
}

fn lines(text: &str) -> usize {
    text.lines().count()
}

/// What follows on a page whose first part was written earlier: no title.
pub fn write_rest(page: &Page<'_>, options: TerminalOptions, first: &FirstPart) -> String {
    let (mut text, left_out) = within(page, options, String::new(), screen::FOOTER);
    let left_out = left_out.after(&first.left_out);
    text.push_str(&screen::footer(&left_out, options));
    let is_longer = |height| lines(&first.text) + lines(&text) >= height;
    if options.height.is_some_and(is_longer) {
        text.push_str(&verdict_again(page, options));
    }
    text
}

/// Sections without a page around them.
pub fn write_sections(sections: &[Section], options: TerminalOptions) -> String {
    let mut out = Output::new(options);
    sections.iter().for_each(|section| out.section(section));
    out.text
}

/// A page while it is written.
struct Output {
    options: TerminalOptions,
    text: String,
}

impl Output {
    fn new(options: TerminalOptions) -> Output {
        Output {
            options: TerminalOptions {
                width: options.width.max(NARROWEST),
                ..options
            },
            text: String::new(),
        }
    }

    /// The command, what it measured, the figures at a glance.
    fn title(&mut self, page: &Page<'_>) {
        let command = escape(&format!("intact {}", page.command));
        let title = escape(&format!("{command} {}", page.subject));
        for line in wrap(&title, self.options.width, "    ") {
            self.line(&match line.strip_prefix(&command) {
                Some(rest) => Painted::new(STRONG, &command).and(PLAIN, rest),
                None => Painted::new(PLAIN, &line),
            });
        }
        self.facts(page);
        for line in &page.intro {
            self.wrapped(FAINT, &escape(&line.to_string()), "");
        }
    }

    /// The figures at a glance.
    fn facts(&mut self, page: &Page<'_>) {
        let facts = page.facts.iter().filter(|fact| !fact.is_repeated);
        let facts = facts.filter_map(|fact| {
            let value = fact.value.text()?;
            // a line ends between two figures
            Some(escape(&format!("{value} {}", fact.name)).replace(' ', "\u{a0}"))
        });
        let facts: Vec<String> = facts.collect();
        self.wrapped(FAINT, &facts.join(", "), "");
    }

    /// All but the details of a page that has to be short, which are returned.
    fn body(&mut self, page: &Page<'_>) -> LeftOut {
        let mut left_out = LeftOut::default();
        let is_short = self.options.length != Length::Full;
        for (nth, sentence) in page.verdict.iter().enumerate() {
            self.sentence(nth, sentence);
        }
        for section in &page.sections {
            match is_short && section.weight == Weight::Detail {
                true => left_out.section(section),
                false => self.section(section),
            }
        }
        if !page.caveats.is_empty() {
            self.blank_line();
        }
        for caveat in &page.caveats {
            self.caveat(caveat);
        }
        left_out
    }

    /// A sentence of the verdict.
    fn sentence(&mut self, nth: usize, sentence: &Text) {
        let style = if nth == 0 { STRONG } else { PLAIN };
        self.prose(style, sentence, "  ");
    }

    fn caveat(&mut self, caveat: &Text) {
        self.wrapped(ALARM, &escape(&format!("caveat: {caveat}")), "  ");
    }

    fn section(&mut self, section: &Section) {
        self.leading_blocks(section, usize::MAX);
    }

    /// A section with at most `most` of its blocks.
    fn leading_blocks(&mut self, section: &Section, most: usize) {
        let blocks: Vec<&Block> = section.of(Depth::Summary).take(most).collect();
        if blocks.is_empty() {
            return;
        }
        self.section_title(section);
        let mut before = None;
        for block in blocks {
            let stands_alone = matches!(block, Block::Table(_) | Block::Chart(_) | Block::Code(_));
            // lines to copy end where the text goes on
            if before.is_some_and(|before| stands_alone || matches!(before, &Block::Code(_))) {
                self.blank_line();
            }
            self.block(block);
            before = Some(block);
        }
    }

    fn section_title(&mut self, section: &Section) {
        self.blank_line();
        let title = escape(&section.title.to_string());
        for line in wrap(&title, self.options.width, "  ") {
            self.line(&Painted::new(STRONG, &line));
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(emphasis, text) => self.prose(of_emphasis(*emphasis), text, "  "),
            Block::List(items) => {
                for item in items {
                    self.prose(PLAIN, &Text::fill("- {}", vec![item.clone()]), "  ");
                }
            }
            Block::Facts(facts) => {
                for (name, value) in facts {
                    self.wrapped(PLAIN, &escape(&format!("{name}: {value}")), "  ");
                }
            }
            Block::Table(table) => self.table(table),
            Block::Findings(groups) => self.findings(groups),
            Block::Chart(chart) => {
                for line in chart.kind.letters(self.options.width) {
                    self.line(&line);
                }
            }
            Block::Sequence(sequence) => self.sequence(sequence),
            Block::Code(lines) => {
                for line in lines {
                    // never wrapped: it is there to be copied
                    self.line(&Painted::new(PLAIN, &format!("    {line}")));
                }
            }
        }
    }

    fn table(&mut self, table: &super::page::Table) {
        if let Some(caption) = &table.caption {
            self.prose(FAINT, caption, "  ");
        }
        let laid_out = table::lay_out(table, self.options);
        for line in &laid_out.lines {
            self.line(line);
        }
        for note in laid_out.notes.iter().chain(&table.notes) {
            self.prose(FAINT, note, "  ");
        }
    }

    fn findings(&mut self, groups: &[FindingGroup]) {
        let (notes, grave): (Vec<&FindingGroup>, Vec<&FindingGroup>) =
            groups.iter().partition(|group| group.is_note);
        for (nth, group) in grave.iter().take(FINDINGS).enumerate() {
            if nth > 0 {
                self.blank_line();
            }
            self.finding(group);
        }
        if !notes.is_empty() {
            if !grave.is_empty() {
                self.blank_line();
            }
            for group in notes.iter().take(NOTES) {
                let said = format!("info: {} [{}]", claim(group, 0), group.rule);
                self.wrapped(PLAIN, &said, "  ");
                self.further_cases(group, 1);
            }
        }
        let hidden = grave.len().saturating_sub(FINDINGS) + notes.len().saturating_sub(NOTES);
        if hidden > 0 {
            self.wrapped(
                FAINT,
                &format!("{hidden} more findings: --json=FILE has them"),
                "",
            );
        }
    }

    fn finding(&mut self, group: &FindingGroup) {
        self.claim(group);
        match self.options.length {
            Length::Full => self.places(&group.cases[0], PLACES, CALLS),
            _ => self.places(&group.cases[0], SHORT_PLACES, 0),
        }
        self.prose(PLAIN, &group.cases[0].evidence, "  ");
        self.further_cases(group, CASES);
        if !group.fix.is_empty() {
            let fix = Text::fill("-> {}", vec![group.fix.clone()]);
            self.prose(PLAIN, &fix, "   ");
        }
        if let Some(risk) = &group.risk {
            self.prose(FAINT, &Text::fill("but: {}", vec![risk.clone()]), "   ");
        }
    }

    /// What a finding claims, in the colour of its severity.
    fn claim(&mut self, group: &FindingGroup) {
        let said = format!(
            "{}: {} [{}]",
            group.severity.as_str(),
            claim(group, 0),
            group.rule
        );
        let style = match group.severity {
            Severity::Info => PLAIN,
            Severity::Warning | Severity::Error => ALARM,
        };
        self.wrapped(style, &said, "  ");
    }

    /// Where in the code the connections were opened, in columns, and that many calls of each.
    fn places(&mut self, case: &Case, most: usize, calls: usize) {
        let (lines, more) = case.place_lines(most);
        let cells: Vec<[String; 3]> = lines
            .iter()
            .map(|line| line.each_ref().map(|cell| escape(cell)))
            .collect();
        let width = |nth: usize| {
            let widths = cells.iter().map(|line| line[nth].chars().count());
            widths.max().unwrap_or_default()
        };
        let (position, function) = (width(0), width(1));
        for ([at, name, count], place) in cells.iter().zip(&case.places) {
            let line = format!("    {at:position$}  {name:function$}  {count}");
            self.line(&Painted::new(PLAIN, &line));
            for call in place.stack.iter().take(calls) {
                let line = format!("      {}  {}", call.function, call.position());
                self.line(&Painted::new(FAINT, escape(&line).trim_end()));
            }
            if calls > 0 && place.stack.len() > calls {
                let more = counted((place.stack.len() - calls) as u64, "more call");
                self.line(&Painted::new(
                    FAINT,
                    &format!("      {more}: --json=FILE has them"),
                ));
            }
        }
        if more > 0 {
            let line = format!(
                "    {}: --json=FILE has them",
                counted(more as u64, "more place")
            );
            self.line(&Painted::new(FAINT, &line));
        }
    }

    /// The subjects after the first, `most` of them in words.
    fn further_cases(&mut self, group: &FindingGroup, most: usize) {
        let shown = group.cases.len().min(most + 1);
        for nth in 1..shown {
            self.also(&claim(group, nth));
            self.places(&group.cases[nth], SHORT_PLACES, 0);
        }
        if group.cases.len() > shown {
            self.also(&format!(
                "{} more: --json=FILE has them",
                group.cases.len() - shown
            ));
        }
    }

    fn also(&mut self, words: &str) {
        for line in wrap(&format!("also {words}"), self.options.width - 4, "  ") {
            self.line(&Painted::new(PLAIN, &format!("    {line}")));
        }
    }

    fn sequence(&mut self, sequence: &super::page::Sequence) {
        let Some(lines) = sequence::text(sequence, self.options.width) else {
            let words = format!(
                "{} participants do not fit side by side",
                sequence.lanes.len()
            );
            return self.wrapped(FAINT, &words, "  ");
        };
        for (nth, (is_alarm, line)) in lines.iter().take(MESSAGES + 1).enumerate() {
            let style = match (nth, is_alarm) {
                (0, _) => FAINT,
                (_, true) => ALARM,
                (_, false) => PLAIN,
            };
            self.line(&Painted::new(style, line));
        }
        let cut = lines.len().saturating_sub(MESSAGES + 1) as u64;
        match sequence.more.map(|more| more + cut) {
            Some(0) => {}
            Some(more) => self.wrapped(FAINT, &format!("and {more} more"), "  "),
            None => self.wrapped(FAINT, "and more", "  "),
        }
    }

    fn line(&mut self, line: &Painted) {
        self.text.push_str(&line.print(self.options.colour));
        self.text.push('\n');
    }

    fn blank_line(&mut self) {
        self.line(&Painted::default());
    }

    fn prose(&mut self, style: Style, text: &Text, indent: &str) {
        self.wrapped(style, &escape(&text.to_string()), indent);
    }

    /// Escaped text behind `indent`; on a terminal in lines, the later ones indented by four more
    /// columns.
    fn hanging(&mut self, style: Style, text: &str, indent: &str) {
        let lines = match self.options.height {
            Some(_) => wrap(text, self.options.width - indent.len(), "    "),
            None => vec![text.to_owned()],
        };
        for line in lines {
            self.line(&Painted::new(PLAIN, indent).and(style, &line));
        }
    }

    /// Escaped text in lines, all indented by two columns and the later ones by `indent` too.
    fn wrapped(&mut self, style: Style, text: &str, indent: &str) {
        for line in wrap(text, self.options.width - 2, indent) {
            self.line(&Painted::new(PLAIN, "  ").and(style, &line));
        }
    }
}

/// Subject, claim and cost of a case.
fn claim(group: &FindingGroup, nth: usize) -> String {
    let case = &group.cases[nth];
    let cost = case
        .cost
        .as_ref()
        .map_or_else(String::new, |cost| format!(" Costs {cost}."));
    let claim = format!("{}{cost}", case.claim);
    escape(&match case.subject.as_str() {
        "" => claim,
        subject => format!("{subject}: {claim}"),
    })
}

/// Breaks a text into lines of at most `width`, later ones indented. A number and its unit stay on
/// one line.
pub fn wrap(text: &str, width: usize, indent: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in glue_units(text).split_ascii_whitespace() {
        let extra = word.chars().count() + usize::from(!line.is_empty());
        if !line.is_empty() && line.chars().count() + extra > width {
            lines.push(std::mem::take(&mut line));
            line.push_str(indent);
        } else if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        lines.push(line);
    }
    lines
        .iter()
        .map(|line| line.replace('\u{a0}', " "))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_is_broken_at_words() {
        let lines = wrap("one two three four", 9, "  ");
        assert_eq!(lines, ["one two", "  three", "  four"]);
        assert_eq!(wrap("it takes 12 ms", 11, ""), ["it takes", "12 ms"]);
    }

    #[test]
    fn a_long_name_keeps_both_ends() {
        assert_eq!(
            shorten("https://api.example.com", 23),
            "https://api.example.com"
        );
        assert_eq!(shorten("https://api.example.com", 11), "https…e.com");
    }
}
