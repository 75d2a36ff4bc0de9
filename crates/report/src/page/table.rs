//! Tables: columns over rows of facts. Must not format.

use super::{Cell, Quantity, Text, Value};
use intact_document::requirement::Figure;
use intact_reading::Reading;

/// A column.
pub struct Column {
    /// Its head.
    pub head: String,
    /// What it holds, for readers who ask.
    pub meaning: &'static str,
    /// How readily a narrow page drops it; 0 is never.
    pub rank: u8,
    /// Whether only files have it.
    pub is_full: bool,
    /// The cells, from top to bottom.
    pub cells: Vec<Cell>,
}

impl Column {
    /// Whether it holds figures, which stand to the right.
    pub(crate) fn is_numeric(&self) -> bool {
        let is_text = |cell: &Cell| matches!(cell.value, Value::Text(_));
        let texts = self.cells.iter().filter(|cell| is_text(cell)).count();
        let figures = self
            .cells
            .iter()
            .filter(|cell| cell.key().is_some())
            .count();
        figures > 0 && figures >= texts
    }
}

/// A table; the first column names the row.
#[derive(Default)]
pub struct Table {
    /// What it shows, where its section has further content.
    pub caption: Option<Text>,
    /// The columns.
    pub columns: Vec<Column>,
    /// What the reader has to know below it.
    pub notes: Vec<Text>,
    /// Rows that a terminal shows; all, if absent.
    pub brief: Option<usize>,
}

impl Table {
    /// With what it shows.
    pub fn caption(mut self, caption: impl Into<Text>) -> Table {
        self.caption = Some(caption.into());
        self
    }

    /// With a line below it.
    pub fn note(mut self, note: impl Into<Text>) -> Table {
        self.notes.push(note.into());
        self
    }

    /// A terminal shows the first rows only.
    pub fn brief(mut self, rows: usize) -> Table {
        self.brief = Some(rows);
        self
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.columns.first().map_or(0, |column| column.cells.len())
    }

    /// Whether it says nothing: no rows, or nothing but their names.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows() == 0 || self.columns.len() < 2
    }
}

/// A table while its columns are added.
pub struct Rows<'a, T> {
    rows: &'a [T],
    table: Table,
}

impl<'a, T> Rows<'a, T> {
    /// A table with a row for each of `rows`.
    pub fn of(rows: &'a [T]) -> Rows<'a, T> {
        Rows {
            rows,
            table: Table::default(),
        }
    }

    /// Adds a column.
    pub fn column<C: Into<Cell>>(
        self,
        head: impl Into<String>,
        cell: impl Fn(&'a T) -> C,
    ) -> Rows<'a, T> {
        self.ranked(0, head, cell)
    }

    /// Adds a column that a narrow page may drop, the highest rank first.
    pub fn ranked<C: Into<Cell>>(
        mut self,
        rank: u8,
        head: impl Into<String>,
        cell: impl Fn(&'a T) -> C,
    ) -> Rows<'a, T> {
        self.table.columns.push(Column {
            head: head.into(),
            meaning: "",
            rank,
            is_full: false,
            cells: self.rows.iter().map(|row| cell(row).into()).collect(),
        });
        self
    }

    /// Adds the column of a row of the table of figures: its head, and how its values are printed.
    /// Times are read in milliseconds.
    pub fn figure(
        self,
        rank: u8,
        name: &str,
        reading: impl Fn(&'a T) -> &'a Reading,
    ) -> Rows<'a, T> {
        let Some(figure) = Figure::named(name) else {
            debug_assert!(false, "no figure is called {name}");
            return self;
        };
        self.ranked(rank, figure.column, |row| Cell::of(figure, reading(row)))
    }

    /// Adds the column of a figure that counts failures; left out if there are none.
    pub fn failures(self, name: &str, reading: impl Fn(&'a T) -> &'a Reading) -> Rows<'a, T> {
        let head = Figure::named(name).map_or(name, |figure| figure.column);
        self.if_any(head, |row| Cell::failures(reading(row)))
    }

    /// Adds a column that only files have.
    pub fn full<C: Into<Cell>>(
        self,
        head: impl Into<String>,
        cell: impl Fn(&'a T) -> C,
    ) -> Rows<'a, T> {
        self.column(head, cell).last(|column| column.is_full = true)
    }

    /// Adds a column that is left out if all its values are zero.
    pub fn if_any<C: Into<Cell>>(
        self,
        head: impl Into<String>,
        cell: impl Fn(&'a T) -> C,
    ) -> Rows<'a, T> {
        let is_zero = |cell: &Cell| cell.key().is_none_or(|key| key == 0.0);
        self.column(head, cell).last(|column| {
            if column.cells.iter().all(is_zero) {
                column.cells.fill(Cell::default());
            }
        })
    }

    /// What the last column holds.
    pub fn about(self, meaning: &'static str) -> Rows<'a, T> {
        self.last(|column| column.meaning = meaning)
    }

    fn last(mut self, set: impl FnOnce(&mut Column)) -> Rows<'a, T> {
        if let Some(column) = self.table.columns.last_mut() {
            set(column);
        }
        self
    }

    /// The table; columns without any value are left out.
    pub fn table(mut self) -> Table {
        self.table
            .columns
            .retain(|column| column.cells.iter().any(|cell| !cell.is_absent()));
        self.table
    }
}

/// The unit that the name of a column in base units ends in.
pub(crate) fn suffix(column: &Column) -> &'static str {
    let mut figures = column.cells.iter().filter_map(Cell::quantity);
    figures.next().map_or("", Quantity::suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_of_a_column_that_is_left_out_goes_with_it() {
        let table = Rows::of(&[1u64, 2])
            .column("number", |one| *one)
            .about("a number")
            .if_any("nothing", |_| 0u64)
            .about("always zero")
            .table();
        let columns = table.columns.iter().map(|one| (&*one.head, one.meaning));
        assert_eq!(columns.collect::<Vec<_>>(), [("number", "a number")]);
    }

    #[test]
    fn a_column_that_says_nothing_is_left_out() {
        let table = Rows::of(&[1.0, 2.0])
            .column("name", |row| row.to_string())
            .column("absent", |_| None::<Quantity>)
            .if_any("failed", |_| Cell::failed(0))
            .column("time", |row| Quantity::Time(*row))
            .table();
        let heads: Vec<&str> = table.columns.iter().map(|one| one.head.as_str()).collect();
        assert_eq!(heads, ["name", "time"]);
        assert!(!table.columns[0].is_numeric() && table.columns[1].is_numeric());
        let cell = &table.columns[1].cells[1];
        assert_eq!(cell.value.to_string(), "2.00 ms");
        assert_eq!(cell.key(), Some(2.0));
    }
}
