//! A worker: takes a message, has it measured, writes the result, tells the queue. In that order, so that a worker that is killed at
//! any moment leaves a message that comes back and nothing that counts.

use crate::message::Message;
use crate::queue::{Claim, Queue, QueueError};
use crate::rows::{RowError, RowFiles};
use crate::secret::{ReadSecret, SecretError};
use crate::store::{CheckResult, DeliveryResult, Store, StoreError};
use intact_ledger::{DeadLetter, Run, Tally};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Measures what a message asks for.
pub trait Measure {
    /// Runs the recipe; every exchange goes to `rows`.
    fn measure(&mut self, message: &Message, rows: &mut RowFiles)
    -> Result<Measured, MeasureError>;
}

/// What was measured for a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The head of its ledger.
    pub run: Run,
    /// Everything counted.
    pub tally: Tally,
    /// What a check found out; absent for a bench.
    pub checked: Option<CheckResult>,
}

/// Why a message could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct MeasureError {
    /// What happened.
    pub words: String,
    /// What becomes of the message.
    pub then: FailureAction,
}

/// What becomes of a message that was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureAction {
    /// It is given up: trying again is pointless.
    GivenUp,
    /// It comes back, and this delivery counts.
    Again,
    /// It comes back as if it had never been delivered: the worker was told to end.
    Untouched,
}

/// Why a worker cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The queue.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Rows could not be kept.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A secret that messages refer to is not here: another worker may have it.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageOutcome {
    /// Measured, and the result is in the store.
    Measured(String),
    /// An earlier delivery had finished it.
    AlreadyThere(String),
    /// Not measured; it comes back or was given up.
    Failed {
        /// The message's id, where it could be read.
        message: String,
        /// Why.
        reason: String,
        /// What becomes of it.
        then: FailureAction,
    },
    /// No message came in the time.
    Idle,
}

/// A worker with a queue of its own to take from.
pub struct Worker<'a> {
    /// Where messages come from.
    pub queue: &'a mut dyn Queue,
    /// Where they are dealt with.
    pub desk: MessageHandler<'a>,
}

/// Where messages are dealt with, however they come in.
pub struct MessageHandler<'a> {
    /// The worker's name in results and outlier lists.
    pub worker: String,
    /// Where results go.
    pub store: &'a Store,
    /// Who measures.
    pub measure: &'a mut dyn Measure,
    /// Where the secrets are that targets refer to.
    pub secrets: &'a dyn ReadSecret,
}

impl Worker<'_> {
    /// Takes one message and deals with it.
    pub fn step(&mut self, wait: Duration) -> Result<MessageOutcome, WorkerError> {
        let Some(claim) = self.queue.claim(&self.desk.worker, wait)? else {
            return Ok(MessageOutcome::Idle);
        };
        let done = match self.desk.handle(&claim.body, claim.attempt) {
            Ok(done) => done,
            Err(error) => {
                // a full store or a missing secret says nothing about the message; a queue that fails as well lets it come back in time
                let _ = self.queue.release(&claim);
                return Err(error);
            }
        };
        self.answer(&claim, &done)?;
        Ok(done)
    }

    fn answer(&mut self, claim: &Claim, done: &MessageOutcome) -> Result<(), WorkerError> {
        match done {
            MessageOutcome::Measured(_) | MessageOutcome::AlreadyThere(_) => {
                // too late is no harm: the delivery after ours finds the result, or the report counts one of the two
                self.queue.done(claim)?;
            }
            MessageOutcome::Failed { reason, then, .. } => match then {
                FailureAction::Untouched => self.queue.release(claim)?,
                FailureAction::GivenUp | FailureAction::Again => {
                    self.queue
                        .failed(claim, reason, *then == FailureAction::GivenUp)?;
                }
            },
            MessageOutcome::Idle => {}
        }
        Ok(())
    }
}

impl MessageHandler<'_> {
    /// Deals with the text of one message, in its `attempt`-th delivery. Telling the queue is left to who took it: a [`Worker`], or the
    /// platform that delivers (Lambda with SQS).
    pub fn handle(&mut self, body: &str, attempt: u32) -> Result<MessageOutcome, WorkerError> {
        let message = match Message::parse(body) {
            Ok(message) => message,
            Err(bad) => {
                let (plan, id) = names(body);
                let reason = bad.to_string();
                let letter = DeadLetter {
                    message: id.clone(),
                    reason: reason.clone(),
                };
                self.store.put_dead(&plan, &letter)?;
                return Ok(MessageOutcome::Failed {
                    message: id,
                    reason,
                    then: FailureAction::GivenUp,
                });
            }
        };
        if self.store.has(&message)? {
            return Ok(MessageOutcome::AlreadyThere(message.id));
        }
        let mut rows = RowFiles::new(&message)?;
        let (target, secrets) = message.recipe.target.with_secrets(self.secrets)?;
        let mut filled = message.clone();
        filled.recipe.target = target;
        let measured = self.measure.measure(&filled, &mut rows);
        // from here on nothing holds a secret
        let measured = measured.and_then(|measured| {
            secrets.hide_in(measured).map_err(|error| MeasureError {
                words: format!("a secret is part of a word that results need: {error}"),
                then: FailureAction::GivenUp,
            })
        });
        let Measured {
            run,
            tally,
            checked,
        } = match measured {
            Ok(measured) => measured,
            Err(trouble) => {
                let reason = secrets.hide(&trouble.words);
                if trouble.then == FailureAction::GivenUp {
                    let letter = DeadLetter {
                        message: message.id.clone(),
                        reason: reason.clone(),
                    };
                    self.store.put_dead(&message.plan, &letter)?;
                }
                return Ok(MessageOutcome::Failed {
                    message: message.id,
                    reason,
                    then: trouble.then,
                });
            }
        };
        let outcome = DeliveryResult {
            format: crate::message::FORMAT,
            message: message.id.clone(),
            plan: message.plan.clone(),
            target: message.target.clone(),
            label: message.label.clone(),
            variant: message.variant,
            repetition: message.repetition,
            slice: message.slice,
            attempt,
            worker: self.worker.clone(),
            run,
            tally,
            checked,
        };
        rows.store(self.store, &message)?;
        self.store.put_outcome(&message, &outcome)?;
        Ok(MessageOutcome::Measured(message.id))
    }
}

/// Plan and id of a message that cannot be used, as far as it says.
fn names(body: &str) -> (String, String) {
    let value: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    let of = |key: &str| value[key].as_str().map(str::to_owned);
    (
        of("plan").unwrap_or_else(|| "unknown".to_owned()),
        of("id").unwrap_or_else(|| {
            let hash = body.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
            });
            format!("unreadable-{hash:016x}")
        }),
    )
}
