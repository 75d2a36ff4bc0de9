//! The cell of a table: a typed value with its marks. Must not format.

use super::{Quantity, Text};
use intact_document::requirement::{Dimension, Figure};
use intact_reading::Reading;
use intact_statistics::Interval;
use std::fmt;

/// What is in a cell.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    /// No value.
    #[default]
    Absent,
    /// Words.
    Text(Text),
    /// A figure.
    Quantity(Quantity),
    /// At least this.
    AtLeast(Quantity),
    /// At most this.
    AtMost(Quantity),
    /// A figure that is known as a range.
    Range(Quantity, Quantity),
    /// An estimate with the ends of its interval.
    Interval(Quantity, [Quantity; 2]),
}

/// A cell of a table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cell {
    /// The value.
    pub value: Value,
    /// Whether it was inferred and not measured; printed with `~`.
    pub is_inferred: bool,
    /// Whether it needs attention.
    pub is_alarm: bool,
    /// How strongly it is shaded, 1 to 5; 0 not at all.
    pub heat: u8,
}

impl Cell {
    /// A count that is known and needs attention unless it is zero.
    pub fn failed(count: u64) -> Cell {
        Cell::failures(&Reading::count(count))
    }

    /// A count shaded by its share of a whole; absent where there is none.
    pub fn heat(count: u64, whole: u64) -> Cell {
        let cell = Cell::from((count > 0).then_some(Quantity::Count(count)));
        Cell {
            // a step for each 20 %
            heat: (count * 5).div_ceil(whole.max(1)).min(5) as u8,
            ..cell
        }
    }

    /// An estimate with its interval, each printed as `kind` has it.
    pub fn interval(interval: Option<Interval>, kind: fn(f64) -> Quantity) -> Cell {
        interval
            .map(|one| Value::Interval(kind(one.value), [kind(one.low), kind(one.high)]))
            .unwrap_or_default()
            .into()
    }

    /// What is known of a figure, each value as `kind` has it. An inferred value is marked.
    pub fn reading(reading: &Reading, kind: fn(f64) -> Quantity) -> Cell {
        if let Some(value) = reading.estimate() {
            return Cell::from(kind(value)).inferred_if(true);
        }
        let (low, high) = (reading.low(), reading.high());
        match (low.is_finite(), high.is_finite()) {
            _ if reading.is_known() => kind(low).into(),
            (true, true) => Value::Range(kind(low), kind(high)).into(),
            (true, false) => Value::AtLeast(kind(low)).into(),
            (false, true) => Value::AtMost(kind(high)).into(),
            (false, false) => Cell::default(),
        }
    }

    /// What is known of a figure, as its dimension is printed. Times are read in milliseconds.
    pub fn of(figure: &Figure, reading: &Reading) -> Cell {
        let kind = match figure.dimension {
            Dimension::Count => return Cell::count(reading),
            Dimension::Ratio => Quantity::Mean,
            Dimension::Share => Quantity::Share,
            Dimension::Time => Quantity::Time,
            Dimension::Rate => Quantity::Rate,
            Dimension::Bytes => Quantity::Bytes,
        };
        Cell::reading(reading, kind)
    }

    /// What is known of a count.
    pub fn count(reading: &Reading) -> Cell {
        Cell::reading(reading, |count| Quantity::Count(count as u64))
    }

    /// What is known of a count that needs attention unless it is zero.
    pub fn failures(reading: &Reading) -> Cell {
        Cell::count(reading).alarm_if(reading.is_positive())
    }

    /// Marks a single value as inferred on a condition: bounds hold whatever was inferred.
    pub fn inferred_if(mut self, is_inferred: bool) -> Cell {
        self.is_inferred |= is_inferred && matches!(self.value, Value::Quantity(_));
        self
    }

    /// Marks it as needing attention on a condition.
    pub fn alarm_if(mut self, is_alarm: bool) -> Cell {
        self.is_alarm = is_alarm;
        self
    }

    /// The number to sort by, in its base unit.
    pub(crate) fn key(&self) -> Option<f64> {
        match self.value {
            Value::Absent | Value::Text(_) => None,
            Value::Quantity(one)
            | Value::AtLeast(one)
            | Value::AtMost(one)
            | Value::Range(one, _)
            | Value::Interval(one, _) => Some(one.value()),
        }
    }

    /// The figure, where it is one.
    pub(crate) fn quantity(&self) -> Option<Quantity> {
        match self.value {
            Value::Quantity(one)
            | Value::AtLeast(one)
            | Value::AtMost(one)
            | Value::Interval(one, _) => Some(one),
            _ => None,
        }
    }

    /// Whether it has more words than fit on a line.
    pub(crate) fn is_long(&self) -> bool {
        matches!(&self.value, Value::Text(text) if text.to_string().chars().count() > 28)
    }

    /// Whether it is absent.
    pub(crate) fn is_absent(&self) -> bool {
        self.value == Value::Absent
    }

    /// The value as text; `None` if there is none.
    pub(crate) fn text(&self) -> Option<Text> {
        let text = match &self.value {
            Value::Absent => return None,
            Value::Text(text) => text.clone(),
            value => Text::plain(value.to_string()),
        };
        Some(if self.is_inferred {
            Text::fill("~{}", vec![text])
        } else {
            text
        })
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Absent => Ok(()),
            Value::Text(text) => write!(f, "{text}"),
            Value::Quantity(one) => write!(f, "{one}"),
            Value::AtLeast(one) => write!(f, "at least {one}"),
            Value::AtMost(one) => write!(f, "at most {one}"),
            // bounds that differ by less than what is printed
            Value::Range(low, high) if low.to_string() == high.to_string() => write!(f, "{low}"),
            Value::Range(low, high) => f.write_str(&span(*low, *high)),
            Value::Interval(one, [low, high]) if low == high => write!(f, "{one}"),
            Value::Interval(one, [low, high]) => write!(f, "{one} ({})", span(*low, *high)),
        }
    }
}

/// `3.1 to 3.4 ms`: a unit that both ends have is printed once.
fn span(low: Quantity, high: Quantity) -> String {
    let [low, high] = [low, high].map(|end| end.to_string());
    let unit = high.split_once(' ').map(|(_, unit)| format!(" {unit}"));
    let bare = unit.and_then(|unit| low.strip_suffix(&*unit).map(str::to_owned));
    format!("{} to {high}", bare.unwrap_or(low))
}

impl From<Value> for Cell {
    fn from(value: Value) -> Cell {
        Cell {
            value,
            ..Cell::default()
        }
    }
}

impl From<Text> for Cell {
    fn from(text: Text) -> Cell {
        if text.is_empty() {
            Cell::default()
        } else {
            Value::Text(text).into()
        }
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Cell {
        value.map(Into::into).unwrap_or_default()
    }
}

/// Conversions into cells by way of another type.
macro_rules! into_cell {
    ($($from:ty => $by:path),* $(,)?) => {
        $(impl From<$from> for Cell {
            fn from(value: $from) -> Cell {
                $by(value).into()
            }
        })*
    };
}

into_cell! {
    Quantity => Value::Quantity,
    u64 => Quantity::Count,
    &str => Text::plain,
    &String => Text::plain,
    String => Text::plain,
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_units::Quantity::{Share, Time};

    #[test]
    fn a_unit_that_both_ends_share_is_printed_once() {
        let shown = |one: Value| one.to_string();
        assert_eq!(shown(Value::Range(Share(0.5), Share(1.0))), "50.0 to 100 %");
        assert_eq!(
            shown(Value::Range(Time(0.5), Time(2.0))),
            "500 µs to 2.00 ms"
        );
        let interval = Value::Interval(Time(3.2), [Time(3.1), Time(3.4)]);
        assert_eq!(shown(interval), "3.20 ms (3.10 to 3.40 ms)");
    }
}
