//! TLS: the full handshake, tickets, and whether the server accepts resumption and early data.

use crate::context::ProbeContext;
use crate::line::Line;
use crate::prober::Probed;
use intact_client::tls::Client;
use intact_ledger::server_profile::{EarlyData, TlsResult};
use intact_ledger::{Handshake, Protocol, Span, TlsVersion};
use std::sync::Arc;

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    for version in [TlsVersion::Tls12, TlsVersion::Tls13] {
        let spoken = context
            .profile
            .versions
            .iter()
            .filter(|tried| tried.tls == Some(version) && tried.outcome.is_ok())
            .map(|tried| tried.http)
            // QUIC has a handshake of its own: see `http3`
            .find(|http| *http != Protocol::Http3);
        let Some(http) = spoken else {
            continue;
        };
        // early data is sent as HTTP/1
        let http = if http == Protocol::Http2 {
            http
        } else {
            Protocol::Http11
        };
        look_at(context, version, http)?;
    }
    Ok(())
}

fn look_at(context: &mut ProbeContext<'_>, version: TlsVersion, http: Protocol) -> Probed {
    let client = context.plans.client(http, Some(version), true)?;
    let Some((mut line, full)) = open(context, http, &client)? else {
        return Ok(());
    };
    let request = context.light_request();
    let answered = context.prober.ask(&mut line, &request, None);
    let session = line.http.session();
    let chain = session.and_then(|session| session.peer_certificates());
    let chain = chain.unwrap_or_default();
    let tickets = session.filter(|_| version == TlsVersion::Tls13);
    let mut seen = TlsResult {
        version,
        cipher: line
            .connection()
            .tls
            .as_ref()
            .and_then(|tls| tls.cipher.as_deref().map(str::to_owned)),
        full,
        to_first_answer: line
            .handshake
            .first_at
            .map(|first| Span::new(full.start, first)),
        received: line.handshake.received,
        certificates: chain.len() as u32,
        chain_bytes: chain.iter().map(|one| one.len() as u64).sum(),
        tickets: tickets.map(|session| session.tls13_tickets_received()),
        second: None,
        early_data: None,
    };
    context.prober.close(line);
    let done = answered.and_then(|_| again(context, http, &client, &mut seen));
    context.profile.tls.push(seen);
    done
}

/// A second connection that resumes the session, and a third with early data.
fn again(
    context: &mut ProbeContext<'_>,
    http: Protocol,
    client: &Client,
    seen: &mut TlsResult,
) -> Probed {
    let Some((line, ssl)) = open(context, http, client)? else {
        return Ok(());
    };
    let resumed = handshake_of(&line) == Some(Handshake::Resumed);
    seen.second = Some((ssl, resumed));
    let request = context.light_request();
    context.prober.ask_once(line, &request)?;
    if seen.version != TlsVersion::Tls13 || !resumed || http == Protocol::Http2 {
        return Ok(());
    }
    let early = client.with_early_data(request.format(Protocol::Http11).http1_bytes());
    let Some((mut line, _)) = open(context, http, &early)? else {
        return Ok(());
    };
    let accepted = handshake_of(&line) == Some(Handshake::EarlyData);
    seen.early_data = Some(match (accepted, line.handshake.early_sent) {
        (true, _) => EarlyData::Accepted,
        (false, true) => EarlyData::Rejected,
        (false, false) => EarlyData::NotOffered,
    });
    let answered = context
        .prober
        .exchange(&mut line, &request, None, !accepted);
    context.prober.close(line);
    answered?;
    Ok(())
}

fn open(
    context: &mut ProbeContext<'_>,
    http: Protocol,
    client: &Client,
) -> Probed<Option<(Line, Span)>> {
    let plan = context.plans.with_client(http, Some(client.clone()))?;
    let Ok(line) = context.prober.open(&Arc::new(plan))? else {
        return Ok(None);
    };
    let ssl = line.connection().setup.ssl;
    Ok(ssl.map(|ssl| (line, ssl)))
}

fn handshake_of(line: &Line) -> Option<Handshake> {
    line.connection().tls.as_ref()?.handshake
}
