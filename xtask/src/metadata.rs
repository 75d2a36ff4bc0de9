//! What `cargo metadata` says of the packages in a build.

use crate::tool;
use anyhow::Context;
use serde::Deserialize;

/// The part of its output that is read here.
#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    pub(crate) resolve: Resolve,
}

/// A package of the build.
#[derive(Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) source: Option<String>,
}

/// Which package needs which.
#[derive(Deserialize)]
pub(crate) struct Resolve {
    pub(crate) nodes: Vec<Node>,
}

/// A package and what it needs.
#[derive(Deserialize)]
pub(crate) struct Node {
    pub(crate) id: String,
    pub(crate) deps: Vec<Dependency>,
}

/// A package that another one needs.
#[derive(Deserialize)]
pub(crate) struct Dependency {
    pub(crate) pkg: String,
    pub(crate) dep_kinds: Vec<DependencyKind>,
}

/// `dev`, `build` or none.
#[derive(Deserialize)]
pub(crate) struct DependencyKind {
    pub(crate) kind: Option<String>,
}

impl Metadata {
    /// Reads it; `features` are the options that select the features.
    pub(crate) fn read(features: &[&str]) -> anyhow::Result<Metadata> {
        let mut cargo = tool::cargo();
        cargo.args(["metadata", "--format-version", "1", "--locked"]);
        let printed = tool::output(cargo.args(features))?;
        serde_json::from_str(&printed).context("cargo metadata")
    }
}
