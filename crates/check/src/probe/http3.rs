//! HTTP/3, if the server announces it by `Alt-Svc`. Measures whether it works, the setup times of
//! new and resumed connections and of early data, the reuse by requests, and the announced limits.
//! A failed dial is a result, because many networks drop UDP.

use crate::context::ProbeContext;
use crate::line::{Answered, Line, refused};
use crate::plans::Plans;
use crate::prober::Probed;
use intact_client::tls::Client;
use intact_client::{HAS_HTTP3, Plan};
use intact_ledger::server_profile::{
    EarlyData, Http3Connection, Http3Result, Http3Seen, IdleWait, QuicParameters,
};
use intact_ledger::{Handshake, Protocol, Span};
use std::sync::Arc;
use std::time::Duration;

/// The timeout: a network that drops UDP gives no sign.
const DROPPED: Duration = Duration::from_secs(3);
/// Requests on the first connection.
const REQUESTS: u32 = 3;

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let Some(seen) = context.profile.h3.clone().filter(|_| HAS_HTTP3) else {
        return Ok(());
    };
    let client = client(&context.plans)?;
    let mut tried = Http3Result {
        wanted: REQUESTS,
        ..Http3Result::default()
    };
    let done = context.with_patience(DROPPED, |context| {
        try_all(context, &seen, &client, &mut tried)
    });
    // results from before an early end count; without a connection there are none
    let is_result = done.is_ok() || !tried.connections.is_empty();
    context.profile.h3 = Some(Http3Seen {
        tried: is_result.then_some(tried),
        ..seen
    });
    done
}

/// A TLS client that resumes its sessions.
pub(super) fn client(plans: &Plans<'_>) -> Probed<Client> {
    Ok(plans.client(Protocol::Http3, None, true)?)
}

/// To the alternative, with the name of the origin.
pub(super) fn plan(plans: &Plans<'_>, seen: &Http3Seen, client: &Client) -> Probed<Arc<Plan>> {
    let mut plan = plans.with_client(Protocol::Http3, Some(client.clone()))?;
    let host = seen.host.as_deref().unwrap_or(&plans.address.host);
    plan.endpoint = plans.endpoint(host, seen.port)?;
    Ok(Arc::new(plan))
}

fn try_all(
    context: &mut ProbeContext<'_>,
    seen: &Http3Seen,
    client: &Client,
    tried: &mut Http3Result,
) -> Probed {
    let usual = plan(&context.plans, seen, client)?;
    match context.prober.open(&usual)? {
        Ok(line) => converse(context, line, REQUESTS, tried)?,
        Err(failed) => (tried.outcome, tried.detail) = refused(&failed),
    }
    if !tried.outcome.is_ok() {
        return Ok(());
    }
    // the request brings a new ticket where the server sends one at a time
    if let Ok(line) = context.prober.open(&usual)? {
        converse(context, line, 1, tried)?;
    }
    let is_resumed = |tried: &Http3Result| {
        let last = tried.connections.last();
        last.is_some_and(|last| last.handshake != Handshake::Full)
    };
    if tried.connections.len() < 2 || !is_resumed(tried) {
        return Ok(());
    }
    let early = plan(&context.plans, seen, &client.allowing_early_requests())?;
    if let Ok(line) = context.prober.open(&early)? {
        let is_early = line.connection().tls.is_none();
        converse(context, line, 1, tried)?;
        let third = tried.connections.get(2).map(|third| third.handshake);
        tried.early_data = match (is_early, third) {
            (true, Some(Handshake::EarlyData)) => Some(EarlyData::Accepted),
            (true, Some(_)) => Some(EarlyData::Rejected),
            (false, Some(Handshake::Resumed)) => Some(EarlyData::NotOffered),
            // no ticket was left, or the handshake failed
            _ => None,
        };
    }
    Ok(())
}

/// Sends requests on a connection, and records both.
fn converse(
    context: &mut ProbeContext<'_>,
    mut line: Line,
    requests: u32,
    tried: &mut Http3Result,
) -> Probed {
    let is_first = tried.connections.is_empty();
    let request = context.light_request();
    let mut first = None;
    let mut done = Ok(());
    for nth in 0..requests {
        let answered = match context.prober.ask(&mut line, &request, None) {
            Ok(answered) => answered,
            Err(stopped) => {
                done = Err(stopped);
                break;
            }
        };
        let is_ok = answered.is_ok();
        if is_first {
            tried.answered += u32::from(is_ok);
        }
        if nth == 0 {
            first = Some(answered);
        }
        if !is_ok || !line.is_usable() {
            break;
        }
    }
    if let (true, Some(first)) = (is_first, &first) {
        (tried.outcome, tried.detail) = first.outcome();
        tried.status = first.exchange.status;
    }
    if let Some(connection) = facts(&line, first.as_ref()) {
        tried.connections.push(connection);
    }
    if is_first {
        tried.parameters = line.http.transport_parameters().map(|sent| QuicParameters {
            max_idle_timeout_ms: sent.max_idle_timeout_ms,
            max_request_streams: sent.max_request_streams,
        });
    }
    context.prober.close(line);
    done
}

/// The facts of a connection; `None` if its handshake was never complete.
fn facts(line: &Line, first: Option<&Answered>) -> Option<Http3Connection> {
    let connection = line.connection();
    let handshake = connection.tls.as_ref()?.handshake?;
    let first_request = first.filter(|first| first.is_ok());
    Some(Http3Connection {
        handshake,
        setup: connection
            .setup
            .connect
            .filter(|_| line.handshake.round_trips.is_some()),
        to_first_answer: line
            .handshake
            .first_at
            .zip(connection.setup.connect)
            .map(|(first, setup)| Span::new(setup.start, first)),
        round_trips: line.handshake.round_trips,
        first_request: first_request.map(|first| Span::new(connection.at, first.exchange.end)),
    })
}

/// The announcement, if HTTP/3 works.
pub(super) fn working(context: &ProbeContext<'_>) -> Option<Http3Seen> {
    let works = |seen: &&Http3Seen| {
        let tried = seen.tried.as_ref();
        tried.is_some_and(|tried| tried.outcome.is_ok())
    };
    context.profile.h3.as_ref().filter(works).cloned()
}

/// A connection that has carried one request, for the idle probe; `None` if HTTP/3 did not work.
pub(super) fn open_idle(context: &mut ProbeContext<'_>) -> Probed<Option<Line>> {
    let Some(seen) = working(context) else {
        return Ok(None);
    };
    let plan = plan(&context.plans, &seen, &client(&context.plans)?)?;
    let Ok(mut line) = context.prober.open(&plan)? else {
        return Ok(None);
    };
    line.is_secondary = true;
    let request = context.light_request();
    let answered = context.prober.ask(&mut line, &request, None);
    if answered.as_ref().is_ok_and(Answered::is_ok) && line.is_usable() {
        return Ok(Some(line));
    }
    context.prober.close(line);
    answered?;
    Ok(None)
}

/// Records how long that connection was idle.
pub(super) fn note_idle(context: &mut ProbeContext<'_>, waited: IdleWait) {
    let seen = context.profile.h3.as_mut();
    if let Some(tried) = seen.and_then(|seen| seen.tried.as_mut()) {
        tried.idle = Some(waited);
    }
}
