//! Field lines (RFC 9112 section 5): validated once, then parsed lazily.
//!
//! Knows no field by name; [`message`](super::message) interprets them.

use memchr::{memchr, memchr3};

use super::error::{Error, Part, Snippet};

/// The fields of a header or trailer section in order, as (name, value): names as sent, values
/// without surrounding blanks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Headers<'a> {
    /// Validated field lines, with or without the empty line.
    lines: &'a [u8],
}

impl<'a> Headers<'a> {
    #[inline]
    pub(super) fn over(validated: &'a [u8]) -> Self {
        Self { lines: validated }
    }

    /// The first field with this name, in any case.
    pub fn find(mut self, name: &str) -> Option<&'a [u8]> {
        self.find_map(|(n, value)| n.eq_ignore_ascii_case(name.as_bytes()).then_some(value))
    }
}

impl<'a> Iterator for Headers<'a> {
    type Item = (&'a [u8], &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let end = memchr(b'\n', self.lines)?;
        let line = &self.lines[..end];
        let colon = memchr(b':', line)?;
        self.lines = &self.lines[end + 1..];
        let value = line.strip_suffix(b"\r").unwrap_or(line);
        Some((&line[..colon], trim(&value[colon + 1..])))
    }
}

/// Walks unvalidated field lines up to the empty line and hands each field to `visit`.
pub(super) fn validate<'a>(
    lines: &'a [u8],
    mut visit: impl FnMut(&'a [u8], &'a [u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut rest = lines;
    while !matches!(rest, [] | [b'\n', ..] | [b'\r', b'\n', ..]) {
        let name_len = rest
            .iter()
            .position(|&b| !is_token(b))
            .unwrap_or(rest.len());
        if name_len == 0 || rest.get(name_len) != Some(&b':') {
            return Err(bad_name(rest, name_len));
        }
        let value = &rest[name_len + 1..];
        let value_len = line_len(value, Part::Field)?;
        visit(&rest[..name_len], trim(&value[..value_len]))?;
        rest = after_line(&value[value_len..]);
    }
    Ok(())
}

/// A value without the blanks around it: spaces and tabs, and no other character (OWS, RFC 9110
/// section 5.6.3).
pub(super) fn trim(mut value: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = value {
        value = rest;
    }
    value
}

/// The length of a line without its end. A bare CR or a NUL is an error, because other parsers take
/// it as the end of the line.
pub(super) fn line_len(line: &[u8], part: Part) -> Result<usize, Error> {
    match memchr3(b'\n', b'\r', 0, line) {
        Some(at) if line[at] == b'\n' || line[at..].starts_with(b"\r\n") => Ok(at),
        Some(at) => Err(Error::Syntax {
            part,
            expected: "no NUL and no CR inside a line",
            found: Snippet::new(&line[at..]),
        }),
        None => Ok(line.len()),
    }
}

/// The bytes after a line end.
pub(super) fn after_line(line_end: &[u8]) -> &[u8] {
    match line_end {
        [b'\r', b'\n', rest @ ..] | [b'\n', rest @ ..] => rest,
        _ => &[],
    }
}

#[cold]
fn bad_name(line: &[u8], name_len: usize) -> Error {
    let expected = match (name_len, line.first()) {
        (0, Some(b' ' | b'\t')) => "a field name, not a folded line",
        (0, _) => "a field name",
        (_, _) => "a colon right after the field name",
    };
    Error::Syntax {
        part: Part::Field,
        expected,
        found: Snippet::new(line),
    }
}

/// Whether a token may contain this byte: a method, a field name (RFC 9110 section 5.6.2).
pub fn is_token(byte: u8) -> bool {
    const TABLE: [bool; 256] = {
        let mut table = [false; 256];
        let mut b = 0;
        while b < 256 {
            table[b] = (b as u8).is_ascii_alphanumeric()
                || matches!(
                    b as u8,
                    b'!' | b'#'
                        | b'$'
                        | b'%'
                        | b'&'
                        | b'\''
                        | b'*'
                        | b'+'
                        | b'-'
                        | b'.'
                        | b'^'
                        | b'_'
                        | b'`'
                        | b'|'
                        | b'~'
                );
            b += 1;
        }
        table
    };
    TABLE[usize::from(byte)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(lines: &[u8]) -> String {
        validate(lines, |_, _| Ok(())).unwrap_err().to_string()
    }

    #[test]
    fn walks_fields_in_order_and_trims_their_values() {
        let lines = b"A: 1\r\nb:\t two \r\nEmpty:\nlast: x\r\n\r\n";
        let mut seen = Vec::new();
        validate(lines, |name, value| {
            seen.push((name, value));
            Ok(())
        })
        .unwrap();
        let expected: Vec<(&[u8], &[u8])> = vec![
            (b"A", b"1"),
            (b"b", b"two"),
            (b"Empty", b""),
            (b"last", b"x"),
        ];
        assert_eq!(seen, expected);
        assert_eq!(Headers::over(lines).collect::<Vec<_>>(), expected);
        assert_eq!(Headers::over(lines).find("B"), Some(b"two".as_slice()));
        assert_eq!(Headers::over(lines).find("c"), None);
    }

    #[test]
    fn refuses_lines_that_readers_parse_differently() {
        assert!(error(b"a: b\r\n c\r\n\r\n").contains("folded"));
        assert!(error(b"a : b\r\n\r\n").contains("colon"));
        assert!(error(b"novalue\r\n\r\n").contains("colon"));
        assert!(error(b": b\r\n\r\n").contains("a field name"));
        assert!(error(b"a: b\rc: d\r\n\r\n").contains("CR inside"));
        assert!(error(b"a: b\0\r\n\r\n").contains("NUL"));
    }
}
