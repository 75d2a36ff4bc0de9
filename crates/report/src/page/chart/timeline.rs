//! Connections over time: each a bar from opening to end, its setup, its exchanges as ticks, and
//! who ended it.

use super::canvas::{Anchor, Canvas, Svg, fit_bold, width_of};
use super::frame::{AXIS, Frame, LINE};
use super::scale::Scale;
use super::{Axis, ChartKind, ScaleKind, Tone};

/// Distance from one connection to the next.
const PITCH: f64 = 12.0;
/// Height of an exchange.
const TALL: f64 = 9.0;

/// Connections over time.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The subjects.
    pub lanes: Vec<Lane>,
    /// The unit of the horizontal axis.
    pub x: Axis,
}

/// Connections of one subject.
#[derive(Clone, Debug)]
pub struct Lane {
    /// The subject.
    pub name: String,
    /// The connections.
    pub lives: Vec<Life>,
}

/// One connection; all times in milliseconds.
#[derive(Clone, Debug)]
pub struct Life {
    /// When its setup began.
    pub from: f64,
    /// When it was ready.
    pub ready: Option<f64>,
    /// When it ended, or was last seen.
    pub to: f64,
    /// Its exchanges.
    pub ticks: Vec<Tick>,
    /// What is not drawn.
    pub rest: Option<String>,
    /// Who ended it.
    pub end: Option<(Tone, String)>,
    /// Its story.
    pub words: String,
}

/// One exchange.
#[derive(Clone, Copy, Debug)]
pub struct Tick {
    /// When it began.
    pub from: f64,
    /// When it ended.
    pub to: f64,
    /// Whether it succeeded.
    pub ok: bool,
}

impl ChartKind for Timeline {
    fn is_empty(&self) -> bool {
        self.lanes.iter().all(|one| one.lives.is_empty())
    }

    fn svg(&self, width: f64, title: &str, description: &str) -> Svg {
        let mut canvas = Canvas::new(width);
        let last = self
            .lanes
            .iter()
            .flat_map(|lane| &lane.lives)
            .map(|life| life.to)
            .fold(0.0, f64::max);
        let first_top = draw_legend(&mut canvas);
        let scale = Scale::new(ScaleKind::Linear, (0.0, last), (2.0, width - 8.0));
        let height: f64 = self.lanes.iter().map(height_of).sum();
        let frame = Frame {
            left: 2.0,
            right: width - 8.0,
            top: first_top,
            bottom: first_top + height,
        };
        frame.x_axis(&mut canvas, &scale, self.x);
        let mut top = first_top;
        for lane in &self.lanes {
            let name = fit_bold(&lane.name, width);
            canvas.text("strong halo", (0.0, top + 12.0), Anchor::Start, &name);
            for (nth, life) in lane.lives.iter().enumerate() {
                let y = top + LINE + 4.0 + nth as f64 * PITCH;
                draw_life(&mut canvas, life, &scale, y);
            }
            top += height_of(lane);
        }
        canvas.finish(frame.bottom + AXIS, title, description)
    }
}

fn height_of(lane: &Lane) -> f64 {
    LINE + 4.0 + lane.lives.len() as f64 * PITCH + 8.0
}

fn draw_life(canvas: &mut Canvas, life: &Life, scale: &Scale, y: f64) {
    let (from, to) = (scale.place(life.from), scale.place(life.to));
    let middle = y + TALL / 2.0;
    let (at, size) = ((from, middle - 1.5), (to - from, 3.0));
    canvas.rect("fill open", at, size, &life.words);
    if let Some(ready) = life.ready {
        let ready = scale.place(ready);
        let size = ((ready - from).max(1.0), 6.0);
        canvas.rect("fill fresh", (from, middle - 3.0), size, "setup");
    }
    for tick in &life.ticks {
        let (from, to) = (scale.place(tick.from), scale.place(tick.to));
        let class = if tick.ok { "fill reused" } else { "fill alarm" };
        // neighbours stay apart: a little is taken off each end
        let wide = (to - from - 0.6).max(0.8);
        canvas.rect(class, (from, y), (wide, TALL), "");
    }
    if let Some(words) = &life.rest {
        let wide = width_of(words) + 6.0;
        let x = (to + 4.0).min(canvas.width() - wide);
        canvas.text("note halo", (x, y + TALL - 0.5), Anchor::Start, words);
    }
    if let Some((tone, words)) = &life.end {
        let class = format!("fill {}", tone.class());
        canvas.rect(&class, (to, y - 0.5), (2.5, TALL + 1.0), words);
    }
}

/// What the shapes mean. Returns where it ends.
fn draw_legend(canvas: &mut Canvas) -> f64 {
    let entries = [
        ("fill fresh", 6.0, 12.0, "setup"),
        ("fill reused", 9.0, 12.0, "request in flight"),
        ("fill open", 3.0, 12.0, "open, idle"),
        ("fill plain", 10.0, 2.5, "closed by the client"),
        ("fill alarm", 10.0, 2.5, "by the server"),
    ];
    let (mut x, mut y) = (0.0, 0.0);
    for (class, high, wide, words) in entries {
        let room = wide + 5.0 + width_of(words);
        if x > 0.0 && x + room > canvas.width() {
            x = 0.0;
            y += LINE + 2.0;
        }
        canvas.rect(class, (x, y + 8.0 - high / 2.0), (wide, high), "");
        canvas.text("label", (x + wide + 5.0, y + 12.0), Anchor::Start, words);
        x += room + 14.0;
    }
    y + LINE + 8.0
}
