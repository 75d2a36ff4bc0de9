//! A definition as read, before its values are checked. Both languages end here.

use serde::Deserialize;

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
pub(crate) struct Definition {
    #[serde(default)]
    pub(crate) targets: Vec<At<String>>,
    #[serde(default)]
    pub(crate) user_agent: Option<At<String>>,
    #[serde(default)]
    pub(crate) phases: Vec<PhaseSource>,
    #[serde(default)]
    pub(crate) sessions: Vec<SessionSource>,
    /// Weights by the name of a session, which replace those at the sessions.
    #[serde(default)]
    pub(crate) weights: Vec<WeightSource>,
    /// What has no effect here.
    #[serde(default)]
    pub(crate) ignored: Vec<At<String>>,
    /// Functions and options that we do not have.
    #[serde(default)]
    pub(crate) unsupported: Vec<At<String>>,
}

/// A time in which clients arrive.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct PhaseSource {
    pub(crate) line: usize,
    pub(crate) duration: Given,
    pub(crate) rate: Given,
    #[serde(default)]
    pub(crate) max_clients: Option<Given>,
    #[serde(default)]
    pub(crate) name: Option<String>,
}

/// What one kind of client does.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct SessionSource {
    pub(crate) line: usize,
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) weight: Option<Given>,
    pub(crate) steps: Vec<At<StepSource>>,
}

/// The weight of a named session.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct WeightSource {
    pub(crate) line: usize,
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
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(crate) struct RequestSource {
    pub(crate) method: String,
    pub(crate) url: String,
    #[serde(default)]
    pub(crate) tag: Option<String>,
    #[serde(default)]
    pub(crate) headers: Vec<(String, String)>,
    #[serde(default)]
    pub(crate) body: String,
}
