//! `intact fleet lambda`: the worker as an AWS Lambda function that SQS feeds. The queue's redrive
//! policy counts deliveries; what is to come back is answered as `batchItemFailures`.

use super::measure::Measurer;
use super::secrets::WorkerSecrets;
use super::{open_store, own};
use crate::console;
use crate::exit::Failed;
use crate::interrupt::Interrupt;
use crate::system;
use anyhow::Context;
use intact_fleet::{FailureAction, MessageHandler, MessageOutcome, Store};
use serde::{Deserialize, Serialize};
use std::process::ExitCode;

/// The worker as a Lambda function.
#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  # as a function's bootstrap\n  intact fleet lambda --store s3://bucket/rig"
)]
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
struct FailedMessages {
    batch_item_failures: Vec<Failure>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Failure {
    item_identifier: String,
}

/// Serves invocations until the platform ends the process.
pub(super) fn run(args: &Args) -> Result<ExitCode, Failed> {
    system::make_private_files();
    let name = std::env::var("AWS_LAMBDA_LOG_STREAM_NAME")
        .unwrap_or_else(|_| format!("lambda-{}", std::process::id()));
    let api = std::env::var("AWS_LAMBDA_RUNTIME_API");
    let api = api
        .context("AWS_LAMBDA_RUNTIME_API: is not set; Lambda starts this command")
        .map_err(Failed::usage)?;
    let mut work = Work {
        store: open_store(&args.store)?,
        measure: Measurer {
            interrupt: Interrupt::default(),
        },
        name,
    };
    let served = intact_fleet::serve_invocations(&api, |event| {
        let event = serde_json::from_slice(event).map_err(|error| error.to_string())?;
        serde_json::to_vec(&work.answer(event)).map_err(|error| error.to_string())
    });
    match served {
        Ok(never) => match never {},
        Err(error) => Err(own(error)),
    }
}

struct Work {
    store: Store,
    measure: Measurer,
    name: String,
}

impl Work {
    fn answer(&mut self, event: SqsEvent) -> FailedMessages {
        let mut answer = FailedMessages::default();
        let records = event.records.len();
        let mut measured = 0;
        for record in event.records {
            let attempt = record
                .attributes
                .approximate_receive_count
                .and_then(|count| count.parse().ok())
                .unwrap_or(1);
            let mut desk = MessageHandler {
                worker: self.name.clone(),
                store: &self.store,
                measure: &mut self.measure,
                secrets: &WorkerSecrets,
            };
            let comes_back = match desk.handle(&record.body, attempt) {
                Ok(MessageOutcome::Measured(_)) => {
                    measured += 1;
                    false
                }
                Ok(MessageOutcome::Failed {
                    message,
                    reason,
                    then,
                }) => {
                    let then_words = if then == FailureAction::GivenUp {
                        "given up"
                    } else {
                        "comes back"
                    };
                    console::note(&format!("{message}: {reason}; {then_words}"));
                    then != FailureAction::GivenUp
                }
                Ok(MessageOutcome::AlreadyThere(_)) => false,
                Err(error) => {
                    console::note(&format!("{}: {error}; comes back", record.message_id));
                    true
                }
            };
            if comes_back {
                answer.batch_item_failures.push(Failure {
                    item_identifier: record.message_id,
                });
            }
        }
        let back = answer.batch_item_failures.len();
        console::note(&format!(
            "{records} messages: {measured} measured, {back} in batchItemFailures"
        ));
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_fleet::{FORMAT, Plan};
    use std::path::Path;

    fn plan() -> Plan {
        let text = "name = \"l\"\nrepetitions = 1\nduration = \"20ms\"\n\
             [limits]\nrequests = 1000\nrate = 100\nworkers = 1\n\
             [[target]]\nname = \"t\"\nurl = \"http://127.0.0.1:9/\"\ni-own-this = \"127.0.0.1\"\n\
             [axes]\nkeepalive = [\"on\", \"off\"]\n";
        intact_fleet::parse(Path::new("l.toml"), text).unwrap()
    }

    /// The event that SQS hands to a function.
    fn event(bodies: &[String]) -> SqsEvent {
        let records: Vec<serde_json::Value> = bodies
            .iter()
            .enumerate()
            .map(|(nth, body)| {
                serde_json::json!({
                    "messageId": format!("m{nth}"),
                    "receiptHandle": "r",
                    "body": body,
                    "attributes": {"ApproximateReceiveCount": "2", "SenderId": "s"},
                    "messageAttributes": {},
                    "eventSource": "aws:sqs",
                })
            })
            .collect();
        serde_json::from_value(serde_json::json!({ "Records": records })).unwrap()
    }

    #[test]
    fn only_what_another_delivery_could_help_is_in_the_answer() {
        let folder = tempfile::tempdir().unwrap();
        let plan = plan();
        let text = |message: &intact_fleet::Message| serde_json::to_string(message).unwrap();
        let messages: Vec<intact_fleet::Message> = plan.messages().collect();
        let newer = intact_fleet::Message {
            format: FORMAT + 1,
            ..messages[0].clone()
        };
        let exchanged = text(&messages[0]).replace("http://127.0.0.1:9/", "http://victim.test/");
        // a file where the folder of one variant's results has to be
        let results = folder.path().join(format!("results/plan={}", plan.id));
        std::fs::create_dir_all(&results).unwrap();
        std::fs::write(results.join("variant=keepalive-off"), "in the way").unwrap();
        let mut work = Work {
            store: Store::open(folder.path().to_str().unwrap()).unwrap(),
            measure: Measurer {
                interrupt: Interrupt::default(),
            },
            name: "l".to_owned(),
        };
        let bodies = [
            text(&messages[0]),
            text(&messages[1]),
            text(&newer),
            exchanged,
            "not ours".to_owned(),
        ];
        let answer = serde_json::to_string(&work.answer(event(&bodies))).unwrap();
        assert_eq!(answer, r#"{"batchItemFailures":[{"itemIdentifier":"m1"}]}"#);
        let dead = work.store.keys(&format!("dead/plan={}", plan.id)).unwrap();
        assert_eq!(
            dead.len(),
            1,
            "the newer and the exchanged one share an id: {dead:?}"
        );
        // what was measured is there: the same event again brings nothing new
        let before = work.store.keys("results").unwrap();
        assert!(
            before.iter().any(|key| key.ends_with("002.json")),
            "{before:?}"
        );
        work.answer(event(&bodies));
        assert_eq!(work.store.keys("results").unwrap(), before);
    }
}
