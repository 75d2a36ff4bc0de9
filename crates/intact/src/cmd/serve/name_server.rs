//! The options of the name server of `intact serve`.

use crate::exit::{Failed, refuse};
use intact_serve::{Delay, Faults, LookupFault, NameRecord, NameServerConfig, RateLimit};
use intact_units::duration::or_seconds;
use serde::{Deserialize, Serialize};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

/// Where name servers listen.
pub(super) const PORT: u16 = 53;

#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Name server")]
pub(super) struct NameServerOptions {
    /// Serve names too, over UDP and TCP; programs ask it under `--resolver ADDRESS` of watch,
    /// compare, bench and link
    #[arg(
        long,
        value_name = "ADDRESS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1",
        value_parser = address
    )]
    dns: Option<SocketAddr>,
    /// A name with its addresses, may be repeated; without any, every name has the address of
    /// --listen
    #[arg(long, value_name = "NAME=ADDRESS,..", requires = "dns")]
    dns_name: Vec<NameRecord>,
    /// How long an address is valid
    #[arg(long, value_name = "TIME", value_parser = or_seconds, default_value = "60s", requires = "dns")]
    dns_ttl: Duration,
    /// Pause before each response: a time, or exp:20ms
    #[arg(
        long,
        value_name = "[exp:]TIME",
        default_value = "0ms",
        requires = "dns"
    )]
    dns_delay: Delay,
    /// Answer N queries a second; the others get no response, or fail as named: 20/s:servfail
    #[arg(long, value_name = "N/s[:FAILURE]", requires = "dns")]
    dns_rate_limit: Option<RateLimit>,
    /// Let queries fail, each way with its probability: nxdomain=0.1,servfail=0.05
    #[arg(
        long,
        value_name = "FAILURE=SHARE,...",
        default_value = "",
        hide_default_value = true,
        requires = "dns",
        long_help = failures()
    )]
    dns_fault: Faults<LookupFault>,
}

impl NameServerOptions {
    /// Whether names are served.
    pub(super) fn is_on(&self) -> bool {
        self.dns.is_some()
    }

    /// The configuration of a name server that listens at `place` of the address given, if there is
    /// one. `server` is where HTTP is spoken.
    pub(super) fn config(
        &self,
        place: impl Fn(SocketAddr) -> SocketAddr,
        server: IpAddr,
    ) -> Result<Option<NameServerConfig>, Failed> {
        let Some(listen) = self.dns.map(place) else {
            return Ok(None);
        };
        if server.is_unspecified() && self.dns_name.is_empty() {
            refuse!(
                "--dns: with --listen {server}, name the address of the server: --dns-name NAME=ADDRESS"
            );
        }
        Ok(Some(NameServerConfig {
            listen,
            names: self.dns_name.clone(),
            usual: server,
            ttl_s: u32::try_from(self.dns_ttl.as_secs()).unwrap_or(u32::MAX),
            delay: self.dns_delay,
            rate_limit: self.dns_rate_limit,
            faults: self.dns_fault.clone(),
        }))
    }
}

/// An address, with or without a port.
fn address(word: &str) -> Result<SocketAddr, String> {
    let bare = word.parse::<IpAddr>();
    let bare = bare.map(|address| SocketAddr::new(address, PORT));
    bare.or_else(|_| word.parse())
        .map_err(|_| "not an address, such as 127.0.0.9 or 127.0.0.9:5353".to_owned())
}

/// The help of `--dns-fault`, with all of them.
fn failures() -> String {
    let help = "Let queries fail, each way with its probability: nxdomain=0.1,servfail=0.05. A query, not a lookup, fails: a program often sends one for IPv4 and one for IPv6\n\nFailures:";
    help.to_owned() + &super::options::list::<LookupFault>()
}
