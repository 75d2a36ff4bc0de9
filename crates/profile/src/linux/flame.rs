//! Draws a profile as a flame graph: an SVG that works offline. The width of a block is its number
//! of samples, and it stands on its caller.

mod layout;

use crate::{Frame, Profile, Stack};
use layout::Block;
use std::fmt::Write as _;
use std::io;

/// Width of the drawing in pixels.
const WIDTH: f64 = 1200.0;
/// Graphs next to each other, and the space between them in pixels.
const COLUMNS: usize = 2;
const GAP: f64 = 20.0;
/// Height of a level in pixels.
const LEVEL: usize = 17;
/// Space above the blocks for the title, and below for the description of the selected block, in
/// pixels.
const MARGIN: usize = 64;
/// Average width of a letter in pixels.
const LETTER: f64 = 6.6;
/// Narrower blocks are not drawn, in pixels.
const NARROWEST: f64 = 0.1;
/// Zooms to a block on a click, back on a click on the title, and marks the blocks whose name
/// contains a text.
const SCRIPT: &str = include_str!("flame/zoom.js");

/// Writes flame graphs, each with its title, two next to each other. It is an error if none has a
/// sample.
pub fn flame_graph(graphs: &[(&str, &Profile)], mut into: impl io::Write) -> io::Result<()> {
    if graphs.iter().all(|(_, profile)| profile.stacks.is_empty()) {
        return Err(io::Error::other(
            "there was no sample: the program took too little processor time",
        ));
    }
    let panels: Vec<Panel> = graphs
        .iter()
        .map(|(title, profile)| Panel::of(title, profile))
        .collect();
    let (mut body, mut height) = (String::new(), 0);
    for row in panels.chunks(COLUMNS) {
        // the blocks of a row stand on the same line
        let levels = row.iter().map(Panel::levels).max().unwrap_or(0);
        for (nth, panel) in row.iter().enumerate() {
            let x = nth as f64 * (WIDTH + GAP);
            let _ = writeln!(
                body,
                r#"<g class="panel" transform="translate({x} {height})">"#
            );
            panel.draw(levels, &mut body);
            body.push_str("</g>\n");
        }
        height += levels * LEVEL + 2 * MARGIN;
    }
    let columns = panels.len().clamp(1, COLUMNS) as f64;
    let width = columns * WIDTH + (columns - 1.0) * GAP;
    let svg = format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" font-family="monospace" font-size="11">
<rect width="100%" height="100%" fill="#fffdf7"/>
<text id="search" x="{}" y="24" text-anchor="end">search</text>
{body}<script><![CDATA[
{SCRIPT}]]></script>
</svg>
"##,
        width - 10.0,
    );
    into.write_all(svg.as_bytes())
}

/// One graph.
struct Panel<'a> {
    title: &'a str,
    per_second: u64,
    samples: u64,
    blocks: Vec<Block>,
}

impl<'a> Panel<'a> {
    fn of(title: &'a str, profile: &Profile) -> Panel<'a> {
        let stacks = profile.stacks.iter();
        Panel {
            title,
            per_second: profile.per_second,
            samples: stacks.clone().map(|stack| stack.samples).sum(),
            blocks: layout::blocks(stacks.map(|stack| (path(stack), stack.samples))),
        }
    }

    fn levels(&self) -> usize {
        let levels = self.blocks.iter().map(|block| block.level + 1);
        levels.max().unwrap_or(0)
    }

    /// Writes it with room for this number of levels.
    fn draw(&self, levels: usize, svg: &mut String) {
        let _ = write!(
            svg,
            r##"<text class="title" x="600" y="24" text-anchor="middle" font-size="16">{}</text>
<text x="600" y="42" text-anchor="middle">processor time, {} samples at {} a second; [k] is in the kernel</text>
<text class="about" x="10" y="{}"> </text>
<g class="blocks">
"##,
            xml(self.title),
            self.samples,
            self.per_second,
            levels * LEVEL + 2 * MARGIN - 20,
        );
        for block in &self.blocks {
            draw(block, self.samples, levels, svg);
        }
        svg.push_str("</g>\n");
    }
}

/// Writes a block: a group with the data of the script, its rectangle, its name if it fits, and a
/// tooltip.
fn draw(block: &Block, samples: u64, levels: usize, svg: &mut String) {
    let pixels = WIDTH / samples as f64;
    let (x, width) = (block.start as f64 * pixels, block.samples as f64 * pixels);
    if width < NARROWEST {
        return;
    }
    let y = MARGIN + (levels - 1 - block.level) * LEVEL;
    let share = block.samples as f64 / samples as f64 * 100.0;
    let name = xml(&block.name);
    let _ = writeln!(
        svg,
        r##"<g data-x="{x:.3}" data-w="{width:.3}" data-y="{y}"><title>{name} ({} of {samples} samples, {share:.2} %)</title><rect x="{x:.3}" y="{y}" width="{width:.3}" height="{}" rx="1" fill="{}"/><text x="{:.3}" y="{}">{}</text></g>"##,
        block.samples,
        LEVEL - 1,
        colour(&block.name),
        x + 3.0,
        y + LEVEL - 5,
        xml(&fitting(&block.name, width)),
    );
}

/// The part of a name that fits into a block.
fn fitting(name: &str, width: f64) -> String {
    let room = ((width - 6.0) / LETTER).max(0.0) as usize;
    if name.chars().count() <= room {
        return name.to_owned();
    }
    match room {
        0..3 => String::new(),
        _ => name.chars().take(room - 2).chain("..".chars()).collect(),
    }
}

/// A warm colour that depends on the name; blocks in the kernel are cooler.
fn colour(name: &str) -> String {
    let hash = name.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    let hue = if name.ends_with("[k]") { 200 } else { 15 };
    format!("hsl({},{}%,72%)", hue + hash % 40, 60 + (hash >> 8) % 30)
}

/// Escapes text for XML; control characters, which XML does not allow, become U+FFFD.
fn xml(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            letter if letter.is_control() || matches!(letter, '\u{fffe}' | '\u{ffff}') => {
                safe.push(char::REPLACEMENT_CHARACTER);
            }
            letter => safe.push(letter),
        }
    }
    safe
}

/// The names of a stack, the outermost first: the command, then its frames.
fn path(stack: &Stack) -> Vec<String> {
    let mut path = vec![stack.command.to_string()];
    let mut before = None;
    for frame in stack.frames.iter().rev() {
        // consecutive functions without names in one file are one block
        if before == Some(frame) && !has_name(frame) {
            continue;
        }
        before = Some(frame);
        path.push(name(frame));
    }
    path
}

fn has_name(frame: &Frame) -> bool {
    match frame {
        Frame::Kernel(name) | Frame::File(_, name) | Frame::Made(name) => name.is_some(),
    }
}

fn name(frame: &Frame) -> String {
    match frame {
        Frame::Kernel(Some(name)) => format!("{name} [k]"),
        Frame::Kernel(None) => "[kernel]".to_owned(),
        Frame::File(_, Some(name)) | Frame::Made(Some(name)) => name.to_string(),
        Frame::File(file, None) => format!("[{file}]"),
        Frame::Made(None) => "[made at run time]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuCategory;

    fn svg(frames: Vec<Frame>, title: &str) -> String {
        let stack = Stack {
            subject: 0,
            part: 0,
            command: "a;b".into(),
            frames,
            samples: 3,
            work: CpuCategory::Other,
        };
        let profile = Profile {
            stacks: vec![stack],
            ..Profile::default()
        };
        let mut svg = Vec::new();
        flame_graph(&[(title, &profile)], &mut svg).unwrap();
        String::from_utf8(svg).unwrap()
    }

    #[test]
    fn a_name_cannot_break_out_of_its_block() {
        let name = "x\n</title><script>\u{1b}y";
        let text = svg(vec![Frame::Made(Some(name.into()))], "a & <b>");
        assert!(
            text.contains("x\u{fffd}&lt;/title&gt;&lt;script&gt;\u{fffd}y (3 of 3"),
            "{text}"
        );
        assert!(text.contains(">a &amp; &lt;b&gt;</text>"), "{text}");
        assert_eq!(text.matches("<script>").count(), 1);
    }

    #[test]
    fn a_long_name_is_cut_to_the_width_of_its_block() {
        assert_eq!(fitting("function", 200.0), "function");
        assert_eq!(fitting("function", 46.0), "func..");
        assert_eq!(fitting("function", 12.0), "");
    }

    #[test]
    fn a_flame_graph_contains_the_sampled_names() {
        let stack = Stack {
            subject: 0,
            part: 0,
            command: "curl".into(),
            frames: vec![
                Frame::Kernel(Some("tcp_sendmsg".into())),
                Frame::File("libc.so.6".into(), Some("send<T>".into())),
            ],
            samples: 7,
            work: CpuCategory::Socket,
        };
        let profile = Profile {
            stacks: vec![stack],
            per_second: 499,
            ..Profile::default()
        };
        let mut svg = Vec::new();
        let other = profile.filtered(|stack| stack.part == 1);
        flame_graph(&[("curl", &profile), ("wget", &other)], &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.contains("tcp_sendmsg [k]") && svg.contains("send&lt;T&gt;"));
        // one without samples has its place, so that the others keep theirs
        assert_eq!(svg.matches("class=\"panel\"").count(), 2);
        assert!(svg.contains("wget") && svg.contains("translate(1220 0)"));
        assert!(flame_graph(&[("", &Profile::default())], &mut Vec::new()).is_err());
    }
}
