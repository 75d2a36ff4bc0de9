//! Places in Node: a module that Node loads first notes the stack of each connection that it opens,
//! right before the call. By the time of the call, the stack of the thread is the event loop's.
//!
//! The notes are lines of a file in memory. They have names and lines, no values. A note belongs to
//! the call of its thread that comes next with its address.

use crate::platform::node_preload;
use intact_stacks::NotedCall;
use intact_sys::secret_dir::{self, SecretDir, SecretFiles};
use std::collections::HashMap;
use std::ffi::OsString;
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileExt;

/// The files of the folder: the notes, and the script that Node loads.
const FILES: SecretFiles = SecretFiles {
    log: "places",
    text: "places.cjs",
};
/// What Node loads before the program; it is silent whatever happens.
const PRELOAD: &str = include_str!("places.cjs");
/// The most that is read at once, in bytes.
const MAX_READ: usize = 1 << 20;
/// Threads whose notes wait; beyond this number all are forgotten.
const THREADS: usize = 1024;
/// Notes of one thread that wait, the newest.
const WAITING: usize = 64;
/// What is erased at once, in bytes.
const ERASED: u64 = 1 << 18;
/// Calls of a note.
const MAX_CALLS: usize = 128;

/// Reads the notes of all Node processes of a run.
pub(crate) struct NodeNotes {
    /// Removed with its files in the end.
    _folder: SecretDir,
    file: File,
    read: u64,
    /// The end of what was erased.
    erased: u64,
    waiting: HashMap<u32, Vec<Note>>,
}

/// A connection that is about to be opened.
#[derive(Debug, PartialEq, Eq)]
struct Note {
    to: SocketAddr,
    calls: Noted,
}

/// What a note has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Noted {
    /// The stack.
    Calls(Vec<NotedCall>),
    /// Nothing: this one was left out.
    LeftOut,
}

impl NodeNotes {
    /// Makes the file and the script; and what `NODE_OPTIONS` must be where it is `options` so far.
    /// `None` where there is no place for them.
    pub(crate) fn prepare(options: OsString) -> Option<(NodeNotes, OsString)> {
        let (folder, file) = SecretDir::make(FILES).ok()?;
        let text = node_preload::filled(PRELOAD, "NOTES_FILE", &folder.path(FILES.log))?;
        let script = folder.write_text(FILES.text, &text).ok()?;
        let notes = NodeNotes {
            _folder: folder,
            file,
            read: 0,
            erased: 0,
            waiting: HashMap::new(),
        };
        Some((notes, node_preload::required(options, &script)))
    }

    /// The note on a connection that a thread opens.
    pub(super) fn take(&mut self, thread: u32, to: Option<SocketAddr>) -> Option<Noted> {
        self.read_on();
        let to = to?;
        let notes = self.waiting.get_mut(&thread)?;
        let own = notes.iter().rposition(|note| note.to == to)?;
        let own = notes.remove(own);
        // an older one was of a call that failed before it was made
        notes.retain(|note| note.to != to);
        Some(own.calls)
    }

    fn read_on(&mut self) {
        let mut bytes = vec![0; 4096];
        let mut text: Vec<u8> = Vec::new();
        while text.len() < MAX_READ
            && let Ok(count @ 1..) = self.file.read_at(&mut bytes, self.read + text.len() as u64)
        {
            text.extend_from_slice(&bytes[..count]);
        }
        let Some(end) = text.iter().rposition(|byte| *byte == b'\n') else {
            // one that has no end is no note of ours
            self.read += if text.len() >= MAX_READ {
                text.len() as u64
            } else {
                0
            };
            return;
        };
        self.read += end as u64 + 1;
        for line in text[..end].split(|byte| *byte == b'\n') {
            if let Some((thread, note)) = str::from_utf8(line).ok().and_then(note) {
                self.keep(thread, note);
            }
        }
        if self.read - self.erased >= ERASED {
            secret_dir::erase(&self.file, self.read);
            self.erased = self.read;
        }
    }

    fn keep(&mut self, thread: u32, note: Note) {
        if self.waiting.len() >= THREADS {
            self.waiting.clear();
        }
        let notes = self.waiting.entry(thread).or_default();
        if notes.len() >= WAITING {
            notes.remove(0);
        }
        notes.push(note);
    }
}

/// The thread of a line, and its note.
fn note(line: &str) -> Option<(u32, Note)> {
    let (head, calls) = line.split_once('\x1d')?;
    let mut words = head.split('\x1f');
    let mut word = || words.next();
    let thread = word()?.parse().ok()?;
    let (ip, port): (IpAddr, u16) = (word()?.parse().ok()?, word()?.parse().ok()?);
    let calls = match calls {
        "" => Noted::LeftOut,
        calls => {
            let calls = calls.split('\x1e').take(MAX_CALLS).map(call);
            Noted::Calls(calls.collect::<Option<_>>()?)
        }
    };
    let to = SocketAddr::new(ip, port);
    Some((thread, Note { to, calls }))
}

fn call(text: &str) -> Option<NotedCall> {
    let mut words = text.split('\x1f');
    Some(NotedCall {
        function: words.next()?.into(),
        path: words.next()?.into(),
        line: words.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn notes() -> NodeNotes {
        NodeNotes::prepare(OsString::new()).unwrap().0
    }

    fn line(thread: u32, function: &str) -> String {
        format!("{thread}\x1f127.0.0.1\x1f80\x1d{function}\x1f/a.js\x1f7\n")
    }

    fn function(noted: Option<Noted>) -> Option<String> {
        match noted? {
            Noted::Calls(calls) => Some(calls[0].function.to_string()),
            Noted::LeftOut => None,
        }
    }

    #[test]
    fn a_note_belongs_to_the_next_call_of_its_thread() {
        let to = "127.0.0.1:80".parse().ok();
        let mut notes = notes();
        let text = line(7, "old") + &line(7, "f") + &line(8, "g");
        notes.file.write_all_at(text.as_bytes(), 0).unwrap();
        assert_eq!(notes.take(9, to), None);
        assert_eq!(notes.take(7, "127.0.0.1:81".parse().ok()), None);
        assert_eq!(function(notes.take(7, to)).as_deref(), Some("f"));
        assert_eq!(notes.take(7, to), None);
        assert_eq!(function(notes.take(8, to)).as_deref(), Some("g"));
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_not(text in ".{0,200}") {
            let _ = note(&text);
        }
    }
}
