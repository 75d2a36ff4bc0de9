//! A sequence of packets as text and as Mermaid.

use intact_model::Sequence;
use intact_units::number::time;
use std::fmt::Write;

/// Columns for the time at the left.
const TIME: usize = 9;
/// The least and the most columns from one lane to the next.
const GAP: (usize, usize) = (15, 34);

/// Lines: the lanes' names, then a line for each arrow. `None` when the lanes do not fit.
pub(crate) fn text(sequence: &Sequence, width: usize) -> Option<Vec<String>> {
    let lanes = sequence.lanes.len();
    let room = width.checked_sub(TIME + 6)?;
    let gap = (room / lanes.saturating_sub(1).max(1)).min(GAP.1);
    if gap < GAP.0 {
        return None;
    }
    let place = |name: &str| {
        let lane = sequence.lanes.iter().position(|lane| lane == name);
        TIME + 3 + lane.unwrap_or(0) * gap
    };
    let end = TIME + 4 + (lanes - 1) * gap;
    let mut head: Vec<char> = vec![' '; end];
    put(&mut head, TIME - 3, "ms");
    for (nth, lane) in sequence.lanes.iter().enumerate() {
        // a lane's name stands over its bar, the last one as far as there is paper
        let before = if nth == 0 { 0 } else { 3 };
        let room = (width + before - place(lane)).min(gap - 1);
        let name = shortened(lane, room);
        let at = place(lane) - before.min(name.chars().count() / 2);
        put(&mut head, at, &name);
    }
    let mut lines = vec![head.iter().collect::<String>().trim_end().to_owned()];
    for arrow in &sequence.arrows {
        let mut line: Vec<char> = vec![' '; end];
        put(&mut line, 0, &format!("{:>8.1}", arrow.at_ms));
        for lane in &sequence.lanes {
            put(&mut line, place(lane), "│");
        }
        let (from, to) = (place(&arrow.from), place(&arrow.to));
        let (left, right) = (from.min(to), from.max(to));
        for cell in &mut line[left + 1..right] {
            *cell = '─';
        }
        let (at, tip) = if from < to {
            (right - 1, '▶')
        } else {
            (left + 1, '◀')
        };
        line[at] = tip;
        let words = format!(" {} ", shortened(&arrow.label, right - left - 4));
        let middle = left + (right - left + 1 - words.chars().count()) / 2;
        put(&mut line, middle, &words);
        lines.push(line.iter().collect::<String>().trim_end().to_owned());
    }
    Some(lines)
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
        let place = |name: &str| sequence.lanes.iter().position(|lane| lane == name);
        let (Some(from), Some(to)) = (place(&arrow.from), place(&arrow.to)) else {
            continue;
        };
        let tip = if arrow.label == "answer" {
            "-->>"
        } else {
            "->>"
        };
        let _ = writeln!(
            text,
            "    p{from}{tip}p{to}: {} {}",
            time(arrow.at_ms),
            plain(&arrow.label)
        );
    }
    text
}

/// Without what Mermaid takes for syntax.
fn plain(words: &str) -> String {
    words
        .chars()
        .map(|letter| match letter {
            ';' | '#' | ':' | '<' | '>' | '{' | '}' => ' ',
            letter if letter.is_control() => ' ',
            letter => letter,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_model::{Counting, Reuse, parse, sequence};

    fn drawn(width: usize) -> Option<Vec<String>> {
        let chain = parse(
            "[defaults]\nrtt = \"30ms\"\n[client]\ncalls = [{ to = \"shop\", reuse = false }]\n[service.shop]\ncalls = [{ to = \"a-service-with-a-long-name\", times = 3 }]\n[service.a-service-with-a-long-name]\n",
        )
        .unwrap();
        text(&sequence(&chain, Counting::Tcp, Reuse::Configured), width)
    }

    #[test]
    fn arrows_go_from_lane_to_lane_in_time() {
        assert_eq!(
            drawn(80).unwrap(),
            [
                "      ms    client                        shop                           a-serv…",
                "     0.0    │───────────── SYN ────────────▶│                               │",
                "    15.0    │◀───────── SYN, ACK ───────────│                               │",
                "    30.0    │───────── ClientHello ────────▶│                               │",
                "    45.0    │◀────── ServerHello .. ────────│                               │",
                "    60.0    │─────────── request ──────────▶│                               │",
                "    75.0    │                               │─────── request 1 of 3 ───────▶│",
                "    90.0    │                               │◀────────── answer ────────────│",
                "   165.0    │◀────────── answer ────────────│                               │",
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
