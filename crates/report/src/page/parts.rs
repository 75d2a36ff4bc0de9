//! What a page is put together from. Plain data: the writers lay it out.

use super::download::Download;
use crate::svg::{Picture, Svg};
use intact_findings::stats::Interval;
use intact_findings::{Finding, Severity};
use intact_units::number::{percent, time};

/// One run: the whole page, or one part of several.
pub(crate) struct Section {
    /// What stands before the ids of this chapter, so that several can share a page.
    pub(crate) prefix: String,
    /// Its name, where there are several.
    pub(crate) heading: Option<String>,
    /// The verdict.
    pub(crate) headline: Headline,
    /// Further sentences.
    pub(crate) further: Vec<String>,
    /// The counts to know at a glance.
    pub(crate) facts: Vec<Fact>,
    /// What stands out.
    pub(crate) findings: Vec<FindingGroup>,
    /// Pictures.
    pub(crate) figures: Vec<Figure>,
    /// Tables.
    pub(crate) tables: Vec<Table>,
    /// What limits the figures.
    pub(crate) caveats: Vec<String>,
    /// How it was measured.
    pub(crate) method: Method,
    /// Raw numbers.
    pub(crate) downloads: Vec<Download>,
}

impl Section {
    /// Findings that cost or break something.
    pub(crate) fn grave(&self) -> &[FindingGroup] {
        &self.findings[..self.first_note()]
    }

    /// Findings that are good to know.
    pub(crate) fn notes(&self) -> &[FindingGroup] {
        &self.findings[self.first_note()..]
    }

    /// The worst come first, so that notes are at the end.
    fn first_note(&self) -> usize {
        self.findings
            .partition_point(|group| group.severity > Severity::Info)
    }
}

/// The verdict: one number and the words to it.
pub(crate) struct Headline {
    /// The number, with its unit.
    pub(crate) number: String,
    /// Whether it is good news.
    pub(crate) standing: Assessment,
    /// What the number is.
    pub(crate) caption: String,
    /// The verdict in a sentence.
    pub(crate) sentences: String,
}

/// Whether a number is good news.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Assessment {
    /// It is.
    Good,
    /// It is not.
    Bad,
    /// Neither, or nobody can tell.
    Neutral,
}

impl Assessment {
    /// A class of the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Assessment::Good => "good",
            Assessment::Bad => "bad",
            Assessment::Neutral => "neutral",
        }
    }
}

/// A count with its name.
pub(crate) struct Fact {
    pub(crate) name: &'static str,
    pub(crate) words: String,
    pub(crate) alarm: bool,
}

impl Fact {
    pub(crate) fn new(name: &'static str, words: impl Into<String>) -> Fact {
        Fact {
            name,
            words: words.into(),
            alarm: false,
        }
    }

    /// A fact that needs attention.
    pub(crate) fn alarm(name: &'static str, words: impl Into<String>) -> Fact {
        Fact {
            alarm: true,
            ..Fact::new(name, words)
        }
    }
}

/// A picture with its title, what to see in it, and its numbers.
pub(crate) struct Figure {
    pub(crate) id: &'static str,
    pub(crate) title: String,
    /// Whether it takes the whole width of the page.
    pub(crate) full: bool,
    pub(crate) notes: Vec<String>,
    pub(crate) file: Option<Download>,
    picture: Box<dyn Picture>,
}

/// A picture at one width; the style sheet shows the one that fits.
pub(crate) struct SizedChart {
    pub(crate) class: &'static str,
    pub(crate) svg: Svg,
}

impl Figure {
    /// `notes` stand below the picture, and are its description for those who cannot see it.
    pub(crate) fn new(
        id: &'static str,
        title: impl Into<String>,
        picture: impl Picture + 'static,
        notes: Vec<String>,
    ) -> Figure {
        Figure {
            id,
            title: title.into(),
            full: false,
            notes,
            file: None,
            picture: Box::new(picture),
        }
    }

    /// Over the whole width of the page.
    pub(crate) fn across(mut self) -> Figure {
        self.full = true;
        self
    }

    /// With its numbers as a file.
    pub(crate) fn with_file(mut self, file: Download) -> Figure {
        self.file = Some(file);
        self
    }

    /// Draws it for each width of paper.
    pub(crate) fn drawings(&self) -> Vec<SizedChart> {
        let widths: &[(&'static str, f64)] = if self.full {
            &[("narrow", 300.0), ("middle", 640.0), ("wide", 1060.0)]
        } else {
            &[("narrow", 300.0), ("wide", 500.0)]
        };
        let description = self.notes.join(" ");
        widths
            .iter()
            .map(|&(class, width)| SizedChart {
                class,
                svg: self.picture.draw(width, &self.title, &description),
            })
            .collect()
    }
}

/// A table; its first column names the row.
pub(crate) struct Table {
    pub(crate) id: &'static str,
    pub(crate) caption: String,
    pub(crate) heads: Vec<Head>,
    pub(crate) rows: Vec<Vec<Cell>>,
    pub(crate) notes: Vec<String>,
}

/// A table while its columns are added.
pub(crate) struct Columns<'a, T> {
    rows: &'a [T],
    heads: Vec<Head>,
    cells: Vec<Vec<Cell>>,
}

impl<'a, T> Columns<'a, T> {
    /// A table with a row for each of these.
    pub(crate) fn over(rows: &'a [T]) -> Columns<'a, T> {
        Columns {
            rows,
            heads: Vec::new(),
            cells: rows.iter().map(|_| Vec::new()).collect(),
        }
    }

    /// Adds a column; one in which no row has anything is left out.
    pub(crate) fn column(
        mut self,
        words: &str,
        meaning: &'static str,
        cell: impl Fn(&'a T) -> Cell,
    ) -> Columns<'a, T> {
        let column: Vec<Cell> = self.rows.iter().map(cell).collect();
        if column.iter().any(|cell| cell.words != ABSENT) {
            self.heads.push(Head {
                words: words.to_owned(),
                meaning,
            });
            for (row, cell) in self.cells.iter_mut().zip(column) {
                row.push(cell);
            }
        }
        self
    }

    /// The finished table.
    pub(crate) fn table(self, id: &'static str, caption: impl Into<String>) -> Table {
        Table {
            id,
            caption: caption.into(),
            heads: self.heads,
            rows: self.cells,
            notes: Vec::new(),
        }
    }
}

/// The head of a column.
pub(crate) struct Head {
    pub(crate) words: String,
    /// What the column holds, for those who ask.
    pub(crate) meaning: &'static str,
}

/// What stands where there is no value.
const ABSENT: &str = "–";

/// A cell: what is read, and the value that it sorts by.
#[derive(Clone, Default)]
pub(crate) struct Cell {
    pub(crate) words: String,
    pub(crate) key: Option<f64>,
    pub(crate) alarm: bool,
    /// How strongly it is shaded, 1 to 5.
    pub(crate) heat: Option<u8>,
}

impl Cell {
    pub(crate) fn text(words: impl Into<String>) -> Cell {
        let words = words.into();
        Cell {
            words: if words.is_empty() {
                ABSENT.to_owned()
            } else {
                words
            },
            ..Cell::default()
        }
    }

    /// A value in words that sorts as a number; an absent one is a dash.
    pub(crate) fn value(value: Option<f64>, words: impl Fn(f64) -> String) -> Cell {
        Cell {
            words: value.map_or_else(|| ABSENT.to_owned(), words),
            key: value,
            ..Cell::default()
        }
    }

    /// Milliseconds.
    pub(crate) fn time(ms: Option<f64>) -> Cell {
        Cell::value(ms, time)
    }

    /// An estimate with the ends of its interval.
    pub(crate) fn interval(interval: Option<Interval>, words: impl Fn(f64) -> String) -> Cell {
        let with_ends = |one: Interval| {
            let [value, low, high] = [one.value, one.low, one.high].map(words);
            format!("{value} ({low} … {high})")
        };
        Cell {
            words: interval.map_or_else(|| ABSENT.to_owned(), with_ends),
            key: interval.map(|one| one.value),
            ..Cell::default()
        }
    }

    /// Whether a difference was shown, where it could be.
    pub(crate) fn differs(shown: Option<bool>) -> Cell {
        Cell::text(match shown {
            Some(true) => "differ",
            Some(false) => "not shown",
            None => "no interval",
        })
    }

    /// Whether it is read as words, which may take several lines.
    pub(crate) fn is_words(&self) -> bool {
        self.key.is_none() && self.words.contains(' ')
    }

    /// A count that needs attention unless it is zero.
    pub(crate) fn failures(count: u64) -> Cell {
        Cell {
            alarm: count > 0,
            ..Cell::count(count)
        }
    }

    /// A count.
    pub(crate) fn count(count: u64) -> Cell {
        Cell::value(Some(count as f64), |_| intact_units::number::count(count))
    }

    /// A share.
    pub(crate) fn share(share: Option<f64>) -> Cell {
        Cell::value(share, percent)
    }
}

/// A count shaded by its share of a whole; nothing where there is none.
pub(crate) fn heat(count: u64, whole: u64) -> Cell {
    if count == 0 {
        return Cell::text("");
    }
    Cell {
        // a fifth of the whole is one step darker
        heat: Some((count * 5).div_ceil(whole.max(1)).clamp(1, 5) as u8),
        ..Cell::count(count)
    }
}

/// Findings of one rule with one remedy.
pub(crate) struct FindingGroup {
    pub(crate) severity: Severity,
    pub(crate) rule: &'static str,
    pub(crate) first: Case,
    pub(crate) others: Vec<Case>,
    pub(crate) fix: String,
    pub(crate) risk: Option<String>,
}

/// What is the case with one subject.
pub(crate) struct Case {
    pub(crate) subject: String,
    pub(crate) claim: String,
    pub(crate) evidence: String,
    pub(crate) cost: Option<String>,
}

impl FindingGroup {
    /// Findings that share rule and remedy stand together, the worst first; else in the order in which they come.
    pub(crate) fn all(findings: &[Finding]) -> Vec<FindingGroup> {
        let mut sorted: Vec<&Finding> = findings.iter().collect();
        sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        let mut groups: Vec<(&Finding, FindingGroup)> = Vec::new();
        for finding in sorted {
            let alike = groups.iter_mut().find(|(head, _)| {
                let key = |one: &Finding| (one.severity, one.rule);
                key(head) == key(finding) && head.fix == finding.fix && head.risk == finding.risk
            });
            match alike {
                Some((_, group)) => group.others.push(Case::new(finding)),
                None => groups.push((finding, FindingGroup::new(finding))),
            }
        }
        groups.into_iter().map(|(_, group)| group).collect()
    }

    fn new(finding: &Finding) -> FindingGroup {
        FindingGroup {
            severity: finding.severity,
            rule: finding.rule,
            first: Case::new(finding),
            others: Vec::new(),
            fix: sentence(&finding.fix),
            risk: finding.risk.as_deref().map(sentence),
        }
    }
}

impl Case {
    fn new(finding: &Finding) -> Case {
        let cost = finding.cost_ms.filter(|cost| *cost > 0.0);
        Case {
            subject: finding.subject.clone(),
            claim: sentence(&finding.claim),
            evidence: sentence(&finding.evidence),
            cost: cost.map(|cost| match finding.cost_share {
                Some(share) => format!("{} ({} of the time)", time(cost), percent(share)),
                None => time(cost),
            }),
        }
    }
}

/// How it was measured: prose, then facts.
pub(crate) struct Method {
    pub(crate) paragraphs: Vec<String>,
    pub(crate) facts: Vec<(&'static str, String)>,
}

/// With a capital letter in front, unless that is a name (`keepalive=on`), and a full stop at the end.
pub(crate) fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let Some(first) = letters.next() else {
        return String::new();
    };
    let end = if words.ends_with(['.', '!', '?', '…']) {
        ""
    } else {
        "."
    };
    let is_name = |word: &str| {
        let word = word.trim_end_matches(['.', ':']);
        word.contains(['=', '.', '_', ':', '/', '`'])
    };
    if words.split(' ').next().is_some_and(is_name) {
        return format!("{words}{end}");
    }
    format!("{}{}{end}", first.to_uppercase(), letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_that_says_nothing_is_left_out() {
        let table = Columns::over(&[1.0, 2.0])
            .column("name", "", |row: &f64| Cell::text(row.to_string()))
            .column("absent", "", |_| Cell::time(None))
            .column("time", "", |row| Cell::time(Some(*row)))
            .table("t", "");
        assert_eq!(table.heads.len(), 2);
        assert_eq!(table.rows[1][1].words, "2.00 ms");
        assert_eq!(table.rows[1][1].key, Some(2.0));
    }

    #[test]
    fn findings_of_one_remedy_stand_together_and_the_worst_comes_first() {
        let finding = |rule, severity, subject: &str| Finding {
            rule,
            severity,
            subject: subject.to_owned(),
            claim: "it is slow".into(),
            evidence: "it took long".into(),
            cost_ms: Some(0.0),
            cost_share: None,
            fix: "make it fast".into(),
            risk: None,
        };
        let groups = FindingGroup::all(&[
            finding("slow", Severity::Warning, "a"),
            finding("broken", Severity::Error, "a"),
            finding("slow", Severity::Warning, "b"),
        ]);
        let told: Vec<(&str, usize)> = groups
            .iter()
            .map(|group| (group.rule, group.others.len()))
            .collect();
        assert_eq!(told, [("broken", 0), ("slow", 1)]);
        assert_eq!(groups[1].others[0].subject, "b");
        assert_eq!(groups[1].first.cost, None);
    }

    #[test]
    fn a_sentence_begins_and_ends_as_one() {
        assert_eq!(sentence("the server closes"), "The server closes.");
        assert_eq!(sentence("done."), "Done.");
        assert_eq!(sentence("c=1 is fast"), "c=1 is fast.");
        assert_eq!(sentence(""), "");
    }
}
