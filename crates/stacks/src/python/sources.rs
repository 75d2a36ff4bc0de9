//! Whether a source file can be the text of the code that runs. Code may have the name of a file
//! and be another text: a template's, one that was edited since, one that was compiled elsewhere.
//!
//! The text is compared with the names and lines of the code, and not kept.

use crate::code_root::RawFrame;
use std::collections::HashMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Calls whose files were looked at; beyond this number all are forgotten.
const KNOWN: usize = 4096;
/// The largest file that is looked at, in bytes.
const LARGEST: u64 = 1 << 23;
/// Lines of decorators in front of a function, at most.
const DECORATORS: usize = 100;

/// The calls whose files were looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct PythonSources {
    known: HashMap<Call, bool>,
}

/// Path, function, its line, the line of the call.
type Call = (Arc<str>, Arc<str>, u32, u32);

impl PythonSources {
    /// Whether the file of a call is there, and its text is not that of the call.
    pub(crate) fn contradict(&mut self, frame: &RawFrame) -> bool {
        let (Some(path), Some(defined), Some(line)) = (&frame.path, frame.defined, frame.line)
        else {
            return false;
        };
        let call = (path.clone(), frame.function.clone(), defined, line);
        if let Some(known) = self.known.get(&call) {
            return *known;
        }
        let text = text(Path::new(&**path));
        let is_other = text.is_some_and(|text| !may_be(&text, &frame.function, defined, line));
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        self.known.insert(call, is_other);
        is_other
    }
}

fn text(path: &Path) -> Option<String> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(LARGEST).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

/// Whether a function of this name may be defined at one line of a text and call at another.
fn may_be(text: &str, function: &str, defined: u32, line: u32) -> bool {
    let lines: Vec<&str> = text.lines().flat_map(|line| line.split('\r')).collect();
    let at = |line: u32| lines.get((line as usize).checked_sub(1)?).copied();
    let is_code = |text: &str| !(text.trim().is_empty() || text.trim_start().starts_with('#'));
    if !at(line).is_some_and(is_code) {
        return false;
    }
    match function.rsplit('.').next().unwrap_or_default() {
        "<lambda>" => at(defined).is_some_and(|text| text.contains("lambda")),
        inner if inner.starts_with('<') => true,
        // a letter may be written in several ways, in a file of any encoding
        name if !name.is_ascii() => true,
        name => {
            let from = lines.get(defined.saturating_sub(1) as usize..);
            let mut from = from.unwrap_or_default().iter();
            let is_decorated = from.clone().next().is_some_and(is_decorator);
            match is_decorated {
                true => from.take(DECORATORS).any(|text| defines(text, name)),
                false => from.next().is_some_and(|text| defines(text, name)),
            }
        }
    }
}

fn is_decorator(text: &&str) -> bool {
    text.trim_start().starts_with('@')
}

/// `def NAME`, `async def NAME`, `class NAME`.
fn defines(text: &str, name: &str) -> bool {
    let words = text.split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    let mut words = words.filter(|word| !word.is_empty() && *word != "async");
    matches!(words.next(), Some("def" | "class")) && words.next() == Some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# a comment
@decorated(
    1)
async def first(): call()

class Second: x = call()
third = lambda: call()
";

    #[test]
    fn code_is_of_a_text_that_has_its_names_at_its_lines() {
        for (function, defined, line) in [
            ("first", 2, 4),
            ("first", 4, 4),
            ("Outer.<locals>.first", 2, 4),
            ("Second", 6, 6),
            ("<lambda>", 7, 7),
            ("<module>", 1, 7),
            ("gr\u{fc}n", 4, 4),
        ] {
            assert!(may_be(TEXT, function, defined, line), "{function}");
        }
        for (function, defined, line) in [
            ("other", 2, 4),
            ("first", 3, 4),
            ("first", 2, 5),
            ("<lambda>", 6, 6),
            ("<module>", 1, 1),
            ("<module>", 1, 8),
            ("first", 90, 4),
            ("first", 0, 0),
        ] {
            assert!(!may_be(TEXT, function, defined, line), "{function} {line}");
        }
    }

    #[test]
    fn a_file_that_is_not_there_contradicts_nothing() {
        let frame = |path: &str| RawFrame {
            function: "f".into(),
            path: Some(path.into()),
            line: Some(1),
            kind: crate::CodeKind::Other,
            defined: Some(1),
        };
        let mut sources = PythonSources::default();
        assert!(!sources.contradict(&frame("/nowhere/f.py")));
        assert!(sources.contradict(&frame(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"))));
    }
}
