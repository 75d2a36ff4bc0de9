//! The first request: whether the server responds, its redirects, and the size of the response.

use crate::alt_svc;
use crate::context::ProbeContext;
use crate::line::{Answered, refused};
use crate::prober::{Probed, StopReason};
use intact_client::tls::{Client, Settings, Trust, Verify};
use intact_client::{RequestSpec, ServerUrl, is_redirect};
use intact_ledger::server_profile::{FirstRequest, Http3Seen, Redirect};
use intact_ledger::{Connection, Failure, Outcome, Protocol, Scheme};
use std::sync::Arc;

/// The maximum of redirects to follow.
const MOST_HOPS: usize = 10;
/// The body size from which later probes use HEAD, in bytes.
const LARGE: u64 = 64 * 1024;

pub(super) fn probe(context: &mut ProbeContext<'_>) -> Probed {
    let mut followed = Vec::new();
    loop {
        let met = meet(context)?;
        let mut contact = describe(context, &met);
        let hop = match &met {
            FirstResponse::Answered(answered) => leads_to(context, answered),
            FirstResponse::Refused(_) => None,
        };
        if let Some((hop, next)) = hop {
            let is_spoken = context.http != Protocol::Http3 || next.scheme == Scheme::Https;
            if context.config.follow && is_spoken && followed.len() < MOST_HOPS {
                followed.push(hop);
                context.request = context.request.led_to(&next);
                context.plans.address = next;
                continue;
            }
            contact.redirect = Some(hop);
        }
        contact.followed = followed;
        if may_be_the_other(&contact) {
            contact.other_scheme = other_scheme(context)?;
        }
        if contact.outcome.is_ok() {
            contact.outcome = judged(&contact, context.plans.is_secure());
        }
        if let FirstResponse::Answered(answered) = &met {
            context.profile.h3 = http3(context, answered);
        }
        context.profile.contact = Some(contact);
        return Ok(());
    }
}

/// The outcome of a complete first response. A 400 from a port that speaks TLS is a failure. So is
/// a redirect that was not followed and whose status is not expected.
fn judged(contact: &FirstRequest, secure: bool) -> Outcome {
    let allowed = contact
        .expect
        .zip(contact.status)
        .map(|(expect, status)| expect.allows(status));
    match allowed {
        Some(false) => Outcome::Failed(Failure::UnexpectedStatus),
        None if !secure && contact.other_scheme == Some(true) => Outcome::Failed(Failure::NotPlain),
        _ => Outcome::Ok,
    }
}

enum FirstResponse {
    Answered(Box<Answered>),
    Refused(Box<Connection>),
}

/// Sends one request: over the configured version, else HTTP/1.1, or HTTP/2 if the server supports
/// no other version.
fn meet(context: &mut ProbeContext<'_>) -> Probed<FirstResponse> {
    let met = ask(context, context.http)?;
    let no_http1 = match &met {
        FirstResponse::Refused(connection) => connection
            .failed
            .as_ref()
            .is_some_and(|failed| failed.kind == Failure::TlsAlpn),
        FirstResponse::Answered(_) => false,
    };
    if no_http1 && context.config.http.is_none() {
        context.http = Protocol::Http2;
        return ask(context, Protocol::Http2);
    }
    Ok(met)
}

fn ask(context: &mut ProbeContext<'_>, http: Protocol) -> Probed<FirstResponse> {
    match context.dial(http, None)? {
        Err(failed) => Ok(FirstResponse::Refused(failed)),
        Ok(line) => {
            context.peer = line.connection().peer;
            let config = context.config;
            let request = context.request.expecting(config.expect, config.follow);
            let answered = context.prober.ask_once(line, &request)?;
            Ok(FirstResponse::Answered(Box::new(answered)))
        }
    }
}

fn describe(context: &ProbeContext<'_>, met: &FirstResponse) -> FirstRequest {
    let mut contact = FirstRequest {
        url: crate::config::bare(&context.plans.address),
        expect: context.config.expect,
        ..FirstRequest::default()
    };
    match met {
        FirstResponse::Answered(answered) => {
            let exchange = &answered.exchange;
            (contact.outcome, contact.detail) = answered.outcome();
            contact.status = exchange.status;
            contact.server = answered.reply.field("server").map(str::to_owned);
            contact.body = exchange.body.read.unwrap_or(0);
            contact.by_head = contact.body > LARGE;
        }
        FirstResponse::Refused(connection) => {
            (contact.outcome, contact.detail) = refused(connection);
        }
    }
    contact
}

/// HTTP/3 as the first response announces it, or where that response came over it. A plain response
/// cannot be trusted with an announcement (RFC 7838 section 2.1).
fn http3(context: &ProbeContext<'_>, answered: &Answered) -> Option<Http3Seen> {
    let address = &context.plans.address;
    let announced = alt_svc::announced(&answered.reply);
    if context.http == Protocol::Http3 {
        return Some(Http3Seen {
            announced: announced.map(|(value, _)| value.to_owned()),
            host: None,
            port: address.port,
            tried: None,
        });
    }
    let (value, (host, port)) = announced.filter(|_| context.plans.is_secure())?;
    Some(Http3Seen {
        announced: Some(value.to_owned()),
        host: host.filter(|host| !host.eq_ignore_ascii_case(&address.host)),
        port,
        tried: None,
    })
}

/// The target of a redirect, if it is an http or https URL.
fn leads_to(context: &ProbeContext<'_>, answered: &Answered) -> Option<(Redirect, ServerUrl)> {
    let status = answered.exchange.status?;
    if !is_redirect(status) {
        return None;
    }
    let location = answered.reply.field("location")?;
    let whole = absolute(&context.plans.address, location);
    let next = ServerUrl::parse(&whole).ok()?;
    let hop = Redirect {
        status,
        to: intact_ledger::redact::url(&whole),
    };
    Some((hop, next))
}

/// A `Location` as an absolute URL (RFC 3986 section 4.2). A relative path must begin with a slash
/// or a name.
fn absolute(from: &ServerUrl, location: &str) -> String {
    if location.contains("://") {
        return location.to_owned();
    }
    if let Some(rest) = location.strip_prefix("//") {
        return format!("{}://{rest}", from.scheme.as_str());
    }
    let origin = from.origin();
    if location.starts_with('/') {
        return format!("{origin}{location}");
    }
    let path = from.path.split('?').next().unwrap_or("/");
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    format!("{origin}{folder}/{location}")
}

/// Whether the failure suggests that the port expects TLS instead of plain HTTP, or the reverse.
fn may_be_the_other(contact: &FirstRequest) -> bool {
    match contact.outcome {
        Outcome::Ok => contact.status == Some(400),
        Outcome::Failed(kind) => matches!(
            kind,
            Failure::NotTls
                | Failure::NotPlain
                | Failure::Tls
                | Failure::Malformed
                | Failure::Closed
                | Failure::Reset
                | Failure::ConnectReset
                | Failure::Truncated
        ),
        Outcome::Pending | Outcome::Unknown => false,
    }
}

/// Whether the port expects TLS although plain HTTP was requested, or the reverse; absent if
/// unknown.
fn other_scheme(context: &mut ProbeContext<'_>) -> Probed<Option<bool>> {
    if context.plans.is_secure() {
        return speaks_plain(context);
    }
    speaks_tls(context)
}

fn speaks_tls(context: &mut ProbeContext<'_>) -> Probed<Option<bool>> {
    let settings = Settings {
        version: None,
        protocol: Protocol::Http11,
        resume: false,
        certificate: None,
    };
    let insecure = Trust::load(&Verify::Insecure).map_err(crate::ConfigError::from)?;
    let client = Client::new(&context.plans.address.host, &settings, &insecure)
        .map_err(crate::ConfigError::from)?;
    let plan = context.plans.with_client(Protocol::Http11, Some(client))?;
    match context.prober.open(&Arc::new(plan))? {
        Ok(line) => {
            context.prober.close(line);
            Ok(Some(true))
        }
        Err(connection) if connection.is_opened() => Ok(Some(false)),
        Err(_) => Ok(None),
    }
}

fn speaks_plain(context: &mut ProbeContext<'_>) -> Probed<Option<bool>> {
    let plan = context.plans.with_client(Protocol::Http11, None)?;
    let Ok(line) = context.prober.open(&Arc::new(plan))? else {
        return Ok(None);
    };
    let bare: RequestSpec = context.request.led_to(&ServerUrl {
        scheme: Scheme::Http,
        ..context.plans.address.clone()
    });
    match context.prober.ask_once(line, &bare) {
        Ok(answered) => Ok(Some(answered.is_ok())),
        Err(StopReason::Spent) => Ok(None),
        Err(halt) => Err(halt),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_becomes_a_whole_url() {
        let from = ServerUrl::parse("https://a:8443/x/y?q=1").unwrap();
        for (location, whole) in [
            ("http://b/", "http://b/"),
            ("//b/z", "https://b/z"),
            ("/z?k", "https://a:8443/z?k"),
            ("z", "https://a:8443/x/z"),
        ] {
            assert_eq!(absolute(&from, location), whole);
        }
    }
}
