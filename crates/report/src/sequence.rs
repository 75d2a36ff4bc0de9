//! Messages between participants over time, as text and as Mermaid.

use super::page::{Arrow, Sequence};
use intact_units::foreign_text::is_hidden;
use intact_units::number::time;
use std::fmt::Write;

/// Columns for a time at the left.
const TIME: usize = 9;
/// The least columns from one lane to the next, the most of several lanes, and the most of two.
const GAP: (usize, usize, usize) = (15, 34, 90);

/// Lines: the lanes' names, then a line for each arrow, with whether it needs attention. `None`
/// when the lanes do not fit.
pub(crate) fn text(sequence: &Sequence, width: usize) -> Option<Vec<(bool, String)>> {
    let lanes = sequence.lanes.len();
    let most = if lanes > 2 { GAP.1 } else { GAP.2 };
    let gap_after_times = |times: usize| {
        let room = width.checked_sub(times + 6)?;
        let gap = (room / lanes.saturating_sub(1).max(1)).min(most);
        (gap >= GAP.0).then_some((times, gap))
    };
    let ends = sequence.arrows.iter().filter_map(|arrow| arrow.until_ms);
    let end_ms = ends.reduce(f64::max);
    // without room for each time of arrival, the last line has the latest
    let with_ends = end_ms.and_then(|_| gap_after_times(2 * TIME));
    let has_ends = with_ends.is_some();
    let (times, gap) = with_ends.or_else(|| gap_after_times(TIME))?;
    let place = |lane: usize| times + 3 + lane * gap;
    let end = times + 4 + (lanes - 1) * gap;
    let mut head: Vec<char> = vec![' '; end];
    put(&mut head, TIME - 3, "ms");
    if has_ends {
        put(&mut head, 2 * TIME - 6, "until");
    }
    for (nth, lane) in sequence.lanes.iter().enumerate() {
        // a lane's name stands over its bar, the last one up to the edge of the page; of two the
        // last one ends at its bar
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
        if let Some(until) = arrow.until_ms.filter(|_| has_ends) {
            put(&mut line, TIME, &format!("{until:>8.1}"));
        }
        for lane in 0..lanes {
            put(&mut line, place(lane), "│");
        }
        if arrow.from == arrow.to {
            // to the right of the bar, or to the left of the last one
            let at = place(arrow.from);
            let words = shortened(&arrow.label, gap - 4);
            let is_last = arrow.from + 1 == lanes;
            let before = words.chars().count() + 1;
            put(
                &mut line,
                if is_last { at - before } else { at + 2 },
                &words,
            );
        }
        draw(&mut line, arrow, place(arrow.from), place(arrow.to));
        lines.push((arrow.is_alarm, trimmed(&line)));
    }
    if let Some(end_ms) = end_ms.filter(|_| !has_ends) {
        lines.push((false, format!("{end_ms:>8.1}    end")));
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
        if arrow.from == arrow.to {
            let took = arrow.until_ms.map_or_else(String::new, |until| {
                format!(" for {}", time(until - arrow.at_ms))
            });
            let label = plain(&arrow.label);
            let _ = writeln!(
                text,
                "    Note over p{}: {} {label}{took}",
                arrow.from,
                time(arrow.at_ms)
            );
            continue;
        }
        // what goes back to the left is a response
        let tip = if arrow.from > arrow.to { "-->>" } else { "->>" };
        let (from, to, at) = (arrow.from, arrow.to, time(arrow.at_ms));
        let _ = writeln!(text, "    p{from}{tip}p{to}: {at} {}", plain(&arrow.label));
    }
    let ends = sequence.arrows.iter().filter_map(|arrow| arrow.until_ms);
    if let (Some(end), Some(last)) = (ends.reduce(f64::max), sequence.lanes.len().checked_sub(1)) {
        let _ = writeln!(text, "    Note over p0,p{last}: {} end", time(end));
    }
    text
}

/// Without what Mermaid takes for syntax.
fn plain(words: &str) -> String {
    let syntax = |letter: char| ";#:<>{}".contains(letter) || is_hidden(letter);
    words.replace(syntax, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(width: usize) -> Option<Vec<String>> {
        let arrow = |at_ms, from, to, label: &str| Arrow {
            at_ms,
            until_ms: None,
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
    fn work_and_the_ends_are_drawn_where_they_are_known() {
        let arrow = |at_ms, until_ms, from, to, label: &str| Arrow {
            at_ms,
            until_ms: Some(until_ms),
            from,
            to,
            label: label.to_owned(),
            is_alarm: false,
        };
        let sequence = Sequence {
            lanes: ["client", "shop"].map(str::to_owned).to_vec(),
            arrows: vec![
                arrow(0.0, 2.0, 0, 0, "lookup"),
                arrow(2.0, 17.0, 0, 1, "request"),
                arrow(17.0, 22.0, 1, 1, "work"),
                arrow(22.0, 37.0, 1, 0, "answer"),
            ],
            more: Some(0),
        };
        let lines = text(&sequence, 51).unwrap().into_iter();
        let lines: Vec<String> = lines.map(|(_, line)| line).collect();
        assert_eq!(
            lines,
            [
                "      ms    until    client                  shop",
                "     0.0      2.0    │ lookup                   │",
                "     2.0     17.0    │──────── request ────────▶│",
                "    17.0     22.0    │                     work │",
                "    22.0     37.0    │◀──────── answer ─────────│",
            ]
        );
        let narrow = text(&sequence, 38).unwrap().pop().unwrap();
        assert_eq!(narrow.1, "    37.0    end");
        let mermaid = mermaid(&sequence);
        assert!(
            mermaid.contains("Note over p1: 17.0 ms work for 5.00 ms"),
            "{mermaid}"
        );
        assert!(
            mermaid.contains("Note over p0,p1: 37.0 ms end"),
            "{mermaid}"
        );
    }

    #[test]
    fn two_lanes_keep_within_the_width() {
        for width in 31..160 {
            let sequence = Sequence {
                lanes: ["198.18.0.1:35396", "198.18.0.2:443"]
                    .map(str::to_owned)
                    .to_vec(),
                arrows: vec![Arrow {
                    at_ms: 1.0,
                    until_ms: None,
                    from: 1,
                    to: 0,
                    label: "ServerHello, ChangeCipherSpec, 1 encrypted record".to_owned(),
                    is_alarm: false,
                }],
                more: Some(0),
            };
            for (_, line) in text(&sequence, width).unwrap() {
                assert!(line.chars().count() <= width, "{width}: {line}");
            }
        }
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
