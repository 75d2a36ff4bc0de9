//! The catalogue: claims about clients (`clients/catalogue.toml`) and what was measured
//! (`clients/measured.json`).
//!
//! Both are embedded; nothing is read at run time.

use crate::articles::Article;
use crate::facts::Measurement;
use crate::hops::Hops;
use intact_ledger::kinds;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Everything known.
#[derive(Clone, Debug)]
pub struct Catalogue {
    /// The clients, in the order of the file.
    pub clients: Vec<Client>,
    /// All measurements.
    pub measured: Vec<Measurement>,
    /// What articles recommend.
    pub articles: Vec<Article>,
    /// Proxies and servers.
    pub hops: Hops,
    /// Libraries above clients, and drivers.
    pub libraries: Vec<Library>,
}

/// A library that makes its requests through clients of the catalogue, or a client or driver of
/// which one sentence says what it does.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Library {
    /// What it is called, the usual name first.
    pub names: Vec<String>,
    /// The ids of the clients that it uses.
    #[serde(default)]
    pub clients: Vec<String>,
    /// What was measured of it, in which version.
    pub says: String,
}

/// A client library or program.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// Stable id, the name of its folder below `clients/`.
    pub id: String,
    /// The usual name.
    pub name: String,
    /// The language or environment.
    pub language: Language,
    /// Other names that find it.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Packages to install, by package manager, with their exact versions; Debian's have none.
    #[serde(default)]
    pub packages: BTreeMap<String, String>,
    /// Versions of the runtime to measure with; empty: the one that is installed.
    #[serde(default)]
    pub runtimes: Vec<String>,
    /// Whether the quick set has it.
    #[serde(default)]
    pub quick: bool,
    /// Since which version connections are reused without a setting.
    #[serde(default)]
    pub since: Option<String>,
    /// The option that limits a connection's life, with its default, as documented.
    #[serde(default)]
    pub life: Option<String>,
    /// The option for HTTP/2 PING, with its default, as documented.
    #[serde(default)]
    pub pings: Option<String>,
    /// The names of the options that matter, with their defaults.
    #[serde(default)]
    pub options: Vec<String>,
    /// Remaining problems.
    #[serde(default)]
    pub traps: Vec<String>,
    /// Texts of errors that it shows when a connection was closed, or a pool is full.
    #[serde(default)]
    pub errors: Vec<String>,
    /// The client to use where this one cannot reuse connections.
    #[serde(default)]
    pub instead: Option<String>,
    /// Ways to use it.
    #[serde(rename = "variant")]
    pub variants: Vec<Variant>,
}

kinds! {
    json
    /// What a client is written in or for.
    pub enum Language, id {
        /// Node.js.
        Node = "node",
        /// Bun.
        Bun = "bun",
        /// Deno.
        Deno = "deno",
        /// Python.
        Python = "python",
        /// Go.
        Go = "go",
        /// Java.
        Java = "java",
        /// .NET.
        Dotnet = "dotnet",
        /// Rust.
        Rust = "rust",
        /// PHP.
        Php = "php",
        /// Ruby.
        Ruby = "ruby",
        /// Perl.
        Perl = "perl",
        /// A command.
        Shell = "shell",
    }
}

/// One way to use a client.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Variant {
    /// Stable id within the client, the name of its program.
    pub id: String,
    /// What is done, in a few words.
    pub title: String,
    /// Why it is in the catalogue.
    pub role: Role,
    /// Environment variables of this variant, in addition to its program.
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The variant to use in place of this trap, where it is neither the remedy nor the default.
    #[serde(default)]
    pub instead: Option<String>,
    /// The program, if another variant's is used with other variables.
    #[serde(default)]
    pub program: Option<String>,
}

impl Variant {
    /// The lines to copy, from a measurement. For a variant that differs from another one only in
    /// its environment, these are the variables.
    pub fn snippet(&self, one: &Measurement) -> String {
        if self.program.is_none() {
            return one.snippet.clone();
        }
        let lines: Vec<String> = self
            .env
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        lines.join("\n")
    }

    /// The name of its program without the extension.
    pub fn program(&self) -> &str {
        self.program.as_deref().unwrap_or(&self.id)
    }
}

/// Why a variant is in the catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Typical code that ignores connections.
    Default,
    /// The smallest change that makes connections be reused.
    Remedy,
    /// Reuses connections and closes idle ones in time; its snippet has a placeholder for the idle
    /// limit.
    Limit,
    /// Sends a request again if its connection was closed.
    Retry,
    /// Reuses connections and limits how long a request waits for its response; its snippet has a
    /// placeholder for the limit.
    Timeout,
    /// Reuses connections and sends HTTP/2 PING; its snippet has a placeholder for how long a
    /// silent connection is used.
    Ping,
    /// Reuses connections and limits the life of each; its snippet has a placeholder for the limit.
    Life,
    /// A recommendation of articles, with its measured effect.
    Pattern,
    /// What goes wrong.
    Trap,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    client: Vec<Client>,
    article: Vec<Article>,
    library: Vec<Library>,
}

/// Why the catalogue could not be read.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// The part written by hand.
    #[error("clients/catalogue.toml or clients/hops: {0}")]
    Written(#[from] toml::de::Error),
    /// The measured part.
    #[error("measured.json of clients or clients/hops: {0}; rewrite it with `cargo xtask clients`")]
    Measured(#[from] serde_json::Error),
    /// A measurement of a client or variant that is not in the catalogue.
    #[error("clients/measured.json has {client}/{variant}, which clients/catalogue.toml does not")]
    Orphan {
        /// The client's id.
        client: String,
        /// The variant's id.
        variant: String,
    },
}

impl Catalogue {
    /// The catalogue in this program.
    ///
    /// # Errors
    /// When the files do not fit together; a test keeps that from happening.
    pub fn embedded() -> Result<Catalogue, CatalogueError> {
        Catalogue::parse(
            include_str!("../../../clients/catalogue.toml"),
            include_str!("../../../clients/measured.json"),
        )
    }

    /// Reads both parts.
    ///
    /// # Errors
    /// When one cannot be read, or a measurement belongs to nothing.
    pub fn parse(written: &str, measured: &str) -> Result<Catalogue, CatalogueError> {
        let Written {
            client,
            article,
            library,
        } = toml::from_str(written)?;
        let measured: Vec<Measurement> = serde_json::from_str(measured)?;
        let catalogue = Catalogue {
            clients: client,
            measured,
            articles: article,
            hops: Hops::embedded()?,
            libraries: library,
        };
        for measurement in &catalogue.measured {
            let known = catalogue
                .clients
                .iter()
                .filter(|client| client.id == measurement.client)
                .flat_map(|client| &client.variants)
                .any(|variant| variant.id == measurement.variant);
            if !known {
                return Err(CatalogueError::Orphan {
                    client: measurement.client.clone(),
                    variant: measurement.variant.clone(),
                });
            }
        }
        Ok(catalogue)
    }

    /// The measurements of a variant, one for each set of versions.
    pub fn of<'a>(
        &'a self,
        client: &'a Client,
        variant: &'a Variant,
    ) -> impl Iterator<Item = &'a Measurement> {
        self.measured
            .iter()
            .filter(|one| one.client == client.id && one.variant == variant.id)
    }
}
