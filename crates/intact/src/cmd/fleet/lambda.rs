//! `intact fleet lambda`: the worker as an AWS Lambda function that SQS feeds. The queue's redrive policy counts deliveries;
//! what is to come back is answered as `batchItemFailures`.

use super::measure::Measurer;
use super::{open_store, own};
use crate::exit::{self, Failed};
use crate::interrupt::Interrupt;
use anyhow::Context;
use fleet::{Desk, Done, Store, Then};
use lambda_runtime::{LambdaEvent, service_fn};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;
use std::sync::{Arc, Mutex};

/// The worker as a Lambda function.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The store: a URL such as s3://BUCKET/PREFIX
    #[arg(long, env = "INTACT_STORE")]
    store: String,
}

/// What SQS hands to a function (the fields that are used).
#[derive(Deserialize)]
struct SqsEvent {
    #[serde(rename = "Records")]
    records: Vec<Record>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    message_id: String,
    body: String,
    #[serde(default)]
    attributes: Attributes,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Attributes {
    #[serde(default)]
    approximate_receive_count: Option<String>,
}

/// The answer: which messages come back.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    batch_item_failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    item_identifier: String,
}

/// Serves invocations until the platform ends the process.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let name = std::env::var("AWS_LAMBDA_LOG_STREAM_NAME")
        .unwrap_or_else(|_| format!("lambda-{}", std::process::id()));
    let work = Arc::new(Mutex::new(Work {
        store: open_store(&args.store)?,
        measure: Measurer {
            interrupt: Interrupt::default(),
        },
        name,
    }));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start a runtime")?;
    let serve = lambda_runtime::run(service_fn(move |event: LambdaEvent<SqsEvent>| {
        let work = work.clone();
        async move {
            let answered = tokio::task::spawn_blocking(move || {
                let mut work = work.lock().map_err(|_| "an earlier invocation panicked")?;
                Ok::<Answer, &str>(work.answer(event.payload))
            });
            answered
                .await
                .map_err(|error| error.to_string())?
                .map_err(str::to_owned)
        }
    }));
    runtime
        .block_on(serve)
        .map_err(|error| own(anyhow::anyhow!("Lambda runtime: {error}")))?;
    Ok(ExitCode::from(exit::FINE))
}

struct Work {
    store: Store,
    measure: Measurer,
    name: String,
}

impl Work {
    fn answer(&mut self, event: SqsEvent) -> Answer {
        let mut answer = Answer::default();
        for record in event.records {
            let attempt = record
                .attributes
                .approximate_receive_count
                .and_then(|count| count.parse().ok())
                .unwrap_or(1);
            let mut desk = Desk {
                worker: self.name.clone(),
                store: &self.store,
                measure: &mut self.measure,
            };
            let done = desk.handle(&record.body, attempt);
            let comes_back = match &done {
                Ok(Done::Failed {
                    message,
                    reason,
                    then,
                }) => {
                    crate::console::note(&format!("{message}: {reason}"));
                    *then != Then::GivenUp
                }
                Ok(_) => false,
                Err(error) => {
                    crate::console::note(&format!("{}: {error}", record.message_id));
                    true
                }
            };
            if comes_back {
                answer.batch_item_failures.push(Failure {
                    item_identifier: record.message_id,
                });
            }
        }
        answer
    }
}
