//! Access logs of servers and proxies: lines to connections and exchanges.
//!
//! A log may show which request used which connection. Otherwise the summary recommends the
//! directive that logs it.

mod balancer;
mod connections;
mod json;
mod json_names;
mod lambda;
mod line;
mod line_block;
pub(crate) mod log_format;
mod ltsv;
mod notices;
mod pairs;
mod pattern;
mod serials;
mod syslog;
mod w3c;

pub(crate) use connections::{LogConnections, exchange, origin};
pub(crate) use json::Name;
pub(crate) use line::Line;
pub(crate) use log_format::LogFormat;
pub use pattern::{Pattern, PatternError};

use crate::error::AuditError;
use crate::event_writer::EventWriter;
use crate::input::{Input, LONGEST_LINE};
use crate::input_summary::{InputSummary, Unit};
use crate::unread_lines::UnreadLines;
use connections::Evidence;
use intact_ledger::{Evidence as Kind, EvidenceSet};
use intact_units::number::count;
use intact_units::plural::counted;
use line_block::{LineBlock, Parsed};

/// Lines whose connections are looked up together.
const AHEAD: usize = 8;

/// Caveat for lines that begin before the base.
const EARLY: &str =
    "lines are earlier than the first ones: they count as at the beginning of the log";

/// Start of the first lines, in nanoseconds since 1970.
pub(crate) fn begins_at(prefix: &[u8], dialect: &LogFormat) -> Option<u64> {
    let text = String::from_utf8_lossy(prefix);
    let starts = text.lines().filter_map(|text| {
        let line = dialect.read(text.trim())?;
        let took = line.took.unwrap_or(0);
        let end = line.end.map(|stamp| stamp.nanos.saturating_sub(took));
        line.start.map(|stamp| stamp.nanos).or(end)
    });
    starts.min()
}

/// Whether the first lines have durations of requests, or hold no requests; and whether one has the
/// version of TLS and the kind of its handshake.
pub(crate) fn shows(prefix: &[u8], dialect: &LogFormat) -> EvidenceSet {
    let text = String::from_utf8_lossy(prefix);
    let lines = text.lines().filter_map(|text| dialect.read(text.trim()));
    let (mut requests, mut is_timed, mut has_handshake) = (false, false, false);
    for line in lines.filter(Line::is_request) {
        requests = true;
        is_timed |= line.took.is_some() || (line.start.is_some() && line.end.is_some());
        has_handshake |= line.tls.is_some() && line.resumed.is_some();
    }
    let shown = [
        (Kind::Durations, is_timed || !requests),
        (Kind::Handshakes, has_handshake),
    ];
    let shown = shown.into_iter().filter(|(_, is_shown)| *is_shown);
    shown.map(|(kind, _)| kind).collect()
}

/// Whether one of the first lines has a time in whole seconds. The last line of the prefix may be
/// incomplete.
pub(crate) fn is_coarse(prefix: &[u8], dialect: &LogFormat) -> bool {
    let whole = memchr::memrchr(b'\n', prefix).unwrap_or(prefix.len());
    let text = String::from_utf8_lossy(&prefix[..whole]);
    let mut lines = text.lines().filter_map(|text| dialect.read(text.trim()));
    lines.any(|line| line.start.or(line.end).is_some_and(|stamp| stamp.coarse))
}

/// Reads a log to its end.
pub(crate) fn read(
    input: &mut Input,
    dialect: &mut LogFormat,
    pools: &mut LogConnections,
    writer: &mut EventWriter<'_>,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<InputSummary, AuditError> {
    pools.begin(begins_at(input.window.available(), dialect));
    let (mut lines, mut skipped, mut early) = (UnreadLines::default(), 0, 0);
    let base = writer.run.base;
    let mut take_one = |one: &Parsed<'_>, pools: &mut LogConnections| {
        lines.count(one.line.is_cut, one.line.is_too_long, one.state);
        let values = one.values.as_ref();
        let stamp = values.and_then(|line| line.start.or(line.end));
        early += u64::from(stamp.is_some_and(|stamp| stamp.nanos < base));
        let used = values.is_some_and(|line| pools.take(line, writer));
        skipped += u64::from(!used);
    };
    let mut take = |part: &[Parsed<'_>]| {
        for next in part.chunks(AHEAD) {
            pools.expect(next.iter().filter_map(|one| one.values.as_ref()));
            next.iter().for_each(|one| take_one(one, pools));
        }
    };
    let mut block = LineBlock::default();
    input.each_line(LONGEST_LINE, go_on, |line| {
        let start = line.bytes.trim_ascii_start().first();
        if start == Some(&b'#') {
            block.drain(dialect, &mut take);
            dialect.take_directive(line.text().trim());
        } else if start.is_some() || line.is_too_long {
            block.push(line);
        }
        if block.is_full() {
            block.drain(dialect, &mut take);
        }
        true
    });
    block.drain(dialect, take);
    // a quiet hour has directives and messages only
    let is_known = lines.unread == 0 && (lines.all > 0 || dialect.is_named());
    if skipped == lines.all && !is_known {
        return Err(input.broken("no line can be parsed: pass the format from the server's configuration with --log-format"));
    }
    let prefix = input.prefix();
    lines.record(&prefix, dialect.format.remedy, writer);
    writer.caveats(&prefix, &[(early, "input-out-of-order", EARLY)]);
    if let Some(missing) = dialect.format.missing {
        writer.incomplete("log-without-tls", format!("{prefix}{missing}"));
    }
    let (evidence, advice) = match skipped == lines.all {
        true => (
            format!("{}; no line is a request", dialect.format.name),
            Vec::new(),
        ),
        false => describe(dialect, pools.evidence, &prefix, writer),
    };
    Ok(InputSummary {
        evidence: Some(evidence),
        advice,
        ..input.account(Unit::Lines, lines.all, skipped)
    })
}

/// Describes the evidence, and the configuration that improves it.
fn describe(
    dialect: &LogFormat,
    evidence: Evidence,
    prefix: &str,
    writer: &mut EventWriter<'_>,
) -> (String, Vec<String>) {
    let requests = evidence.by_id + evidence.by_port + evidence.none;
    if evidence.coarse > 0 {
        writer.caveat(
            "log-coarse-times",
            format!(
                "{prefix}times have whole seconds only: the overlap of requests within a second and exact idle times are unknown{}",
                dialect.format.time_fields
            ),
        );
    }
    if evidence.timed == 0 && requests > 0 {
        writer.caveat(
            "log-without-durations",
            format!("{prefix}it does not contain how long a request took: latencies are unknown"),
        );
    }
    if evidence.none > 0 {
        let remedy = dialect.connection_fields();
        writer.caveat(
            "log-without-connections",
            format!(
                "{prefix}no connection id in {} of {} requests: the number of their connections and their reuse are unknown{remedy}",
                count(evidence.none),
                count(requests)
            ),
        );
    }
    if evidence.maybe_older > 0 {
        let remedy = dialect.position_field(evidence.by_id > 0);
        writer.caveat(
            "log-without-positions",
            format!(
                "{prefix}the log has no positions of requests. {} may have been open before the log began, so reuse by the first request of each is unknown{remedy}",
                counted(evidence.maybe_older, "connection")
            ),
        );
    }
    if evidence.passed_positions > 0 {
        let repeated = counted(evidence.passed_positions, "request");
        writer.incomplete(
            "log-positions-repeat",
            format!(
                "{prefix}{repeated} came with a position that the connection of this id had passed: the lines are of several servers, repeated or sorted again, so connections are not known. Audit the log of each server by itself, as it was written"
            ),
        );
    }
    let on_free_ports = evidence.maybe_same + evidence.maybe_another;
    if on_free_ports > 0 {
        let remedy = dialect.position_field(evidence.by_id > 0);
        writer.caveat(
            "log-port-silent",
            format!(
                "{prefix}a client may use a port again for another connection after 60 s of silence or 256 other connections. {} on such a port may have reused the connection before; {} of them count as opened{remedy}",
                counted(on_free_ports, "request"),
                count(evidence.maybe_same)
            ),
        );
    }
    if evidence.none == requests && requests > 0 {
        let evidence = format!(
            "{}; nothing in it identifies connections",
            dialect.format.name
        );
        return (evidence, dialect.advice());
    }
    let by = match (evidence.by_id, evidence.by_port) {
        (0, 0) => "each line is a connection",
        (_, 0) => "connections identified by the server's ids",
        (0, _) => "connections identified by the client's address and port",
        _ => "connections identified by the server's ids, or the client's address and port",
    };
    let position = if evidence.with_position > 0 {
        " and a request's position"
    } else {
        ""
    };
    (
        format!("{}; {by}{position}", dialect.format.name),
        Vec::new(),
    )
}
