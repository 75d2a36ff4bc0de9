//! The readings of one subject, by the names of their figures. Must not compute a figure.

use crate::requirement::Figure;
use intact_reading::{Reading, Why};
use std::collections::BTreeMap;

/// What was read of one subject: a row of the table of figures each, in base units (nanoseconds,
/// shares of 1, per second, bytes or plain numbers).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Readings {
    own: BTreeMap<String, Reading>,
    /// What members of a family have that are not listed, by the stem of the family.
    others: BTreeMap<&'static str, Reading>,
}

impl Readings {
    /// Sets the reading of a figure: `avoidable`, `failed.refused`.
    pub fn set(&mut self, name: &str, reading: impl Into<Reading>) {
        debug_assert!(Figure::named(name).is_some(), "no figure is called {name}");
        self.own.insert(name.to_owned(), reading.into());
    }

    /// Sets the reading of all members of a family (`status.`) that are not listed.
    pub fn set_others(&mut self, stem: &'static str, reading: impl Into<Reading>) {
        self.others.insert(stem, reading.into());
    }

    /// The reading of a figure. One that was not set is none of the document.
    pub fn get(&self, name: &str) -> Reading {
        let of_family = || {
            let stem = Figure::named(name).map(Figure::stem)?;
            self.others.get(stem)
        };
        let reading = self.own.get(name).or_else(of_family);
        reading.map_or_else(|| Reading::unknown(Why::NOT_IN_DOCUMENT), Reading::clone)
    }
}
