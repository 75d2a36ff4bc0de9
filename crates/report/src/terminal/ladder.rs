//! Packets in time, client left, server right, as Wireshark's flow graph draws them; and how answers come, in one packet or in two.

use super::page::Page;
use super::{Style, TerminalOptions, escape};
use crate::ladder::{LadderFacts, StepFacts};
use intact_findings::body_arrival::BodyArrivalFacts;
use intact_units::number::{count, percent, time};

/// Columns for the time since the first packet and since the last one.
const TIMES: usize = 22;
/// The widest that an arrow is drawn.
const WIDEST: usize = 100;

/// The ladder of one connection and the summary of all answers.
pub fn ladder(
    ladder: Option<&LadderFacts>,
    answers: &[BodyArrivalFacts],
    paper: TerminalOptions,
) -> String {
    let mut page = Page::on(paper);
    match ladder {
        Some(ladder) => page.ladder(ladder),
        None => {
            page.line("");
            page.wrapped(
                Some(Style::Alarm),
                "no such connection: packets can be shown of those in a capture; --ladder=NUMBER counts them from 1 in the order of their first packets",
                "",
            );
        }
    }
    page.answers(answers);
    page.text
}

/// How answers came, by version of HTTP.
pub fn answers(answers: &[BodyArrivalFacts], paper: TerminalOptions) -> String {
    let mut page = Page::on(paper);
    page.answers(answers);
    page.text
}

impl Page {
    fn ladder(&mut self, ladder: &LadderFacts) {
        self.title(&format!("Packets of {}", escape(&ladder.what)));
        let ends = format!(
            "left {}, right {}",
            escape(&ladder.client),
            escape(&ladder.server)
        );
        self.wrapped(Some(Style::Faint), &ends, "");
        let width = self.paper.width.saturating_sub(TIMES + 4).min(WIDEST);
        let first = ladder.steps.first().map_or(0, |step| step.at);
        let mut before = first;
        for step in &ladder.steps {
            let ms = |nanos: u64| nanos as f64 / 1e6;
            let since = time(ms(step.at.saturating_sub(first)));
            let gap = match step.at.saturating_sub(before) {
                0 => String::new(),
                gap => format!("+{}", time(ms(gap))),
            };
            before = step.at;
            let arrow = arrow(step, width);
            let arrow = match (step.again, step.by_client) {
                (true, _) => self.paper.ink(Style::Alarm, &arrow),
                (false, true) => arrow,
                (false, false) => self.paper.ink(Style::Reused, &arrow),
            };
            self.line(&format!("{since:>9} {gap:>11}  │{arrow}│"));
        }
        if ladder.left_out > 0 {
            let told = format!("{} more packets are not shown", count(ladder.left_out));
            self.wrapped(Some(Style::Faint), &told, "");
        }
    }

    fn answers(&mut self, answers: &[BodyArrivalFacts]) {
        if answers.is_empty() {
            return;
        }
        self.title("How answers came");
        for one in answers {
            let mut told = format!(
                "HTTP/{}: {} with head and body together, {} with the body in a later packet",
                one.http,
                count(one.body_with_headers),
                count(one.body_after_headers)
            );
            if let Some(gap) = one.gap_ms {
                told.push_str(&format!(", {} later in the mean", time(gap)));
            }
            if let Some(share) = one.gap_share.filter(|share| *share > 0.0) {
                told.push_str(&format!(", {} of their time", percent(share)));
            }
            self.wrapped(None, &told, "  ");
        }
    }
}

/// `── words ──►` or `◄── words ──`, as wide as asked for.
fn arrow(step: &StepFacts, width: usize) -> String {
    let mut words = escape(&step.words);
    if step.again {
        words = format!("{words} (again)");
    }
    let room = width.saturating_sub(8);
    if words.chars().count() > room {
        words = words.chars().take(room.saturating_sub(1)).collect();
        words.push('…');
    }
    let rest = room.saturating_sub(words.chars().count());
    if step.by_client {
        format!("─ {words} {}───► ", "─".repeat(rest))
    } else {
        format!(" ◄───{} {words} ─", "─".repeat(rest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrows_are_as_wide_as_the_paper_whatever_they_carry() {
        let step = |by_client, words: &str| StepFacts {
            at: 0,
            by_client,
            words: words.to_owned(),
            again: false,
        };
        for by_client in [true, false] {
            let widths = ["", "SYN", &"DATA[1] ".repeat(40)]
                .map(|words| arrow(&step(by_client, words), 60).chars().count());
            assert_eq!(widths, [60; 3]);
        }
        assert!(arrow(&step(true, "SYN"), 40).ends_with("► "));
        assert!(arrow(&step(false, "SYN"), 40).starts_with(" ◄"));
    }
}
