//! Amazon SQS, or a compatible service at `AWS_ENDPOINT_URL`. Credentials and region come from the
//! usual AWS chain.
//!
//! The queue counts deliveries (`ApproximateReceiveCount`), and its redrive policy moves messages
//! with too many of them to the dead-letter queue. A message that is given up before that is sent
//! to `NAME-dead`, if that queue exists. The store has its reason, too.

use super::{Claim, Counts, DeadMessage, MARGIN, Queue, QueueError};
use crate::message::Message;
use crate::store::FailedPlace;
use aws_sdk_sqs::Client;
use aws_sdk_sqs::config::BehaviorVersion;
use aws_sdk_sqs::config::http::HttpResponse;
use aws_sdk_sqs::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_sqs::types::{
    MessageAttributeValue, MessageSystemAttributeName, QueueAttributeName,
    SendMessageBatchRequestEntry,
};
use std::time::Duration;
use tokio::runtime::Runtime;

/// Messages per request.
const BATCH: usize = 10;
/// SQS's limit for waiting for a message.
const LONGEST_WAIT: Duration = Duration::from_secs(20);
const LONGEST_HOLD: Duration = Duration::from_secs(12 * 3600);

/// An SQS queue.
pub struct SqsQueue {
    name: String,
    client: Client,
    url: String,
    dead: Option<String>,
    runtime: Runtime,
}

impl SqsQueue {
    /// Opens `sqs://NAME`.
    pub fn open(name: &str) -> Result<SqsQueue, QueueError> {
        let queue = name
            .strip_prefix("sqs://")
            .filter(|queue| !queue.is_empty())
            .ok_or_else(|| QueueError::Name(FailedPlace::new(name, "sqs://NAME")))?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| QueueError::Failed(FailedPlace::new(name, error.to_string())))?;
        let client = runtime.block_on(async {
            Client::new(&aws_config::load_defaults(BehaviorVersion::latest()).await)
        });
        let find = |queue: &str| {
            runtime
                .block_on(client.get_queue_url().queue_name(queue).send())
                .map_err(|error| failure(name, &error))
                .map(|found| found.queue_url.unwrap_or_default())
        };
        let url = find(queue)?;
        let dead = match find(&format!("{queue}-dead")) {
            Ok(url) => Some(url),
            Err(QueueError::Missing(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(SqsQueue {
            name: name.to_owned(),
            client,
            url,
            dead,
            runtime,
        })
    }

    /// Sends a request and waits for its response.
    fn wait<T, E: ProvideErrorMetadata + std::error::Error + 'static>(
        &self,
        sending: impl Future<Output = Result<T, SdkError<E, HttpResponse>>>,
    ) -> Result<T, QueueError> {
        let response = self.runtime.block_on(sending);
        response.map_err(|error| failure(&self.name, &error))
    }

    fn error_of(&self, words: &dyn std::fmt::Display) -> QueueError {
        QueueError::Failed(FailedPlace::new(&self.name, words.to_string()))
    }

    fn hide(&self, receipt: &str, time: Duration) -> Result<(), QueueError> {
        let seconds = time.min(LONGEST_HOLD).as_secs() as i32;
        let change = self
            .client
            .change_message_visibility()
            .queue_url(&self.url)
            .receipt_handle(receipt)
            .visibility_timeout(seconds);
        self.wait(change.send()).map(drop)
    }

    fn delete(&self, receipt: &str) -> Result<(), QueueError> {
        let delete = self
            .client
            .delete_message()
            .queue_url(&self.url)
            .receipt_handle(receipt);
        self.wait(delete.send()).map(drop)
    }

    fn send_batch(&self, batch: &[Message]) -> Result<u64, QueueError> {
        let mut request = self.client.send_message_batch().queue_url(&self.url);
        for (at, message) in batch.iter().enumerate() {
            let text = serde_json::to_string(message).map_err(|error| self.error_of(&error))?;
            let entry = SendMessageBatchRequestEntry::builder()
                .id(at.to_string())
                .message_body(text)
                .build()
                .map_err(|error| self.error_of(&error))?;
            request = request.entries(entry);
        }
        let sent = self.wait(request.send())?;
        if let Some(refused) = sent.failed.first() {
            return Err(self.error_of(&format!(
                "{} messages of a batch were refused: {}",
                sent.failed.len(),
                refused.message.as_deref().unwrap_or(&refused.code)
            )));
        }
        Ok(sent.successful.len() as u64)
    }

    fn attributes(&self, url: &str) -> Result<(u64, u64), QueueError> {
        let names = [
            QueueAttributeName::ApproximateNumberOfMessages,
            QueueAttributeName::ApproximateNumberOfMessagesNotVisible,
        ];
        let ask = self
            .client
            .get_queue_attributes()
            .queue_url(url)
            .set_attribute_names(Some(names.to_vec()));
        let output = self.wait(ask.send())?;
        let of = |name: &QueueAttributeName| {
            output
                .attributes()
                .and_then(|all| all.get(name))
                .and_then(|text| text.parse().ok())
                .unwrap_or(0)
        };
        Ok((of(&names[0]), of(&names[1])))
    }
}

impl Queue for SqsQueue {
    fn send(&mut self, messages: &mut dyn Iterator<Item = Message>) -> Result<u64, QueueError> {
        let mut sent = 0;
        loop {
            let batch: Vec<Message> = messages.take(BATCH).collect();
            if batch.is_empty() {
                return Ok(sent);
            }
            sent += self.send_batch(&batch)?;
        }
    }

    fn claim(&mut self, _: &str, wait: Duration) -> Result<Option<Claim>, QueueError> {
        let receive = self
            .client
            .receive_message()
            .queue_url(&self.url)
            .max_number_of_messages(1)
            .wait_time_seconds(wait.min(LONGEST_WAIT).as_secs() as i32)
            .message_system_attribute_names(MessageSystemAttributeName::ApproximateReceiveCount);
        let received = self.wait(receive.send())?;
        let Some(message) = received.messages.unwrap_or_default().pop() else {
            return Ok(None);
        };
        let attempt = message
            .attributes
            .as_ref()
            .and_then(|all| all.get(&MessageSystemAttributeName::ApproximateReceiveCount))
            .and_then(|text| text.parse().ok())
            .unwrap_or(1);
        let claim = Claim {
            body: message.body.unwrap_or_default(),
            receipt: message.receipt_handle.unwrap_or_default(),
            attempt,
        };
        if let Ok(message) = Message::parse(&claim.body) {
            self.hide(
                &claim.receipt,
                Duration::from_millis(message.job.ms) + MARGIN,
            )?;
        }
        Ok(Some(claim))
    }

    fn done(&mut self, claim: &Claim) -> Result<bool, QueueError> {
        self.delete(&claim.receipt)?;
        Ok(true)
    }

    fn failed(&mut self, claim: &Claim, reason: &str, is_final: bool) -> Result<(), QueueError> {
        if !is_final {
            return self.hide(&claim.receipt, Duration::ZERO);
        }
        if let Some(dead) = &self.dead {
            let why = MessageAttributeValue::builder()
                .data_type("String")
                .string_value(reason)
                .build()
                .map_err(|error| self.error_of(&error))?;
            let letter = self
                .client
                .send_message()
                .queue_url(dead)
                .message_body(&claim.body)
                .message_attributes("reason", why);
            self.wait(letter.send())?;
        }
        self.delete(&claim.receipt)
    }

    fn release(&mut self, claim: &Claim) -> Result<(), QueueError> {
        // this delivery counts: SQS cannot undo it
        self.hide(&claim.receipt, Duration::ZERO)
    }

    fn abandon(&mut self, _: &str) -> Result<Option<u64>, QueueError> {
        Ok(None)
    }

    fn counts(&mut self) -> Result<Counts, QueueError> {
        let (waiting, claimed) = self.attributes(&self.url)?;
        let dead = match &self.dead {
            Some(url) => {
                let (waiting, claimed) = self.attributes(url)?;
                Some(waiting + claimed)
            }
            None => None,
        };
        Ok(Counts {
            waiting,
            claimed,
            done: None,
            dead,
        })
    }

    fn dead(&mut self) -> Result<Vec<DeadMessage>, QueueError> {
        // reading a dead-letter queue hides its messages from other readers; the store has the
        // reasons
        Ok(Vec::new())
    }
}

/// Maps an error of SQS to what the caller can do.
fn failure<E: ProvideErrorMetadata + std::error::Error + 'static>(
    name: &str,
    error: &SdkError<E, HttpResponse>,
) -> QueueError {
    // a proxy or a service that only resembles SQS refuses without a code
    let status = error.raw_response().map(|answer| answer.status().as_u16());
    let code = error.code().unwrap_or_default();
    let words = match (error.message(), error) {
        (Some(words), _) => words.to_owned(),
        (None, error) => chain(error),
    };
    let failed = FailedPlace::new(name, words.as_str());
    if code.contains("NonExistentQueue") || code.contains("QueueDoesNotExist") {
        QueueError::Missing(failed)
    } else if [
        "AccessDenied",
        "InvalidClientTokenId",
        "SignatureDoesNotMatch",
        "UnrecognizedClient",
        "ExpiredToken",
        // the clock is wrong
        "RequestExpired",
        "RequestTimeTooSkewed",
    ]
    .iter()
    .any(|known| code.contains(known))
        || words.contains("credentials")
        || matches!(status, Some(401 | 403))
    {
        QueueError::Forbidden(failed)
    } else if code.contains("Throttl")
        || code.contains("OverLimit")
        || matches!(status, Some(429 | 503))
    {
        QueueError::Throttled(failed)
    } else {
        QueueError::Failed(failed)
    }
}

/// An error with its causes: the outermost one only states that something failed.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
