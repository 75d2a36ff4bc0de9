//! Name lookups in separate threads: with the system's `getaddrinfo`, as most programs do, or with
//! the stub resolver.

use crate::dns::{Family, StubResolver};
use mio::Waker;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

/// Limit of concurrent lookups.
const MOST_THREADS: usize = 16;

/// A question for the resolver threads.
struct LookupRequest {
    key: u64,
    host: Arc<str>,
    port: u16,
    family: Family,
    names: Option<Arc<StubResolver>>,
}

/// The result of one lookup.
#[derive(Debug)]
pub struct LookupResult {
    /// The caller's id of the lookup.
    pub key: u64,
    /// The addresses in the resolver's order, or the text of its error.
    pub addresses: Result<Vec<SocketAddr>, String>,
    /// How long they are valid, in seconds; getaddrinfo(3) does not report it.
    pub ttl_s: Option<u32>,
    /// What was asked: `getaddrinfo`, or the address of a name server.
    pub resolver: Arc<str>,
}

/// Threads that resolve names and wake the loop. They are started on demand and end with it.
pub struct Resolver {
    waker: Arc<Waker>,
    questions: Sender<LookupRequest>,
    shared_questions: Arc<Mutex<Receiver<LookupRequest>>>,
    answers: Receiver<LookupResult>,
    answer_sender: Sender<LookupResult>,
    threads: usize,
    under_way: usize,
}

impl Resolver {
    /// A resolver that wakes its loop with `waker`. No thread is started before the first question.
    pub fn new(waker: Waker) -> Resolver {
        let (questions, receiver) = channel();
        let (answer_sender, answers) = channel();
        Resolver {
            waker: Arc::new(waker),
            questions,
            shared_questions: Arc::new(Mutex::new(receiver)),
            answers,
            answer_sender,
            threads: 0,
            under_way: 0,
        }
    }

    /// Wakes the loop from another thread; a poll has one waker only.
    pub fn waker(&self) -> Arc<Waker> {
        self.waker.clone()
    }

    /// Asks for the addresses of a name: `names`, or else the system.
    pub(crate) fn ask(
        &mut self,
        key: u64,
        (host, port): (&Arc<str>, u16),
        family: Family,
        names: Option<&Arc<StubResolver>>,
    ) {
        if self.under_way >= self.threads && self.threads < MOST_THREADS {
            self.start_thread();
        }
        self.under_way += 1;
        let question = LookupRequest {
            key,
            host: host.clone(),
            port,
            family,
            names: names.cloned(),
        };
        // the receiver is in `self`, so this cannot fail
        let _ = self.questions.send(question);
    }

    /// The next result, if there is one.
    pub fn answer(&mut self) -> Option<LookupResult> {
        let answer = self.answers.try_recv().ok()?;
        self.under_way -= 1;
        Some(answer)
    }

    fn start_thread(&mut self) {
        let questions = self.shared_questions.clone();
        let answers = self.answer_sender.clone();
        let waker = self.waker.clone();
        let started = thread::Builder::new()
            .name("resolver".to_owned())
            .stack_size(256 * 1024)
            .spawn(move || {
                loop {
                    let question = match questions.lock() {
                        Ok(questions) => questions.recv(),
                        Err(_) => return,
                    };
                    let Ok(question) = question else { return };
                    let answer = look_up(&question);
                    if answers.send(answer).is_err() || waker.wake().is_err() {
                        return;
                    }
                }
            });
        // without any thread, questions stay unanswered and the dial times out, which is reported
        if started.is_ok() {
            self.threads += 1;
        }
    }
}

fn look_up(question: &LookupRequest) -> LookupResult {
    let Some(names) = &question.names else {
        return LookupResult {
            key: question.key,
            addresses: by_system(question),
            ttl_s: None,
            resolver: "getaddrinfo".into(),
        };
    };
    let answer = names.ask(&question.host, question.family);
    let at = |ip| SocketAddr::new(ip, question.port);
    let server = answer.server.map(|server| server.to_string().into());
    LookupResult {
        key: question.key,
        addresses: answer
            .addresses
            .map(|found| found.into_iter().map(at).collect()),
        ttl_s: answer.ttl_s,
        resolver: server.unwrap_or_else(|| "resolv.conf".into()),
    }
}

/// The addresses that getaddrinfo(3) finds.
fn by_system(question: &LookupRequest) -> Result<Vec<SocketAddr>, String> {
    let found = (&*question.host, question.port).to_socket_addrs();
    let found = found.map_err(|error| error.to_string())?;
    let of_family = found.filter(|address| question.family.allows(address));
    let addresses: Vec<SocketAddr> = of_family.collect();
    match addresses.is_empty() {
        true => Err(format!("{} has no address of that family", question.host)),
        false => Ok(addresses),
    }
}
