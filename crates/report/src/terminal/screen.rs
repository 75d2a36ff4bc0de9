//! A page on one screen: verdict, what to change, the first figures, caveats. What is left out is
//! named. Must not know a document.
//!
//! Findings give their evidence and risks up, and all remedies but the first are cut to a sentence.
//! Of a section without room its first tables are written, or nothing. Only the first section and
//! those that an option asked for are cut elsewhere.

use super::{Output, TerminalOptions, lines};
use crate::page::{Block, Depth, FindingGroup, Page, Section, Text, Weight};
use crate::painted::FAINT;
use intact_document::Severity;
use intact_units::foreign_text::escape;
use intact_units::plural::counted;

/// Lines of the verdict; its first sentence is whole in any case.
const VERDICT: usize = 12;
/// Lines that are kept for the first figures.
const FIGURES: usize = 12;
/// Lines of a section that is worth being cut.
const LEAST: usize = 5;
/// Lines that are kept for caveats.
const CAVEATS: usize = 6;
/// Lines that name what is left out, the blank one before them included.
pub(super) const FOOTER: usize = 4;
/// Titles of sections that are named; more are counted.
const TITLES: usize = 6;

/// The page below `title` in at most `most` lines, on 80 columns or more, and what is left out.
pub(super) fn shortened(
    page: &Page<'_>,
    options: TerminalOptions,
    title: String,
    most: usize,
) -> (String, LeftOut) {
    let mut left_out = LeftOut::default();
    let mut screen = Screen {
        options,
        text: title,
        most,
    };
    screen.verdict(page, &mut left_out);
    let caveats = screen.caveats(page, &mut left_out);
    let kept = lines(&caveats);
    let is_figures = |section: &Section| groups(section).is_empty();
    let findings = page
        .sections
        .iter()
        .position(|section| !is_figures(section));
    // tables before the findings belong to the verdict
    let (verdict, rest) = page.sections.split_at(findings.unwrap_or(0));
    for section in verdict {
        screen.figures(section, true, kept, &mut left_out);
    }
    let is_shown = |section: &Section| section.weight != Weight::Detail && is_figures(section);
    let first = rest.iter().position(is_shown);
    let parts = rest.iter().enumerate();
    let reserved =
        parts.map(
            |(nth, section)| match first == Some(nth) || section.weight == Weight::Asked {
                true => lines(&screen.section(section)).min(FIGURES),
                false => 0,
            },
        );
    let reserved: Vec<usize> = reserved.collect();
    let mut kept = kept + reserved.iter().sum::<usize>();
    for (section, own) in rest.iter().zip(reserved) {
        if section.weight == Weight::Detail {
            left_out.section(section);
        } else if is_figures(section) {
            kept -= own;
            screen.figures(section, own > 0, kept, &mut left_out);
        } else {
            screen.findings(section, page.gate, kept, &mut left_out);
        }
    }
    screen.text.push_str(&caveats);
    (screen.text, left_out)
}

/// The lines that name what is left out, if anything is.
pub(super) fn footer(left_out: &LeftOut, options: TerminalOptions) -> String {
    let list = left_out.list();
    let mut out = Output::new(options);
    if !list.is_empty() {
        out.blank_line();
        out.wrapped(FAINT, &escape(&format!("--full adds {list}")), "  ");
    }
    out.text
}

/// The findings of a section that the terminal shows.
fn groups(section: &Section) -> Vec<&FindingGroup> {
    let blocks = section.of(Depth::Summary);
    let groups = blocks.filter_map(|block| match block {
        Block::Findings(groups) => Some(groups.iter()),
        _ => None,
    });
    groups.flatten().collect()
}

/// What a screen has no room for.
#[derive(Default)]
pub(super) struct LeftOut {
    sentences: u64,
    findings: u64,
    /// Findings without their evidence.
    evidence: u64,
    sections: Vec<String>,
    caveats: u64,
}

impl LeftOut {
    /// Adds a section with all that a terminal has of it.
    pub(super) fn section(&mut self, section: &Section) {
        let is_empty = section.of(Depth::Summary).next().is_none();
        let title = section.title.to_string();
        if !is_empty && !self.sections.contains(&title) {
            self.sections.push(title);
        }
    }

    /// What two parts of a page have no room for.
    pub(super) fn after(self, first: &LeftOut) -> LeftOut {
        LeftOut {
            sentences: first.sentences + self.sentences,
            findings: first.findings + self.findings,
            evidence: first.evidence + self.evidence,
            sections: [first.sections.clone(), self.sections].concat(),
            caveats: first.caveats + self.caveats,
        }
    }

    /// In words, such as `2 findings, Phases`.
    fn list(&self) -> String {
        let count = |count: u64, what: &str| (count > 0).then(|| counted(count, what));
        let mut parts: Vec<String> = [
            count(self.sentences, "sentence"),
            count(self.findings, "finding"),
        ]
        .into_iter()
        .flatten()
        .collect();
        if self.evidence > 0 {
            parts.push(format!(
                "the evidence of {}",
                counted(self.evidence, "finding")
            ));
        }
        if self.sections.len() > TITLES {
            parts.extend(count(self.sections.len() as u64, "section"));
        } else {
            // an explanation follows a colon, or is in brackets
            let names = self
                .sections
                .iter()
                .filter_map(|title| title.split([':', '(']).next());
            parts.extend(names.map(|name| format!("\"{}\"", name.trim_end())));
        }
        parts.extend(count(self.caveats, "caveat"));
        parts.join(", ")
    }
}

/// A screen while it is written.
struct Screen {
    options: TerminalOptions,
    text: String,
    most: usize,
}

impl Screen {
    /// Lines that are left if `kept` of them are for other things.
    fn room(&self, kept: usize) -> usize {
        self.most.saturating_sub(lines(&self.text) + kept)
    }

    fn verdict(&mut self, page: &Page<'_>, left_out: &mut LeftOut) {
        let mut out = Output::new(self.options);
        if !page.verdict.is_empty() {
            out.blank_line();
        }
        left_out.sentences = out.first(&page.verdict, VERDICT, Output::sentence);
        self.text.push_str(&out.text);
    }

    fn caveats(&self, page: &Page<'_>, left_out: &mut LeftOut) -> String {
        let mut out = Output::new(self.options);
        if !page.caveats.is_empty() {
            out.blank_line();
        }
        left_out.caveats = out.first(&page.caveats, CAVEATS, |out, _, one| out.caveat(one));
        out.text
    }

    /// Claims and remedies, the worst first, while there is room; then the claims that fail `gate`.
    fn findings(
        &mut self,
        section: &Section,
        gate: Option<Severity>,
        kept: usize,
        left_out: &mut LeftOut,
    ) {
        let mut out = Output::new(self.options);
        out.section_title(section);
        let groups = groups(section);
        for (nth, group) in groups.iter().enumerate() {
            // what is only worth knowing gives way to what is wrong
            if group.is_note && !groups[0].is_note {
                left_out.findings += (groups.len() - nth) as u64;
                break;
            }
            let before = out.text.len();
            out.claim(group);
            out.places(&group.cases[0], super::SHORT_PLACES, 0);
            if group.count > 1 {
                let more = counted(group.count - 1, "further case");
                out.wrapped(FAINT, &format!("and {more}"), "  ");
            }
            if !group.is_note && !group.fix.is_empty() {
                let fix = group.fix.to_string();
                let fix = if nth == 0 { &fix } else { first_sentence(&fix) };
                out.wrapped(super::PLAIN, &escape(&format!("-> {fix}")), "   ");
            }
            let is_needed = nth == 0 && !group.is_note;
            if !is_needed && lines(&out.text) > self.room(kept) {
                out.text.truncate(before);
                let rest = &groups[nth..];
                let fails = |one: &&&FindingGroup| gate.is_some_and(|gate| one.severity >= gate);
                let failing = rest
                    .iter()
                    .filter(fails)
                    .map(|group| out.claim(group))
                    .count();
                left_out.findings += (rest.len() - failing) as u64;
                left_out.evidence += failing as u64;
                break;
            }
            left_out.evidence += 1;
        }
        if left_out.findings < groups.len() as u64 {
            self.text.push_str(&out.text);
        }
    }

    /// A section as it is on the whole page.
    fn section(&self, section: &Section) -> String {
        let mut out = Output::new(self.options);
        out.section(section);
        out.text
    }

    /// A section up to one of its tables or charts, if that fits into `room` lines and the whole
    /// section does not.
    fn leading_blocks(&self, section: &Section, room: usize) -> Option<String> {
        let blocks: Vec<&Block> = section.of(Depth::Summary).collect();
        let ends = (1..blocks.len()).rev();
        let ends = ends.filter(|end| matches!(blocks[end - 1], Block::Table(_) | Block::Chart(_)));
        let mut parts = ends.map(|end| {
            let mut out = Output::new(self.options);
            out.leading_blocks(section, end);
            out.text
        });
        parts.find(|text| (LEAST..=room).contains(&lines(text)))
    }

    /// A section if there is room for it, or its first blocks. The first one is cut if it has to
    /// be.
    fn figures(&mut self, section: &Section, is_first: bool, kept: usize, left_out: &mut LeftOut) {
        let text = self.section(section);
        let (needed, room) = (lines(&text), self.room(kept));
        if needed == 0 {
            return;
        }
        if needed <= room {
            return self.text.push_str(&text);
        }
        let shown = match self.leading_blocks(section, room.saturating_sub(1)) {
            Some(part) => part,
            None if is_first && room >= LEAST => {
                text.split_inclusive('\n').take(room - 1).collect()
            }
            None => return left_out.section(section),
        };
        self.text.push_str(&shown);
        let mut out = Output::new(self.options);
        out.wrapped(
            FAINT,
            &format!(
                "and {} more (--full)",
                counted((needed - lines(&shown)) as u64, "line")
            ),
            "",
        );
        self.text.push_str(&out.text);
    }
}

impl Output {
    /// Writes the texts that fit into `most` lines, the first one in any case. Returns how many are
    /// left.
    fn first(
        &mut self,
        texts: &[Text],
        most: usize,
        write: impl Fn(&mut Output, usize, &Text),
    ) -> u64 {
        for (nth, text) in texts.iter().enumerate() {
            let before = self.text.len();
            write(self, nth, text);
            if nth > 0 && lines(&self.text) > most {
                self.text.truncate(before);
                return (texts.len() - nth) as u64;
            }
        }
        0
    }
}

/// The text up to its first full stop before a capital letter.
fn first_sentence(text: &str) -> &str {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1);
    let mut ends =
        ends.filter(|end| text[end + 1..].starts_with(|letter: char| letter.is_uppercase()));
    ends.next().map_or(text, |end| &text[..end])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Case, Rows, Section, note};
    use crate::terminal::{Length, write};
    use intact_units::Quantity::Count;

    const OPTIONS: TerminalOptions = TerminalOptions {
        length: Length::SCREEN,
        ..TerminalOptions::plain(80)
    };

    fn group(nth: usize) -> FindingGroup {
        FindingGroup {
            severity: Severity::Warning,
            rule: "new-connection-per-request",
            cases: vec![Case {
                subject: format!("http://server-{nth}.example"),
                claim: "40 connections for 40 requests, 1 needed.".into(),
                evidence: "39 opened after the client had closed the last one.".into(),
                cost: None,
                places: Vec::new(),
            }],
            count: 1,
            fix: "Keep connections open. Node: one `new http.Agent`.".into(),
            risk: Some("A kept connection can meet the server's idle timer.".into()),
            is_note: false,
        }
    }

    fn lines_of(count: usize) -> Vec<Block> {
        (0..count).map(|nth| note(format!("line {nth}"))).collect()
    }

    fn page(findings: usize, figures: usize, caveats: usize) -> Page<'static> {
        let mut page = Page {
            command: "watch".to_owned(),
            subject: "node server.js".to_owned(),
            verdict: vec!["40 connections were opened where 1 would do.".into()],
            caveats: (0..caveats)
                .map(|nth| format!("limit {nth}").into())
                .collect(),
            ..Page::default()
        };
        let groups: Vec<FindingGroup> = (0..findings).map(group).collect();
        page.section(Section::new("findings", "What to change").summary(groups));
        page.section(Section::new("destinations", "Destinations").summary(lines_of(figures)));
        page.section(Section::new("phases", "Phases").summary(lines_of(figures)));
        page
    }

    #[test]
    fn a_short_page_is_whole() {
        let text = write(&page(1, 3, 1), OPTIONS);
        assert!(
            text.contains("39 opened after") && text.contains("but: A kept"),
            "{text}"
        );
        assert!(!text.contains("--full"), "{text}");
    }

    #[test]
    fn a_long_page_fits_on_a_screen_and_names_what_is_left_out() {
        for (findings, figures, caveats) in [(12, 30, 12), (1, 60, 1), (12, 2, 0), (0, 60, 0)] {
            let page = page(findings, figures, caveats);
            let text = write(&page, OPTIONS);
            assert!(lines(&text) <= 40, "{} lines:\n{text}", lines(&text));
            assert!(text.contains("--full adds "), "{text}");
            assert!(text.contains("line 0"), "no figures:\n{text}");
            assert_eq!(
                text.contains("-> Keep connections open. Node"),
                findings > 0,
                "{text}"
            );
            let full = write(&page, TerminalOptions::plain(80));
            assert!(!full.contains("--full"), "{full}");
            assert_eq!(full.matches("caveat: ").count(), caveats);
        }
        let text = write(&page(12, 30, 12), OPTIONS);
        let names = ["findings", "the evidence of", "\"Phases\"", "7 caveats"];
        let footer = text[text.find("--full adds").unwrap()..].replace("\n  ", " ");
        assert!(names.iter().all(|name| footer.contains(name)), "{footer}");
    }

    #[test]
    fn what_fails_a_gate_is_on_a_page_without_room() {
        let mut page = page(12, 30, 12);
        let claims = |page: &Page<'_>| write(page, OPTIONS).matches("40 connections for").count();
        assert!(claims(&page) < 12);
        page.gate = Some(Severity::Error);
        assert!(claims(&page) < 12);
        page.gate = Some(Severity::Warning);
        assert_eq!(claims(&page), 12);
    }

    #[test]
    fn a_section_without_room_keeps_its_first_table() {
        let table = |rows: u32| {
            let rows: Vec<u32> = (0..rows).collect();
            let table = Rows::of(&rows).column("a", |one| Count(u64::from(*one)));
            table.column("b", |one| Count(u64::from(*one))).table()
        };
        let mut page = page(1, 4, 0);
        let two = Section::new("two", "Two tables").summary(table(6));
        page.section(two.summary(table(40)));
        let words = Section::new("words", "Words").summary(lines_of(6));
        page.section(words.summary(table(40)));
        let text = write(&page, OPTIONS);
        assert!(text.contains("Two tables\n  a  b\n"), "{text}");
        assert!(text.contains("lines more (--full)"), "{text}");
        // it would end within its text
        assert!(!text.contains("\nWords\n"), "{text}");
        assert!(lines(&text) <= 40, "{text}");
    }

    #[test]
    fn the_verdict_is_the_last_line_if_the_page_is_longer_than_the_terminal() {
        let on = |height| TerminalOptions {
            height: Some(height),
            ..OPTIONS
        };
        let page = page(1, 3, 1);
        let verdict = "  40 connections were opened where 1 would do.";
        assert_eq!(write(&page, on(10)).lines().last(), Some(verdict));
        assert_ne!(write(&page, on(50)).lines().last(), Some(verdict));
    }

    #[test]
    fn a_sentence_ends_at_a_full_stop_before_a_capital_letter() {
        assert_eq!(first_sentence("Keep it. Node: one"), "Keep it.");
        assert_eq!(
            first_sentence("below 5 s. node 1.2 too"),
            "below 5 s. node 1.2 too"
        );
        assert_eq!(first_sentence(""), "");
    }
}
