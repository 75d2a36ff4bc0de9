//! Proxies and servers: how each is configured, and what was measured of its connections. A row is
//! a file in `clients/hops/`, and its name here.
//!
//! What to set where is in `clients/advice.toml`; this has whole configurations that were run.

use crate::catalogue::Role;
use crate::facts::{Count, Idle, RequestOutcomes};
use crate::find::lower_case;
use intact_ledger::kinds;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The rows, as `[(id, text)]`.
macro_rules! rows {
    ($($id:literal),* $(,)?) => {
        [$(($id, include_str!(concat!("../../../clients/hops/", $id, ".toml")))),*]
    };
}

const ROWS: [(&str, &str); 11] = rows![
    "nginx",
    "haproxy",
    "apache",
    "caddy",
    "envoy",
    "gunicorn",
    "uvicorn",
    "node-server",
    "go-server",
    "puma",
    "tomcat",
];
const MEASURED: &str = include_str!("../../../clients/hops/measured.json");

kinds! {
    json
    /// What a hop does with a request.
    pub enum HopKind, id {
        /// It sends the request on to a server behind it.
        Proxy = "proxy",
        /// It responds itself.
        Server = "server",
    }
}

/// A proxy or a server.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Hop {
    /// Stable id, the name of its file.
    #[serde(default)]
    pub id: String,
    /// The usual name, and that of its rows in `clients/advice.toml`.
    pub name: String,
    /// The name of its row for servers in `clients/advice.toml`, if it has another one there.
    #[serde(default)]
    pub server_name: Option<String>,
    /// Whether requests go on from it.
    pub kind: HopKind,
    /// Other names that find it.
    pub aliases: Vec<String>,
    /// Beginnings of its product in `Server` or `Via`.
    #[serde(default, skip_serializing)]
    pub products: Vec<String>,
    /// Since which version connections to the server behind are reused without a setting.
    #[serde(default)]
    pub since: Option<String>,
    /// Remaining problems.
    pub traps: Vec<String>,
    /// Texts of errors that it logs when the server behind it closed a connection.
    #[serde(default)]
    pub errors: Vec<String>,
    /// Words that compile it, if any.
    #[serde(default, skip_serializing)]
    pub build: Vec<String>,
    /// Its command, in a folder with its files; `PROGRAM` is the release's.
    #[serde(skip_serializing)]
    pub command: Vec<String>,
    /// Words that print its version.
    #[serde(skip_serializing)]
    pub version: Vec<String>,
    /// Signals that end it: SIGTERM, and its own for an end in good order.
    #[serde(skip_serializing)]
    pub signals: Vec<String>,
    /// The file that holds the text of a variant.
    #[serde(default)]
    pub file: Option<String>,
    /// Other files.
    #[serde(default, skip_serializing)]
    pub files: BTreeMap<String, String>,
    /// Releases that are measured.
    #[serde(rename = "release", skip_serializing)]
    pub releases: Vec<Release>,
    /// Ways to configure it.
    #[serde(rename = "variant")]
    pub variants: Vec<HopVariant>,
}

/// A release, and what brings it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// `debian`, `pip` or `maven`.
    pub manager: String,
    /// Packages with their versions; those of Debian have none.
    pub packages: BTreeMap<String, String>,
    /// Its program: a name, or a path in the folder of the packages.
    pub program: String,
    /// Whether the quick set has it.
    #[serde(default)]
    pub quick: bool,
}

/// One way to configure a hop.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HopVariant {
    /// Stable id within the hop.
    pub id: String,
    /// What is done, in a few words.
    pub title: String,
    /// Why it is here.
    pub role: Role,
    /// The whole configuration. It listens on 127.0.0.1:8080, the server behind on 127.0.0.1:9000.
    #[serde(default, skip_serializing)]
    pub text: Option<String>,
    /// Its command, if it differs.
    #[serde(default, skip_serializing)]
    pub command: Option<Vec<String>>,
}

/// One variant of one release as it was measured once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HopMeasurement {
    /// The hop's id.
    pub hop: String,
    /// The variant's id.
    pub variant: String,
    /// The version, as the program printed it.
    pub version: String,
    /// The day, `2026-11-21`.
    pub date: String,
    /// The configuration or the command that was run.
    pub snippet: String,
    /// Connections that it opens to the server behind it; absent for a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<UpstreamFacts>,
    /// Connections that it accepts; absent where another variant has them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<AcceptedFacts>,
}

/// What a proxy does with the connections to the server behind it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpstreamFacts {
    /// 20 requests in turn, on one connection of a client.
    pub one_client: Count,
    /// 20 requests in turn, each of a new client.
    pub new_clients: Count,
    /// Three rounds of ten requests at once.
    pub at_once: Count,
    /// What happens to an idle connection.
    pub idle: Idle,
    /// The `Connection` field of its requests; empty when it sent none.
    pub connection_field: String,
    /// What the client gets when the server ends a connection that was used before in place of a
    /// response; absent where no connection is used again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub race: Option<RequestOutcomes>,
    /// Findings of `intact watch` on the proxy while it serves 20 requests in turn, without
    /// informational ones.
    pub watch: Vec<String>,
}

/// What a proxy or server does with the connections of its clients, by `intact check`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AcceptedFacts {
    /// What ends an idle connection.
    pub idle: AcceptedIdle,
    /// The requests after which it ends a connection.
    pub requests: RequestLimit,
    /// Its end by each signal.
    pub drains: Vec<DrainFacts>,
    /// Findings of `intact check`, without informational ones.
    pub check: Vec<String>,
}

/// How long an accepted connection is kept idle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum AcceptedIdle {
    /// Each response is the last on its connection.
    NotKept,
    /// The hop ends it.
    Closed {
        /// Seconds after the response.
        after_s: f64,
    },
    /// It was open when the measurement ended.
    Kept {
        /// Seconds for which it was watched.
        for_s: f64,
    },
}

/// The most requests on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum RequestLimit {
    /// It ends the connection after this number.
    Ended {
        /// Requests.
        after: u64,
    },
    /// This number was sent, and the connection lived on.
    NotReached {
        /// Requests.
        sent: u64,
    },
}

/// The end of a hop by a signal, under load, with slow requests in flight.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DrainFacts {
    /// The signal.
    pub signal: String,
    /// Requests that were in flight or sent on kept connections.
    pub sent: u64,
    /// Those of them that got no response.
    pub lost: u64,
    /// Whether it had ended when `check` stopped waiting, 30 s after the signal.
    pub ended: bool,
}

/// Proxies and servers with their measurements.
#[derive(Clone, Debug)]
pub struct Hops {
    /// The rows, in their order.
    pub hops: Vec<Hop>,
    /// All measurements.
    pub measured: Vec<HopMeasurement>,
}

impl Hops {
    /// Those in this program.
    ///
    /// # Errors
    /// When a file cannot be read, with its name; a test keeps that from happening.
    pub fn embedded() -> Result<Hops, crate::CatalogueError> {
        Hops::parse(MEASURED)
    }

    /// The rows of this program with other measurements.
    ///
    /// # Errors
    /// As [`Hops::embedded`].
    pub fn parse(measured: &str) -> Result<Hops, crate::CatalogueError> {
        let mut hops = Vec::new();
        for (id, text) in ROWS {
            let mut hop: Hop = toml::from_str(text)?;
            id.clone_into(&mut hop.id);
            hops.push(hop);
        }
        let measured = serde_json::from_str(measured)?;
        Ok(Hops { hops, measured })
    }

    /// The measurements of a hop, in the order of its variants.
    pub fn of<'a>(&'a self, hop: &'a Hop) -> Vec<(&'a HopVariant, &'a HopMeasurement)> {
        let of = |variant: &'a HopVariant| {
            let own = move |one: &&HopMeasurement| one.hop == hop.id && one.variant == variant.id;
            let measured = self.measured.iter().filter(own);
            measured.map(move |one| (variant, one))
        };
        hop.variants.iter().flat_map(of).collect()
    }

    /// Those with this name, in lower case.
    pub fn named<'a>(&'a self, wanted: &str) -> Vec<&'a Hop> {
        let hops = self.hops.iter();
        hops.filter(|hop| hop.names().any(|name| name == wanted))
            .collect()
    }
}

impl Hop {
    /// All names that find it, in lower case.
    pub fn names(&self) -> impl Iterator<Item = String> {
        lower_case(&self.id, &self.name, &self.aliases)
    }

    /// The files of a variant, with the text of each.
    pub fn files_of<'a>(&'a self, variant: &'a HopVariant) -> Vec<(&'a str, &'a str)> {
        let shared = self.files.iter();
        let mut files: Vec<_> = shared
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        files.extend(self.file.as_deref().zip(variant.text.as_deref()));
        files
    }

    /// The command of a variant.
    pub fn command_of<'a>(&'a self, variant: &'a HopVariant) -> &'a [String] {
        variant.command.as_ref().unwrap_or(&self.command)
    }

    /// What is printed of a variant: its configuration, else its command.
    pub fn snippet(&self, variant: &HopVariant) -> String {
        match &variant.text {
            Some(text) => text.trim_end().to_owned(),
            None => self
                .command_of(variant)
                .join(" ")
                .replace("PROGRAM", &self.id),
        }
    }
}

impl UpstreamFacts {
    /// Whether requests in turn share connections; of two processes each has its own.
    pub fn is_reused(&self) -> bool {
        self.one_client.connections * 2 <= self.one_client.requests
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_file_is_a_row_and_every_variant_was_measured_as_it_is_written() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../clients/hops");
        let entries = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter_map(|name| name.strip_suffix(".toml").map(str::to_owned))
            .collect();
        files.sort();
        let mut rows = ROWS.map(|(id, _)| id.to_owned()).to_vec();
        rows.sort();
        assert_eq!(files, rows);
        let hops = Hops::embedded().unwrap();
        for hop in &hops.hops {
            let measured = hops.of(hop);
            assert_eq!(
                measured.len(),
                hop.variants.len() * hop.releases.len(),
                "{}: cargo xtask clients {0}",
                hop.id
            );
            for (variant, one) in measured {
                assert_eq!(one.snippet, hop.snippet(variant), "{}", hop.id);
                assert_eq!(one.upstream.is_some(), hop.kind == HopKind::Proxy);
            }
        }
        let known = hops.measured.iter().all(|one| {
            let hop = hops.hops.iter().find(|hop| hop.id == one.hop);
            hop.is_some_and(|hop| hop.variants.iter().any(|variant| variant.id == one.variant))
        });
        assert!(known, "a measurement belongs to no variant");
    }

    #[test]
    fn a_remedy_reuses_connections_in_every_release() {
        let hops = Hops::embedded().unwrap();
        let (mut proxies, mut servers) = (0, 0);
        for hop in &hops.hops {
            for (variant, one) in hops.of(hop) {
                if !matches!(variant.role, Role::Remedy | Role::Limit) {
                    continue;
                }
                let name = format!("{}/{}", hop.id, variant.id);
                if let Some(upstream) = &one.upstream {
                    assert!(upstream.is_reused(), "{name}: {upstream:?}");
                    proxies += 1;
                } else {
                    let idle = one.accepted.as_ref().unwrap().idle;
                    assert_ne!(idle, AcceptedIdle::NotKept, "{name}");
                    servers += 1;
                }
            }
        }
        assert!(proxies > 5 && servers > 5, "{proxies} {servers}");
    }
}
