//! Files inside a page: the document as JSON, and any table or chart as CSV (RFC 4180). Content is
//! made when a writer asks for it.

use super::table::suffix;
use super::{Cell, Chart, Table, Value};
use intact_ledger::export::csv;

/// A file that a page offers.
pub struct File<'a> {
    /// The name that a browser suggests.
    pub name: String,
    /// What the link says.
    pub words: &'static str,
    /// Its media type.
    pub kind: &'static str,
    content: Box<dyn Fn() -> serde_json::Result<String> + 'a>,
}

impl<'a> File<'a> {
    /// A JSON document.
    pub fn json(
        name: impl Into<String>,
        words: &'static str,
        content: impl Fn() -> serde_json::Result<String> + 'a,
    ) -> File<'a> {
        File {
            name: name.into(),
            words,
            kind: "application/json",
            content: Box::new(content),
        }
    }

    /// A table as CSV, with all of its rows.
    pub fn csv(name: &str, words: &'static str, table: impl Fn() -> Table + 'a) -> File<'a> {
        File {
            name: name.to_owned(),
            words,
            kind: CSV,
            content: Box::new(move || Ok(of_table(&table()))),
        }
    }

    /// The content.
    ///
    /// # Errors
    /// The document could not be written as JSON.
    pub fn content(&self) -> serde_json::Result<String> {
        (self.content)()
    }
}

/// The media type of CSV.
pub(crate) const CSV: &str = "text/csv;charset=utf-8";

/// A table in base units.
fn of_table(table: &Table) -> String {
    let heads = table.columns.iter().map(|column| {
        let head = column.head.replace([' ', '/'], "_");
        format!("{head}{}", suffix(column))
    });
    let rows = (0..table.rows()).map(|row| {
        let cells = table.columns.iter().map(move |column| &column.cells[row]);
        cells.map(field).collect::<Vec<String>>()
    });
    written(std::iter::once(heads.collect()).chain(rows))
}

/// A field in base units: a number where the value is known, else what is known of it.
fn field(cell: &Cell) -> String {
    let field = match &cell.value {
        Value::Absent => String::new(),
        Value::Text(text) => text.to_string(),
        Value::Quantity(one) | Value::Interval(one, _) => one.value().to_string(),
        Value::AtLeast(one) => format!("at least {}", one.value()),
        Value::AtMost(one) => format!("at most {}", one.value()),
        Value::Range(low, high) => format!("{} to {}", low.value(), high.value()),
    };
    let inferred = if cell.is_inferred { "~" } else { "" };
    format!("{inferred}{field}")
}

/// The data of a chart, and how many rows there are; `None` for single values, which have a file of
/// their own.
pub(crate) fn of_chart(chart: &Chart) -> Option<(String, usize)> {
    let (head, rows) = chart.kind.table()?;
    let count = rows.len();
    let head = head.map(str::to_owned).into();
    Some((written(std::iter::once(head).chain(rows)), count))
}

fn written(rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut text = String::new();
    for row in rows {
        let fields: Vec<String> = row.iter().map(|field| quoted(field)).collect();
        text.push_str(&fields.join(","));
        text.push_str("\r\n");
    }
    text
}

/// A field as RFC 4180 has it; one that a spreadsheet would take for a formula gets an apostrophe.
fn quoted(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '@', '\t', '\r'])
        || (field.starts_with('-') && field.parse::<f64>().is_err());
    if formula {
        csv::quote(&format!("'{field}")).into_owned()
    } else {
        csv::quote(field).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Quantity, Rows};
    use super::*;
    use intact_reading::Reading;

    #[test]
    fn a_field_stays_one_field_and_is_no_formula() {
        assert_eq!(quoted("keepalive=on"), "keepalive=on");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=cmd()"), "'=cmd()");
        assert_eq!(quoted("-1.5"), "-1.5");
        assert_eq!(quoted("-cmd()"), "'-cmd()");
    }

    #[test]
    fn a_table_is_written_in_base_units() {
        let table = Rows::of(&[("a", Some(1_234.5)), ("b", None)])
            .column("name", |row| row.0)
            .column("mean latency", |row| row.1.map(Quantity::Time))
            .table();
        assert_eq!(
            of_table(&table),
            "name,mean_latency_ms\r\na,1234.5\r\nb,\r\n"
        );
    }

    #[test]
    fn a_field_states_what_is_known_of_a_figure() {
        let why = || intact_reading::Why::OnlyRange;
        let readings = [
            Reading::count(3),
            Reading::between(2.0, 8.0, why()),
            Reading::at_least(13.0, why()),
            Reading::at_least(1.0, why()).inferred(40.0),
            Reading::unknown(why()),
        ];
        let fields = readings.map(|one| field(&Cell::count(&one)));
        assert_eq!(fields, ["3", "2 to 8", "at least 13", "~40", ""]);
    }
}
