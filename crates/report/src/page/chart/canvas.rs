//! The sheet that shapes are put on, and the only place where SVG text is written.

use super::Tone;
use crate::escape::markup;
use std::fmt::{self, Write as _};

/// Width of a letter of the 12-unit text, on the wide side: no font is measured here.
const LETTER: f64 = 6.7;
/// How much wider bold letters are.
const BOLD: f64 = 1.15;

/// Which end of a text its place names.
#[derive(Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// A finished chart. Only this module makes one, and it escapes all text, so that a page can hold
/// it as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Svg(String);

impl fmt::Display for Svg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Shapes so far.
pub(super) struct Canvas {
    width: f64,
    body: String,
}

impl Canvas {
    pub(super) fn new(width: f64) -> Canvas {
        Canvas {
            width,
            body: String::new(),
        }
    }

    pub(super) fn width(&self) -> f64 {
        self.width
    }

    /// A filled rectangle by its upper left corner and its size; with a tip where one is given.
    pub(super) fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), tip: &str) {
        let _ = write!(
            self.body,
            r#"<rect class="{}" x="{}" y="{}" width="{}" height="{}""#,
            markup(class),
            Short(at.0),
            Short(at.1),
            Short(size.0.max(0.0)),
            Short(size.1.max(0.0))
        );
        self.end("rect", tip);
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let _ = write!(
            self.body,
            r#"<path class="{}" d="M{} {}L{} {}"/>"#,
            markup(class),
            Short(from.0),
            Short(from.1),
            Short(to.0),
            Short(to.1)
        );
    }

    /// A path through points; `closed` fills what it encloses.
    pub(super) fn path(&mut self, class: &str, points: &[(f64, f64)], closed: bool) {
        if points.is_empty() {
            return;
        }
        let _ = write!(self.body, r#"<path class="{}" d=""#, markup(class));
        for (nth, (x, y)) in points.iter().enumerate() {
            let verb = if nth == 0 { 'M' } else { 'L' };
            let _ = write!(self.body, "{verb}{} {}", Short(*x), Short(*y));
        }
        self.body.push_str(if closed { "Z\"/>" } else { "\"/>" });
    }

    /// A dot for what was reused or plain, a diamond for what was fresh, a cross for what failed:
    /// distinct without colour.
    pub(super) fn mark(&mut self, tone: Tone, hollow: bool, at: (f64, f64), tip: &str) {
        let (x, y) = at;
        let class = tone.class();
        let style = if hollow { "hollow" } else { "dot" };
        match tone {
            Tone::Fresh => {
                let _ = write!(
                    self.body,
                    r#"<path class="{style} {class}" d="M{} {}l3.5 3.5l-3.5 3.5l-3.5 -3.5Z""#,
                    Short(x),
                    Short(y - 3.5)
                );
                self.end("path", tip);
            }
            Tone::Alarm => {
                let _ = write!(
                    self.body,
                    r#"<path class="cross {class}" d="M{} {}l6 6m0 -6l-6 6""#,
                    Short(x - 3.0),
                    Short(y - 3.0)
                );
                self.end("path", tip);
            }
            _ => self.circle(&format!("{style} {class}"), at, tip),
        }
    }

    /// A dot, whatever it stands for.
    pub(super) fn dot(&mut self, tone: Tone, at: (f64, f64), tip: &str) {
        self.circle(&format!("dot {}", tone.class()), at, tip);
    }

    fn circle(&mut self, class: &str, (x, y): (f64, f64), tip: &str) {
        let _ = write!(
            self.body,
            r#"<circle class="{}" cx="{}" cy="{}" r="2.8""#,
            markup(class),
            Short(x),
            Short(y)
        );
        self.end("circle", tip);
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => r#" text-anchor="middle""#,
            Anchor::End => r#" text-anchor="end""#,
        };
        let _ = write!(
            self.body,
            r#"<text class="{}" x="{}" y="{}"{anchor}>{}</text>"#,
            markup(class),
            Short(at.0),
            Short(at.1),
            markup(text)
        );
    }

    fn end(&mut self, element: &str, tip: &str) {
        if tip.is_empty() {
            self.body.push_str("/>");
        } else {
            let _ = write!(self.body, "><title>{}</title></{element}>", markup(tip));
        }
    }

    /// The finished picture.
    pub(super) fn finish(self, height: f64, title: &str, description: &str) -> Svg {
        let (width, height) = (Short(self.width), Short(height));
        Svg(format!(
            r#"<svg class="picture" role="img" viewBox="0 0 {width} {height}" width="{width}" height="{height}"><title>{}</title><desc>{}</desc>{}</svg>"#,
            markup(title),
            markup(description),
            self.body
        ))
    }
}

/// How wide a text is, on the wide side.
pub(super) fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * LETTER
}

/// How wide a text in bold is.
pub(super) fn width_of_bold(text: &str) -> f64 {
    width_of(text) * BOLD
}

/// The text cut to `room` units, with an ellipsis where something is missing.
pub(super) fn fit(text: &str, room: f64) -> String {
    let letters = (room / LETTER).max(1.0) as usize;
    if text.chars().count() <= letters {
        return text.to_owned();
    }
    let kept: String = text.chars().take(letters.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// The same for text in bold.
pub(super) fn fit_bold(text: &str, room: f64) -> String {
    fit(text, room / BOLD)
}

/// A coordinate with a tenth of a unit: finer cannot be seen.
struct Short(f64);

impl fmt::Display for Short {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() / 10.0;
        // a place that is no number would make the whole path invalid
        let tenths = if tenths.is_finite() { tenths } else { 0.0 };
        write!(f, "{}", tenths + 0.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_server_said_stays_text() {
        let mut canvas = Canvas::new(10.0);
        canvas.text(
            "label",
            (0.0, 0.0),
            Anchor::Start,
            "</text><script>alert(1)</script>\x00",
        );
        let svg = canvas.finish(10.0, "\"><img onerror=x>", "'&'").to_string();
        assert!(!svg.contains("<script") && !svg.contains("<img"), "{svg}");
        assert!(
            svg.contains("&lt;script&gt;") && svg.contains("\\u{0}"),
            "{svg}"
        );
    }

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        let printed: Vec<String> = [1.0, 2.345, -0.01, f64::NAN, f64::INFINITY]
            .map(|value| Short(value).to_string())
            .to_vec();
        assert_eq!(printed, ["1", "2.3", "0", "0", "0"]);
    }

    #[test]
    fn a_text_that_does_not_fit_ends_in_an_ellipsis() {
        assert_eq!(fit("keepalive=on", 200.0), "keepalive=on");
        assert_eq!(fit("keepalive=on", 50.0), "keepal…");
    }
}
