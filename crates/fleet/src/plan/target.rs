//! A target of a plan: its URL, its acknowledgement, and the header fields of each request.
//!
//! The parser of plans and each worker apply the same checks. So a message that was changed on its
//! way cannot direct load to another server.

use crate::secret::{self, ReadSecret, Reference, SecretError, Secrets};
use intact_client::tls::{Credentials, Verify};
use intact_client::{ConnectOverride, ServerUrl};
use intact_ledger::ExpectedStatus;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// A server to measure, which the user acknowledged as their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Target {
    /// Its name in keys and tables.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// The host again, and each address of `resolve`: the acknowledgement that load on it is
    /// allowed.
    pub i_own_this: Acknowledged,
    /// The kind of measurement.
    #[serde(default)]
    pub measure: Kind,
    /// For a check: the longest time that an idle connection is observed, such as `90s`; `0` skips
    /// this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_limit: Option<String>,
    /// Port for variants without TLS where the URL is https with a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_port: Option<u16>,
    /// Port for variants with TLS where the URL is http with a port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls_port: Option<u16>,
    /// Do not verify the certificate's chain and name.
    #[serde(default)]
    pub insecure: bool,
    /// PEM text of the roots to trust.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roots: Option<String>,
    /// `host:port:address`, as curl's `--resolve`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resolve: Vec<String>,
    /// Header fields as `Name: value`; a value may be a reference to a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<String>,
    /// The statuses that count as ok: `any`, `2xx`, `404`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<ExpectedStatus>,
}

/// The hosts and addresses on which load is allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "a host, or a list of hosts and addresses")]
pub enum Acknowledged {
    /// The host of the URL.
    One(String),
    /// The host, and the addresses of `resolve`.
    Several(Vec<String>),
}

impl Acknowledged {
    /// Whether it contains a host or an address; brackets of IPv6 are optional.
    fn names(&self, host: &str) -> bool {
        let names = match self {
            Acknowledged::One(name) => std::slice::from_ref(name),
            Acknowledged::Several(names) => names,
        };
        names
            .iter()
            .any(|name| bare(name).eq_ignore_ascii_case(bare(host)))
    }
}

/// An address without its brackets.
fn bare(host: &str) -> &str {
    let inner = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    inner.unwrap_or(host)
}

/// The kind of measurement of a target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Sends requests for a given time, in every variant.
    #[default]
    Bench,
    /// Runs `check` once per repetition; its probes cover the variants.
    Check,
}

impl Target {
    /// The roots to trust.
    pub fn credentials(&self) -> Credentials {
        Credentials {
            verify: match &self.roots {
                _ if self.insecure => Verify::Insecure,
                Some(pem) => Verify::Roots(pem.as_bytes().into()),
                None => Verify::System,
            },
            certificate: None,
        }
    }

    /// The addresses for the URL's host.
    pub fn route(&self) -> ConnectOverride {
        ConnectOverride {
            resolve: self.resolve.clone(),
            ..ConnectOverride::default()
        }
    }

    /// The references to secrets in the URL and the header fields.
    pub fn references(&self) -> BTreeSet<Reference> {
        let mut found = BTreeSet::new();
        let mut note = |reference: &Reference| {
            found.insert(reference.clone());
            Ok::<_, String>(String::new())
        };
        // the plan's parser refused unreadable references
        let _ = secret::fill(&self.url, &mut note);
        for header in &self.headers {
            let _ = secret::fill_field(header, &mut note);
        }
        found
    }

    /// The target with the value of each reference in its place, and the values, which must not be
    /// stored.
    pub(crate) fn with_secrets(
        &self,
        read: &dyn ReadSecret,
    ) -> Result<(Target, Secrets), SecretError> {
        let mut secrets = Secrets::default();
        let mut filled = self.clone();
        let of = |reason: String| SecretError {
            target: self.name.clone(),
            reason,
        };
        filled.url = secret::fill(&self.url, &mut |reference| {
            let value = secrets.read(reference, read)?;
            Ok(secret::percent_encoded(&value))
        })
        .map_err(of)?;
        filled.headers = self
            .headers
            .iter()
            .map(|header| {
                secret::fill_field(header, &mut |reference| secrets.read(reference, read))
            })
            .collect::<Result<_, _>>()
            .map_err(of)?;
        Ok((filled, secrets))
    }

    /// A warning for each value of the plan that looks like a secret.
    pub(super) fn plain_secrets(&self) -> Vec<String> {
        let name = &self.name;
        let of_fields = self
            .headers
            .iter()
            .filter_map(|header| secret::plain_field(header))
            .map(|field| {
                format!("target {name}: the value of {field} will be stored in the queue; write `{field}: env:NAME` or `{field}: file:PATH` to let each worker read it")
            });
        let of_query = secret::plain_parameters(&self.url).map(|key| {
            format!("target {name}: the value of `{key}` in the URL will be stored in the queue; write `{key}={{env:NAME}}` or `{key}={{file:PATH}}` to let each worker read it")
        });
        of_fields.chain(of_query).collect()
    }

    /// Checks that the target can be used. Text that is sent has no control characters, the URL
    /// holds no credentials, and the host and each address of `resolve` are acknowledged.
    pub(crate) fn may_be_sent_to(&self) -> Result<(), String> {
        let lines = [("url", &self.url)].into_iter();
        let lines = lines.chain(self.resolve.iter().map(|rule| ("resolve", rule)));
        for (key, text) in lines {
            if text.contains(char::is_control) {
                return Err(format!("{key}: {CONTROL}"));
            }
        }
        for header in &self.headers {
            // a value may contain a tab (RFC 9110 section 5.5)
            if header.contains(|c: char| c.is_control() && c != '\t') {
                return Err(format!("headers: {CONTROL}"));
            }
            secret::fill_field(header, &mut |_| Ok("x".to_owned())).map_err(|reason| {
                let field = header.split(':').next().unwrap_or_default();
                format!("headers: {field:?}: {reason}")
            })?;
        }
        let url = secret::fill(&self.url, &mut |_| Ok("x".to_owned()));
        let url = self.address(&url.map_err(|reason| format!("url: {reason}"))?)?;
        if !self.i_own_this.names(&url.host) {
            return Err(format!(
                "i-own-this: must repeat the host, {:?}, to confirm that you may send load to it",
                url.host
            ));
        }
        for rule in &self.resolve {
            self.check_rule(rule)?;
        }
        Ok(())
    }

    /// Parses the URL as `client` does, because another parser could find another host in it.
    fn address(&self, url: &str) -> Result<ServerUrl, String> {
        let Some((_, rest)) = url.split_once("://") else {
            return Err("url: the scheme has to be http or https".to_owned());
        };
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.contains('@') {
            return Err(
                "url: user and password do not belong in a URL: use headers = [\"Authorization: env:NAME\"]"
                    .to_owned(),
            );
        }
        ServerUrl::parse(url).map_err(|error| format!("url: {error}"))
    }

    /// Checks the format of a rule of `resolve`, and that its addresses are acknowledged.
    fn check_rule(&self, rule: &str) -> Result<(), String> {
        let route = ConnectOverride {
            resolve: vec![rule.to_owned()],
            ..ConnectOverride::default()
        };
        route
            .endpoint("", 0)
            .map_err(|_| format!("resolve: {rule:?} is not HOST:PORT:ADDRESS[,ADDRESS]"))?;
        let addresses = rule.splitn(3, ':').nth(2).unwrap_or_default().split(',');
        for address in addresses {
            if !self.i_own_this.names(address) {
                return Err(format!(
                    "resolve: sends the load to {0:?}; add {0:?} to `i-own-this` to confirm that you may send load to it",
                    bare(address)
                ));
            }
        }
        Ok(())
    }
}

const CONTROL: &str = "a line end or another control character cannot be sent";
