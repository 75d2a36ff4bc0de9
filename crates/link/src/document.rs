//! Reports a link: messages before and after a run, caveats, and the JSON document. Must not print
//! or write; the caller does.

use crate::{Counts, Link, LinkStats, RoundTrip, Spec};
use intact_ledger::{Caveat, Group, Run, Tally};
use intact_units::number::time;
use intact_units::plural::counted;
use serde::Serialize;
use std::collections::BTreeMap;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum CommandEnd {
    /// With this exit code.
    Code(u8),
    /// By this signal.
    Signal(u8),
}

impl CommandEnd {
    /// The exit code of a wrapper: the command's own, or 128 plus the number of the signal.
    pub fn exit_code(self) -> u8 {
        match self {
            CommandEnd::Code(code) => code,
            CommandEnd::Signal(number) => 128u8.saturating_add(number),
        }
    }
}

/// What the built-in server counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Served {
    /// Requests.
    requests: u64,
    /// Connections that were opened to it.
    connections: u64,
}

impl Served {
    /// The counts of the server's tally.
    pub fn of(mut tally: Tally) -> Served {
        let cell = tally.cell(None, None);
        Served {
            requests: cell.groups.iter().map(Group::count).sum(),
            connections: cell.connections.opened,
        }
    }

    fn words(&self) -> String {
        format!(
            "the server had {} on {}",
            counted(self.requests, "request"),
            counted(self.connections, "connection")
        )
    }
}

/// The schema of the document.
pub const SCHEMA: &str = "intact.link/1";

/// The message before the command runs. `environment`: the variables of the command; their URLs
/// name the server.
pub fn beginning(link: &Link, environment: &[(&str, String)]) -> String {
    let mut text = sentence(link);
    let urls: Vec<&str> = environment
        .iter()
        .filter(|(name, _)| name.ends_with("URL"))
        .map(|(_, url)| url.as_str())
        .collect();
    if !urls.is_empty() {
        text += &format!(
            "\nserver: {} (INTACT_URL); 127.0.0.1 is inside of the link, without a server",
            urls.join(" ")
        );
    }
    text
}

/// The configured link, the measured round trip, and the caveats.
pub fn sentence(link: &Link) -> String {
    let RoundTrip {
        count,
        min_ms,
        p50_ms,
        max_ms,
    } = link.facts().round_trip;
    let mut text = format!(
        "link {}: round trip {} measured ({} to {}, {count} SYNs), {}",
        link.spec(),
        time(p50_ms),
        time(min_ms),
        time(max_ms),
        link.facts().congestion
    );
    for caveat in &link.facts().caveats {
        text += &format!("\nwarning: {caveat}");
    }
    text
}

/// The message after the run: the lateness and the losses of packets.
pub fn end(link: &Link, account: &LinkStats, server: Option<&Served>) -> String {
    let mut text = server.map_or(String::new(), |served| served.words() + "\n");
    text += &format!("link: {} delivered", counted(account.delivered(), "packet"));
    if account.delivered() == 0 {
        text +=
            ": the command sent nothing to $INTACT_URL; --server CMD runs a server of yours there";
    }
    if let Some(lateness) = account.lateness {
        let p99 = lateness
            .p99_us
            .map_or(String::new(), |p99| format!("{} (p99), ", time(p99 / 1e3)));
        text += &format!(
            ", late by {} (p50), {p99}{} (max)",
            time(lateness.p50_us / 1e3),
            time(lateness.max_us / 1e3)
        );
    }
    type Column = (fn(&Counts) -> u64, &'static str);
    let columns: [Column; 4] = [
        (|counts| counts.lost, "lost as asked"),
        (|counts| counts.dropped, "dropped as asked"),
        (
            |counts| counts.tail_dropped,
            "dropped by the full queue before the rate",
        ),
        (|counts| counts.forgotten, "of forgotten flows"),
    ];
    for (of, words) in columns {
        let count = of(&account.up) + of(&account.down);
        if count > 0 {
            text += &format!("; {count} {words}");
        }
    }
    if let Some(warning) = warning(link, account) {
        text += &format!("\nwarning: {warning}");
    }
    text
}

/// Why the times of a run on this link cannot be trusted, if so.
fn warning(link: &Link, account: &LinkStats) -> Option<String> {
    if account.is_punctual() {
        return None;
    }
    if account.failed() > 0 {
        return Some(format!(
            "the link itself lost {} (too many at the same time), so it was not the requested link",
            counted(account.failed(), "packet")
        ));
    }
    let lateness = account.lateness?;
    let advice = if link.facts().real_time {
        "use a quieter machine"
    } else {
        "use a less busy machine, or run as root: then the link runs ahead of other processes"
    };
    Some(format!(
        "{} of {} packets were more than {} late, so times on this link are not reliable: {advice}",
        lateness.late,
        account.delivered(),
        time(lateness.tolerance_us / 1e3)
    ))
}

/// The caveats of the link and of the run, for documents and ledgers.
pub fn caveats(link: &Link, account: &LinkStats) -> Vec<Caveat> {
    let known = link.facts().caveats.iter().cloned();
    let known = known.map(|words| Caveat::new("link-incomplete", words));
    let warning = warning(link, account).map(|words| Caveat::new("link-unreliable", words));
    known.chain(warning).collect()
}

/// The result of each side.
pub struct LinkRun {
    /// Variables that were set for the command.
    pub environment: Vec<(&'static str, String)>,
    /// The command's end.
    pub ended: CommandEnd,
    /// What the server counted, if it was the built-in one.
    pub server: Option<Served>,
}

/// The document of `intact link --json=FILE`.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Document<'a> {
    /// `intact.link/1`.
    schema: &'static str,
    /// The head of a ledger.
    run: Run,
    /// The link, as the command line writes it.
    spec: String,
    /// One-way delay from client to server, in milliseconds.
    up_ms: f64,
    /// One-way delay from server to client, in milliseconds.
    down_ms: f64,
    /// SYN round trips, measured before the command ran.
    round_trip: RoundTrip,
    /// TCP's congestion control on both ends.
    congestion: &'a str,
    /// Whether the forwarder ran ahead of ordinary processes (root only).
    real_time: bool,
    /// Whether the link carries IPv6.
    ipv6: bool,
    /// The environment variables that the command got.
    environment: BTreeMap<&'static str, String>,
    /// How the command ended.
    ended: CommandEnd,
    /// The counts of the built-in server; null with `--server`.
    server: Option<Served>,
    /// The counts of packets.
    #[serde(flatten)]
    account: LinkStats,
    /// Whether times on the link can be trusted: at most 1 % of the packets late, and none lost by
    /// the link itself.
    timing_ok: bool,
    /// What limits the figures.
    caveats: Vec<Caveat>,
}

impl<'a> Document<'a> {
    /// The document of a run on a link.
    pub fn new(run: Run, link: &'a Link, account: LinkStats, done: LinkRun) -> Document<'a> {
        let spec: &Spec = link.spec();
        Document {
            schema: SCHEMA,
            run,
            spec: spec.to_string(),
            up_ms: spec.up.as_secs_f64() * 1e3,
            down_ms: spec.down.as_secs_f64() * 1e3,
            round_trip: link.facts().round_trip,
            congestion: &link.facts().congestion,
            real_time: link.facts().real_time,
            ipv6: link.facts().v6,
            environment: done.environment.into_iter().collect(),
            ended: done.ended,
            server: done.server,
            account,
            timing_ok: account.is_punctual(),
            caveats: caveats(link, &account),
        }
    }

    /// The document as text.
    pub fn json(&self) -> serde_json::Result<String> {
        Ok(serde_json::to_string_pretty(self)? + "\n")
    }
}
