//! Logs of containers: a runtime puts each line that a program writes into an envelope, and splits
//! long lines. Takes the lines out, so that they can have any format. One row per envelope.
//!
//! Must not drop a line that has no envelope: the reader of the format counts it.

use crate::input::LONGEST_LINE;
use crate::timestamp;
use memchr::memchr;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Cursor, Read};

/// Bytes at the beginning that show the envelope.
const LOOKED_AT: u64 = 64 << 10;
/// Limit of streams of programs with an unfinished line.
const STREAMS: usize = 64;

/// Content of an envelope.
struct Content<'a> {
    /// The program's stream. Parts of a line come in the order of their stream.
    stream: &'a [u8],
    text: Cow<'a, [u8]>,
    /// The line ends here.
    is_last: bool,
}

/// Lines at the beginning that show the envelope.
const LINES: usize = 32;

/// Opens the envelope of a line; `None` if it has none.
type Open = for<'a> fn(&'a [u8]) -> Option<Content<'a>>;

const ENVELOPES: [Open; 4] = [cri, docker, compose, kubectl];

/// `TIME stdout F TEXT`, as the kubelet defines it for container runtimes (CRI). `P` marks a part
/// of a line.
fn cri(line: &[u8]) -> Option<Content<'_>> {
    let mut words = line.trim_ascii_start().splitn(4, |byte| *byte == b' ');
    let time = std::str::from_utf8(words.next()?).ok()?;
    let stream = words.next()?;
    let tag = words.next()?;
    let is_stream = matches!(stream, b"stdout" | b"stderr");
    let is_time = time.contains('T') && timestamp::read(time).is_some();
    (is_stream && is_time && matches!(tag.first(), Some(b'F' | b'P'))).then(|| Content {
        stream,
        text: Cow::Borrowed(words.next().unwrap_or_default()),
        is_last: tag[0] == b'F',
    })
}

/// An object per line, as Docker's `json-file` driver writes it.
fn docker(line: &[u8]) -> Option<Content<'_>> {
    #[derive(Deserialize)]
    struct Object<'a> {
        #[serde(borrow)]
        log: Cow<'a, str>,
        stream: &'a str,
        #[serde(rename = "time")]
        _time: &'a str,
    }
    let line = line.trim_ascii_start();
    if !line.starts_with(b"{\"log\":\"") {
        return None;
    }
    let object: Object<'_> = serde_json::from_slice(line).ok()?;
    let whole = object.log.strip_suffix('\n').map(str::len);
    let len = whole.unwrap_or(object.log.len());
    let text = match object.log {
        Cow::Borrowed(text) => Cow::Borrowed(&text.as_bytes()[..len]),
        Cow::Owned(mut text) => {
            text.truncate(len);
            Cow::Owned(text.into_bytes())
        }
    };
    Some(Content {
        stream: object.stream.as_bytes(),
        text,
        is_last: whole.is_some(),
    })
}

/// `NAME-1  | TEXT`, as `docker compose logs` prints it.
fn compose(line: &[u8]) -> Option<Content<'_>> {
    let bar = memchr(b'|', &line[..line.len().min(128)])?;
    let name = line[..bar].trim_ascii_end();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.".contains(byte);
    let rest = line.get(bar + 1..)?;
    // a blank precedes the bar
    (name.len() < bar && !name.is_empty() && name.iter().all(is_name)).then(|| Content {
        stream: name,
        text: Cow::Borrowed(rest.strip_prefix(b" ").unwrap_or(rest)),
        is_last: true,
    })
}

/// `[pod/NAME/CONTAINER] TEXT`, as `kubectl logs --prefix` prints it.
fn kubectl(line: &[u8]) -> Option<Content<'_>> {
    let end = line.starts_with(b"[pod/").then(|| memchr(b']', line))??;
    let rest = &line[end + 1..];
    Some(Content {
        stream: &line[1..end],
        text: Cow::Borrowed(rest.strip_prefix(b" ").unwrap_or(rest)),
        is_last: true,
    })
}

/// A line without an envelope.
fn bare(line: &[u8]) -> Option<Content<'_>> {
    Some(Content {
        stream: b"",
        text: Cow::Borrowed(line),
        is_last: true,
    })
}

/// Whether a text has control sequences of a terminal (ECMA-48), such as colours.
fn is_coloured(start: &[u8]) -> bool {
    let mut marks = memchr::memmem::find_iter(start, b"\x1b[");
    memchr(0, start).is_none() && marks.any(|at| control_len(&start[at..]).is_some())
}

/// Length of the control sequence that a text begins with.
fn control_len(text: &[u8]) -> Option<usize> {
    let parameters = text.strip_prefix(b"\x1b[")?;
    let is_parameter = |byte: &&u8| matches!(byte, 0x20..=0x3f);
    let len = parameters.iter().take_while(is_parameter).count();
    matches!(parameters.get(len), Some(0x40..=0x7e)).then_some(len + 3)
}

/// Removes control sequences, in one pass: a line may have nothing else.
fn remove_colours(line: &mut Vec<u8>) {
    let (mut from, mut kept) = (0, 0);
    while let Some(&byte) = line.get(from) {
        let control = (byte == 0x1b).then(|| control_len(&line[from..]));
        match control.flatten() {
            Some(len) => from += len,
            None => {
                line[kept] = byte;
                (from, kept) = (from + 1, kept + 1);
            }
        }
    }
    line.truncate(kept);
}

/// The lines in the envelopes of an input, without colours, if half of its first lines have
/// envelopes or one has colours; otherwise the input.
pub(crate) fn opened(content: Box<dyn Read>) -> io::Result<Box<dyn Read>> {
    opened_with(content, &ENVELOPES)
}

/// Opens these envelopes, each of them once.
fn opened_with(mut content: Box<dyn Read>, envelopes: &[Open]) -> io::Result<Box<dyn Read>> {
    let mut start = Vec::new();
    let error = content
        .by_ref()
        .take(LOOKED_AT)
        .read_to_end(&mut start)
        .err();
    let is_coloured = is_coloured(&start);
    let lines = start.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|line| !line.is_empty()).take(LINES);
    let mut lines: Vec<Vec<u8>> = lines.map(<[u8]>::to_vec).collect();
    if is_coloured {
        lines.iter_mut().for_each(remove_colours);
    }
    let found = envelopes.iter().position(|open| {
        let opened = lines.iter().filter(|line| open(line).is_some()).count();
        opened > 0 && opened * 2 >= lines.len()
    });
    let whole = Cursor::new(start).chain(Fails(error)).chain(content);
    if found.is_none() && !is_coloured {
        return Ok(Box::new(whole));
    }
    let lines = Box::new(Lines {
        inner: BufReader::with_capacity(LOOKED_AT as usize, whole),
        open: found.map_or(bare, |found| envelopes[found]),
        is_coloured,
        line: Vec::new(),
        parts: HashMap::new(),
        ready: Cursor::default(),
        error: None,
    });
    match found {
        Some(found) => {
            let others = [&envelopes[..found], &envelopes[found + 1..]].concat();
            opened_with(lines, &others)
        }
        None => Ok(lines),
    }
}

/// Returns an error once, if there is one: what was read before the damage comes first.
pub(crate) struct Fails(pub(crate) Option<io::Error>);

impl Read for Fails {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        self.0.take().map_or(Ok(0), Err)
    }
}

/// The lines in the envelopes of an input.
struct Lines<R> {
    inner: BufReader<R>,
    open: Open,
    is_coloured: bool,
    line: Vec<u8>,
    /// Parts of unfinished lines by their stream.
    parts: HashMap<Vec<u8>, Vec<u8>>,
    /// Lines that were taken out and not read.
    ready: Cursor<Vec<u8>>,
    /// The error that ended the input, after its lines.
    error: Option<io::Error>,
}

impl<R: Read> Lines<R> {
    /// Takes the next line out. Returns whether there was one.
    fn fill(&mut self) -> io::Result<bool> {
        self.ready.set_position(0);
        let ready = self.ready.get_mut();
        ready.clear();
        if let Some(error) = self.error.take() {
            return Err(error);
        }
        self.line.clear();
        // a longer line is longer than the limit of any line
        let limit = 2 * LONGEST_LINE as u64;
        let mut limited = self.inner.by_ref().take(limit);
        self.error = limited.read_until(b'\n', &mut self.line).err();
        if self.line.is_empty() {
            // a part without its end is a line that was cut
            let last = self.parts.drain().map(|(_, part)| part);
            *ready = last.collect::<Vec<_>>().join(&b'\n');
            return match self.error.take() {
                Some(error) if ready.is_empty() => Err(error),
                error => {
                    self.error = error;
                    Ok(!ready.is_empty())
                }
            };
        }
        if self.is_coloured {
            remove_colours(&mut self.line);
        }
        let is_whole = self.line.ends_with(b"\n");
        let line = self.line.trim_ascii_end();
        let Some(content) = (self.open)(line).filter(|_| is_whole) else {
            ready.extend(&self.line);
            return Ok(true);
        };
        if !content.is_last && self.parts.len() < STREAMS {
            let part = self.parts.entry(content.stream.to_vec()).or_default();
            // one byte above the limit shows that it is too long
            let room = (LONGEST_LINE + 1).saturating_sub(part.len());
            part.extend(&content.text[..content.text.len().min(room)]);
            return Ok(true);
        }
        if let Some(part) = self.parts.get_mut(content.stream) {
            ready.append(part);
        }
        ready.extend(&*content.text);
        ready.push(b'\n');
        Ok(true)
    }
}

impl<R: Read> Read for Lines<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.ready.read(into)?;
            if read > 0 || into.is_empty() || !self.fill()? {
                return Ok(read);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn lines(text: &str) -> String {
        let mut read = String::new();
        let content = Box::new(Cursor::new(text.to_owned().into_bytes()));
        opened(content).unwrap().read_to_string(&mut read).unwrap();
        read
    }

    #[test]
    fn each_envelope_is_opened() {
        let cri = "2026-11-21T08:00:00.123456789Z stdout F a \"b\" c\n2026-11-21T08:00:00.2+01:00 stderr F \n";
        assert_eq!(lines(cri), "a \"b\" c\n\n");
        let docker = r#"{"log":"a \"b\" c\n","stream":"stdout","time":"2026-11-21T08:00:00.1Z"}
{"log":"d\n","stream":"stderr","attrs":{"tag":"x"},"time":"2026-11-21T08:00:00.1Z"}
"#;
        assert_eq!(lines(docker), "a \"b\" c\nd\n");
        assert_eq!(lines("web-1  | a\ndb-1   | b | c\n"), "a\nb | c\n");
        assert_eq!(lines("[pod/web/nginx] a b\n"), "a b\n");
        // one in another, after a line of the program that starts the containers
        let coloured = "Attaching to web-1, db-1\n\x1b[36mweb-1  |\x1b[0m [pod/a/b] \x1b[1;32ma\x1b[m\n\x1b[33mdb-1   |\x1b[0m [pod/a/b] b\n";
        assert_eq!(lines(coloured), "Attaching to web-1, db-1\na\nb\n");
        assert_eq!(lines("\x1b[2Ka\x1b[0m \x1b\n"), "a \x1b\n");
    }

    #[test]
    fn parts_of_a_line_are_put_together_by_their_stream() {
        let cri = "2026-11-21T08:00:00.1Z stdout P a\n2026-11-21T08:00:00.1Z stderr F x\n2026-11-21T08:00:00.1Z stdout P b\n2026-11-21T08:00:00.1Z stdout F c\n2026-11-21T08:00:00.1Z stdout P cut\n";
        assert_eq!(lines(cri), "x\nabc\ncut");
        let docker = "{\"log\":\"a\",\"stream\":\"stdout\",\"time\":\"1\"}\n{\"log\":\"b\\n\",\"stream\":\"stdout\",\"time\":\"1\"}\n";
        assert_eq!(lines(docker), "ab\n");
    }

    #[test]
    fn lines_without_an_envelope_are_kept() {
        let whole = "2026-11-21T08:00:00.1Z stdout F a\n";
        assert_eq!(lines(&format!("{whole}no envelope\n")), "a\nno envelope\n");
        // cut in the last envelope
        assert_eq!(
            lines(&format!("{whole}{}", &whole[..30])),
            format!("a\n{}", &whole[..30])
        );
        for other in ["{\"log\":{\"version\":\"1.2\"}}\n", "a b c\n", "", "|\n"] {
            assert_eq!(lines(other), other);
        }
    }

    proptest! {
        #[test]
        fn no_bytes_are_trouble(envelope in 0..5_usize, bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let start = ["", "2026-11-21T08:00:00.1Z stdout P ", "{\"log\":\"", "a | ", "[pod/a/b] "][envelope];
            let content = [start.as_bytes(), &bytes].concat();
            opened(Box::new(Cursor::new(content))).unwrap().read_to_end(&mut Vec::new()).unwrap();
        }
    }
}
