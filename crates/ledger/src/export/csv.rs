//! CSV (RFC 4180), one row per exchange. The first eight columns are those of `hey -o csv`, in its
//! order and in seconds, so that scripts for hey work. Our columns follow.

use crate::exchange::{Exchange, Phase};
use crate::failure::Outcome;
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
    let seconds = |nanos: u64| nanos as f64 / 1e9;
    let of = |phase| spans.of(phase).map_or(0, |span| span.nanos());
    write!(
        out,
        "{:.7},{:.7},{:.7},{:.7},{:.7},{:.7},{},{:.7},",
        seconds(exchange.latency()),
        seconds(spans.setup_nanos().saturating_add(of(Phase::Blocked))),
        seconds(of(Phase::Dns)),
        seconds(of(Phase::Send)),
        seconds(of(Phase::Wait)),
        seconds(of(Phase::HeadersToBody).saturating_add(of(Phase::Receive))),
        exchange.status.unwrap_or(0),
        seconds(exchange.at.0),
    )?;
    write!(out, "{run},{},", exchange.id)?;
    out.write_all(quote(variant).as_bytes())?;
    write!(out, ",")?;
    optional(out, exchange.round)?;
    write!(out, "{},", exchange.warmup)?;
    optional(out, exchange.connection.map(|id| id.0))?;
    optional(out, exchange.ordinal)?;
    optional(out, exchange.reuse.map(Reuse::as_str))?;
    optional(out, exchange.stream)?;
    match exchange.outcome {
        Outcome::Ok => write!(out, "ok,")?,
        Outcome::Failed(kind) => write!(out, "{kind},")?,
    }
    write!(out, "{},{},", exchange.at.0, exchange.end.0)?;
    for phase in Phase::ALL {
        optional(out, spans.of(phase).map(|span| span.nanos()))?;
    }
    optional(out, exchange.client_delay.map(|span| span.nanos()))?;
    let bytes = &exchange.bytes;
    write!(
        out,
        "{},{},{},",
        bytes.request_head.saturating_add(bytes.request_body),
        bytes.head,
        bytes.body
    )?;
    out.write_all(quote(exchange.tag.as_deref().unwrap_or("")).as_bytes())?;
    match exchange.grpc.and_then(|call| call.status) {
        Some(status) => writeln!(out, ",{status}"),
        None => writeln!(out, ","),
    }
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
            line.starts_with("0.0600000,0.0300000,0.0000000,0.0000000,0.0300000,0.0000000,204,1.0000000,r,3,\"keepalive=on, c=1\","),
            "{line}"
        );
        assert!(line.ends_with(",\"first, second\",5\n"), "{line}");
        // each of the two quoted commas adds one
        assert_eq!(line.matches(',').count(), HEAD.matches(',').count() + 2);
    }
}
