//! Campaigns: a plan becomes messages in a queue, workers measure them and write the results to an
//! object store, and a report reads the store.
//!
//! Each message is delivered at least once. The key of a result has the message and the attempt. So
//! a message counts once for any number of deliveries, and a killed worker leaves no result. This
//! crate moves messages and results. It does not measure ([`Measure`] does) and draws no
//! conclusions.

mod collect;
mod ending;
mod message;
mod page;
mod plan;
mod private;
mod queue;
mod rows;
mod secret;
mod store;
mod worker;

pub use collect::{Campaign, Group, MessageFigures};
pub use ending::Ending;
pub use message::{BadMessage, FORMAT, Job, Message};
pub use page::{
    PlanDocument, StatusDocument, StoreProgress, plan_json, plan_page, queue_json, queue_page,
};
pub use plan::{
    Acknowledged, CheckTargetError, Estimate, Kind, Limits, Plan, PlanError, Target, parse,
};
pub use private::make_folder;
pub use queue::sqlite::SqliteQueue;
#[cfg(feature = "aws")]
pub use queue::sqs::SqsQueue;
pub use queue::{Claim, Counts, DeadMessage, Queue, QueueError, open as open_queue};
pub use rows::RowFiles;
pub use secret::{ReadSecret, Reference, SecretError, read_secret};
pub use store::{CheckResult, DeliveryResult, FailedPlace, Store, StoreError};
pub use worker::{
    FailureAction, Measure, MeasureError, Measured, MessageHandler, MessageOutcome, Worker,
    WorkerError,
};
