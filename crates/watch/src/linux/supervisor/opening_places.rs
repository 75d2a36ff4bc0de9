//! Where in the code connections are opened: the stack of the thread that stands in `connect`.
//!
//! The caller waits for the reading, so later openings to a destination are read now and then only.
//! A stack that is not known leaves the connection without a place; the reasons are named once, at
//! the end. Does not choose the place: `intact_stacks` does.

use super::node_notes::{NodeNotes, Noted};
use crate::Numbers;
use intact_ledger::{Caveat, CodeStack, Owner, Row, StackFrame, StackId};
use intact_stacks::{CodeRoot, Frame, NoOwnCall, NotKnown, StackReader, ThreadStack};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Openings to a destination that are all read.
const ALL_OF: u32 = 200;
/// Of later ones, one in this number is read.
const ONE_IN: u32 = 10;
/// Destinations whose openings are counted; beyond this number all are forgotten.
const DESTINATIONS: usize = 4096;
/// Different stacks that are recorded.
const STACKS: usize = 4096;
/// Reasons and processes that are named.
const NAMED: usize = 8;

/// The places of the run.
pub(super) struct OpeningPlaces {
    reader: StackReader,
    /// Absent where Node is left alone.
    notes: Option<NodeNotes>,
    numbers: Numbers,
    known: HashMap<ThreadStack, StackId>,
    openings: HashMap<Option<SocketAddr>, u32>,
    /// Openings that were not read.
    left_out: u64,
    /// Openings without a place, by the reason.
    not_known: BTreeMap<NoPlace, u64>,
}

/// Why an opening has no place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum NoPlace {
    /// The stack is not known, of this command.
    NotKnown(NotKnown, String),
    /// No call of the stack is the place, of this command.
    NoOwnCall(NoOwnCall, String),
    /// There are too many stacks.
    Many,
}

impl OpeningPlaces {
    /// Reads the places below this folder.
    pub(super) fn new(
        code_root: &Path,
        numbers: &Numbers,
        notes: Option<NodeNotes>,
    ) -> OpeningPlaces {
        OpeningPlaces {
            reader: StackReader::new(CodeRoot::new(code_root)),
            notes,
            numbers: numbers.clone(),
            known: HashMap::new(),
            openings: HashMap::new(),
            left_out: 0,
            not_known: BTreeMap::new(),
        }
    }

    /// The stack of a thread that opens a connection; `record` takes one that is new.
    pub(super) fn read(
        &mut self,
        thread: u32,
        owner: Option<&Owner>,
        wanted: Option<SocketAddr>,
        record: impl FnOnce(Row),
    ) -> Option<StackId> {
        let owner = owner?;
        let reading = || self.look(thread, owner, wanted);
        // what breaks in here must not cost the connection
        let read = catch_unwind(AssertUnwindSafe(reading));
        let stack = match read.unwrap_or(Some(Err(NotKnown::Unclear("a stack")))) {
            Some(Ok(stack)) => stack,
            None => {
                self.left_out += 1;
                return None;
            }
            Some(Err(why)) => {
                self.count(NoPlace::NotKnown(why, owner.command.to_string()));
                return None;
            }
        };
        if let Err(why) = stack.own {
            self.count(NoPlace::NoOwnCall(why, owner.command.to_string()));
        }
        if let Some(known) = self.known.get(&stack) {
            return Some(*known);
        }
        if self.known.len() >= STACKS {
            self.count(NoPlace::Many);
            return None;
        }
        let id = self.numbers.stack();
        record(Row::Stack(CodeStack {
            id,
            frames: stack.frames.iter().map(frame).collect(),
            own: stack.own.ok().and_then(|own| u32::try_from(own).ok()),
        }));
        self.known.insert(stack, id);
        Some(id)
    }

    /// The stack, unless this opening is left out.
    fn look(
        &mut self,
        thread: u32,
        owner: &Owner,
        wanted: Option<SocketAddr>,
    ) -> Option<Result<ThreadStack, NotKnown>> {
        let notes = self.notes.as_mut();
        match notes.and_then(|notes| notes.take(thread, wanted)) {
            Some(Noted::Calls(calls)) => Some(Ok(self.reader.noted(calls))),
            Some(Noted::LeftOut) => None,
            None if self.is_wanted(wanted) => match self.reader.read(owner.pid, thread) {
                Err(NotKnown::LeftOut) => None,
                read => Some(read),
            },
            None => None,
        }
    }

    fn is_wanted(&mut self, wanted: Option<SocketAddr>) -> bool {
        if self.openings.len() >= DESTINATIONS {
            self.openings.clear();
        }
        let openings = self.openings.entry(wanted).or_default();
        *openings = openings.saturating_add(1);
        *openings <= ALL_OF || openings.is_multiple_of(ONE_IN)
    }

    fn count(&mut self, why: NoPlace) {
        *self.not_known.entry(why).or_default() += 1;
    }

    /// What is not known, and why.
    pub(super) fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        if self.left_out > 0 {
            caveats.push(Caveat::new(
                Caveat::PLACES_SAMPLED,
                format!(
                    "the line in the code was not read for {} connections: after the first {ALL_OF} to a destination, it is read for one in {ONE_IN}, and for Java while that takes at most 1 % of the time",
                    self.left_out
                ),
            ));
        }
        if !self.not_known.is_empty() {
            let reasons = self.not_known.iter().take(NAMED);
            let reasons = reasons.map(|(why, count)| format!("{count} {}", why.words()));
            let reasons: Vec<String> = reasons.collect();
            caveats.push(Caveat::new(
                Caveat::PLACES_NOT_KNOWN,
                format!(
                    "connections whose place in the code is not known: {}",
                    reasons.join("; ")
                ),
            ));
        }
        caveats
    }
}

impl NoPlace {
    fn words(&self) -> String {
        match self {
            NoPlace::NotKnown(NotKnown::LeftOut | NotKnown::Unreadable, command) => {
                format!("of `{command}`, which may not be read")
            }
            NoPlace::NotKnown(NotKnown::Runtime(name), command) => {
                format!("of `{command}`, whose stacks are not read ({name})")
            }
            NoPlace::NotKnown(NotKnown::Unclear(what), command) => {
                format!("of `{command}`, where {what} could not be read")
            }
            NoPlace::NoOwnCall(why, command) => {
                let words = match why {
                    NoOwnCall::NoLine => "opened in code whose line is not known",
                    NoOwnCall::Started => {
                        "opened by a thread or task of a library's own: its caller is not visible"
                    }
                    NoOwnCall::Outside => "opened without a call below the code root (--code-root)",
                };
                format!("of `{command}`, {words}")
            }
            NoPlace::Many => "of too many different stacks".to_owned(),
        }
    }
}

fn frame(frame: &Frame) -> StackFrame {
    StackFrame {
        function: frame.function.clone(),
        file: frame.file.clone(),
        line: frame.line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_openings_to_a_destination_are_read_now_and_then() {
        let mut places = OpeningPlaces::new(Path::new("/"), &Numbers::default(), None);
        let one = "127.0.0.1:80".parse().ok();
        let read = (0..400).filter(|_| places.is_wanted(one)).count();
        assert_eq!(read, 200 + 20);
        assert!(places.is_wanted("127.0.0.1:81".parse().ok()));
    }

    #[test]
    fn what_is_not_known_is_named_once() {
        let mut places = OpeningPlaces::new(Path::new("/"), &Numbers::default(), None);
        let why = NotKnown::Runtime("Ruby".to_owned());
        for _ in 0..3 {
            places.count(NoPlace::NotKnown(why.clone(), "irb".to_owned()));
        }
        let caveats = places.caveats();
        assert_eq!(caveats.len(), 1);
        assert!(!caveats[0].incomplete);
        let words = "3 of `irb`, whose stacks are not read (Ruby)";
        assert!(caveats[0].message.ends_with(words), "{caveats:?}");
    }
}
