//! The limits of a connection, announced beside measured, and requests around the idle limit.

use super::Card;
use crate::limits;
use crate::terminal::Style;
use crate::terminal::table::Column;
use intact_findings::check::{CheckFacts, RaceFacts};

impl Card {
    pub(super) fn limits(&mut self, facts: &CheckFacts) {
        let rows = limits::rows(facts);
        if rows.is_empty() {
            return;
        }
        self.page.title("Limits of a connection");
        let column = |head, rank, at: usize| Column {
            head,
            rank,
            cells: rows.iter().map(|row| row[at].clone()).collect(),
        };
        self.page.table(vec![
            column("limit", 0, 0),
            column("announced", 0, 1),
            column("measured", 0, 2),
            column("ended by", 1, 3),
        ]);
        if let Some(race) = &facts.race {
            self.race(race);
        }
    }

    fn race(&mut self, race: &RaceFacts) {
        for attempt in &race.attempts {
            let ink = if attempt.is_lost() {
                Style::Alarm
            } else {
                Style::Faint
            };
            let told = format!(
                "a request {} the idle limit: {}",
                limits::moment(race, attempt),
                limits::fate(attempt)
            );
            self.page.wrapped(Some(ink), &told, "  ");
        }
    }
}
