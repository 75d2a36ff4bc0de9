//! HTTP/3, where the server announces it by `Alt-Svc`: whether it works, whether a second request reuses the connection, and whether a
//! second connection resumes the session. A failed dial is a result: many networks drop UDP.

use super::{Ended, ProbeContext};
use crate::line::Answered;
use crate::plans::Plans;
use intact_client::{HAS_HTTP3, Plan};
use intact_ledger::server_profile::{Http3Result, Http3Seen};
use intact_ledger::{Connection, Handshake, Outcome, Protocol};
use std::sync::Arc;
use std::time::Duration;

/// The timeout: a network that drops UDP gives no sign.
const DROPPED: Duration = Duration::from_secs(3);

pub(super) fn probe(bench: &mut ProbeContext<'_>) -> Result<(), Ended> {
    let Some(seen) = bench.card.h3.clone().filter(|_| HAS_HTTP3) else {
        return Ok(());
    };
    let plan = Arc::new(plan(&bench.plans, &seen)?);
    let usual = bench.caller.patience();
    bench.caller.be_patient_for(usual.min(DROPPED));
    let tried = try_twice(bench, &plan);
    bench.caller.be_patient_for(usual);
    bench.card.h3 = Some(Http3Seen {
        tried: Some(tried?),
        ..seen
    });
    Ok(())
}

/// To the alternative, with the name of the origin.
fn plan(plans: &Plans<'_>, seen: &Http3Seen) -> Result<Plan, Ended> {
    let client = plans.client(Protocol::Http3, None, true)?;
    let mut plan = plans.with_client(Protocol::Http3, Some(client))?;
    let host = seen.host.as_deref().unwrap_or(&plans.address.host);
    plan.endpoint = plans.endpoint(host, seen.port)?;
    Ok(plan)
}

fn try_twice(bench: &mut ProbeContext<'_>, plan: &Arc<Plan>) -> Result<Http3Result, Ended> {
    let mut tried = Http3Result {
        outcome: Outcome::Ok,
        detail: None,
        status: None,
        setup: None,
        reused: None,
        resumed: None,
    };
    let request = bench.light_request();
    let mut line = match bench.caller.open(plan)? {
        Ok(line) => line,
        Err(failed) => {
            refused(&failed, &mut tried);
            return Ok(tried);
        }
    };
    tried.setup = line.connection().setup.connect;
    let first = bench.caller.ask(&mut line, &request, None)?;
    describe(&first, &mut tried);
    if first.is_ok() && line.is_usable() {
        let next = bench.caller.ask(&mut line, &request, None)?;
        tried.reused = Some(next.is_ok());
    } else if first.is_ok() {
        tried.reused = Some(false);
    }
    bench.caller.close(line);
    if !first.is_ok() {
        return Ok(tried);
    }
    if let Ok(line) = bench.caller.open(plan)? {
        let tls = line.connection().tls.as_ref();
        tried.resumed = tls.map(|tls| tls.handshake == Some(Handshake::Resumed));
        bench.caller.close(line);
    }
    Ok(tried)
}

fn refused(connection: &Connection, tried: &mut Http3Result) {
    if let Some(failed) = &connection.failed {
        tried.outcome = Outcome::Failed(failed.kind);
        tried.detail = failed.detail.as_deref().map(str::to_owned);
    }
}

fn describe(first: &Answered, tried: &mut Http3Result) {
    let exchange = &first.exchange;
    tried.outcome = exchange.outcome;
    tried.detail = exchange.detail.as_deref().map(str::to_owned);
    tried.status = exchange.status;
}
