//! The options that say how a server is reached and whom to trust: those of curl, for every command
//! that opens connections itself.

use crate::exit::Failed;
use anyhow::Context;
use intact_client::tls::{ClientCertificate, Credentials, Verify};
use intact_client::{ConnectOverride, Family};
use intact_ledger::input_file;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The most bytes of a file of certificates.
const LARGEST_ROOTS: u64 = 64 << 20;

/// How a server is reached.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Connection")]
pub(crate) struct ConnectOptions {
    /// Check neither the certificate's chain nor its name (the handshake's signature always is)
    #[arg(long, short = 'k')]
    insecure: bool,
    /// Trust the certificates in this PEM file only
    #[arg(long, value_name = "FILE")]
    cacert: Option<PathBuf>,
    /// Client certificate (PEM)
    #[arg(long, value_name = "FILE", requires = "key")]
    cert: Option<PathBuf>,
    /// Its key (PEM)
    #[arg(long, value_name = "FILE", requires = "cert")]
    key: Option<PathBuf>,
    /// Use this address for a name, as curl does
    #[arg(long, value_name = "HOST:PORT:ADDRESS,..")]
    resolve: Vec<String>,
    /// Connect elsewhere, as curl does
    #[arg(long, value_name = "HOST1:PORT1:HOST2:PORT2")]
    connect_to: Vec<String>,
    /// IPv4 only
    #[arg(short = '4', conflicts_with = "v6")]
    v4: bool,
    /// IPv6 only
    #[arg(short = '6', conflicts_with = "v4")]
    v6: bool,
}

impl ConnectOptions {
    /// Whom to trust; `otherwise` where the options do not say.
    pub(crate) fn credentials(&self, otherwise: Verify) -> Result<Credentials, Failed> {
        let verify = match (self.insecure, &self.cacert) {
            (true, _) => Verify::Insecure,
            (false, Some(path)) => {
                let roots = input_file::read(path, LARGEST_ROOTS)
                    .with_context(|| format!("--cacert {}", path.display()))
                    .map_err(Failed::usage)?;
                Verify::Roots(roots.into())
            }
            (false, None) => otherwise,
        };
        let certificate = self.cert.clone().zip(self.key.clone());
        Ok(Credentials {
            verify,
            certificate: certificate.map(|(chain, key)| ClientCertificate { chain, key }),
        })
    }

    /// Where the URL leads.
    pub(crate) fn route(&self) -> ConnectOverride {
        ConnectOverride {
            resolve: self.resolve.clone(),
            connect_to: self.connect_to.clone(),
            family: match (self.v4, self.v6) {
                (true, _) => Family::V4,
                (_, true) => Family::V6,
                _ => Family::Any,
            },
        }
    }
}
