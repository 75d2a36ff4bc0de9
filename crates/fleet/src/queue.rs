//! The queue between plan and workers: one trait, delivery at least once.

pub(crate) mod sqlite;
#[cfg(feature = "aws")]
pub(crate) mod sqs;

use crate::message::Message;
use serde::Serialize;
use std::time::Duration;

/// What a queue is asked to hold a message back for beside its measuring time: connecting, writing the result.
pub(crate) const MARGIN: Duration = Duration::from_secs(60);

/// Why the queue could not do it. Each message names the way out.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// It is not there.
    #[error("queue {name}: not there: {words}")]
    Missing {
        /// The queue.
        name: String,
        /// What the queue said.
        words: String,
    },
    /// We may not use it.
    #[error(
        "queue {name}: not permitted: {words} (credentials come from the usual AWS chain: environment, profile, role)"
    )]
    Forbidden {
        /// The queue.
        name: String,
        /// What the queue said.
        words: String,
    },
    /// It wants us to slow down, after the usual retries.
    #[error(
        "queue {name}: throttled: {words}: fewer workers at once, or later; nothing that was finished is lost"
    )]
    Throttled {
        /// The queue.
        name: String,
        /// What the queue said.
        words: String,
    },
    /// Other processes hold it.
    #[error(
        "queue {name}: another process has held it for {seconds} s: end that process, or try again; nothing that was finished is lost"
    )]
    Busy {
        /// The queue.
        name: String,
        /// How long it was waited for.
        seconds: u64,
    },
    /// It is named in a way that means nothing here.
    #[error("--queue {name}: {words}")]
    Name {
        /// What was given.
        name: String,
        /// What would do.
        words: &'static str,
    },
    /// It failed in another way.
    #[error("queue {name}: {words}")]
    Failed {
        /// The queue.
        name: String,
        /// What happened.
        words: String,
    },
}

/// A message in our hands until its time is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The message's text.
    pub body: String,
    /// What the queue knows this delivery by.
    pub receipt: String,
    /// Which delivery this is, from 1.
    pub attempt: u32,
}

/// A message that the queue gave up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadMessage {
    /// Its plan, as the queue knows it: the message itself may be unreadable.
    pub plan: String,
    /// Its id within the plan.
    pub message: String,
    /// Why it was given up.
    pub reason: String,
}

/// How far a queue is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Counts {
    /// Waiting for a worker.
    pub waiting: u64,
    /// With a worker.
    pub claimed: u64,
    /// Finished; absent where the queue forgets them.
    pub done: Option<u64>,
    /// Dead letters; absent where the queue has none.
    pub dead: Option<u64>,
}

impl Counts {
    /// Whether nothing is left to do.
    pub fn is_over(&self) -> bool {
        self.waiting == 0 && self.claimed == 0
    }
}

/// A queue.
pub trait Queue {
    /// Adds messages; those it knows already stay as they are. How many were new, where it can tell.
    fn send(&mut self, messages: &mut dyn Iterator<Item = Message>) -> Result<u64, QueueError>;
    /// Takes a message, waiting for one for at most `wait`.
    fn claim(&mut self, worker: &str, wait: Duration) -> Result<Option<Claim>, QueueError>;
    /// The message is dealt with. False: the claim had run out before.
    fn done(&mut self, claim: &Claim) -> Result<bool, QueueError>;
    /// It could not be dealt with: it comes back, or goes to the dead letters when that is pointless or was too often.
    fn failed(&mut self, claim: &Claim, reason: &str, is_final: bool) -> Result<(), QueueError>;
    /// It comes back as if it had never been taken, where the queue can do that.
    fn release(&mut self, claim: &Claim) -> Result<(), QueueError>;
    /// What a worker that is gone had in its hands comes back at once. How many those were; `None` where the queue does not know who
    /// has what, so that they come back when their time is over.
    fn abandon(&mut self, worker: &str) -> Result<Option<u64>, QueueError>;
    /// How far it is.
    fn counts(&mut self) -> Result<Counts, QueueError>;
    /// The dead letters with their reasons, where the queue can list them.
    fn dead(&mut self) -> Result<Vec<DeadMessage>, QueueError>;
}

/// Opens a queue by its name: `sqlite:PATH`, or `sqs://NAME` in a build with the feature `aws`.
pub fn open(name: &str) -> Result<Box<dyn Queue>, QueueError> {
    if let Some(path) = name.strip_prefix("sqlite:") {
        return Ok(Box::new(sqlite::SqliteQueue::open(path.as_ref())?));
    }
    if name.starts_with("sqs://") {
        #[cfg(feature = "aws")]
        return Ok(Box::new(sqs::SqsQueue::open(name)?));
        #[cfg(not(feature = "aws"))]
        return Err(QueueError::Name {
            name: name.to_owned(),
            words: "this build has no SQS: build with `--features aws`",
        });
    }
    Err(QueueError::Name {
        name: name.to_owned(),
        words: "either sqlite:PATH or sqs://NAME",
    })
}
