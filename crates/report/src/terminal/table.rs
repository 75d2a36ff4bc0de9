//! A table in columns of letters. A narrow terminal drops the least important columns first, then
//! breaks cells and heads into lines, and shortens the words that are longer than their column.

use super::{Length, TerminalOptions, escape, shorten, wrap};
use crate::page::{Column, Table, Text, text};
use crate::painted::{ALARM, FAINT, PLAIN, Painted, Style};
use intact_units::plural::counted;

/// Columns of letters that words get at least, unless they need fewer.
const WORDS: usize = 34;
/// Columns of letters that words keep however narrow the terminal is.
const NARROWEST: usize = 8;

/// A table in lines, its head first, and what is missing from it.
pub(super) struct LaidOut {
    pub(super) lines: Vec<Painted>,
    pub(super) notes: Vec<Text>,
}

/// A column in letters.
struct Letters<'a> {
    column: &'a Column,
    head: String,
    cells: Vec<String>,
    natural: usize,
    width: usize,
}

impl<'a> Letters<'a> {
    fn new(column: &'a Column, rows: usize) -> Letters<'a> {
        let cells = column.cells.iter().take(rows).map(|cell| {
            let text = cell.text().map(|text| escape(&text.to_string()));
            text.unwrap_or_else(|| "-".to_owned())
        });
        let cells: Vec<String> = cells.collect();
        let widths = cells.iter().map(|cell| cell.chars().count());
        let head = escape(&column.head);
        let natural = widths.max().unwrap_or(0).max(head.chars().count());
        let width = if column.is_numeric() {
            natural
        } else {
            natural.min(WORDS)
        };
        Letters {
            column,
            head,
            cells,
            natural,
            width,
        }
    }

    /// The lines of a text in this column.
    fn broken(&self, text: &str) -> Vec<String> {
        if text.chars().count() <= self.width {
            return vec![text.to_owned()];
        }
        let lines = wrap(text, self.width, "").into_iter();
        lines.map(|line| shorten(&line, self.width)).collect()
    }

    fn padded(&self, text: &str) -> String {
        let gap = " ".repeat(self.width.saturating_sub(text.chars().count()));
        if self.column.is_numeric() {
            format!("  {gap}{text}")
        } else {
            format!("  {text}{gap}")
        }
    }

    /// The least width at which no cell is broken, and no word of the head.
    fn with_broken_head(&self) -> usize {
        let cells = self.cells.iter().map(|cell| cell.chars().count());
        cells.chain([longest_word(&self.head)]).max().unwrap_or(0)
    }

    /// The least width at which no number is broken, and no word of the head.
    fn narrowest(&self) -> usize {
        match self.column.is_numeric() {
            true => self.with_broken_head(),
            false => longest_word(&self.head).max(NARROWEST),
        }
    }
}

fn longest_word(text: &str) -> usize {
    let words = text.split_ascii_whitespace();
    words.map(|word| word.chars().count()).max().unwrap_or(0)
}

/// The lines of a row, whose cells have a style each.
fn row_lines(columns: &[Letters<'_>], cells: &[(Style, &str)]) -> Vec<Painted> {
    let broken: Vec<Vec<String>> = columns
        .iter()
        .zip(cells)
        .map(|(column, (_, text))| column.broken(text))
        .collect();
    let height = broken.iter().map(Vec::len).max().unwrap_or(0);
    let line = |nth: usize| {
        let cells = columns.iter().zip(&broken).zip(cells);
        let cells = cells.map(|((column, lines), (style, _))| {
            let text = lines.get(nth).map_or("", String::as_str);
            (*style, column.padded(text))
        });
        cells.fold(Painted::default(), |line, (style, cell)| {
            line.and(style, &cell)
        })
    };
    (0..height).map(line).collect()
}

/// Lays a table out.
pub(super) fn lay_out(table: &Table, options: TerminalOptions) -> LaidOut {
    let shown = table.columns.iter().filter(|column| !column.is_full);
    let brief = table.brief.filter(|_| options.length != Length::Full);
    let rows = brief.unwrap_or(usize::MAX).min(table.rows());
    let mut columns: Vec<Letters<'_>> = shown.map(|column| Letters::new(column, rows)).collect();
    let dropped = fit(&mut columns, options.width);
    let heads = columns.iter().map(|letters| (FAINT, letters.head.as_str()));
    let mut lines = row_lines(&columns, &heads.collect::<Vec<_>>());
    for row in 0..rows {
        let cells = columns.iter().map(|letters| {
            let is_alarm = letters.column.cells[row].is_alarm;
            let style = if is_alarm { ALARM } else { PLAIN };
            (style, letters.cells[row].as_str())
        });
        lines.extend(row_lines(&columns, &cells.collect::<Vec<_>>()));
    }
    let mut notes = Vec::new();
    if table.rows() > rows {
        let more = counted((table.rows() - rows) as u64, "more row");
        notes.push(text!("{}: --json=FILE has them", more));
    }
    if !dropped.is_empty() {
        notes.push(text!(
            "no room for: {} (--json=FILE has them)",
            dropped.join(", ")
        ));
    }
    LaidOut { lines, notes }
}

/// Takes a letter from the widest column that is wider than `least`; returns whether there is one.
fn narrow<'a>(columns: &mut [Letters<'a>], least: fn(&Letters<'a>) -> usize) -> bool {
    let wide = columns.iter_mut().filter(|one| one.width > least(one));
    let widest = wide.max_by_key(|one| one.width);
    widest.is_some_and(|one| {
        one.width -= 1;
        true
    })
}

/// Makes the columns fit; returns the heads of those that were dropped.
fn fit(columns: &mut Vec<Letters<'_>>, width: usize) -> Vec<String> {
    let total = |columns: &[Letters<'_>]| columns.iter().map(|one| one.width + 2).sum::<usize>();
    let mut dropped = Vec::new();
    while total(columns) > width {
        let ranked = columns
            .iter()
            .enumerate()
            .filter(|(_, one)| one.column.rank > 0);
        if let Some((at, _)) = ranked.max_by_key(|(_, one)| one.column.rank) {
            dropped.push(columns.remove(at).column.head.clone());
            continue;
        }
        if !(narrow(columns, Letters::with_broken_head) || narrow(columns, Letters::narrowest)) {
            break;
        }
    }
    let mut room = width.saturating_sub(total(columns));
    for one in columns.iter_mut() {
        let more = room.min(one.natural - one.width);
        one.width += more;
        room -= more;
    }
    dropped.reverse();
    dropped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::{Quantity, Rows};

    fn lines(width: usize) -> (Vec<String>, Vec<Text>) {
        let table = Rows::of(&[("https://a-rather-long-name.example.com", 100.0)])
            .column("name", |row| row.0)
            .ranked(9, "p99", |row| Quantity::Time(row.1))
            .ranked(1, "mean", |_| Quantity::Time(1.0))
            .table();
        let options = TerminalOptions::plain(width);
        let laid_out = lay_out(&table, options);
        let lines = laid_out.lines.iter();
        let lines = lines.map(|line| line.print(options.colour)).collect();
        (lines, laid_out.notes)
    }

    #[test]
    fn a_narrow_terminal_drops_the_least_important_columns_and_then_shortens_words() {
        let (wide, notes) = lines(80);
        assert_eq!((wide.len(), notes.len()), (2, 0));
        assert!(wide[1].contains("https://a-rather-long-name.example.com"));
        let (narrow, notes) = lines(46);
        assert_eq!(
            notes[0].to_string(),
            "no room for: p99 (--json=FILE has them)"
        );
        assert!(narrow[1].contains('…') && narrow[1].ends_with("1.00 ms"));
        assert!(lines(30).0.iter().all(|line| line.chars().count() <= 30));
    }

    #[test]
    fn heads_are_broken_before_cells_and_no_word_is_lost() {
        let table = Rows::of(&[("client, as wanted", 60e3)])
            .column("closes first", |row| row.0)
            .column("limit of the server", |row| Quantity::Time(row.1))
            .table();
        let at = |width| {
            let options = TerminalOptions::plain(width);
            let lines = lay_out(&table, options).lines;
            lines
                .iter()
                .map(|line| line.print(options.colour))
                .collect()
        };
        let one: Vec<String> = at(40);
        assert_eq!(one[1], "  client, as wanted               60.0 s");
        let two: Vec<String> = at(28);
        assert_eq!(two.len(), 4, "{two:?}");
        assert_eq!(two[3], "  client, as wanted   60.0 s");
        let words = at(22).concat();
        for word in [
            "closes", "first", "client,", "as", "wanted", "limit", "60.0",
        ] {
            assert!(words.contains(word), "{words}");
        }
    }
}
