//! What takes a while to see: how often a client looks its server's name up and for how long it remembers the address, and how
//! long it uses a connection that is never idle.

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
/// As long as nothing in a measurement takes; and the shortest there is.
const LONG_TTL_S: u32 = 300;
const SHORT_TTL_S: u32 = 1;
/// How often the long ones ask: more often than any client's idle limit.
const EVERY: Duration = Duration::from_millis(500);
/// Connections opened so soon after the first are there by design, as a pool of two, and replace nothing.
const BY_DESIGN: Duration = Duration::from_millis(1750);
/// A second question so soon after the first belongs to the same lookup.
const SAME: Duration = Duration::from_millis(250);

impl Bench<'_> {
    /// Counts lookups, without what takes long.
    pub(super) fn lookups(&self) -> anyhow::Result<Lookups> {
        let count = |closes: bool| -> anyhow::Result<u64> {
            let mut room = Namespace::start(self.intact, self.launch, LONG_TTL_S, closes)?;
            room.program
                .run(&ProgramStep::get(namespace::URL).times(REQUESTS))?;
            let books = room.end()?;
            let asked = books.asked.len() as u64;
            if asked != REQUESTS {
                bail!("{REQUESTS} requests were made, the peer saw {asked}");
            }
            Ok(books.lookups.len() as u64)
        };
        Ok(Lookups {
            kept: count(false)?,
            closed: count(true)?,
            dns_cached: None,
        })
    }

    /// How long an address is remembered whose name holds for a second.
    pub(super) fn remembered(&self, how_long: Duration) -> anyhow::Result<Option<DnsCaching>> {
        let mut room = Namespace::start(self.intact, self.launch, SHORT_TTL_S, true)?;
        if !room.program.can(Skill::Pause) {
            return Ok(None);
        }
        keep_asking(&mut room.program, namespace::URL, how_long)?;
        let books = room.end()?;
        let Some(&first) = books.lookups.first() else {
            return Ok(None);
        };
        let again = books.lookups.iter().find(|&&at| at > first + SAME);
        Ok(Some(match again {
            Some(&at) => DnsCaching::Until {
                after_s: tenths(at - first),
            },
            None => DnsCaching::Throughout {
                for_s: tenths(how_long),
            },
        }))
    }

    /// How long a connection is used that is always in use; `None` where each request has its own.
    pub(super) fn life(&self, how_long: Duration) -> anyhow::Result<Option<LifetimeFacts>> {
        let peer = Peer::start(Script::PLAIN)?;
        let mut program = self.start(None)?;
        if !program.can(Skill::Pause) {
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
