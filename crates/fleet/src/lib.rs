//! Campaigns: a plan becomes messages, workers measure them and write the results to an object
//! store, and a report reads the store.
//!
//! A scheduler gives each worker the index of a message, or SQS feeds the messages to a function.
//! Each message is measured at least once. The key of a result has the message and the attempt, so
//! a message counts once for any number of deliveries, and a killed worker leaves no result. This
//! crate moves messages and results. It does not measure ([`Measure`] does) and draws no
//! conclusions.

#[cfg(feature = "aws")]
mod cloud;
mod collect;
mod indices;
mod manifest;
mod message;
mod page;
mod plan;
mod private;
mod rows;
#[cfg(feature = "aws")]
mod runtime_api;
mod secret;
#[cfg(feature = "aws")]
mod sqs;
mod store;
mod worker;

pub use collect::{Campaign, Group, MessageFigures};
pub use indices::{Attempt, Indices};
pub use manifest::{Manifest, Scheduler, TooManyMessages};
pub use message::{BadMessage, FORMAT, Job, Message};
pub use page::{
    Counts, PlanDocument, StatusDocument, StoreProgress, plan_json, plan_page, status_json,
    status_page,
};
pub use plan::{
    Acknowledged, CheckTargetError, Estimate, Kind, Limits, Plan, PlanError, Target, parse,
};
pub use rows::RowFiles;
#[cfg(feature = "aws")]
pub use runtime_api::{RuntimeApiError, serve_invocations};
pub use secret::{ReadSecret, Reference, SecretError, read_secret};
#[cfg(feature = "aws")]
pub use sqs::{QueueError, SqsQueue};
pub use store::{CheckResult, DeliveryResult, FailedPlace, Store, StoreError};
pub use worker::{
    FailureAction, Measure, MeasureError, Measured, MessageHandler, MessageOutcome, WorkerError,
};
