//! Texts at random that a regular expression matches. Must not choose what is random.

use crate::plan::Request;
use intact_units::number::count;
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Class, Hir, HirKind};

/// Repetitions beyond the least of one without an upper limit.
const UNLIMITED: u32 = 8;
/// The most parts of an expression that one text goes through.
const MOST_PARTS: u32 = 10_000;
/// The letters that a path may have: printable ones of ASCII.
const LETTERS: std::ops::RangeInclusive<u8> = b'!'..=b'~';

/// Requests of paths that the expression matches.
pub(crate) fn requests(
    pattern: &str,
    count: usize,
    below: &mut impl FnMut(u64) -> u64,
) -> Result<Vec<Request>, String> {
    let hir = parse(pattern)?;
    let request = |_| {
        let path = text(&hir, below).map_err(|error| format!("{pattern:?}: {error}"))?;
        if !path.starts_with('/') {
            return Err(format!("{pattern:?}: {path:?} is no path: begin with /"));
        }
        Ok(Request {
            method: "GET".to_owned(),
            url: path,
            tag: String::new(),
            headers: Vec::new(),
            body: Vec::new(),
            check: None,
            line: 0,
        })
    };
    (0..count).map(request).collect()
}

/// A text of a parsed expression.
fn text(hir: &Hir, below: &mut impl FnMut(u64) -> u64) -> Result<String, String> {
    let mut text = Vec::new();
    write(hir, below, &mut text, &mut MOST_PARTS.clone())?;
    String::from_utf8(text).map_err(|_| "it has letters beyond ASCII".to_owned())
}

fn parse(pattern: &str) -> Result<Hir, String> {
    let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
    parser.parse(pattern).map_err(|error| {
        let kind = match &error {
            regex_syntax::Error::Parse(error) => error.kind().to_string(),
            regex_syntax::Error::Translate(error) => error.kind().to_string(),
            _ => error.to_string(),
        };
        format!("{pattern:?} is no regular expression: {kind}")
    })
}

fn write(
    hir: &Hir,
    below: &mut impl FnMut(u64) -> u64,
    text: &mut Vec<u8>,
    left: &mut u32,
) -> Result<(), String> {
    let less = left.checked_sub(1);
    *left = less.ok_or_else(|| {
        format!(
            "a text has more than {} parts; repeat less",
            count(u64::from(MOST_PARTS))
        )
    })?;
    match hir.kind() {
        HirKind::Empty | HirKind::Look(_) => {}
        HirKind::Literal(literal) => text.extend(&literal.0),
        HirKind::Class(class) => {
            let letters = LETTERS.filter(|letter| has(class, *letter));
            let letters: Vec<u8> = letters.collect();
            if letters.is_empty() {
                return Err("a class without a printable letter of ASCII".to_owned());
            }
            text.push(letters[below(letters.len() as u64) as usize]);
        }
        HirKind::Repetition(repetition) => {
            let most = repetition
                .max
                .unwrap_or(repetition.min.saturating_add(UNLIMITED));
            let more = below(u64::from(most - repetition.min) + 1);
            for _ in 0..u64::from(repetition.min) + more {
                write(&repetition.sub, below, text, left)?;
            }
        }
        HirKind::Capture(capture) => write(&capture.sub, below, text, left)?,
        HirKind::Concat(parts) => {
            for part in parts {
                write(part, below, text, left)?;
            }
        }
        HirKind::Alternation(parts) => {
            write(
                &parts[below(parts.len() as u64) as usize],
                below,
                text,
                left,
            )?;
        }
    }
    Ok(())
}

fn has(class: &Class, letter: u8) -> bool {
    match class {
        Class::Bytes(class) => {
            let mut ranges = class.iter();
            ranges.any(|range| (range.start()..=range.end()).contains(&letter))
        }
        Class::Unicode(class) => {
            let mut ranges = class.iter();
            ranges.any(|range| (range.start()..=range.end()).contains(&char::from(letter)))
        }
    }
}
