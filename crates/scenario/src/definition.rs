//! A definition as read, before its values are checked. Both languages end here.

use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// A value with its line, from 1.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct At<T> {
    pub(crate) line: usize,
    pub(crate) value: T,
}

/// A number or a text, as written. JavaScript's `NaN`, `undefined` and objects are texts here.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(crate) enum Given {
    Number(f64),
    Text(String),
}

/// Everything that a definition has.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(crate) struct Definition {
    pub(crate) targets: Vec<At<String>>,
    pub(crate) user_agent: Option<At<String>>,
    pub(crate) phases: Vec<At<PhaseSource>>,
    pub(crate) sessions: Vec<At<SessionSource<At<StepSource>>>>,
    /// Weights by the name of a session, which replace those at the sessions.
    pub(crate) weights: Vec<At<WeightSource>>,
    /// What has no effect here.
    pub(crate) ignored: Vec<At<String>>,
    /// Functions and options that we do not have.
    pub(crate) unsupported: Vec<At<String>>,
}

/// A time in which clients arrive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct PhaseSource {
    pub(crate) duration: Given,
    pub(crate) rate: Given,
    pub(crate) max_clients: Option<Given>,
    pub(crate) name: Option<String>,
}

/// What one kind of client does, by the steps of a language.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionSource<S> {
    pub(crate) name: String,
    pub(crate) weight: Option<Given>,
    pub(crate) steps: Vec<S>,
}

/// The weight of a named session.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct WeightSource {
    pub(crate) session: String,
    pub(crate) weight: Given,
}

/// One step.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum StepSource {
    Request(RequestSource),
    Wait(Given),
    WaitExp(Given),
    WaitUniform(Given, Given),
    Times(Given, Vec<At<StepSource>>),
    ForEver(Vec<At<StepSource>>),
}

/// A request.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct RequestSource {
    pub(crate) method: String,
    pub(crate) url: String,
    pub(crate) tag: Option<String>,
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    #[serde(default, deserialize_with = "text_as_bytes")]
    pub(crate) body: Vec<u8>,
    pub(crate) check: Option<CheckSource>,
}

/// What a response has to have.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CheckSource {
    pub(crate) status: Option<Given>,
    pub(crate) contains: Option<String>,
    /// Values by their paths.
    pub(crate) json: BTreeMap<String, serde_json::Value>,
}

fn text_as_bytes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    String::deserialize(from).map(String::into_bytes)
}
