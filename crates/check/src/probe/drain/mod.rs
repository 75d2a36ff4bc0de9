//! Drain: ends the server's process by a signal while connections are open. Some are idle, some
//! carry requests at intervals, some have a request in flight; new connections are opened, too.
//! Records all of them until the process has ended.
//!
//! This file opens the connections and sends the signal; `measurement` records what follows. It
//! must not draw conclusions.

mod measurement;

use crate::context::ProbeContext;
use crate::line::Line;
use crate::prober::Probed;
use crate::server_process::ServerProcess;
use intact_client::RequestSpec;
use intact_ledger::Protocol;
use intact_ledger::server_profile::{Drain, DrainRole, ServerEnd};
use measurement::Measurement;
use std::time::Duration;

/// The number of connections of each kind, for HTTP/1 and for later versions.
const CONNECTIONS: [(DrainRole, usize, usize); 3] = [
    (DrainRole::Idle, 2, 1),
    (DrainRole::Used, 4, 2),
    (DrainRole::InFlight, 2, 1),
];
/// The delay before the signal. Meanwhile the server starts to process the slow request,
/// connections become idle, and a command that starts its server in the background exits.
const HEAD_START: Duration = Duration::from_millis(200);
/// The longest wait for a response in a version that the server may not support.
const TRIAL: Duration = Duration::from_secs(2);

/// The maximum of requests of a drain of this length.
pub(crate) fn most_requests(limit: Duration) -> u32 {
    let per_version = |http1: bool| -> u32 {
        let many = |wanted: DrainRole| {
            let row = CONNECTIONS.iter().find(|(role, ..)| *role == wanted);
            row.map_or(0, |(_, one, two)| if http1 { *one } else { *two }) as u32
        };
        // the trial, the first request of each connection, one or two in flight
        let before =
            1 + many(DrainRole::Idle) + many(DrainRole::Used) + 4 * many(DrainRole::InFlight);
        before + many(DrainRole::Used) * measurement::turns(limit)
    };
    per_version(true) + per_version(false) + measurement::turns(limit)
}

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let Some(drain) = context.config.drain.clone() else {
        return Ok(());
    };
    let Some(server) = context.server.take() else {
        return Ok(());
    };
    let versions = match context.config.http {
        Some(version) => vec![version],
        None => vec![Protocol::Http11, Protocol::Http2],
    };
    let spoken = spoken(context, &versions)?;
    let usual = context.keeping_request();
    let slow = drain.slow.as_ref().map(|slow| context.extra_request(slow));
    let blank = Drain {
        signal: drain.signal.name().to_owned(),
        at: context.prober.clock.now(),
        limit_ns: nanos(drain.limit),
        connections: Vec::new(),
        requests: Vec::new(),
        process: ServerEnd::default(),
        over_at: context.prober.clock.now(),
    };
    let mut measured = Measurement::new(blank, usual, &spoken, context)?;
    let done = measure(context, &mut measured, slow.as_ref(), &spoken, server);
    measured.close_all(&mut context.prober);
    // nothing was measured before the signal
    if measured.is_signalled {
        context.profile.drain = Some(measured.drain);
    }
    done
}

/// The versions in which the server responded, and whether its connection could be reused.
fn spoken(context: &mut ProbeContext<'_>, versions: &[Protocol]) -> Probed<Vec<(Protocol, bool)>> {
    let request = context.keeping_request();
    let mut spoken = Vec::new();
    for &version in versions {
        context.with_patience(TRIAL, |context| {
            let Some(mut line) = context.open(version)? else {
                return Ok(());
            };
            let answered = context.prober.ask(&mut line, &request, None);
            let is_usable = line.is_usable();
            context.prober.close(line);
            if answered?.is_ok() {
                spoken.push((version, is_usable));
            }
            Ok(())
        })?;
    }
    Ok(spoken)
}

/// Opens the connections, starts the slow requests, sends the signal, and records what follows.
fn measure(
    context: &mut ProbeContext<'_>,
    measured: &mut Measurement,
    slow: Option<&RequestSpec>,
    spoken: &[(Protocol, bool)],
    server: &mut dyn ServerProcess,
) -> Probed {
    for &(version, keeps) in spoken {
        for (role, one, two) in CONNECTIONS {
            let many = if version.has_streams() { two } else { one };
            let many = match role {
                DrainRole::InFlight if slow.is_some() => 2 * many,
                // a connection that the server does not keep can only carry a request in flight
                DrainRole::InFlight => many,
                _ if keeps => many,
                _ => 0,
            };
            for _ in 0..many {
                if let Some(line) = line_up(context, version, keeps)? {
                    measured.add(line, version, role);
                }
            }
        }
    }
    if let Some(slow) = slow {
        measured.send_in_flight(&mut context.prober, slow, 2)?;
    }
    let until = context.prober.clock.now().after(nanos(HEAD_START));
    measured.wait_until(&mut context.prober, until)?;
    let usual = context.keeping_request();
    measured.send_in_flight(&mut context.prober, &usual, 1)?;
    let Some(drain) = &context.config.drain else {
        return Ok(());
    };
    measured.signal(&mut context.prober, server, drain.signal)?;
    measured.run(&mut context.prober, server)
}

/// Opens a connection of this version. If the server keeps connections, it has carried one request.
fn line_up(context: &mut ProbeContext<'_>, version: Protocol, keeps: bool) -> Probed<Option<Line>> {
    let Some(mut line) = context.open(version)? else {
        return Ok(None);
    };
    if keeps {
        let request = context.keeping_request();
        let answered = context.prober.ask(&mut line, &request, None);
        if !matches!(&answered, Ok(answered) if answered.is_ok()) || !line.is_usable() {
            context.prober.close(line);
            answered?;
            return Ok(None);
        }
    }
    Ok(Some(line))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
