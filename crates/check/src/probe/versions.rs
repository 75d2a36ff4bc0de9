//! Versions: HTTP/1.0 with and without `Connection: keep-alive`, 1.1 and 2, plain or over each TLS
//! version. And 3, if the check uses it. Each sends two requests: the second shows whether the
//! connection was kept.

use crate::context::ProbeContext;
use crate::line::{Answered, Line, refused};
use crate::prober::Probed;
use intact_client::{CONNECTION_FIELDS, RequestSpec};
use intact_ledger::server_profile::{Http2Seen, VersionResult};
use intact_ledger::{Protocol, TlsVersion};
use std::time::Duration;

/// The timeout for HTTP/2 without TLS, which a server may ignore.
const H2C: Duration = Duration::from_secs(3);
/// HTTP versions, and whether the request has `Connection: keep-alive`.
const TRIED: [(Protocol, bool); 4] = [
    (Protocol::Http10, false),
    (Protocol::Http10, true),
    (Protocol::Http11, false),
    (Protocol::Http2, false),
];
/// The number of requests if a later header block is compared with the first.
const HTTP2_REQUESTS: usize = 3;

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let tls: &[Option<TlsVersion>] = if context.plans.is_secure() {
        &[Some(TlsVersion::Tls12), Some(TlsVersion::Tls13)]
    } else {
        &[None]
    };
    for &version in tls {
        for (http, asks) in TRIED {
            let tried = try_one(context, http, version, asks)?;
            context.profile.versions.push(tried);
        }
    }
    if context.http == Protocol::Http3 {
        let tried = try_one(context, Protocol::Http3, Some(TlsVersion::Tls13), false)?;
        context.profile.versions.push(tried);
    }
    let speaks = |http| {
        context
            .profile
            .versions
            .iter()
            .any(|tried| tried.http == http && tried.outcome.is_ok())
    };
    let without_1_1 = !speaks(Protocol::Http11) && speaks(Protocol::Http2);
    if context.config.http.is_none() && without_1_1 {
        context.http = Protocol::Http2;
    }
    Ok(())
}

fn try_one(
    context: &mut ProbeContext<'_>,
    http: Protocol,
    tls: Option<TlsVersion>,
    asks: bool,
) -> Probed<VersionResult> {
    let mut tried = VersionResult {
        http,
        tls,
        asks,
        ..VersionResult::default()
    };
    let patience = match (http, tls) {
        (Protocol::Http2, None) => H2C,
        _ => Duration::MAX,
    };
    context.with_patience(patience, |context| {
        match context.dial(http, tls)? {
            Ok(line) => converse(context, line, asks, &mut tried)?,
            Err(failed) => (tried.outcome, tried.detail) = refused(&failed),
        }
        Ok(tried)
    })
}

fn converse(
    context: &mut ProbeContext<'_>,
    mut line: Line,
    asks: bool,
    tried: &mut VersionResult,
) -> Probed {
    if let Some(tls) = &line.connection().tls {
        tried.cipher = tls.cipher.as_deref().map(str::to_owned);
        tried.alpn = tls.alpn_chosen.as_deref().map(str::to_owned);
    }
    let request = if asks {
        context.light_request().saying("keep-alive")
    } else {
        context.light_request()
    };
    let done = ask_all(context, &mut line, &request, tried);
    context.prober.close(line);
    done
}

fn ask_all(
    context: &mut ProbeContext<'_>,
    line: &mut Line,
    request: &RequestSpec,
    tried: &mut VersionResult,
) -> Probed {
    let first = context.prober.ask(line, request, None)?;
    describe(&first, tried);
    if !first.is_ok() {
        return Ok(());
    }
    note_alt_svc(context, &first);
    let is_h2 = tried.http == Protocol::Http2;
    let wanted = if is_h2 { HTTP2_REQUESTS } else { 2 };
    let mut answers = vec![first];
    while answers.len() < wanted && line.is_usable() {
        let next = context.prober.ask(line, request, None)?;
        let ok = next.is_ok();
        answers.push(next);
        if !ok {
            break;
        }
    }
    tried.excess = Some(line.http.life().excess).filter(|&bytes| bytes > 0);
    tried.reused = Some(answers.get(1).is_some_and(Answered::is_ok));
    if is_h2 {
        context.profile.h2 = Some(seen(line, &answers));
    }
    if !line.is_usable() {
        context.prober.linger(line)?;
    }
    Ok(())
}

/// Keeps the announcement of HTTP/3 of a check that uses it: over HTTP/3 servers leave it out.
fn note_alt_svc(context: &mut ProbeContext<'_>, answered: &Answered) {
    let announced = crate::alt_svc::announced(&answered.reply);
    if let (Some((value, _)), Some(seen)) = (announced, &mut context.profile.h3) {
        seen.announced.get_or_insert_with(|| value.to_owned());
    }
}

fn describe(answered: &Answered, tried: &mut VersionResult) {
    let Answered { exchange, reply } = answered;
    (tried.outcome, tried.detail) = answered.outcome();
    tried.status = exchange.status;
    tried.response_version = reply.response_version;
    tried.says_kept = answered.is_ok().then_some(reply.keeps);
    tried.connection = reply.field("connection").map(str::to_owned);
    tried.keep_alive = reply.field("keep-alive").map(str::to_owned);
    if tried.http == Protocol::Http2 {
        tried.forbidden = CONNECTION_FIELDS
            .iter()
            .filter(|&&name| reply.field(name).is_some())
            .map(|&name| name.to_owned())
            .collect();
    }
}

/// Facts of an HTTP/2 connection other than its responses.
fn seen(line: &Line, answers: &[Answered]) -> Http2Seen {
    let complete: Vec<_> = answers
        .iter()
        .filter(|answered| answered.is_ok())
        .map(|answered| &answered.exchange)
        .collect();
    Http2Seen {
        settings: line
            .http
            .life()
            .settings
            .iter()
            .map(|&(id, value)| (setting_name(id), value))
            .collect(),
        headers_to_data_ns: complete
            .iter()
            .map(|exchange| {
                let has_body = exchange.body.read.unwrap_or(0) > 0;
                let gap = exchange.spans.headers_to_body.map_or(0, |gap| gap.nanos());
                has_body.then_some(gap)
            })
            .collect(),
        request_heads: complete
            .iter()
            .map(|exchange| exchange.bytes.request_head)
            .collect(),
        answer_heads: complete
            .iter()
            .map(|exchange| exchange.bytes.head)
            .collect(),
    }
}

/// The name of an HTTP/2 setting (IANA registry "HTTP/2 Settings"), in lower case.
fn setting_name(id: u16) -> String {
    let name = match id {
        0x1 => "header_table_size",
        0x2 => "enable_push",
        0x3 => "max_concurrent_streams",
        0x4 => "initial_window_size",
        0x5 => "max_frame_size",
        0x6 => "max_header_list_size",
        0x8 => "enable_connect_protocol",
        0x9 => "no_rfc7540_priorities",
        _ => return format!("0x{id:x}"),
    };
    name.to_owned()
}
