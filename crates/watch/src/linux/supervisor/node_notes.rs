//! Places in Node: a module that Node loads first notes the stack of each connection that it opens,
//! right before the call. By the time of the call, the stack of the thread is the event loop's.
//!
//! The notes are lines of a file in memory. They have names and lines, no values. A note belongs to
//! the call of its process that comes next with its address; one of several threads that cannot be
//! distinguished belongs to none.

use crate::platform::node_preload;
use intact_ledger::Owner;
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
/// Processes whose notes wait; beyond this number all are forgotten.
const PROCESSES: usize = 1024;
/// Notes of one process that wait, the newest.
const WAITING: usize = 64;
/// What is erased at once, in bytes.
const ERASED: u64 = 1 << 18;
/// Calls of a note.
const MAX_CALLS: usize = 64;

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
    /// 0: the main thread.
    thread: u64,
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
    pub(super) fn take(
        &mut self,
        owner: &Owner,
        thread: u32,
        to: Option<SocketAddr>,
    ) -> Option<Noted> {
        self.read_on();
        let notes = self.waiting.get_mut(&owner.pid)?;
        let (to, is_main) = (to?, thread == owner.pid);
        let is_it = |note: &Note| note.to == to && (note.thread == 0) == is_main;
        let own = notes.iter().rposition(is_it)?;
        let own = notes.remove(own);
        // of worker threads, the number is not that of the system
        let is_other = |note: &Note| is_it(note) && note.thread != own.thread;
        if !is_main && notes.iter().any(is_other) {
            notes.retain(|note| !is_it(note));
            return None;
        }
        // an older one was of a call that failed before it was made
        notes.retain(|note| !is_it(note) || note.thread != own.thread);
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
            if let Some((process, note)) = str::from_utf8(line).ok().and_then(note) {
                self.keep(process, note);
            }
        }
        if self.read - self.erased >= ERASED {
            secret_dir::erase(&self.file, self.read);
            self.erased = self.read;
        }
    }

    fn keep(&mut self, process: u32, note: Note) {
        if self.waiting.len() >= PROCESSES {
            self.waiting.clear();
        }
        let notes = self.waiting.entry(process).or_default();
        if notes.len() >= WAITING {
            notes.remove(0);
        }
        notes.push(note);
    }
}

/// The process of a line, and its note.
fn note(line: &str) -> Option<(u32, Note)> {
    let (head, calls) = line.split_once('\x1d')?;
    let mut words = head.split('\x1f');
    let mut word = || words.next();
    let (process, thread) = (word()?.parse().ok()?, word()?.parse().ok()?);
    let (ip, port): (IpAddr, u16) = (word()?.parse().ok()?, word()?.parse().ok()?);
    let calls = match calls {
        "" => Noted::LeftOut,
        calls => {
            let calls = calls.split('\x1e').take(MAX_CALLS).map(call);
            Noted::Calls(calls.collect::<Option<_>>()?)
        }
    };
    let to = SocketAddr::new(ip, port);
    Some((process, Note { thread, to, calls }))
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

    fn owner(pid: u32) -> Owner {
        Owner {
            pid,
            command: "node".into(),
        }
    }

    fn notes() -> NodeNotes {
        NodeNotes::prepare(OsString::new()).unwrap().0
    }

    fn line(process: u32, thread: u64, function: &str) -> String {
        format!("{process}\x1f{thread}\x1f127.0.0.1\x1f80\x1d{function}\x1f/a.js\x1f7\n")
    }

    fn function(noted: Option<Noted>) -> Option<String> {
        match noted? {
            Noted::Calls(calls) => Some(calls[0].function.to_string()),
            Noted::LeftOut => None,
        }
    }

    #[test]
    fn a_note_belongs_to_the_next_call_of_its_process() {
        let to = "127.0.0.1:80".parse().ok();
        let mut notes = notes();
        let text = line(7, 0, "old") + &line(7, 0, "f") + &line(8, 0, "g");
        notes.file.write_all_at(text.as_bytes(), 0).unwrap();
        assert_eq!(notes.take(&owner(9), 9, to), None);
        assert_eq!(notes.take(&owner(7), 7, "127.0.0.1:81".parse().ok()), None);
        assert_eq!(notes.take(&owner(7), 70, to), None);
        assert_eq!(function(notes.take(&owner(7), 7, to)).as_deref(), Some("f"));
        assert_eq!(notes.take(&owner(7), 7, to), None);
        assert_eq!(function(notes.take(&owner(8), 8, to)).as_deref(), Some("g"));
    }

    #[test]
    fn notes_of_several_threads_belong_to_none() {
        let to = "127.0.0.1:80".parse().ok();
        let mut notes = notes();
        let text = line(7, 1, "f") + &line(7, 2, "g");
        notes.file.write_all_at(text.as_bytes(), 0).unwrap();
        assert_eq!(notes.take(&owner(7), 70, to), None);
        assert_eq!(notes.take(&owner(7), 71, to), None);
        let end = notes.read;
        let text = line(7, 1, "f");
        notes.file.write_all_at(text.as_bytes(), end).unwrap();
        assert_eq!(
            function(notes.take(&owner(7), 70, to)).as_deref(),
            Some("f")
        );
    }

    proptest! {
        #[test]
        fn any_line_is_read_or_not(text in ".{0,200}") {
            let _ = note(&text);
        }
    }
}
