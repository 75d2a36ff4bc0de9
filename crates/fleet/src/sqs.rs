//! Amazon SQS as the source of a Lambda function, or a compatible service at
//! `AWS_ENDPOINT_URL_SQS`: fills the queue and counts its messages. The platform delivers them.
//!
//! Requests are JSON (the AWS JSON protocol 1.0), signed by `object_store` with the credentials
//! that it uses for S3. The redrive policy of the queue moves messages with too many deliveries to
//! the dead-letter queue, `NAME-dead`.

use crate::cloud::{CloudClient, CloudError, chain};
use crate::message::Message;
use crate::page::Counts;
use crate::store::FailedPlace;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method, StatusCode, Uri};
use object_store::ClientOptions;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, AwsAuthorizer, AwsCredentialProvider};
use object_store::client::HttpRequest;
use serde_json::{Value, json};
use std::time::Duration;

/// Messages per request.
const BATCH: usize = 10;
/// Tries of a request that is throttled, or that gets no response.
const TRIES: u32 = 4;
/// Time before the second try; doubled before each further one.
const RETRY: Duration = Duration::from_millis(200);

/// Why an operation of the queue failed. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum QueueError {
    /// The queue does not exist.
    #[error("queue {}: not there: {}", .0.name, .0.words)]
    Missing(FailedPlace),
    /// Permission denied.
    #[error("queue {}: not permitted: {} (credentials come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a web identity, the container or the instance)", .0.name, .0.words)]
    Forbidden(FailedPlace),
    /// Throttled, after the retries.
    #[error("queue {}: throttled: {}; try later. Messages that were sent stay in the queue", .0.name, .0.words)]
    Throttled(FailedPlace),
    /// The name or the region is missing.
    #[error("--queue {}: {}", .0.name, .0.words)]
    Name(FailedPlace),
    /// Another failure.
    #[error("queue {}: {}", .0.name, .0.words)]
    Failed(FailedPlace),
}

/// An SQS queue.
pub struct SqsQueue {
    name: String,
    client: CloudClient,
    credentials: AwsCredentialProvider,
    region: String,
    endpoint: Uri,
    url: String,
    dead: Option<String>,
}

impl SqsQueue {
    /// Opens `sqs://NAME`.
    ///
    /// # Errors
    /// If there is no such queue, or no permission to use it.
    pub fn open(name: &str) -> Result<SqsQueue, QueueError> {
        let wrong = |words: &str| QueueError::Name(FailedPlace::new(name, words));
        let queue = name
            .strip_prefix("sqs://")
            .filter(|queue| !queue.is_empty())
            .ok_or_else(|| wrong("sqs://NAME"))?;
        let builder = AmazonS3Builder::from_env();
        let region = builder
            .get_config_value(&AmazonS3ConfigKey::Region)
            .ok_or_else(|| wrong("set AWS_REGION to the region of the queue"))?;
        let endpoint = ["AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL"];
        let endpoint = endpoint.iter().find_map(|name| std::env::var(name).ok());
        let endpoint = endpoint.unwrap_or_else(|| format!("https://sqs.{region}.amazonaws.com/"));
        let failed = |error: CloudError| QueueError::Failed(FailedPlace::new(name, chain(&error)));
        // a bucket is required, and not used: S3 has the credentials of all services
        let s3 = builder.with_bucket_name(queue).build();
        let s3 = s3.map_err(|error| failed(error.into()))?;
        let mut queue = SqsQueue {
            client: CloudClient::new(&ClientOptions::new().with_allow_http(true))
                .map_err(failed)?,
            credentials: s3.credentials().clone(),
            endpoint: endpoint
                .parse()
                .map_err(|_| wrong("the endpoint of SQS is no URL"))?,
            name: name.to_owned(),
            region,
            url: String::new(),
            dead: None,
        };
        let own = name.trim_start_matches("sqs://").to_owned();
        queue.url = queue.find(&own)?;
        queue.dead = match queue.find(&format!("{own}-dead")) {
            Ok(url) => Some(url),
            Err(QueueError::Missing(_)) => None,
            Err(error) => return Err(error),
        };
        Ok(queue)
    }

    /// Sends messages. Returns their number.
    ///
    /// # Errors
    /// If the queue refuses one. Messages that were sent before stay in the queue.
    pub fn send(&self, messages: &mut dyn Iterator<Item = Message>) -> Result<u64, QueueError> {
        let mut sent = 0;
        loop {
            let batch: Vec<Message> = messages.take(BATCH).collect();
            if batch.is_empty() {
                return Ok(sent);
            }
            let body = |message| serde_json::to_string(message).expect("plain data serializes");
            let entries = batch
                .iter()
                .enumerate()
                .map(|(at, message)| json!({"Id": at.to_string(), "MessageBody": body(message)}));
            let request = json!({"QueueUrl": self.url, "Entries": entries.collect::<Value>()});
            let answer = self.call("SendMessageBatch", &request)?;
            if let Some(refused) = answer["Failed"].get(0) {
                let words = text(&refused["Message"]).or_else(|| text(&refused["Code"]));
                let words = words.unwrap_or("no reason given");
                return Err(self.failed(format!("a message was refused: {words}")));
            }
            sent += batch.len() as u64;
        }
    }

    /// Counts the messages by state. The counts of SQS are approximate, and up to a minute late.
    ///
    /// # Errors
    /// If the queue cannot be asked.
    pub fn counts(&self) -> Result<Counts, QueueError> {
        let (waiting, claimed) = self.attributes(&self.url)?;
        let dead = self.dead.as_ref().map(|url| self.attributes(url));
        let dead = dead
            .transpose()?
            .map(|(waiting, claimed)| waiting + claimed);
        Ok(Counts {
            waiting,
            claimed,
            dead,
        })
    }

    fn attributes(&self, url: &str) -> Result<(u64, u64), QueueError> {
        let names = [
            "ApproximateNumberOfMessages",
            "ApproximateNumberOfMessagesNotVisible",
        ];
        let request = json!({"QueueUrl": url, "AttributeNames": names});
        let answer = self.call("GetQueueAttributes", &request)?;
        let of = |name: &str| {
            let count = text(&answer["Attributes"][name]).and_then(|count| count.parse().ok());
            count.ok_or_else(|| self.failed(format!("the response has no {name}")))
        };
        Ok((of(names[0])?, of(names[1])?))
    }

    fn find(&self, queue: &str) -> Result<String, QueueError> {
        let answer = self.call("GetQueueUrl", &json!({"QueueName": queue}))?;
        let url = text(&answer["QueueUrl"]).map(str::to_owned);
        url.ok_or_else(|| self.failed("the response has no QueueUrl".to_owned()))
    }

    fn failed(&self, words: String) -> QueueError {
        QueueError::Failed(FailedPlace::new(&self.name, words))
    }

    /// Calls an operation, several times if SQS is throttled or gives no response.
    fn call(&self, operation: &str, request: &Value) -> Result<Value, QueueError> {
        let mut wait = RETRY;
        for _ in 1..TRIES {
            match self.call_once(operation, request) {
                Err(QueueError::Throttled(_)) => std::thread::sleep(wait),
                ended => return ended,
            }
            wait *= 2;
        }
        self.call_once(operation, request)
    }

    fn call_once(&self, operation: &str, request: &Value) -> Result<Value, QueueError> {
        let failed = |words: String| FailedPlace::new(&self.name, words);
        let credential = self.client.wait(self.credentials.get_credential());
        let credential =
            credential.map_err(|error| QueueError::Forbidden(failed(chain(&error))))?;
        let mut sent = HttpRequest::new(request.to_string().into());
        *sent.method_mut() = Method::POST;
        *sent.uri_mut() = self.endpoint.clone();
        let target = HeaderValue::from_str(&format!("AmazonSQS.{operation}"));
        let target = target.expect("names of operations are letters");
        let headers = sent.headers_mut();
        headers.insert(HeaderName::from_static("x-amz-target"), target);
        let json = HeaderValue::from_static("application/x-amz-json-1.0");
        headers.insert(CONTENT_TYPE, json);
        AwsAuthorizer::new(&credential, "sqs", &self.region)
            .try_authorize(&mut sent, None)
            .map_err(|error| self.failed(chain(&error)))?;
        let response = self.client.send(sent);
        let response = response.map_err(|error| self.failed(chain(&error)))?;
        let answer = serde_json::from_slice(response.body()).unwrap_or(Value::Null);
        if response.status().is_success() {
            return Ok(answer);
        }
        Err(refusal(&self.name, response.status(), &answer))
    }
}

fn text(value: &Value) -> Option<&str> {
    value.as_str()
}

/// Maps a refusal of SQS to what the caller can do.
fn refusal(name: &str, status: StatusCode, answer: &Value) -> QueueError {
    // a proxy or a service that only resembles SQS refuses without a code
    let code = text(&answer["__type"]).unwrap_or_default();
    let words = text(&answer["message"]).or_else(|| text(&answer["Message"]));
    let words = words.map_or_else(|| format!("{status} {code}"), str::to_owned);
    let failed = FailedPlace::new(name, words);
    let is = |known: &[&str]| known.iter().any(|known| code.contains(known));
    if is(&["NonExistentQueue", "QueueDoesNotExist"]) {
        QueueError::Missing(failed)
    } else if matches!(status.as_u16(), 401 | 403)
        || is(&["AccessDenied", "InvalidClientTokenId", "InvalidSignature"])
        || is(&["SignatureDoesNotMatch", "UnrecognizedClient", "ExpiredToken"])
        // the clock is wrong
        || is(&["RequestExpired", "RequestTimeTooSkewed"])
    {
        QueueError::Forbidden(failed)
    } else if matches!(status.as_u16(), 429 | 503) || is(&["Throttl", "OverLimit"]) {
        QueueError::Throttled(failed)
    } else {
        QueueError::Failed(failed)
    }
}
