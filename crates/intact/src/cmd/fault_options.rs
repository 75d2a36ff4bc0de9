//! `--fault` and its like: which kinds of faults a program or a function runs under, and the run
//! without a fault before them.

use crate::cmd::run_header;
use crate::exit::{Failed, refuse};
use anyhow::{Context, anyhow};
use intact_ledger::{FaultKind, FaultScope, Producer, TlsVersion, Vantage, Variant};
use intact_serve::{Addresses, Certificate, CertificateAuthority, Server, TlsConfig};
use intact_servers::fault::{AXIS, NO_FAULT, ONE};
use intact_units::{duration, suggest};
use intact_watch::{FaultConfig, FaultHost};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// All kinds.
const EACH: &str = "each";

/// The options.
#[derive(Clone, Debug, clap::Args, Serialize, Deserialize)]
#[command(next_help_heading = "Faults")]
pub(crate) struct FaultOptions {
    #[arg(long, help = fault_help(), value_name = "KIND[=TIME],..", value_delimiter = ',', value_parser = choice)]
    fault: Vec<FaultChoice>,
    /// Strike one connection of a pool, or all that are open, as a restart, a NAT or a balancer
    /// does [default: with one kind all; with several kinds a run for each where a pool has
    /// several]
    #[arg(long, value_name = "one|all", value_parser = scope, requires = "fault")]
    fault_scope: Option<FaultScope>,
    /// Limit faults to this destination, may be repeated [default: all]
    #[arg(long, value_name = "HOST[:PORT]", value_parser = host, requires = "fault")]
    fault_host: Vec<FaultHost>,
    /// Seed of the choice of connections [default: 0]
    #[arg(long, value_name = "N", requires = "fault")]
    fault_seed: Option<u64>,
    /// Reset a connection that stalls for this long, so that the program can go on [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = crate::cmd::bench::time, requires = "fault")]
    fault_wait: Option<Duration>,
}

fn fault_help() -> String {
    let kinds = FaultKind::ALL.map(|kind| match kind.row().default_after {
        Some(nanos) => format!("{kind}[={}]", duration::write(Duration::from_nanos(nanos))),
        None => kind.to_string(),
    });
    format!(
        "Break kept connections of the program, and report what it does. The kinds: {}. Several kinds, `each`, or `none` next to a kind: the program runs once without a fault, then once for each kind",
        kinds.join(", ")
    )
}

/// What one word of `--fault` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum FaultChoice {
    Each,
    /// The run without a fault, for comparison.
    None,
    Kind(FaultKind, Option<Duration>),
}

/// For clap: `each`, a kind, or a kind with its time.
fn choice(word: &str) -> Result<FaultChoice, String> {
    if word == EACH {
        return Ok(FaultChoice::Each);
    }
    if word == NO_FAULT {
        return Ok(FaultChoice::None);
    }
    let (id, time) = match word.split_once('=') {
        Some((id, time)) => (id, Some(time)),
        None => (word, None),
    };
    let Ok(kind) = id.parse::<FaultKind>() else {
        let known = || {
            let kinds = FaultKind::ALL.iter().map(|kind| kind.id());
            kinds.chain([EACH, NO_FAULT])
        };
        return Err(match suggest::nearest(id, known()) {
            Some(meant) => format!("unknown kind of fault; did you mean `{meant}`?"),
            None => format!(
                "unknown kind of fault; there is {}",
                known().collect::<Vec<_>>().join(", ")
            ),
        });
    };
    let Some(time) = time else {
        return Ok(FaultChoice::Kind(kind, None));
    };
    if kind.row().default_after.is_none() {
        let timed = FaultKind::ALL.into_iter();
        let timed = timed.filter(|kind| kind.row().default_after.is_some());
        let timed: Vec<String> = timed.map(|kind| format!("`{kind}`")).collect();
        return Err(format!(
            "`{kind}` takes no time; {} do",
            timed.join(" and ")
        ));
    }
    let time = crate::cmd::bench::time(time).map_err(|error| error.to_string())?;
    if time.is_zero() {
        return Err("the time is above zero".to_owned());
    }
    Ok(FaultChoice::Kind(kind, Some(time)))
}

/// For clap.
fn scope(word: &str) -> Result<FaultScope, String> {
    word.parse().map_err(|_| "write one or all".to_owned())
}

/// For clap.
fn host(word: &str) -> Result<FaultHost, String> {
    FaultHost::parse(word).ok_or_else(|| "write HOST or HOST:PORT, without a scheme".to_owned())
}

impl FaultOptions {
    /// The same with all kinds, if they were asked for elsewhere.
    pub(crate) fn with_each(&self, is_asked: bool) -> FaultOptions {
        let mut all = self.clone();
        all.fault.extend(is_asked.then_some(FaultChoice::Each));
        all
    }

    /// Whether faults were asked for.
    pub(crate) fn is_any(&self) -> bool {
        !self.fault.is_empty()
    }

    /// The runs: without a fault where there is something to compare, then one for each kind.
    ///
    /// # Errors
    /// There is no kind.
    pub(crate) fn planned(&self) -> Result<Vec<Option<FaultConfig>>, Failed> {
        let mut faults = self.faults();
        if let Some(fault) = faults
            .iter_mut()
            .find(|one| one.kind.row().has_other_server())
        {
            fault.other_server = Some(other_server()?);
        }
        if faults.is_empty() {
            let words =
                "--fault none is the run to compare with: add a kind, as in --fault none,rst";
            refuse!(words);
        }
        let has_baseline = faults.len() > 1 || self.fault.contains(&FaultChoice::None);
        let baseline = has_baseline.then_some(None).into_iter();
        match self.fault_scope {
            Some(scope) => faults.iter_mut().for_each(|fault| fault.scope = scope),
            None if has_baseline => faults = faults.into_iter().flat_map(in_both_scopes).collect(),
            None => {}
        }
        Ok(baseline.chain(faults.into_iter().map(Some)).collect())
    }

    /// The seed of the choice of connections.
    pub(crate) fn seed(&self) -> u64 {
        self.fault_seed.unwrap_or(FaultConfig::SEED)
    }

    /// The faults, in the order of their kinds.
    fn faults(&self) -> Vec<FaultConfig> {
        let mut times: BTreeMap<FaultKind, Option<Duration>> = BTreeMap::new();
        for choice in &self.fault {
            match *choice {
                FaultChoice::Each => {
                    for kind in FaultKind::ALL {
                        times.entry(kind).or_insert(None);
                    }
                }
                FaultChoice::None => {}
                FaultChoice::Kind(kind, time) => {
                    let known = times.entry(kind).or_insert(None);
                    *known = time.or(*known);
                }
            }
        }
        let fault = |(kind, time): (FaultKind, Option<Duration>)| {
            let mut fault = FaultConfig::new(kind);
            fault.after = time.unwrap_or(fault.after);
            fault.hosts.clone_from(&self.fault_host);
            fault.seed = self.seed();
            fault.wait = self.fault_wait.unwrap_or(fault.wait);
            fault
        };
        times.into_iter().map(fault).collect()
    }
}

/// Starts the server that [`FaultKind::OtherServer`] puts at an address, until the end of this
/// process: its ports for plain HTTP and for TLS.
fn other_server() -> Result<[SocketAddr; 2], Failed> {
    let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
    let authority = CertificateAuthority::issue(&[], Certificate::WrongName)
        .context("the server of --fault other-server")?;
    let versions = vec![TlsVersion::Tls12, TlsVersion::Tls13];
    let server = Server::bind(intact_serve::Config {
        plain: Some(loopback),
        tls: Some((loopback, TlsConfig::new(authority.into(), versions))),
        // as a server responds that has never heard of the path
        status: 404,
        ..intact_serve::Config::default()
    })
    .context("the server of --fault other-server")?;
    let Addresses { plain, tls, .. } = server.addresses();
    let head = run_header::head(Producer::Serve, Vantage::Server, &[]);
    // signals are for the thread that watches
    intact_watch::without_signals(|| {
        std::thread::spawn(move || server.run(head, None, std::future::pending()));
    });
    plain
        .zip(tls)
        .map(|(plain, tls)| [plain, tls])
        .ok_or_else(|| anyhow!("the server of --fault other-server has no port").into())
}

/// A fault of the whole pool, and then of one connection.
fn in_both_scopes(fault: FaultConfig) -> impl Iterator<Item = FaultConfig> {
    let scopes = match fault.kind.row().is_of_address {
        true => &[FaultScope::All][..],
        false => &[FaultScope::All, FaultScope::One],
    };
    scopes.iter().map(move |&scope| FaultConfig {
        scope,
        ..fault.clone()
    })
}

/// Whether the run before has shown what this one would: without a pool of several connections, a
/// fault strikes the same ones. `has_struck_pool`: whether the run before has met one.
pub(crate) fn was_shown(
    before: Option<&FaultConfig>,
    own: Option<&FaultConfig>,
    has_struck_pool: bool,
) -> bool {
    let (Some(before), Some(own)) = (before, own) else {
        return false;
    };
    let is_pair = (before.scope, own.scope) == (FaultScope::All, FaultScope::One);
    is_pair && before.kind == own.kind && !has_struck_pool
}

/// The run under a fault, as the header of its ledger names it.
pub(crate) fn variant(fault: Option<&FaultConfig>) -> Variant {
    let name = match fault {
        None => NO_FAULT.to_owned(),
        Some(fault) => match fault.kind.row().default_after {
            Some(_) => format!("{}={}", fault.kind, duration::write(fault.after)),
            None => fault.kind.id().to_owned(),
        },
    };
    let name = match fault.map(|fault| fault.scope) {
        Some(FaultScope::One) => name + ONE,
        _ => name,
    };
    Variant {
        axes: BTreeMap::from([(AXIS.to_owned(), name.clone())]),
        name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_takes_a_time_only_where_it_has_one() {
        let kind = |kind, time| Ok(FaultChoice::Kind(kind, time));
        assert_eq!(choice("each"), Ok(FaultChoice::Each));
        assert_eq!(choice("none"), Ok(FaultChoice::None));
        assert_eq!(choice("stale"), kind(FaultKind::Stale, None));
        let second = Some(Duration::from_secs(1));
        assert_eq!(choice("nat-idle=1s"), kind(FaultKind::NatIdle, second));
        assert!(choice("stale=1s").unwrap_err().contains("takes no time"));
        assert!(choice("max-age=0s").is_err() && choice("max-age=soon").is_err());
        assert!(choice("blackhole").unwrap_err().contains("`black-hole`"));
        assert!(
            choice("earthquake")
                .unwrap_err()
                .contains("partial-goaway, each, none")
        );
    }

    #[test]
    fn each_is_every_kind_once_and_a_time_next_to_it_counts() {
        let args = |words: &[&str]| FaultOptions {
            fault: words.iter().map(|word| choice(word).unwrap()).collect(),
            fault_host: Vec::new(),
            fault_scope: None,
            fault_seed: Some(7),
            fault_wait: None,
        };
        for words in [["each", "nat-idle=1s"], ["nat-idle=1s", "each"]] {
            let faults = args(&words).faults();
            let kinds: Vec<FaultKind> = faults.iter().map(|fault| fault.kind).collect();
            assert_eq!(kinds, FaultKind::ALL);
            let idle = faults.iter().find(|one| one.kind == FaultKind::NatIdle);
            let idle = idle.unwrap();
            assert_eq!((idle.after, idle.seed), (Duration::from_secs(1), 7));
            assert_eq!(variant(Some(idle)).name, "nat-idle=1s");
        }
        let one = args(&["stale", "stale"]).faults();
        assert_eq!(one.len(), 1);
    }
}
