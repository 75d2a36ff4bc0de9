//! The queue between plan and workers: one trait, delivery at least once.

pub(crate) mod sqlite;
#[cfg(feature = "aws")]
pub(crate) mod sqs;

use crate::message::Message;
use crate::store::FailedPlace;
use serde::Serialize;
use std::time::Duration;

/// Time that a queue hides a message in addition to its measuring time: for connecting and writing
/// the result.
pub(crate) const MARGIN: Duration = Duration::from_secs(60);

/// Why an operation of the queue failed. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The queue does not exist.
    #[error("queue {}: not there: {}", .0.name, .0.words)]
    Missing(FailedPlace),
    /// Permission denied.
    #[error("queue {}: not permitted: {} (credentials come from the usual AWS chain: environment, profile, role)", .0.name, .0.words)]
    Forbidden(FailedPlace),
    /// Throttled, after the usual retries.
    #[error("queue {}: throttled: {}; use fewer workers or try later. Finished results are kept", .0.name, .0.words)]
    Throttled(FailedPlace),
    /// Other processes hold its lock.
    #[error(
        "queue {name}: locked by another process for {seconds} s; end that process or try again. Finished results are kept"
    )]
    Busy {
        /// The queue.
        name: String,
        /// How long this process waited, in seconds.
        seconds: u64,
    },
    /// The name has no known scheme.
    #[error("--queue {}: {}", .0.name, .0.words)]
    Name(FailedPlace),
    /// Another failure.
    #[error("queue {}: {}", .0.name, .0.words)]
    Failed(FailedPlace),
}

/// A message that a worker holds until its time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The message's text.
    pub body: String,
    /// The queue's id of this delivery.
    pub receipt: String,
    /// The number of this delivery, from 1.
    pub attempt: u32,
}

/// A message that the queue gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadMessage {
    /// Its plan according to the queue, because the message itself may be unreadable.
    pub plan: String,
    /// Its id within the plan.
    pub message: String,
    /// Why it was given up.
    pub reason: String,
}

/// Number of messages by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Available for a worker.
    pub waiting: u64,
    /// Held by a worker.
    pub claimed: u64,
    /// Finished; `None` if the queue deletes them.
    pub done: Option<u64>,
    /// Dead letters; `None` if the queue has none.
    pub dead: Option<u64>,
}

impl Counts {
    /// Whether no message is available or held.
    pub fn is_over(&self) -> bool {
        self.waiting == 0 && self.claimed == 0
    }
}

/// A queue.
pub trait Queue {
    /// Adds messages that are not in the queue yet. Returns the number of added messages, if the
    /// queue knows it.
    fn send(&mut self, messages: &mut dyn Iterator<Item = Message>) -> Result<u64, QueueError>;
    /// Takes a message. Waits at most `wait` for one.
    fn claim(&mut self, worker: &str, wait: Duration) -> Result<Option<Claim>, QueueError>;
    /// Records that a message is finished. False: the claim had expired before.
    fn done(&mut self, claim: &Claim) -> Result<bool, QueueError>;
    /// Records a failure. The message returns, or becomes a dead letter if `is_final` or after the
    /// last delivery.
    fn failed(&mut self, claim: &Claim, reason: &str, is_final: bool) -> Result<(), QueueError>;
    /// Returns a message without counting the delivery, where the queue supports that.
    fn release(&mut self, claim: &Claim) -> Result<(), QueueError>;
    /// Makes the messages of an ended worker available immediately, and returns their number.
    /// `None`: the queue does not know which worker holds a message, so each returns when its time
    /// is over.
    fn abandon(&mut self, worker: &str) -> Result<Option<u64>, QueueError>;
    /// Counts the messages by state.
    fn counts(&mut self) -> Result<Counts, QueueError>;
    /// The dead letters with their reasons, if the queue can list them.
    fn dead(&mut self) -> Result<Vec<DeadMessage>, QueueError>;
}

/// Opens a queue by its name: `sqlite:PATH`, or `sqs://NAME` in a build with the feature `aws`.
pub fn open(name: &str) -> Result<Box<dyn Queue>, QueueError> {
    let wrong = |words: &str| QueueError::Name(FailedPlace::new(name, words));
    if let Some(path) = name.strip_prefix("sqlite:") {
        return Ok(Box::new(sqlite::SqliteQueue::open(path.as_ref())?));
    }
    if name.starts_with("sqs://") {
        #[cfg(feature = "aws")]
        return Ok(Box::new(sqs::SqsQueue::open(name)?));
        #[cfg(not(feature = "aws"))]
        return Err(wrong("this build has no SQS: build with `--features aws`"));
    }
    Err(wrong("either sqlite:PATH or sqs://NAME"))
}
