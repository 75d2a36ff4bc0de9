//! The store of results: a folder, or S3, GCS, Azure in a build with the feature `aws`. Every object is written whole or not at all;
//! a result counts from the moment that its own object is there, and that is written last.
//!
//! ```text
//! plans/PLAN.json                                                  what was to be done
//! results/plan=PLAN/variant=V/label=L/MESSAGE/ATTEMPT.json         run and tally of one delivery
//! exchanges/plan=PLAN/variant=V/label=L/MESSAGE.parquet            its requests, one row each
//! csv/plan=PLAN/variant=V/label=L/MESSAGE.csv                      the same; apart, since SQL engines read every file of a folder
//! dead/plan=PLAN/MESSAGE.json                                      why it was given up
//! ```

use crate::message::{FORMAT, Message};
use crate::plan::Plan;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use intact_ledger::server_profile::ServerProfile;
use intact_ledger::{DeadLetter, Exchange, Run, Tally};
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Objects that are fetched at once.
const AT_ONCE: usize = 16;

/// Why the store could not do it. Each message names the way out.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is named in a way that means nothing here.
    #[error("--store {name}: {words}")]
    Name {
        /// What was given.
        name: String,
        /// What would do.
        words: String,
    },
    /// We may not use it.
    #[error("store {name}: not permitted: {words}")]
    Forbidden {
        /// The store.
        name: String,
        /// What it said.
        words: String,
    },
    /// There is no such bucket.
    #[error("store {name}: not there: {words}: make it, or name another")]
    Absent {
        /// The store.
        name: String,
        /// What it said.
        words: String,
    },
    /// It is asked too much.
    #[error(
        "store {name}: throttled: {words}: fewer workers at once; nothing that was finished is lost"
    )]
    Throttled {
        /// The store.
        name: String,
        /// What it said.
        words: String,
    },
    /// There is no room left.
    #[error("store {name}: full: {words}: make room; nothing that was finished is lost")]
    Full {
        /// The store.
        name: String,
        /// What happened.
        words: String,
    },
    /// The object is not there.
    #[error("store {name}: {words}: is this the store of a campaign?")]
    Missing {
        /// The store.
        name: String,
        /// What it said.
        words: String,
    },
    /// An object is not what it should be.
    #[error("store {name}: {key}: {words}")]
    Unreadable {
        /// The store.
        name: String,
        /// The object.
        key: String,
        /// What is wrong.
        words: String,
    },
    /// It failed in another way: no network.
    #[error("store {name}: {words}")]
    Failed {
        /// The store.
        name: String,
        /// What happened.
        words: String,
    },
}

/// What one delivery of one message brought.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeliveryResult {
    /// [`FORMAT`].
    pub format: u32,
    /// The message.
    pub message: String,
    /// The plan.
    pub plan: String,
    /// The target's name.
    pub target: String,
    /// The label.
    pub label: String,
    /// Index into the plan's variants; a check has none.
    pub variant: Option<u32>,
    /// The repetition, from 0.
    pub repetition: u32,
    /// The slice, from 0.
    pub slice: u32,
    /// Which delivery this was, from 1.
    pub attempt: u32,
    /// Who worked on it.
    pub worker: String,
    /// The head of its ledger.
    pub run: Run,
    /// What was counted. Of a bench: one variant, round 0 the preflight, round 1 the measurement.
    pub tally: Tally,
    /// What a check found out; absent for a bench.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<CheckResult>,
}

/// What a check found out.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// The card of the server.
    pub card: ServerProfile,
    /// The exchanges that tell what a new connection costs (tagged [`intact_ledger::card::WATERFALL`]): a handful.
    pub waterfall: Vec<Exchange>,
}

/// A store of results.
pub struct Store {
    name: String,
    objects: Arc<dyn ObjectStore>,
    prefix: Key,
    runtime: tokio::runtime::Runtime,
}

impl Store {
    /// Opens a store by its name: a folder, which is made, or a URL such as `s3://BUCKET/PREFIX` in a build with the feature `aws`.
    pub fn open(name: &str) -> Result<Store, StoreError> {
        let failed = |words: String| StoreError::Failed {
            name: name.to_owned(),
            words,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let (objects, prefix): (Arc<dyn ObjectStore>, Key) = if name.contains("://") {
            remote(name)?
        } else {
            let folder = Path::new(name);
            std::fs::create_dir_all(folder)
                .map_err(|error| failed(format!("cannot make the folder: {error}")))?;
            let local = object_store::local::LocalFileSystem::new_with_prefix(folder)
                .map_err(|error| failed(error.to_string()))?;
            (Arc::new(local), Key::default())
        };
        Ok(Store {
            name: name.to_owned(),
            objects,
            prefix,
            runtime,
        })
    }

    /// Writes one object, whole or not at all.
    pub fn put(&self, key: &str, bytes: impl Into<Bytes>) -> Result<(), StoreError> {
        let bytes: Bytes = bytes.into();
        self.runtime
            .block_on(self.objects.put(&self.key(key), bytes.into()))
            .map_err(|error| self.told(&error))?;
        Ok(())
    }

    /// Reads one object.
    pub fn get(&self, key: &str) -> Result<Bytes, StoreError> {
        let key = self.key(key);
        self.runtime
            .block_on(async { self.objects.get(&key).await?.bytes().await })
            .map_err(|error| self.told(&error))
    }

    /// The keys under a folder, in the store's order.
    pub fn keys(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let folder = self.key(folder);
        let skip = self.prefix.as_ref().len();
        let list = async {
            self.objects
                .list(Some(&folder))
                .map_ok(|object| {
                    object.location.as_ref()[skip..]
                        .trim_start_matches('/')
                        .to_owned()
                })
                .try_collect()
                .await
        };
        self.runtime
            .block_on(list)
            .map_err(|error| self.told(&error))
    }

    /// Reads many objects, a few at once, and hands each on as it comes, in the order of `keys`.
    pub fn each(&self, keys: &[String], mut take: impl FnMut(&str, Result<Bytes, StoreError>)) {
        let fetches = futures_util::stream::iter(keys).map(|key| async move {
            let path = self.key(key);
            let bytes = match self.objects.get(&path).await {
                Ok(found) => found.bytes().await,
                Err(error) => Err(error),
            };
            (key, bytes)
        });
        self.runtime.block_on(async {
            let mut fetched = fetches.buffered(AT_ONCE);
            while let Some((key, bytes)) = fetched.next().await {
                take(key, bytes.map_err(|error| self.told(&error)));
            }
        });
    }

    /// Writes down what is to be done.
    pub fn put_plan(&self, plan: &Plan) -> Result<(), StoreError> {
        // header fields and roots stay in the messages; what is kept for good tells no secret
        let mut told = plan.clone();
        for target in &mut told.targets {
            target.headers.clear();
            target.roots = None;
            target.url = intact_ledger::redact::url(&target.url);
        }
        self.put(&format!("plans/{}.json", plan.id), json(&told))
    }

    /// The plans that were begun here.
    pub fn plans(&self) -> Result<Vec<Plan>, StoreError> {
        let keys = self.keys("plans")?;
        let mut plans = Vec::new();
        let mut trouble = None;
        self.each(&keys, |key, bytes| {
            let plan = bytes.and_then(|bytes| self.parse(key, &bytes));
            match plan {
                Ok(plan) => plans.push(plan),
                Err(error) => trouble = Some(error),
            }
        });
        trouble.map_or(Ok(plans), Err)
    }

    /// Whether some delivery of a message was finished.
    pub fn has(&self, message: &Message) -> Result<bool, StoreError> {
        Ok(!self.keys(&results_of(message))?.is_empty())
    }

    /// How many messages of a plan have a result.
    pub fn finished(&self, plan: &str) -> Result<u64, StoreError> {
        let keys = self.keys(&format!("results/plan={plan}"))?;
        let messages: BTreeSet<&str> = keys
            .iter()
            .filter_map(|key| key.rsplit_once('/'))
            .map(|(message, _)| message)
            .collect();
        Ok(messages.len() as u64)
    }

    /// Writes the requests of a message; a later delivery replaces them.
    pub fn put_rows(
        &self,
        message: &Message,
        kind: &str,
        bytes: Vec<u8>,
    ) -> Result<(), StoreError> {
        let folder = if kind == "csv" { "csv" } else { "exchanges" };
        let key = format!("{}/{}.{kind}", partition(folder, message), message.id);
        self.put(&key, bytes)
    }

    /// Writes the result: from now on it counts.
    pub fn put_outcome(
        &self,
        message: &Message,
        outcome: &DeliveryResult,
    ) -> Result<(), StoreError> {
        let key = format!("{}/{:03}.json", results_of(message), outcome.attempt);
        self.put(&key, json(outcome))
    }

    /// Writes down that a message was given up.
    pub fn put_dead(&self, plan: &str, letter: &DeadLetter) -> Result<(), StoreError> {
        // what could not be read has no id of its own
        let name: String = letter
            .message
            .chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() || "-_.".contains(c) {
                    c
                } else {
                    '_'
                }
            })
            .take(128)
            .collect();
        self.put(&format!("dead/plan={plan}/{name}.json"), json(letter))
    }

    /// Reads an object of ours.
    pub(crate) fn parse<T: for<'a> Deserialize<'a>>(
        &self,
        key: &str,
        bytes: &[u8],
    ) -> Result<T, StoreError> {
        #[derive(Deserialize)]
        struct Format {
            #[serde(default)]
            format: Option<u32>,
        }
        let unreadable = |words: String| StoreError::Unreadable {
            name: self.name.clone(),
            key: key.to_owned(),
            words,
        };
        let head: Format =
            serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))?;
        if let Some(newer) = head.format.filter(|&format| format > FORMAT) {
            return Err(unreadable(format!(
                "format {newer} is newer than this version, which knows {FORMAT}: update intact"
            )));
        }
        serde_json::from_slice(bytes).map_err(|error| unreadable(error.to_string()))
    }

    fn key(&self, key: &str) -> Key {
        let prefix = self.prefix.as_ref();
        if prefix.is_empty() {
            Key::from(key)
        } else {
            Key::from(format!("{prefix}/{key}"))
        }
    }

    fn told(&self, error: &object_store::Error) -> StoreError {
        use object_store::Error;
        let name = self.name.clone();
        let words = error.to_string();
        if is_full(error) {
            return StoreError::Full { name, words };
        }
        if let Some((code, words)) = refusal(&words) {
            return match code.as_str() {
                "NoSuchBucket" => StoreError::Absent { name, words },
                "NoSuchKey" => StoreError::Missing { name, words },
                "SlowDown" | "ServiceUnavailable" | "TooManyRequests" | "RequestLimitExceeded" => {
                    StoreError::Throttled { name, words }
                }
                code if FORBIDDEN.contains(&code) => StoreError::Forbidden { name, words },
                _ => StoreError::Failed { name, words },
            };
        }
        match error {
            Error::NotFound { .. } => StoreError::Missing { name, words },
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                StoreError::Forbidden { name, words }
            }
            _ => StoreError::Failed { name, words },
        }
    }
}

/// What S3 calls the ways in which credentials do not do. A clock that is off is one of them: it is part of the signature.
const FORBIDDEN: [&str; 9] = [
    "AccessDenied",
    "AllAccessDisabled",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
    "UnauthorizedAccess",
];

/// Code and words of a refusal in S3's form, which `object_store` passes on as text inside of its own.
fn refusal(text: &str) -> Option<(String, String)> {
    let of = |tag: &str| {
        let after = text.split_once(&format!("<{tag}>"))?.1;
        Some(after.split_once(&format!("</{tag}>"))?.0.to_owned())
    };
    let code = of("Code")?;
    let words = of("Message").map_or_else(|| code.clone(), |words| format!("{code}: {words}"));
    Some((code, words))
}

/// Whether a folder's file system has no room left.
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    use std::io::ErrorKind;
    let mut cause = Some(error);
    while let Some(error) = cause {
        let kind = error
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind);
        if matches!(
            kind,
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        ) {
            return true;
        }
        cause = error.source();
    }
    false
}

/// The folder of one variant and label: what SQL engines take as partitions.
fn partition(kind: &str, message: &Message) -> String {
    let variant: String = message
        .variant_name
        .chars()
        .map(|c| match c {
            '=' => '-',
            ' ' => '_',
            c => c,
        })
        .collect();
    format!(
        "{kind}/plan={}/variant={variant}/label={}",
        message.plan, message.label
    )
}

fn results_of(message: &Message) -> String {
    format!("{}/{}", partition("results", message), message.id)
}

fn json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).expect("plain data with text keys always serializes")
}

#[cfg(feature = "aws")]
fn remote(name: &str) -> Result<(Arc<dyn ObjectStore>, Key), StoreError> {
    let wrong = |words: String| StoreError::Name {
        name: name.to_owned(),
        words,
    };
    let url = url::Url::parse(name).map_err(|error| wrong(error.to_string()))?;
    // credentials, region and endpoint come from the environment, as for every tool of that platform
    let settings = std::env::vars().map(|(key, value)| (key.to_ascii_lowercase(), value));
    let (objects, prefix) =
        object_store::parse_url_opts(&url, settings).map_err(|error| wrong(error.to_string()))?;
    Ok((objects.into(), prefix))
}

#[cfg(not(feature = "aws"))]
fn remote(name: &str) -> Result<(Arc<dyn ObjectStore>, Key), StoreError> {
    Err(StoreError::Name {
        name: name.to_owned(),
        words: "this build only knows folders: build with `--features aws` for S3, GCS and Azure"
            .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_out_of_what_surrounds_it() {
        let text = "Generic S3 error: Error performing PUT http://x/ in 1ms - Server returned non-2xx status code: 404 Not Found: \
             <?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>";
        let (code, words) = refusal(text).unwrap();
        assert_eq!(code, "NoSuchBucket");
        assert_eq!(words, "NoSuchBucket: The specified bucket does not exist");
        assert_eq!(refusal("</Code><Code>").map(|(code, _)| code), None);
        assert_eq!(refusal("<Code>Slow").map(|(code, _)| code), None);
    }

    #[test]
    fn no_room_is_told_from_other_failures_however_deep_it_lies() {
        let error = |kind: std::io::ErrorKind| object_store::Error::Generic {
            store: "LocalFileSystem",
            source: Box::new(std::io::Error::from(kind)),
        };
        assert!(is_full(&error(std::io::ErrorKind::StorageFull)));
        assert!(!is_full(&error(std::io::ErrorKind::NotFound)));
    }
}
