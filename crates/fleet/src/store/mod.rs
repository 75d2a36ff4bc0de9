//! The store of results: a folder, S3, GCS or Azure. Every object is written completely or not at
//! all. A result counts when its object exists, which is written last, and only once.
//!
//! ```text
//! plans/PLAN.json                                                  the plan
//! results/plan=PLAN/variant=V/label=L/MESSAGE/ATTEMPT.json         run and tally of one delivery
//! exchanges/plan=PLAN/variant=V/label=L/MESSAGE.parquet            its requests, one row each
//! csv/plan=PLAN/variant=V/label=L/MESSAGE.csv                      the same; SQL engines need a separate folder
//! dead/plan=PLAN/MESSAGE.json                                      why the message was given up
//! ```

mod error;
mod result;

pub use error::{FailedPlace, StoreError};
pub use result::{CheckResult, DeliveryResult};

use crate::message::{FORMAT, Message};
use crate::plan::Plan;
use crate::private;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use intact_ledger::DeadLetter;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt, PutMode};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// Number of objects that are fetched concurrently.
const AT_ONCE: usize = 16;
/// Limit of the characters of a foreign name in a key.
const LONGEST_PART: usize = 200;

/// A store of results.
pub struct Store {
    name: String,
    objects: Arc<dyn ObjectStore>,
    prefix: Key,
    runtime: tokio::runtime::Runtime,
}

impl Store {
    /// Opens a store by its name: a folder, which is created, or a URL such as
    /// `s3://BUCKET/PREFIX`.
    pub fn open(name: &str) -> Result<Store, StoreError> {
        let failed = |words: String| StoreError::Failed(FailedPlace::new(name, words));
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| failed(error.to_string()))?;
        let (objects, prefix): (Arc<dyn ObjectStore>, Key) = if name.contains("://") {
            remote(name)?
        } else {
            let folder = Path::new(name);
            private::make_folder(folder)
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

    /// Writes one object completely or not at all.
    pub fn put(&self, key: &str, bytes: impl Into<Bytes>) -> Result<(), StoreError> {
        let bytes: Bytes = bytes.into();
        self.wait(self.objects.put(&self.key(key), bytes.into()))
            .map(drop)
    }

    /// Reads one object.
    pub fn get(&self, key: &str) -> Result<Bytes, StoreError> {
        let key = self.key(key);
        self.wait(async { self.objects.get(&key).await?.bytes().await })
    }

    /// The keys under a folder, in the store's order.
    pub fn keys(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        let folder = self.key(folder);
        let skip = self.prefix.as_ref().len();
        let list = self.objects.list(Some(&folder)).map_ok(|object| {
            let key = &object.location.as_ref()[skip..];
            key.trim_start_matches('/').to_owned()
        });
        self.wait(list.try_collect())
    }

    /// Reads objects, several concurrently. Passes each to `take` in the order of `keys`.
    pub fn each(&self, keys: &[String], mut take: impl FnMut(&str, Result<Bytes, StoreError>)) {
        let fetches = futures_util::stream::iter(keys).map(|key| async move {
            let path = self.key(key);
            let bytes = async { self.objects.get(&path).await?.bytes().await }.await;
            (
                key,
                bytes.map_err(|error| StoreError::of(&self.name, &error)),
            )
        });
        self.runtime.block_on(async {
            let mut fetched = fetches.buffered(AT_ONCE);
            while let Some((key, bytes)) = fetched.next().await {
                take(key, bytes);
            }
        });
    }

    /// Stores a plan.
    pub fn put_plan(&self, plan: &Plan) -> Result<(), StoreError> {
        // header fields and roots stay in the messages, so that the store holds no secret
        let mut stored = plan.clone();
        for target in &mut stored.targets {
            target.headers.clear();
            target.roots = None;
            target.url = intact_ledger::redact::url(&target.url);
        }
        self.put(&format!("plans/{}.json", plan.id), json(&stored))
    }

    /// The plans that were stored here.
    pub fn plans(&self) -> Result<Vec<Plan>, StoreError> {
        let keys = self.keys("plans")?;
        let mut plans = Vec::new();
        let mut failed = None;
        self.each(&keys, |key, bytes| {
            let plan = bytes.and_then(|bytes| self.parse(key, &bytes));
            match plan {
                Ok(plan) => plans.push(plan),
                Err(error) => failed = Some(error),
            }
        });
        failed.map_or(Ok(plans), Err)
    }

    /// Whether a delivery of a message was finished.
    pub fn has(&self, message: &Message) -> Result<bool, StoreError> {
        Ok(!self.keys(&results_of(message))?.is_empty())
    }

    /// The ids of the messages of a plan with a result.
    pub fn finished(&self, plan: &str) -> Result<BTreeSet<String>, StoreError> {
        let keys = self.keys(&format!("results/plan={plan}"))?;
        let messages = keys.iter().filter_map(|key| key.rsplit('/').nth(1));
        Ok(messages.map(str::to_owned).collect())
    }

    /// The ids of the messages of a plan with a result or a dead letter.
    pub(crate) fn ended(&self, plan: &str) -> Result<BTreeSet<String>, StoreError> {
        let mut ended = self.finished(plan)?;
        let letters = self.keys(&format!("dead/plan={plan}"))?;
        let names = letters.iter().filter_map(|key| key.rsplit('/').next());
        ended.extend(names.map(|name| name.trim_end_matches(".json").to_owned()));
        Ok(ended)
    }

    /// Stores the requests of a message; a later delivery replaces them.
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

    /// Stores the result. From then on it counts. False: this delivery has a result, which stays.
    pub fn put_outcome(
        &self,
        message: &Message,
        outcome: &DeliveryResult,
    ) -> Result<bool, StoreError> {
        let key = format!("{}/{:03}.json", results_of(message), outcome.attempt);
        let (key, bytes) = (self.key(&key), json(outcome));
        let put = self
            .objects
            .put_opts(&key, bytes.into(), PutMode::Create.into());
        self.wait(async {
            match put.await {
                Ok(_) => Ok(true),
                Err(object_store::Error::AlreadyExists { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    /// Records that a message was given up.
    pub fn put_dead(&self, plan: &str, letter: &DeadLetter) -> Result<(), StoreError> {
        // an unreadable message has names that anyone may have written
        let plain = |text: &str| -> String {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let chars = text.chars().map(|c| if is_plain(c) { c } else { '_' });
            chars.take(LONGEST_PART).collect()
        };
        let (plan, name) = (plain(plan), plain(&letter.message));
        self.put(&format!("dead/plan={plan}/{name}.json"), json(letter))
    }

    /// Parses an object of ours.
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

    fn wait<T>(
        &self,
        request: impl Future<Output = object_store::Result<T>>,
    ) -> Result<T, StoreError> {
        let response = self.runtime.block_on(request);
        response.map_err(|error| StoreError::of(&self.name, &error))
    }

    fn key(&self, key: &str) -> Key {
        let prefix = self.prefix.as_ref();
        if prefix.is_empty() {
            Key::from(key)
        } else {
            Key::from(format!("{prefix}/{key}"))
        }
    }
}

/// The folder of one variant and label: a partition for SQL engines.
fn partition(kind: &str, message: &Message) -> String {
    let variant = message.variant_name.replace('=', "-").replace(' ', "_");
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
    let wrong = |words: String| StoreError::Name(FailedPlace::new(name, words));
    let url = url::Url::parse(name).map_err(|error| wrong(error.to_string()))?;
    // credentials, region and endpoint come from the environment, as for every tool of the platform
    let settings = std::env::vars().map(|(key, value)| (key.to_ascii_lowercase(), value));
    let opened = object_store::parse_url_opts(&url, settings);
    let (objects, prefix) = opened.map_err(|error| wrong(crate::cloud::chain(&error)))?;
    Ok((objects.into(), prefix))
}

#[cfg(not(feature = "aws"))]
fn remote(name: &str) -> Result<(Arc<dyn ObjectStore>, Key), StoreError> {
    let words = "this build only knows folders: S3, GCS and Azure are its feature `aws`, a default";
    Err(StoreError::Name(FailedPlace::new(name, words)))
}
