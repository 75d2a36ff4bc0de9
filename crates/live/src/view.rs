//! The layout and the drawing of the view. The pane is at the upper left, so that the program's
//! mouse keeps its coordinates. The board is to the right of the pane, or below it where there is
//! no room.

use super::bench::cut;
use super::pane::Pane;
use super::snapshot::Shown;
use intact_document::traffic_readings::TrafficReadings;
use intact_document::{Finding, Severity};
use intact_reading::Reading;
use intact_traffic::ObservedFacts;
use intact_units::foreign_text::escape;
use intact_units::number::{count, percent, time};
use intact_units::plural::counted;
use ratatui::backend::TermionBackend;
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Padding, Paragraph, Sparkline, Wrap};
use ratatui::{Frame, Terminal, TerminalOptions, Viewport};
use std::io::{self, Stdout};
use tui_term::widget::{Cursor, PseudoTerminal};

/// Columns of the board to the right of the pane, with its edge.
const RIGHT: u16 = 44;
/// The fewest columns of the pane; with less the board is below it.
const AT_LEAST: u16 = 76;
/// Rows of the board below the pane, with its edge.
const UNDER: u16 = 8;
/// With fewer rows than these the board is one line.
const FEW: u16 = 18;

/// The screen to draw on, in a terminal that was taken over. [`fit`] sets its size, because some
/// terminals do not report theirs.
pub(crate) fn screen() -> io::Result<Screen> {
    let viewport = Viewport::Fixed(Rect::new(0, 0, 1, 1));
    Terminal::with_options(
        TermionBackend::new(io::stdout()),
        TerminalOptions { viewport },
    )
}

/// Gives the screen the size of the terminal, if it is another one than `size`. Returns whether it
/// is.
pub(crate) fn fit(screen: &mut Screen, size: &mut (u16, u16)) -> io::Result<bool> {
    let now = crate::terminal::size();
    let is_other = now != *size;
    if is_other {
        *size = now;
        screen.resize(Rect::new(0, 0, now.0, now.1))?;
    }
    Ok(is_other)
}

/// What is drawn on.
pub(crate) type Screen = Terminal<TermionBackend<Stdout>>;

/// The parts of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Areas {
    pub(crate) pane: Rect,
    board: Rect,
}

impl Areas {
    /// By columns and rows of the screen.
    pub(crate) fn of(columns: u16, rows: u16) -> Areas {
        let (columns, rows) = (columns.max(2), rows.max(2));
        if columns >= AT_LEAST + RIGHT {
            let width = columns - RIGHT;
            return Areas {
                pane: Rect::new(0, 0, width, rows),
                board: Rect::new(width, 0, RIGHT, rows),
            };
        }
        let under = if rows >= FEW { UNDER } else { 1 };
        Areas {
            pane: Rect::new(0, 0, columns, rows - under),
            board: Rect::new(0, rows - under, columns, under),
        }
    }
}

/// Draws it all.
pub(crate) fn draw(frame: &mut Frame<'_>, pane: &Pane, shown: &Shown) {
    let all = frame.area();
    let areas = Areas::of(all.width, all.height);
    let (pane_area, board) = (areas.pane.intersection(all), areas.board.intersection(all));
    let mut cursor = Cursor::default();
    cursor.hide();
    let widget = PseudoTerminal::new(pane.screen()).cursor(cursor);
    frame.render_widget(widget, pane_area);
    if !pane.screen().hide_cursor() {
        let (row, column) = pane.screen().cursor_position();
        let place = Position::new(pane_area.x + column, pane_area.y + row);
        if pane_area.contains(place) {
            frame.set_cursor_position(place);
        }
    }
    if board.height == 1 {
        let line = Line::from(summary(shown)).reversed();
        frame.render_widget(Paragraph::new(line), board);
    } else if board.width == all.width {
        draw_under(frame, board, shown);
    } else {
        draw_column(frame, board, Borders::LEFT, shown);
    }
}

/// Draws the board alone, on the whole screen.
pub(crate) fn draw_board(frame: &mut Frame<'_>, shown: &Shown) {
    let all = frame.area();
    if all.height < FEW {
        return draw_under(frame, all, shown);
    }
    draw_column(frame, all, Borders::TOP, shown);
    let hint = " q ends it ";
    let width = hint.len() as u16;
    if all.width >= 40 {
        let corner = Rect::new(all.width - width - 1, 0, width, 1);
        frame.render_widget(Paragraph::new(Line::from(hint).dim()), corner);
    }
}

fn draw_column(frame: &mut Frame<'_>, area: Rect, edge: Borders, shown: &Shown) {
    let inner = framed(frame, area, edge, shown);
    let width = usize::from(inner.width);
    let mut lines = vec![Line::from(shown.subject.as_str()).dim(), Line::default()];
    lines.extend(figures(shown));
    lines.push(Line::default());
    let head = usize::from(inner.y) + lines.len();
    let [top, rest] = split(inner, (head as u16).saturating_sub(inner.y));
    frame.render_widget(Paragraph::new(lines), top);
    let [rates, rest] = split(rest, 6);
    draw_rates(frame, rates, shown);
    let mut lines = Vec::new();
    if let Some(facts) = &shown.facts {
        let most = usize::from(rest.height / 2).clamp(1, 12);
        lines.extend(destinations(facts, width, most));
        lines.push(Line::default());
    }
    lines.extend(findings(shown, width, true));
    frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), rest);
}

fn draw_under(frame: &mut Frame<'_>, area: Rect, shown: &Shown) {
    let inner = framed(frame, area, Borders::TOP, shown);
    let [top, rest] = split(inner, 1);
    frame.render_widget(Paragraph::new(Line::from(summary(shown))), top);
    let half = Constraint::Length((inner.width / 2).saturating_sub(1));
    let columns = Layout::horizontal([half, Constraint::Fill(1)]).spacing(1);
    let [left, right] = columns.areas(rest);
    if let Some(facts) = &shown.facts {
        let lines = destinations(
            facts,
            usize::from(left.width),
            usize::from(left.height.saturating_sub(1)),
        );
        frame.render_widget(Paragraph::new(lines), left);
    }
    let lines = findings(shown, usize::from(right.width), false);
    frame.render_widget(Paragraph::new(lines), right);
}

/// Draws the edge towards the pane with the name and the time. Returns the area inside.
fn framed(frame: &mut Frame<'_>, area: Rect, edge: Borders, shown: &Shown) -> Rect {
    let seconds = shown.since.elapsed().as_secs();
    let title = format!(" intact watch {:02}:{:02} ", seconds / 60, seconds % 60);
    let block = Block::new()
        .borders(edge)
        .border_style(Style::new().fg(Color::DarkGray))
        .title(Span::from(title).bold());
    let block = match edge {
        Borders::LEFT => block.padding(Padding::left(1)),
        _ => block,
    };
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

pub(crate) fn split(area: Rect, rows: u16) -> [Rect; 2] {
    let rows = Constraint::Length(rows.min(area.height));
    Layout::vertical([rows, Constraint::Fill(1)]).areas(area)
}

/// Requests and connections on one line.
fn summary(shown: &Shown) -> String {
    let (requests, connections) = shown.rates.back().copied().unwrap_or_default();
    let Some(facts) = &shown.facts else {
        return "no connection yet".to_owned();
    };
    let traffic = &facts.traffic;
    format!(
        "{} ({requests}/s) on {} ({connections}/s, {} open), {} reused{}",
        counted_reading(&traffic.requests.total, "request"),
        counted_reading(&traffic.connections.opened, "connection"),
        count(shown.open),
        traffic.reuse.shown(percent),
        failed(traffic).map_or_else(String::new, |failed| format!(", failed: {failed}"))
    )
}

/// A reading with its noun: `1 request`, `at least 2 requests`.
fn counted_reading(reading: &Reading, noun: &str) -> String {
    match reading.value() {
        Some(count) => counted(count as u64, noun),
        None => format!("{reading} {}", intact_units::plural::of(2, noun)),
    }
}

/// What failed, by what it was: a dial is no request.
fn failed(traffic: &TrafficReadings) -> Option<String> {
    let all = [
        (&traffic.requests.failures, "request"),
        (&traffic.connections.failures, "connection attempt"),
    ];
    let any = all.into_iter().filter(|(count, _)| count.is_positive());
    let any: Vec<String> = any
        .map(|(count, noun)| counted_reading(count, noun))
        .collect();
    (!any.is_empty()).then(|| any.join(", "))
}

fn figures(shown: &Shown) -> Vec<Line<'static>> {
    let Some(facts) = &shown.facts else {
        return vec![Line::from("no connection yet")];
    };
    let traffic = &facts.traffic;
    let (requests, connections) = (&traffic.requests, &traffic.connections);
    let mut lines = vec![
        Line::from(format!("requests     {}", requests.total)),
        Line::from(format!(
            "connections  {}, {} open, {} needed",
            connections.opened,
            count(shown.open),
            connections.needed
        )),
        Line::from(vec![
            Span::from("reused       "),
            Span::from(traffic.reuse.shown(percent)).bold(),
        ]),
    ];
    let wasted = &facts.totals.wasted_ms;
    if wasted.is_positive() {
        let wasted = wasted.shown(time);
        lines.push(Line::from(format!("wasted       {wasted} of setup")).yellow());
    }
    if let Some(failed) = failed(traffic) {
        lines.push(Line::from(format!("failed       {failed}")).red());
    }
    lines
}

fn draw_rates(frame: &mut Frame<'_>, area: Rect, shown: &Shown) {
    let (requests, connections): (Vec<u64>, Vec<u64>) = shown.rates.iter().copied().unzip();
    let mut rest = area;
    for (name, all, colour) in [
        ("requests/s", requests, Color::Cyan),
        ("new connections/s", connections, Color::Yellow),
    ] {
        let now = all.last().copied().unwrap_or_default();
        let [head, below] = split(rest, 1);
        let [spark, below] = split(below, 2);
        rest = below;
        frame.render_widget(Paragraph::new(Line::from(format!("{name} {now}"))), head);
        let latest = &all[all.len().saturating_sub(usize::from(spark.width))..];
        let line = Sparkline::default().data(latest.iter().copied());
        frame.render_widget(line.style(Style::new().fg(colour)), spark);
    }
}

fn destinations(facts: &ObservedFacts, width: usize, most: usize) -> Vec<Line<'static>> {
    let name_width = width.saturating_sub(18).max(8);
    let mut lines = vec![
        Line::from(format!(
            "{:<name_width$} {:>6} {:>5} {:>4}",
            "destination", "reqs", "conns", "kept"
        ))
        .dim(),
    ];
    for one in facts.destinations.iter().take(most) {
        let figures = &one.figures;
        let traffic = &figures.traffic;
        let kept = cell(&traffic.reuse, |reuse| format!("{:.0}%", reuse * 100.0));
        let brief = |reading: &Reading| cell(reading, |count| brief(count as u64));
        let line = format!(
            "{:<name_width$} {:>6} {:>5} {kept:>4}",
            cut(&escape(&one.origin), name_width),
            brief(&traffic.requests.total),
            brief(&traffic.connections.opened),
        );
        let line = Line::from(line);
        lines.push(if traffic.avoidable.is_positive() {
            line.yellow()
        } else {
            line
        });
    }
    lines
}

/// A reading in the room of one number: of bounds the lower one.
fn cell(reading: &Reading, shown: impl Fn(f64) -> String) -> String {
    match (reading.value(), reading.low()) {
        (Some(value), _) => shown(value),
        (None, low) if low.is_finite() && low > 0.0 => format!("\u{2265}{}", shown(low)),
        (None, _) => reading
            .estimate()
            .map_or("-".to_owned(), |value| format!("~{}", shown(value))),
    }
}

fn findings(shown: &Shown, width: usize, full: bool) -> Vec<Line<'static>> {
    if shown.findings.is_empty() {
        return vec![Line::from("nothing stands out so far").dim()];
    }
    let mut lines = vec![Line::from("findings, the newest first").dim()];
    for (_, finding) in &shown.findings {
        let line = sentence(finding);
        let line = if full { line } else { cut(&line, width) };
        let line = Line::from(line);
        lines.push(match finding.severity {
            Severity::Error => line.red(),
            Severity::Warning => line.yellow(),
            Severity::Info => line,
        });
        if let Some(place) = finding.places.first() {
            let place = escape(&format!("  {}", place.words()));
            lines.push(Line::from(cut(&place, width)));
        }
        if full {
            lines.push(Line::default());
        }
    }
    lines
}

fn sentence(finding: &Finding) -> String {
    escape(&format!("{}: {}", finding.rule, finding.claim))
}

fn brief(number: u64) -> String {
    match number {
        0..100_000 => number.to_string(),
        100_000..100_000_000 => format!("{}k", number / 1000),
        _ => format!("{}M", number / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pane_has_room_on_every_screen() {
        for (columns, rows) in [
            (200, 50),
            (120, 24),
            (119, 24),
            (80, 24),
            (80, 10),
            (20, 5),
            (1, 1),
        ] {
            let areas = Areas::of(columns, rows);
            assert!(
                areas.pane.width >= 1 && areas.pane.height >= 1,
                "{columns}x{rows}"
            );
            assert!(areas.pane.intersection(areas.board).is_empty(), "{areas:?}");
            assert_eq!((areas.pane.x, areas.pane.y), (0, 0));
        }
        assert_eq!(Areas::of(80, 24).pane, Rect::new(0, 0, 80, 16));
        assert_eq!(Areas::of(120, 24).pane, Rect::new(0, 0, 76, 24));
    }

    #[test]
    fn bounds_have_the_room_of_a_number() {
        use intact_reading::Why;
        let percent = |share: f64| format!("{:.0}%", share * 100.0);
        let why = || Why::NoTraffic;
        for (reading, text) in [
            (Reading::known(0.96), "96%"),
            (Reading::between(0.97, 1.0, why()), "≥97%"),
            (Reading::unknown(why()), "-"),
            (Reading::unknown(why()).inferred(0.9), "~90%"),
        ] {
            assert_eq!(cell(&reading, percent), text);
        }
    }

    #[test]
    fn what_is_too_long_is_cut_with_a_mark() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}
