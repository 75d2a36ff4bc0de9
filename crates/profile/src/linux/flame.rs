//! A flame graph of a profile: the only module that knows `inferno`.

use crate::{Frame, Profile, Stack};
use inferno::flamegraph::{self, Options, TextTruncateDirection};
use std::io;

/// Writes a flame graph as an SVG that works offline. Without samples there is none: an error that says so.
pub fn flame_graph(profile: &Profile, title: &str, into: impl io::Write) -> io::Result<()> {
    if profile.stacks.is_empty() {
        return Err(io::Error::other(
            "there was no sample: the program took too little processor time",
        ));
    }
    let mut lines: Vec<String> = profile.stacks.iter().map(line).collect();
    lines.sort_unstable();
    let mut options = Options::default();
    options.title = title.to_owned();
    options.subtitle = Some(format!(
        "processor time, {} samples at {} a second; [k] is in the kernel",
        profile
            .stacks
            .iter()
            .map(|stack| stack.samples)
            .sum::<u64>(),
        profile.per_second
    ));
    options.count_name = "samples".to_owned();
    options.text_truncate_direction = TextTruncateDirection::Right;
    options.deterministic = true;
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), into)
        .map_err(io::Error::other)
}

/// `command;outermost;...;innermost COUNT`.
fn line(stack: &Stack) -> String {
    let mut line = plain(&stack.command);
    let mut before = None;
    for frame in stack.frames.iter().rev() {
        // functions without names, one under another in one file, are one block
        if before == Some(frame) && !has_name(frame) {
            continue;
        }
        before = Some(frame);
        line.push(';');
        line.push_str(&plain(&name(frame)));
    }
    line.push_str(&format!(" {}", stack.samples));
    line
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

/// Without what parts frames and lines.
fn plain(name: &str) -> String {
    name.replace(|letter: char| letter == ';' || letter.is_control(), ":")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CpuCategory;

    #[test]
    fn a_name_cannot_break_out_of_its_frame() {
        let stack = Stack {
            subject: 0,
            command: "a;b".into(),
            frames: vec![Frame::Made(Some("x\ny; 9".into()))],
            samples: 3,
            work: CpuCategory::Other,
        };
        assert_eq!(line(&stack), "a:b;x:y: 9 3");
    }

    #[test]
    fn a_flame_graph_names_what_was_met() {
        let stack = Stack {
            subject: 0,
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
        flame_graph(&profile, "curl", &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert!(svg.contains("tcp_sendmsg [k]") && svg.contains("send&lt;T&gt;"));
        assert!(flame_graph(&Profile::default(), "", &mut Vec::new()).is_err());
    }
}
