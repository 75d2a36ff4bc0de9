//! Messages between participants over time, as text and as Mermaid.

use super::page::{Arrow, Sequence};
use intact_units::number::time;
use std::fmt::Write;

/// Columns for the time at the left.
const TIME: usize = 9;
/// The least columns from one lane to the next, the most of several lanes, and the most of two.
const GAP: (usize, usize, usize) = (15, 34, 90);

/// Lines: the lanes' names, then a line for each arrow, with whether it needs attention. `None` when the lanes do not fit.
pub(crate) fn text(sequence: &Sequence, width: usize) -> Option<Vec<(bool, String)>> {
    let lanes = sequence.lanes.len();
    let room = width.checked_sub(TIME + 6)?;
    let most = if lanes > 2 { GAP.1 } else { GAP.2 };
    let gap = (room / lanes.saturating_sub(1).max(1)).min(most);
    if gap < GAP.0 {
        return None;
    }
    let place = |lane: usize| TIME + 3 + lane * gap;
    let end = TIME + 4 + (lanes - 1) * gap;
    let mut head: Vec<char> = vec![' '; end];
    put(&mut head, TIME - 3, "ms");
    for (nth, lane) in sequence.lanes.iter().enumerate() {
        // a lane's name stands over its bar, the last one up to the edge of the page; of two the last one ends at its bar
        let (room, before) = match nth {
            _ if lanes == 2 => (
                gap / 2,
                nth * lane.chars().count().min(gap / 2).saturating_sub(1),
            ),
            0 => (gap - 1, 0),
            _ => ((width + 3 - place(nth)).min(gap - 1), 3),
        };
        let name = shortened(lane, room);
        let before = if lanes == 2 {
            before
        } else {
            before.min(name.chars().count() / 2)
        };
        put(&mut head, place(nth) - before, &name);
    }
    let mut lines = vec![(false, trimmed(&head))];
    for arrow in &sequence.arrows {
        let mut line: Vec<char> = vec![' '; end];
        put(&mut line, 0, &format!("{:>8.1}", arrow.at_ms));
        for lane in 0..lanes {
            put(&mut line, place(lane), "│");
        }
        draw(&mut line, arrow, place(arrow.from), place(arrow.to));
        lines.push((arrow.is_alarm, trimmed(&line)));
    }
    Some(lines)
}

fn draw(line: &mut Vec<char>, arrow: &Arrow, from: usize, to: usize) {
    let (left, right) = (from.min(to), from.max(to));
    if left == right {
        return;
    }
    line[left + 1..right].fill('─');
    let (at, tip) = if from < to {
        (right - 1, '▶')
    } else {
        (left + 1, '◀')
    };
    line[at] = tip;
    let words = format!(" {} ", shortened(&arrow.label, right - left - 4));
    let middle = left + (right - left + 1 - words.chars().count()) / 2;
    put(line, middle, &words);
}

fn trimmed(line: &[char]) -> String {
    line.iter().collect::<String>().trim_end().to_owned()
}

/// The words, or their beginning and an ellipsis.
fn shortened(words: &str, most: usize) -> String {
    if words.chars().count() <= most {
        return words.to_owned();
    }
    let beginning = words.chars().take(most.saturating_sub(1));
    beginning.chain(std::iter::once('…')).collect()
}

fn put(line: &mut Vec<char>, at: usize, text: &str) {
    for (nth, letter) in text.chars().enumerate() {
        if at + nth >= line.len() {
            line.resize(at + nth + 1, ' ');
        }
        line[at + nth] = letter;
    }
}

/// A Mermaid sequence diagram, which GitHub and GitLab draw in Markdown.
pub fn mermaid(sequence: &Sequence) -> String {
    let mut text = "sequenceDiagram\n".to_owned();
    for (nth, lane) in sequence.lanes.iter().enumerate() {
        let _ = writeln!(text, "    participant p{nth} as {}", plain(lane));
    }
    for arrow in &sequence.arrows {
        // what goes back to the left is a response
        let tip = if arrow.from > arrow.to { "-->>" } else { "->>" };
        let (from, to, at) = (arrow.from, arrow.to, time(arrow.at_ms));
        let _ = writeln!(text, "    p{from}{tip}p{to}: {at} {}", plain(&arrow.label));
    }
    text
}

/// Without what Mermaid takes for syntax.
fn plain(words: &str) -> String {
    let syntax = |letter: char| ";#:<>{}".contains(letter) || letter.is_control();
    words.replace(syntax, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: usize) -> Option<Vec<String>> {
        let arrow = |at_ms, from, to, label: &str| Arrow {
            at_ms,
            from,
            to,
            label: label.to_owned(),
            is_alarm: false,
        };
        let sequence = Sequence {
            lanes: ["client", "shop", "a-service-with-a-long-name"]
                .map(str::to_owned)
                .to_vec(),
            arrows: vec![
                arrow(0.0, 0, 1, "SYN"),
                arrow(15.0, 1, 0, "SYN, ACK"),
                arrow(75.0, 1, 2, "request 1 of 3"),
            ],
            more: Some(0),
        };
        let lines = text(&sequence, width)?;
        Some(lines.into_iter().map(|(_, line)| line).collect())
    }

    #[test]
    fn arrows_go_from_lane_to_lane_in_time() {
        assert_eq!(
            drawn(80).unwrap(),
            [
                "      ms    client                        shop                           a-serv…",
                "     0.0    │───────────── SYN ────────────▶│                               │",
                "    15.0    │◀───────── SYN, ACK ───────────│                               │",
                "    75.0    │                               │─────── request 1 of 3 ───────▶│",
            ]
        );
    }

    #[test]
    fn lanes_that_do_not_fit_are_not_drawn() {
        assert!(drawn(44).is_none());
        assert!(drawn(0).is_none());
        for width in 45..200 {
            let lines = drawn(width).unwrap();
            assert!(
                lines.iter().all(|line| line.chars().count() <= width),
                "{width}"
            );
        }
    }
}
