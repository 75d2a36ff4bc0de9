//! What a test sends over the socket. Reads only; bounded.
//!
//! ```text
//! name test_orders
//! require avoidable == 0
//! fail-on warning
//!
//! end
//! ```
//! The empty line opens the window. Lines of text, so that a kit needs no library for them.

use crate::cmd::gates::FAIL_ON;
use intact_document::Severity;
use intact_document::requirement::{DocumentKind, Requirement};
use intact_findings::check_requirement;
use std::io::{self, BufRead, Read};

/// The longest line, in bytes.
const LONGEST: u64 = 16 * 1024;
/// The most lines that open a window.
const LINES: usize = 256;

/// Opens a window.
#[derive(Debug, Default)]
pub(super) struct Begin {
    /// The name of the test.
    pub(super) name: String,
    /// What must hold at its end.
    pub(super) requirements: Vec<Requirement>,
    /// The least severity of a finding that fails it.
    pub(super) fail_on: Option<Severity>,
}

impl Begin {
    /// Reads the lines that open a window; `None` where the stream ends before, and where they are
    /// longer than any test needs.
    ///
    /// # Errors
    /// Those of the stream.
    pub(super) fn read(from: &mut impl BufRead) -> io::Result<Option<Result<Begin, String>>> {
        let mut begin = Ok(Begin::default());
        for _ in 0..LINES {
            let Some(line) = next_line(from)? else {
                return Ok(None);
            };
            if line.is_empty() {
                return Ok(Some(begin.and_then(Begin::complete)));
            }
            begin = begin.and_then(|begin| begin.with(&line));
        }
        Ok(None)
    }

    fn with(mut self, line: &str) -> Result<Begin, String> {
        match line.split_once(' ').unwrap_or((line, "")) {
            ("name", name) => name.clone_into(&mut self.name),
            ("require", expression) => {
                let parsed: Result<Requirement, _> = expression.parse();
                let requirement = parsed.map_err(|error| error.to_string())?;
                let fits = check_requirement(&requirement, DocumentKind::Watch);
                fits.map_err(|error| error.to_string())?;
                self.requirements.push(requirement);
            }
            ("fail-on", severity) => {
                let known = FAIL_ON.iter().find(|(name, _)| *name == severity);
                let unknown = || format!("fail-on is `warning` or `error`, not `{severity}`");
                self.fail_on = Some(known.ok_or_else(unknown)?.1);
            }
            (word, _) => {
                return Err(format!(
                    "`{word}` opens no window: this kit is of another version than intact"
                ));
            }
        }
        Ok(self)
    }

    fn complete(self) -> Result<Begin, String> {
        if self.requirements.is_empty() && self.fail_on.is_none() {
            return Err(
                "the window has no requirement; name one, such as `avoidable == 0`".to_owned(),
            );
        }
        Ok(self)
    }
}

/// The next line without its end; `None` at the end of the stream, and for what is too long or no
/// text.
///
/// # Errors
/// Those of the stream.
pub(super) fn next_line(from: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut line = Vec::new();
    from.take(LONGEST).read_until(b'\n', &mut line)?;
    let is_whole = line.pop() == Some(b'\n');
    let text = String::from_utf8(line).ok();
    Ok(text.filter(|_| is_whole))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Result<Begin, String> {
        Begin::read(&mut text.as_bytes()).unwrap().unwrap()
    }

    #[test]
    fn a_window_has_a_name_and_requirements() {
        let text =
            "name a test\nrequire avoidable == 0\nrequire reuse > 90%\nfail-on error\n\nend\n";
        let mut stream = text.as_bytes();
        let begin = Begin::read(&mut stream).unwrap().unwrap().unwrap();
        assert_eq!((&*begin.name, begin.requirements.len()), ("a test", 2));
        assert!(matches!(begin.fail_on, Some(Severity::Error)));
        assert_eq!(next_line(&mut stream).unwrap().unwrap(), "end");
        assert_eq!(next_line(&mut stream).unwrap(), None);
    }

    #[test]
    fn a_wrong_line_is_refused_with_the_reason() {
        assert!(read("name a\n\n").unwrap_err().contains("no requirement"));
        let metric = read("require avoidabel == 0\n\n").unwrap_err();
        assert!(metric.contains("avoidable"), "{metric}");
        let other = read("require p99 of keepalive=on\n\n");
        assert!(other.is_err(), "{other:?}");
        assert!(read("fail-on never\n\n").unwrap_err().contains("`never`"));
        assert!(read("begin\n\n").unwrap_err().contains("another version"));
    }

    #[test]
    fn what_does_not_end_opens_nothing() {
        let line = format!("name {}\n", "x".repeat(LONGEST as usize));
        let lines = "name a\n".repeat(LINES + 1);
        for text in ["", "name a\n", "name a", &line, &lines] {
            assert!(Begin::read(&mut text.as_bytes()).unwrap().is_none());
        }
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), expression in ".{0,40}") {
            let _ = Begin::read(&mut &bytes[..]);
            let text = format!("require {expression}\n\n");
            let _ = Begin::read(&mut text.as_bytes());
        }
    }
}
