//! A worker: measures a message and writes the result. The caller has the message from a
//! scheduler, from a coordinator or from a queue, and reports to it.
//!
//! The order matters: if a worker is killed at any moment, its message has no result and no result
//! counts twice.

use crate::message::Message;
use crate::rows::{RowError, RowFiles};
use crate::secret::{ReadSecret, SecretError};
use crate::store::{CheckResult, DeliveryResult, Store, StoreError};
use intact_ledger::{DeadLetter, Run, Tally};
use serde::{Deserialize, Serialize};

/// Measures a message.
pub trait Measure {
    /// Runs the job. Every exchange goes to `rows`.
    fn measure(&mut self, message: &Message, rows: &mut RowFiles)
    -> Result<Measured, MeasureError>;
}

/// The measurement of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The header of its ledger.
    pub run: Run,
    /// Its tally.
    pub tally: Tally,
    /// The result of a check; `None` for a bench.
    pub checked: Option<CheckResult>,
}

/// Why a message could not be measured.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{words}")]
pub struct MeasureError {
    /// The reason.
    pub words: String,
    /// What happens to the message.
    pub then: FailureAction,
}

/// What happens to a message that was not measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FailureAction {
    /// It is given up: a retry is pointless.
    GivenUp,
    /// It returns, and this delivery counts.
    Again,
    /// The message returns, and this delivery does not count: the worker was asked to end.
    Untouched,
}

/// Why a worker cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Rows could not be stored.
    #[error(transparent)]
    Rows(#[from] RowError),
    /// A secret that messages refer to is missing on this worker. Another worker may have it.
    #[error(transparent)]
    Secret(#[from] SecretError),
}

/// The outcome of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum MessageOutcome {
    /// Measured, and the result is stored.
    Measured(String),
    /// An earlier delivery had finished it.
    AlreadyThere(String),
    /// Not measured: it returns or was given up.
    Failed {
        /// The message's id, if it could be read.
        message: String,
        /// The reason.
        reason: String,
        /// What happens to the message.
        then: FailureAction,
    },
}

/// Handles messages from any source.
pub struct MessageHandler<'a> {
    /// The worker's name in results and in the list of outliers.
    pub worker: String,
    /// Receives the results.
    pub store: &'a Store,
    /// Measures the messages.
    pub measure: &'a mut dyn Measure,
    /// Reads the secrets that targets refer to.
    pub secrets: &'a dyn ReadSecret,
}

impl MessageHandler<'_> {
    /// Handles the text of one message, in its `attempt`-th delivery.
    ///
    /// # Errors
    /// If the worker cannot work, which is not the message's fault.
    pub fn handle(&mut self, body: &str, attempt: u32) -> Result<MessageOutcome, WorkerError> {
        let message = match Message::parse(body) {
            Ok(message) => message,
            Err(bad) => {
                let (plan, id) = names(body);
                let reason = bad.to_string();
                return self.fail(&plan, id, reason, FailureAction::GivenUp);
            }
        };
        self.measure(message, attempt)
    }

    /// Measures a message of a checked plan, in its `attempt`-th delivery, unless it has a result.
    ///
    /// # Errors
    /// If the worker cannot work, which is not the message's fault.
    pub fn measure(
        &mut self,
        message: Message,
        attempt: u32,
    ) -> Result<MessageOutcome, WorkerError> {
        if self.store.has(&message)? {
            return Ok(MessageOutcome::AlreadyThere(message.id));
        }
        let mut rows = RowFiles::new(&message)?;
        let (target, secrets) = message.job.target.with_secrets(self.secrets)?;
        let mut filled = message.clone();
        filled.job.target = target;
        let measured = self.measure.measure(&filled, &mut rows);
        // from here on no value holds a secret
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
            Err(error) => {
                let reason = secrets.hide(&error.words);
                return self.fail(&message.plan, message.id, reason, error.then);
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
        Ok(match self.store.put_outcome(&message, &outcome)? {
            true => MessageOutcome::Measured(message.id),
            false => MessageOutcome::AlreadyThere(message.id),
        })
    }

    /// The outcome of a message without a result; the store has the reason if it is given up.
    fn fail(
        &self,
        plan: &str,
        message: String,
        reason: String,
        then: FailureAction,
    ) -> Result<MessageOutcome, WorkerError> {
        if then == FailureAction::GivenUp {
            let letter = DeadLetter {
                message: message.clone(),
                reason: reason.clone(),
            };
            self.store.put_dead(plan, &letter)?;
        }
        Ok(MessageOutcome::Failed {
            message,
            reason,
            then,
        })
    }
}

/// Plan and id of an unusable message, as it states them.
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
