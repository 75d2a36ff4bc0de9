//! Measures lookups of a client and two lifetimes: how long it keeps an address, and how long it
//! uses a connection that is never idle.

use super::measure::Bench;
use super::namespace::{self, Namespace};
use super::peer::{Peer, Script};
use super::program::{Program, ProgramStep, Skill};
use anyhow::{Context, bail};
use intact_fix::{DnsCaching, LifetimeFacts, Lookups};
use std::time::{Duration, Instant};

const PATH: &str = "/life/x";
/// Requests in turn whose lookups are counted.
const REQUESTS: u64 = 10;
/// A TTL that no measurement outlasts, and the shortest TTL.
const LONG_TTL_S: u32 = 300;
const SHORT_TTL_S: u32 = 1;
/// Interval of requests in long measurements, shorter than any client's idle limit.
const EVERY: Duration = Duration::from_millis(500);
/// A connection opened this soon after the first belongs to the pool by design (some pools have
/// two). It replaces no other.
const BY_DESIGN: Duration = Duration::from_millis(1750);
/// A second query this soon after the first belongs to the same lookup.
const SAME: Duration = Duration::from_millis(250);

impl Bench<'_> {
    /// Counts lookups; the lifetimes, which take long, are measured separately.
    pub(super) fn lookups(&self) -> anyhow::Result<Lookups> {
        let count = |closes: bool| -> anyhow::Result<u64> {
            let mut namespace = Namespace::start(self.intact, self.launch, LONG_TTL_S, closes)?;
            namespace
                .program
                .run(&ProgramStep::get(namespace::URL).times(REQUESTS))?;
            let report = namespace.end()?;
            let asked = report.asked.len() as u64;
            if asked != REQUESTS {
                bail!("{REQUESTS} requests were made, the peer saw {asked}");
            }
            Ok(report.lookups.len() as u64)
        };
        Ok(Lookups {
            kept: count(false)?,
            closed: count(true)?,
            dns_cached: None,
        })
    }

    /// How long an address with a TTL of one second is used.
    pub(super) fn remembered(&self, how_long: Duration) -> anyhow::Result<Option<DnsCaching>> {
        let mut namespace = Namespace::start(self.intact, self.launch, SHORT_TTL_S, true)?;
        if !namespace.program.can(Skill::Pause) {
            return Ok(None);
        }
        keep_asking(&mut namespace.program, namespace::URL, how_long)?;
        let report = namespace.end()?;
        let Some(&first) = report.lookups.first() else {
            return Ok(None);
        };
        let again = report.lookups.iter().find(|&&at| at > first + SAME);
        Ok(Some(match again {
            Some(&at) => DnsCaching::Until {
                after_s: tenths(at - first),
            },
            None => DnsCaching::Throughout {
                for_s: tenths(how_long),
            },
        }))
    }

    /// How long a connection is used that is never idle; `None` if each request has its own
    /// connection.
    pub(super) fn life(&self, how_long: Duration) -> anyhow::Result<Option<LifetimeFacts>> {
        let peer = Peer::start(Script::PLAIN)?;
        let mut program = self.start(None)?;
        if !program.can(Skill::Pause) || program.can(Skill::Http2Only) {
            return Ok(None);
        }
        let url = peer.plain() + PATH;
        keep_asking(&mut program, &url, how_long)?;
        program.end()?;
        let asked = peer.asked();
        let first = asked.first().context("the peer saw no request")?.at;
        let mut newest = 0;
        let connections = asked.iter().map(|one| one.connection).max();
        if connections == Some(asked.len() as u64) {
            return Ok(None);
        }
        for one in &asked {
            if one.connection > newest && one.at > first + BY_DESIGN {
                return Ok(Some(LifetimeFacts::Ended {
                    after_s: tenths(one.at - first),
                }));
            }
            newest = newest.max(one.connection);
        }
        Ok(Some(LifetimeFacts::Unlimited {
            for_s: tenths(how_long),
        }))
    }
}

/// Makes a request every half second.
fn keep_asking(program: &mut Program, url: &str, how_long: Duration) -> anyhow::Result<()> {
    let begin = Instant::now();
    let mut next = begin;
    while next <= begin + how_long {
        std::thread::sleep(next.saturating_duration_since(Instant::now()));
        program.run(&ProgramStep::get(url))?;
        next += EVERY;
    }
    Ok(())
}

fn tenths(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}
