//! Files inside a page: the document as JSON, and any table or chart as CSV (RFC 4180). Content is made when a writer asks for it.

use super::table::suffix;
use super::{Cell, Chart, ChartKind, Table};
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

fn field(cell: &Cell) -> String {
    match cell.key() {
        Some(key) => key.to_string(),
        None => cell
            .text()
            .map_or_else(String::new, |text| text.to_string()),
    }
}

/// The data of a chart, and how many rows there are.
pub(crate) fn of_chart(chart: &Chart) -> (String, usize) {
    let number = |value: f64| value.to_string();
    let ends = |ends: Option<(f64, f64)>| {
        let end = |pick: fn((f64, f64)) -> f64| {
            ends.map_or_else(String::new, |one| pick(one).to_string())
        };
        [end(|one| one.0), end(|one| one.1)]
    };
    let mut rows: Vec<Vec<String>> = Vec::new();
    let head: &[&str] = match &chart.kind {
        ChartKind::Bars(bars) => {
            for bar in &bars.0 {
                for part in &bar.parts {
                    let [low, high] = ends(bar.interval);
                    rows.push(vec![
                        bar.name.clone(),
                        part.name.clone(),
                        number(part.value),
                        low,
                        high,
                    ]);
                }
            }
            &["bar", "part", "ms", "low_ms", "high_ms"]
        }
        ChartKind::Histogram(histogram) => {
            for panel in &histogram.0 {
                for one in &panel.populations {
                    rows.extend(one.buckets.iter().map(|(low, high, count)| {
                        let names = [panel.name.clone(), one.name.clone()];
                        let figures = [number(*low), number(*high), count.to_string()];
                        names.into_iter().chain(figures).collect()
                    }));
                }
            }
            &["panel", "population", "low_ms", "high_ms", "count"]
        }
        ChartKind::Lines(lines) => {
            for line in &lines.lines {
                rows.extend(line.points.iter().map(|point| {
                    let [low, high] = ends(point.interval);
                    vec![
                        line.name.clone(),
                        number(point.x),
                        number(point.y),
                        low,
                        high,
                    ]
                }));
            }
            &["line", "x", "y", "low", "high"]
        }
        ChartKind::Scatter(scatter) => {
            for series in &scatter.0 {
                rows.extend(series.points.iter().map(|point| {
                    let tone = format!("{:?}", point.tone).to_lowercase();
                    vec![series.name.clone(), number(point.x), number(point.y), tone]
                }));
            }
            &["series", "position", "ms", "kind"]
        }
        ChartKind::Timeline(timeline) => {
            for lane in &timeline.0 {
                rows.extend(lane.lives.iter().map(|life| {
                    let ready = life.ready.map_or_else(String::new, number);
                    let times = [number(life.from), ready, number(life.to)];
                    let [from, ready, to] = times;
                    vec![lane.name.clone(), from, ready, to, life.words.clone()]
                }));
            }
            &["lane", "from_ms", "ready_ms", "to_ms", "connection"]
        }
    };
    let count = rows.len();
    let head = head.iter().map(|&name| name.to_owned()).collect();
    (written(std::iter::once(head).chain(rows)), count)
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
}
