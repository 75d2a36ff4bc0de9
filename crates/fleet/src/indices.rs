//! The indices of a plan that are left: what a scheduler does for `fleet work --index`, on one
//! machine. Must not start anything: the caller does.

use crate::plan::Plan;
use crate::store::{Store, StoreError};
use std::collections::VecDeque;

/// One try of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attempt {
    /// Index of the message in the plan, from 0.
    pub index: u64,
    /// The number of this delivery, from 1.
    pub number: u32,
}

/// The messages of a plan that have neither a result nor a dead letter.
#[derive(Debug)]
pub struct Indices {
    waiting: VecDeque<Attempt>,
    deliveries: u32,
}

impl Indices {
    /// The indices of a plan that its store leaves: all of them at the beginning.
    ///
    /// # Errors
    /// If the store cannot be listed.
    pub fn left(plan: &Plan, store: &Store) -> Result<Indices, StoreError> {
        let ended = store.ended(&plan.id)?;
        let left = plan.ids().zip(0..).filter(|(id, _)| !ended.contains(id));
        Ok(Indices {
            waiting: left
                .map(|(_, index)| Attempt { index, number: 1 })
                .collect(),
            deliveries: plan.limits.deliveries,
        })
    }

    /// Number of messages that no worker has.
    pub fn len(&self) -> u64 {
        self.waiting.len() as u64
    }

    /// Whether no message waits.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Takes the next message.
    pub fn take(&mut self) -> Option<Attempt> {
        self.waiting.pop_front()
    }

    /// Returns a message whose delivery failed, after all others. False: this was its last one.
    #[must_use]
    pub fn again(&mut self, failed: Attempt) -> bool {
        let is_last = failed.number >= self.deliveries;
        if !is_last {
            self.waiting.push_back(Attempt {
                number: failed.number + 1,
                ..failed
            });
        }
        !is_last
    }

    /// Returns a message without counting its delivery: the worker could not work.
    pub fn release(&mut self, attempt: Attempt) {
        self.waiting.push_front(attempt);
    }
}
