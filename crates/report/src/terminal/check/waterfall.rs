//! A request on a new connection against the next ones, as a table and as bars to one scale.

use super::Card;
use crate::number::maybe_time;
use crate::terminal::Style;
use crate::terminal::table::Column;
use intact_findings::check::CheckFacts;

impl Card {
    pub(super) fn waterfall(&mut self, facts: &CheckFacts) {
        let fall = &facts.phases_ms;
        let mut rows = vec![
            ("first request", &fall.fresh),
            ("next requests", &fall.reused),
        ];
        rows.retain(|(_, phases)| phases.values().any(Option::is_some));
        if rows.is_empty() {
            return;
        }
        let taken = |phases: &std::collections::BTreeMap<&'static str, Option<_>>| {
            let total: Option<&intact_findings::check::SmallSample> =
                phases.get("total").and_then(Option::as_ref);
            total.map_or(0, |few| few.count)
        };
        self.page.title(&format!(
            "One request, phase by phase (the middle one of {} and {})",
            taken(&fall.fresh),
            taken(&fall.reused)
        ));
        let mut columns = vec![Column {
            head: "",
            rank: 0,
            cells: rows.iter().map(|(name, _)| (*name).to_owned()).collect(),
        }];
        for key in intact_findings::check::PHASES {
            let cells: Vec<Option<f64>> = rows
                .iter()
                .map(|(_, phases)| Some(phases.get(key)?.as_ref()?.median))
                .collect();
            if key == "without_setup" || cells.iter().all(Option::is_none) {
                continue;
            }
            columns.push(Column {
                head: match key {
                    "ssl" => "TLS",
                    "headers_to_body" => "head-body",
                    key => key,
                },
                rank: 0,
                cells: cells.into_iter().map(maybe_time).collect(),
            });
        }
        self.page.table(columns);
        self.bars(facts);
    }

    /// Both requests as bars to one scale.
    fn bars(&mut self, facts: &CheckFacts) {
        const LETTERS: [(&str, char); 6] = [
            ("dns", 'd'),
            ("connect", 'c'),
            ("ssl", 's'),
            ("wait", '█'),
            ("headers_to_body", 'g'),
            ("receive", 'r'),
        ];
        let fall = &facts.phases_ms;
        let total = |phases: &std::collections::BTreeMap<
            &'static str,
            Option<intact_findings::check::SmallSample>,
        >| {
            LETTERS
                .iter()
                .filter_map(|(key, _)| phases.get(key)?.as_ref())
                .map(|few| few.median)
                .sum::<f64>()
        };
        let most = total(&fall.fresh).max(total(&fall.reused));
        if most <= 0.0 {
            return;
        }
        let room = self.page.paper.width.saturating_sub(19).clamp(10, 60) as f64;
        for (name, phases, ink) in [
            ("first", &fall.fresh, Style::Fresh),
            ("next", &fall.reused, Style::Reused),
        ] {
            let mut bar = String::new();
            for (key, letter) in LETTERS {
                let Some(few) = phases.get(key).and_then(Option::as_ref) else {
                    continue;
                };
                let cells = (few.median / most * room).round() as usize;
                bar.extend(std::iter::repeat_n(letter, cells));
            }
            if bar.is_empty() {
                continue;
            }
            let bar = self.page.paper.ink(ink, &bar);
            self.page.line(&format!("  {name:>13}  {bar}"));
        }
        self.page.wrapped(
            Some(Style::Faint),
            "d name, c connect, s TLS, █ wait for the answer, g gap between head and body, r receive",
            "  ",
        );
    }
}
