//! What a request and its connection show of their client beyond reuse: fields, cookies, TCP
//! keep-alive probes, lookups.

use super::measure::Bench;
use super::peer::{Peer, Script};
use super::program::{About, Program, ProgramStep};
use anyhow::{Context, bail};
use intact_fix::{ClientFacts, Cookies, TcpKeepalive};
use intact_ledger::Row;
use intact_ledger::store::Reader;
use std::time::Duration;

const PATH: &str = "/signs/x";

/// Measures them.
pub(super) fn measure(bench: &Bench<'_>, facts: &mut ClientFacts) -> anyhow::Result<About> {
    let about = bench.requests(facts).context("requests")?;
    facts.tcp_keepalive = Some(bench.probes().context("probes")?);
    facts.lookups = Some(bench.lookups().context("lookups")?);
    Ok(about)
}

impl Bench<'_> {
    fn requests(&self, facts: &mut ClientFacts) -> anyhow::Result<About> {
        let peer = Peer::start(Script {
            sets_cookie: true,
            ..Script::PLAIN
        })?;
        let mut program = self.start(None)?;
        let url = peer.by_name() + PATH;
        program.run(&ProgramStep::get(&url).times(2))?;
        let about = program.about.clone();
        program.end()?;
        let asked = peer.asked();
        let [first, second] = &asked[..] else {
            bail!("two requests were made, the peer saw {}", asked.len());
        };
        facts.connection_field = Some(first.connection_field.clone());
        facts.cookies = Some(if second.has_cookie {
            Cookies::Kept
        } else {
            Cookies::Dropped
        });
        Ok(about)
    }

    /// Under `intact watch`, which sees the socket options that a program sets.
    fn probes(&self) -> anyhow::Result<TcpKeepalive> {
        // long enough that the socket is looked at while the request is under way
        let peer = Peer::start(Script {
            takes: Duration::from_millis(200),
            ..Script::PLAIN
        })?;
        let folder = tempfile::tempdir()?;
        let ledger = folder.path().join("ledger");
        let options = [
            "--keys=off".to_owned(),
            format!("--ledger={}", ledger.display()),
        ];
        let watched = self.launch.watched(self.intact, options.to_vec());
        let mut program = Program::start(watched.command()?)?;
        let url = peer.plain() + PATH;
        program.run(&ProgramStep::get(&url))?;
        program.end()?;
        let mut ours = Vec::new();
        let mut found = None;
        for row in Reader::open(&ledger)?.events()? {
            match row {
                Row::Opened(connection) | Row::Revised(connection)
                    if connection.peer == Some(peer.address()) =>
                {
                    ours.push(connection.id);
                }
                Row::Closed(closed) if ours.contains(&closed.connection) => {
                    let after_s = closed.close.probes.tcp_keepalive_s;
                    found = Some(
                        after_s.map_or(TcpKeepalive::Off, |after_s| TcpKeepalive::On { after_s }),
                    );
                }
                _ => {}
            }
        }
        found.context("`intact watch` saw no connection")
    }
}
