//! CSV (RFC 4180), one row per exchange. The first eight columns are those of `hey -o csv`, in its
//! order and in seconds, so that scripts for hey work. Our columns follow.

use crate::exchange::{Exchange, Phase};
use crate::reuse::Reuse;
use std::borrow::Cow;
use std::io::{self, Write};

/// The header line.
pub const HEAD: &str = "response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset,\
run,id,variant,round,warmup,connection,ordinal,reuse,stream,outcome,at_ns,end_ns,dns_ns,connect_ns,ssl_ns,blocked_ns,send_ns,wait_ns,\
headers_to_body_ns,receive_ns,client_delay_ns,sent_bytes,head_bytes,body_bytes,tag,grpc_status\n";

/// Writes one exchange. An absent value is an empty field. `variant` is the variant's name.
pub fn write_row(
    out: &mut impl Write,
    run: &str,
    variant: &str,
    exchange: &Exchange,
) -> io::Result<()> {
    let spans = &exchange.spans;
    for nanos in heys_times(exchange) {
        let seconds = nanos.map(|nanos| format!("{:.7}", nanos as f64 / 1e9));
        optional(out, seconds)?;
    }
    optional(out, exchange.status)?;
    write!(
        out,
        "{:.7},{run},{},",
        exchange.at.0 as f64 / 1e9,
        exchange.id
    )?;
    out.write_all(quote(variant).as_bytes())?;
    write!(out, ",")?;
    optional(out, exchange.round)?;
    write!(out, "{},", exchange.warmup)?;
    optional(out, exchange.connection.map(|id| id.0))?;
    optional(out, exchange.ordinal)?;
    optional(out, exchange.reuse.map(Reuse::as_str))?;
    optional(out, exchange.stream)?;
    write!(out, "{},", exchange.outcome.id())?;
    write!(out, "{},{},", exchange.at.0, exchange.end.0)?;
    for phase in Phase::ALL {
        optional(out, spans.of(phase).map(|span| span.nanos()))?;
    }
    optional(out, exchange.client_delay.map(|span| span.nanos()))?;
    let bytes = &exchange.bytes;
    let head = bytes.request_head_known(exchange.outcome);
    optional(
        out,
        head.map(|head| head.saturating_add(bytes.request_body)),
    )?;
    optional(out, bytes.head_known(exchange.status))?;
    write!(out, "{},", bytes.body)?;
    out.write_all(quote(exchange.tag.as_deref().unwrap_or("")).as_bytes())?;
    match exchange.grpc.and_then(|call| call.status) {
        Some(status) => writeln!(out, ",{status}"),
        None => writeln!(out, ","),
    }
}

/// The first six columns in nanoseconds. What was not waited for took no time; what was not seen
/// has none.
fn heys_times(exchange: &Exchange) -> [Option<u64>; 6] {
    let spans = &exchange.spans;
    let of = |phase| spans.of(phase).map(|span| span.nanos());
    let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
        (None, None) => None,
        (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    };
    let is_kept = matches!(exchange.reuse, Some(Reuse::Reused | Reuse::Preconnected));
    let has_setup = is_kept || exchange.spans.setup_nanos() > 0;
    let setup = has_setup.then(|| spans.setup_nanos());
    let received = sum(of(Phase::HeadersToBody), of(Phase::Receive));
    // a response in one piece: its end came with its first byte
    let is_whole = exchange.outcome.is_ok() && spans.wait.is_some();
    [
        exchange.measured_latency(),
        sum(setup, of(Phase::Blocked)),
        of(Phase::Dns).or(has_setup.then_some(0)),
        of(Phase::Send),
        of(Phase::Wait),
        received.or(is_whole.then_some(0)),
    ]
}

fn optional(out: &mut impl Write, value: Option<impl std::fmt::Display>) -> io::Result<()> {
    match value {
        Some(value) => write!(out, "{value},"),
        None => write!(out, ","),
    }
}

/// A field according to RFC 4180 section 2: quoted if it contains a comma, a quote or a line break.
pub fn quote(field: &str) -> Cow<'_, str> {
    if field.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", field.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::grpc::GrpcCall;
    use crate::time::{Nanos, Span};

    #[test]
    fn what_was_not_seen_is_an_empty_field() {
        // as a log has it that shows no duration
        let mut one = Exchange::new(3, Nanos(1_000_000_000));
        one.status = Some(200);
        one.bytes.body = 5;
        let mut out = Vec::new();
        write_row(&mut out, "r", "", &one).unwrap();
        let line = String::from_utf8(out).unwrap();
        assert!(line.starts_with(",,,,,,200,1.0000000,r,3,"), "{line}");
        assert!(line.ends_with(",,,5,,\n"), "{line}");
    }

    #[test]
    fn only_a_field_that_needs_quotes_has_them() {
        assert_eq!(quote("keepalive=on"), "keepalive=on");
        assert_eq!(quote("c=1, \"b\"\r\n"), "\"c=1, \"\"b\"\"\r\n\"");
    }

    #[test]
    fn a_row_has_as_many_fields_as_the_header_and_heys_come_first() {
        let mut one = Exchange::new(3, Nanos(1_000_000_000));
        one.end = Nanos(1_060_000_000);
        one.spans.connect = Some(Span::new(Nanos(1_000_000_000), Nanos(1_030_000_000)));
        one.spans.wait = Some(Span::new(Nanos(1_030_000_000), Nanos(1_060_000_000)));
        one.status = Some(204);
        one.tag = Some("first, second".into());
        one.grpc = Some(GrpcCall { status: Some(5) });
        let mut out = Vec::new();
        write_row(&mut out, "r", "keepalive=on, c=1", &one).unwrap();
        let line = String::from_utf8(out).unwrap();
        assert!(
            line.starts_with("0.0600000,0.0300000,0.0000000,,0.0300000,0.0000000,204,1.0000000,r,3,\"keepalive=on, c=1\","),
            "{line}"
        );
        assert!(line.ends_with(",\"first, second\",5\n"), "{line}");
        // each of the two quoted commas adds one
        assert_eq!(line.matches(',').count(), HEAD.matches(',').count() + 2);
    }
}
