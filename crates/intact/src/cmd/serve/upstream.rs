//! The options of the outgoing calls of `intact serve`.

use crate::exit::Failed;
use anyhow::Context;
use clap::ArgAction;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use intact_client::tls::Verify;
use intact_serve::UpstreamConfig;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Upstream")]
pub(super) struct UpstreamOptions {
    /// Call this URL before each response, as a service does that depends on another one
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Calls before each response, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000), requires = "upstream")]
    calls: u32,
    /// Keep connections to the upstream for further calls, or open one for each
    #[arg(
        long,
        value_name = "on|off",
        default_value = "on",
        action = ArgAction::Set,
        value_parser = PossibleValuesParser::new(["on", "off"]).map(|word| word == "on"),
        requires = "upstream"
    )]
    upstream_keepalive: bool,
    /// Do not verify the upstream's certificate
    #[arg(long, requires = "upstream")]
    upstream_insecure: bool,
}

impl UpstreamOptions {
    /// The calls, if there are any.
    pub(super) fn config(&self) -> Result<Option<UpstreamConfig>, Failed> {
        let Some(url) = &self.upstream else {
            return Ok(None);
        };
        let verify = match self.upstream_insecure {
            true => Verify::Insecure,
            false => Verify::System,
        };
        let config = UpstreamConfig::new(url, self.calls, self.upstream_keepalive, &verify);
        let config = config.context("--upstream").map_err(Failed::usage)?;
        Ok(Some(config))
    }
}
