//! `bench --live`: the whole terminal for the state of a bench. Drawn by the thread of the caller,
//! when it shows a state.

use crate::bench::{BenchState, Scale, VariantState, cut};
use crate::error::LiveError;
use crate::keyboard::{Key, Keyboard};
use crate::terminal::Terminal;
use crate::view::{self, Screen, split};
use intact_units::foreign_text::escape;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Color, Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Paragraph, Sparkline};
use std::collections::VecDeque;
use std::io;

/// Rates that are kept, one for each state shown.
const RATES: usize = 600;
/// Rows of the rate, with its head.
const RATE_ROWS: u16 = 4;
/// Rows that a distribution gets at most, without its head.
const MOST_ROWS: u16 = 6;

/// The screen of a bench. The terminal is what it was when this is dropped.
pub struct BenchScreen {
    screen: Screen,
    size: (u16, u16),
    /// Requests of all variants at the last state, and those between states.
    requests: u64,
    rates: VecDeque<u64>,
    _keyboard: Keyboard,
}

impl BenchScreen {
    /// Takes the terminal over; an error where standard input or output is no terminal. `on_key`
    /// runs in a thread of its own.
    pub fn start(on_key: impl FnMut(Key) + Send + 'static) -> Result<BenchScreen, LiveError> {
        let terminal = Terminal::take_over_for_caller()?;
        let keyboard = Keyboard::on(terminal, on_key)?;
        Ok(BenchScreen {
            screen: view::screen().map_err(LiveError::Terminal)?,
            size: (0, 0),
            requests: 0,
            rates: VecDeque::new(),
            _keyboard: keyboard,
        })
    }

    /// Draws a state.
    pub fn show(&mut self, state: &BenchState) -> io::Result<()> {
        view::fit(&mut self.screen, &mut self.size)?;
        let requests = state.variants.iter().map(requests).sum();
        // before the first request of all there is no rate
        self.rates.push_back(requests - self.requests.min(requests));
        self.requests = requests;
        if self.rates.len() > RATES {
            self.rates.pop_front();
        }
        let rates = &self.rates;
        self.screen.draw(|frame| draw(frame, state, rates))?;
        Ok(())
    }
}

fn requests(variant: &VariantState) -> u64 {
    variant.latency.count() + variant.failed
}

fn draw(frame: &mut Frame<'_>, state: &BenchState, rates: &VecDeque<u64>) {
    let all = frame.area();
    let columns = usize::from(all.width);
    let title = cut(&format!("intact bench {}", escape(&state.subject)), columns);
    let figures = state.figure_lines(columns, usize::from(all.height / 2));
    let mut lines = vec![Line::from(title).bold()];
    for (nth, line) in figures.into_iter().enumerate() {
        let is_running = line.starts_with('>');
        let line = Line::from(line);
        lines.push(match nth {
            1 => line.dim(),
            _ if is_running => line.cyan(),
            _ => line,
        });
    }
    lines.push(Line::default());
    let [top, rest] = split(all, lines.len() as u16);
    frame.render_widget(Paragraph::new(lines), top);
    let [rate, rest] = split(rest, RATE_ROWS);
    draw_rate(frame, rate, rates);
    draw_distributions(frame, rest, state);
}

fn draw_rate(frame: &mut Frame<'_>, area: Rect, rates: &VecDeque<u64>) {
    let [head, spark] = split(area, 1);
    frame.render_widget(Paragraph::new(Line::from("requests over time").dim()), head);
    let skipped = rates.len().saturating_sub(usize::from(spark.width));
    let spark = Rect {
        height: spark.height.saturating_sub(1),
        ..spark
    };
    let line = Sparkline::default().data(rates.iter().skip(skipped).copied());
    frame.render_widget(line.style(Style::new().fg(Color::Cyan)), spark);
}

/// The latency distributions of the variants, one below the other. Without room for all, the
/// current variant is first.
fn draw_distributions(frame: &mut Frame<'_>, area: Rect, state: &BenchState) {
    let Some(scale) = Scale::of(&state.variants, usize::from(area.width)) else {
        return;
    };
    let each =
        (area.height.saturating_sub(1) / state.variants.len().max(1) as u16).min(MOST_ROWS + 1);
    let mut shown: Vec<usize> = (0..state.variants.len()).collect();
    if each < 2 {
        shown.retain(|index| *index == state.running);
    }
    let mut rest = area;
    for index in shown {
        let variant = &state.variants[index];
        let [head, below] = split(rest, 1);
        let [spark, below] = split(below, each.max(2) - 1);
        rest = below;
        let name = cut(&escape(&variant.name), usize::from(head.width));
        frame.render_widget(Paragraph::new(Line::from(name).dim()), head);
        let line = Sparkline::default().data(scale.columns(&variant.latency));
        let colour = match index == state.running {
            true => Color::Cyan,
            false => Color::Gray,
        };
        frame.render_widget(line.style(Style::new().fg(colour)), spark);
    }
    let [axis, _] = split(rest, 1);
    frame.render_widget(Paragraph::new(Line::from(scale.axis()).dim()), axis);
}
