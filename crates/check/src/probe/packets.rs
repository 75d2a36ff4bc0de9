//! Packets: captures one exchange of each HTTP version over the newest TLS version, and one
//! exchange over each other TLS version. For HTTP/3 it captures a new and a resumed connection.

use super::http3;
use crate::capture::{Capture, Packets};
use crate::context::ProbeContext;
use crate::line::Line;
use crate::prober::Probed;
use intact_ledger::server_profile::VersionResult;
use intact_ledger::{Handshake, Protocol, TlsVersion};
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for the last packets.
const LINGER: Duration = Duration::from_millis(200);

/// Why the capture is skipped.
pub(super) fn reason_to_skip(context: &ProbeContext<'_>) -> Option<&'static str> {
    context.peer.is_none().then_some("no TCP")
}

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let (Some(mut capture), Some(peer)) = (context.capture.take(), context.peer) else {
        return Ok(());
    };
    capture.begin_tcp(peer.port())?;
    let mut done = Ok(());
    for tried in wanted(context) {
        done = record(context, &mut capture, &tried);
        if done.is_err() {
            break;
        }
    }
    if done.is_ok() {
        done = record_http3(context, &mut capture);
    }
    context.prober.observer.packets(&Packets {
        file: capture.file(),
        lost: capture.lost,
        spoken: capture.names,
    });
    done
}

/// The combinations of versions whose packet sequences differ.
fn wanted(context: &ProbeContext<'_>) -> Vec<VersionResult> {
    let spoken = || {
        context
            .profile
            .versions
            .iter()
            .filter(|tried| tried.outcome.is_ok() && tried.http != Protocol::Http3)
    };
    let newest = spoken().filter_map(|tried| tried.tls).max();
    let is_wanted = |tried: &&VersionResult| {
        if tried.tls == newest {
            tried.asks || tried.http != Protocol::Http10
        } else {
            tried.http == context.http
        }
    };
    spoken().filter(is_wanted).cloned().collect()
}

fn record(context: &mut ProbeContext<'_>, capture: &mut Capture, tried: &VersionResult) -> Probed {
    let client = match tried.tls {
        Some(_) => {
            let client = context.plans.client(tried.http, tried.tls, false)?;
            Some(client.with_key_log(capture.secrets()))
        }
        None => None,
    };
    let plan = context.plans.with_client(tried.http, client)?;
    let Ok(line) = context.prober.open(&Arc::new(plan))? else {
        return Ok(());
    };
    let ends = (line.connection().local, line.connection().peer);
    let done = ask_once(context, line, tried);
    capture.keep(ends, &name(tried.http, tried.tls))?;
    done
}

/// Captures a new HTTP/3 connection, and a resumed one that sends its request as early data if the
/// session allows this.
fn record_http3(context: &mut ProbeContext<'_>, capture: &mut Capture) -> Probed {
    let Some(seen) = http3::working(context) else {
        return Ok(());
    };
    capture.begin_udp(seen.port)?;
    let client = http3::client(&context.plans)?.with_key_log(capture.secrets());
    let early = client.allowing_early_requests();
    for client in [client, early] {
        let plan = http3::plan(&context.plans, &seen, &client)?;
        let Ok(mut line) = context.prober.open(&plan)? else {
            return Ok(());
        };
        let ends = (line.connection().local, line.connection().peer);
        let request = context.light_request();
        let answered = context.prober.ask(&mut line, &request, None);
        let tls = line.connection().tls.as_ref();
        let name = match tls.and_then(|tls| tls.handshake) {
            Some(Handshake::EarlyData) => "HTTP/3, resumed with early data",
            Some(Handshake::Resumed) => "HTTP/3, resumed",
            _ => "HTTP/3",
        };
        context.prober.close(line);
        answered?;
        await_last(context)?;
        capture.keep(ends, name)?;
    }
    Ok(())
}

/// Waits for the last packets.
fn await_last(context: &mut ProbeContext<'_>) -> Probed {
    let until = context.prober.clock.now().after(LINGER.as_nanos() as u64);
    context.prober.pause(&mut [], until)
}

/// One exchange, the close of its connection, and a wait for the last packets.
fn ask_once(context: &mut ProbeContext<'_>, line: Line, tried: &VersionResult) -> Probed {
    let request = if tried.asks {
        context.keeping_request()
    } else {
        context.light_request()
    };
    context.prober.ask_once(line, &request)?;
    await_last(context)
}

fn name(http: Protocol, tls: Option<TlsVersion>) -> String {
    let over = tls.map_or_else(String::new, |tls| format!(" over TLS {}", tls.as_str()));
    format!("HTTP/{}{over}", http.as_str())
}
