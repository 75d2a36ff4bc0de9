//! Secrets of TLS connections that the program does not log, found in its memory.
//!
//! Go, Java, rustls and everything else that knows no `SSLKEYLOGFILE` keep the secrets of their
//! connections as plain bytes. They are recognised by what they open: a record of the connection
//! itself, so that a wrong one is never taken. A thread of its own does this, and not the relay: no
//! data waits for it. The program's memory is only read, and what is found leaves this process
//! as little as a key log does.

mod budget;
mod candidate;
mod exit_holds;
mod keys;
mod memory;

pub(crate) use exit_holds::ExitHolds;
pub(crate) use keys::Keys;

use budget::Budget;
use intact_sys::process;
use intact_sys::timer::thread_cpu;
use intact_wire::tls::decrypt::SecretCheck;
use std::collections::{HashMap, HashSet};
use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How much time of a processor a search may take: on a busy machine the clock goes on without it.
const LONGEST_SEARCH: Duration = Duration::from_secs(1);
/// A process in whose memory nothing was found this often in a row is left alone for a while: its
/// library may keep no keys, or its connections were too short.
const MOST_MISSES: u32 = 3;
const LEFT_ALONE: Duration = Duration::from_secs(10);
/// Connections that wait for one search; more are not looked for.
const MOST_WAITING: usize = 64;

/// Names a connection: its client's random bytes.
type Random = [u8; 32];

/// What opens the records of one connection, and whose it is.
struct Wanted {
    process: u32,
    random: Random,
    locks: Vec<SecretCheck>,
}

/// The result of a search for one connection: the lines of a key log, or none.
struct SearchResult {
    random: Random,
    lines: Vec<String>,
}

/// Searches on a thread of its own, which is started when it is needed.
pub(crate) struct SecretSearch {
    holds: ExitHolds,
    search: Option<Search>,
    /// Connections without an answer.
    sought: HashSet<Random>,
}

struct Search {
    wanted: Sender<Wanted>,
    answers: Receiver<SearchResult>,
}

impl SecretSearch {
    pub(crate) fn new(holds: ExitHolds) -> SecretSearch {
        SecretSearch {
            holds,
            search: None,
            sought: HashSet::new(),
        }
    }

    /// Asks for the secrets of a connection of that process; they come with
    /// [`SecretSearch::found`], or never.
    pub(crate) fn seek(&mut self, process: u32, locks: Vec<SecretCheck>) {
        let Some(random) = locks.first().map(SecretCheck::client_random) else {
            return;
        };
        if self.search.is_none() {
            self.search = Search::start(self.holds.clone()).ok();
        }
        if let Some(search) = &self.search {
            let wanted = Wanted {
                process,
                random,
                locks,
            };
            self.holds.add(process);
            if search.wanted.send(wanted).is_ok() {
                self.sought.insert(random);
            } else {
                // the search broke: nothing is found any more
                self.holds.release_all();
                self.sought.clear();
            }
        }
    }

    /// Whether the secrets of a connection may still be found.
    pub(crate) fn seeks(&self, random: &Random) -> bool {
        self.sought.contains(random)
    }

    /// The secrets that were found since the last time, as lines of a key log.
    pub(crate) fn found(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(search) = &self.search {
            for answer in search.answers.try_iter() {
                self.sought.remove(&answer.random);
                lines.extend(answer.lines);
            }
        }
        lines
    }

    /// Waits for answers that are due, and gives up on those that do not come until then.
    pub(crate) fn settle(&mut self, until: Instant) -> Vec<String> {
        let mut lines = self.found();
        while let Some(search) = &self.search
            && !self.sought.is_empty()
        {
            let left = until.saturating_duration_since(Instant::now());
            let Ok(answer) = search.answers.recv_timeout(left) else {
                self.sought.clear();
                break;
            };
            self.sought.remove(&answer.random);
            lines.extend(answer.lines);
        }
        lines
    }
}

impl Search {
    fn start(holds: ExitHolds) -> io::Result<Search> {
        let (wanted, asked) = mpsc::channel();
        let (answers, found) = mpsc::channel();
        thread::Builder::new()
            .name("secrets".to_owned())
            .spawn(move || search(&asked, &answers, &holds))?;
        Ok(Search {
            wanted,
            answers: found,
        })
    }
}

/// Searches of one process in which nothing was found.
#[derive(Clone, Copy)]
struct Misses {
    in_a_row: u32,
    /// When the last of them began.
    at: Instant,
}

impl Misses {
    /// Whether they count at that time.
    fn count(&self, now: Instant) -> bool {
        self.in_a_row < MOST_MISSES || now.duration_since(self.at) < LEFT_ALONE
    }
}

/// Responds until no request is left.
fn search(asked: &Receiver<Wanted>, answers: &Sender<SearchResult>, holds: &ExitHolds) {
    /// However this ends, no thread waits for it any longer.
    struct End<'a>(&'a ExitHolds);
    impl Drop for End<'_> {
        fn drop(&mut self) {
            self.0.release_all();
        }
    }
    let _end = End(holds);
    let mut budget = Budget::new(Instant::now());
    let mut misses: HashMap<u32, Misses> = HashMap::new();
    let mut waiting: Vec<Wanted> = Vec::new();
    loop {
        if waiting.is_empty() {
            let Ok(wanted) = asked.recv() else { return };
            waiting.push(wanted);
        }
        waiting.extend(asked.try_iter());
        // those of one process are looked for in one go
        let process = waiting[0].process;
        let (ours, others): (Vec<Wanted>, Vec<Wanted>) = waiting
            .into_iter()
            .partition(|wanted| wanted.process == process);
        waiting = others;
        let (began, began_cpu) = (Instant::now(), thread_cpu());
        let before = misses.remove(&process).filter(|misses| misses.count(began));
        let since = before.map(|misses| misses.at);
        let before = before.map_or(0, |misses| misses.in_a_row);
        let found = if before < MOST_MISSES && budget.allows(began) {
            look(process, ours, holds)
        } else {
            holds.release(process, ours.len());
            ours.iter().map(SearchResult::none).collect()
        };
        let is_in_vain = found.iter().all(|answer| answer.lines.is_empty());
        // numbers of processes that have gone are given to others
        if is_in_vain && process::is_alive(process) {
            let at = match before {
                MOST_MISSES => since.unwrap_or(began),
                _ => began,
            };
            let in_a_row = (before + 1).min(MOST_MISSES);
            misses.insert(process, Misses { in_a_row, at });
        }
        for answer in found {
            if answers.send(answer).is_err() {
                return;
            }
        }
        holds.rest(budget.spend(thread_cpu().saturating_sub(began_cpu), Instant::now()));
    }
}

/// Looks through the memory of a process for the secrets of some connections of it; one answer for
/// each.
fn look(process: u32, mut wanted: Vec<Wanted>, holds: &ExitHolds) -> Vec<SearchResult> {
    let until = thread_cpu() + LONGEST_SEARCH;
    let candidates = memory::candidates(process, until);
    holds.release(process, wanted.len());
    let few = wanted.len().min(MOST_WAITING);
    let mut answers: Vec<SearchResult> = wanted
        .drain(few..)
        .map(|one| SearchResult::none(&one))
        .collect();
    // where there are none, it has gone, or cannot be inspected
    let candidates = candidates.unwrap_or_default();
    answers.extend(try_all(&candidates, wanted, until));
    answers
}

impl SearchResult {
    fn none(wanted: &Wanted) -> SearchResult {
        SearchResult {
            random: wanted.random,
            lines: Vec::new(),
        }
    }
}

/// Tries all candidates on all connections; a connection has an answer only with all of its
/// secrets.
fn try_all(
    candidates: &candidate::Candidates,
    wanted: Vec<Wanted>,
    until: Duration,
) -> Vec<SearchResult> {
    let mut answers = Vec::new();
    let mut needed = Vec::new();
    let (mut owners, mut locks) = (Vec::new(), Vec::new());
    for wanted in wanted {
        owners.extend(wanted.locks.iter().map(|_| answers.len()));
        needed.push(wanted.locks.len());
        answers.push(SearchResult::none(&wanted));
        locks.extend(wanted.locks);
    }
    for candidate in candidates.iter() {
        if locks.is_empty() || thread_cpu() > until {
            break;
        }
        if let Some(place) = SecretCheck::find(&locks, candidate.bytes()) {
            let line = locks.swap_remove(place).key_log_line(candidate.bytes());
            answers[owners.swap_remove(place)].lines.push(line);
        }
    }
    for (answer, needed) in answers.iter_mut().zip(needed) {
        if answer.lines.len() < needed {
            answer.lines.clear();
        }
    }
    answers
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_without_keys_is_left_alone_and_later_searched_again() {
        let at = Instant::now();
        let counts = |in_a_row, after| Misses { in_a_row, at }.count(at + after);
        assert!(counts(1, LEFT_ALONE) && counts(MOST_MISSES, LEFT_ALONE / 2));
        assert!(!counts(MOST_MISSES, LEFT_ALONE));
    }
}
