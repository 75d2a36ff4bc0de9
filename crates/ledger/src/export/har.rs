//! HAR 1.2, with its conventions: `connect` includes `ssl`, -1 means that a phase did not apply,
//! `connection` holds our id.

use crate::connection::Connection;
use crate::exchange::Exchange;
use crate::run::Run;
use crate::time::Span;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Writes a HAR file entry by entry, so its size is not limited by memory.
pub struct HarWriter<W: Write> {
    out: W,
    started: jiff::Timestamp,
    first: bool,
}

impl<W: Write> HarWriter<W> {
    /// Writes the start of the file.
    pub fn new(mut out: W, run: &Run) -> io::Result<HarWriter<W>> {
        let started = run
            .started
            .parse()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        let creator = json!({"name": "intact", "version": run.version});
        write!(
            out,
            "{{\"log\":{{\"version\":\"1.2\",\"creator\":{creator},\"pages\":[],\"entries\":["
        )?;
        Ok(HarWriter {
            out,
            started,
            first: true,
        })
    }

    /// Writes one exchange, with its connection if that is known.
    pub fn entry(
        &mut self,
        exchange: &Exchange,
        connection: Option<&Connection>,
    ) -> io::Result<()> {
        let separator = if self.first { "\n" } else { ",\n" };
        self.first = false;
        let entry = self.to_entry(exchange, connection);
        write!(self.out, "{separator}{entry}")
    }

    /// Writes the end of the file and returns the writer.
    pub fn finish(mut self) -> io::Result<W> {
        write!(self.out, "\n]}}}}")?;
        self.out.flush()?;
        Ok(self.out)
    }

    fn to_entry(&self, exchange: &Exchange, connection: Option<&Connection>) -> Value {
        let spans = &exchange.spans;
        let ms = |span: Option<Span>| span.map_or(-1.0, |span| span.nanos() as f64 / 1e6);
        let connect = match (spans.connect, spans.ssl) {
            (None, None) => -1.0,
            (connect, ssl) => ms(connect).max(0.0) + ms(ssl).max(0.0),
        };
        let receive = ms(spans.headers_to_body).max(0.0) + ms(spans.receive).max(0.0);
        let started = jiff::SignedDuration::from_nanos(exchange.at.0 as i64);
        // a run that claims to have begun at the largest time
        let at = self.started.saturating_add(started).unwrap_or(self.started);
        let origin = connection.and_then(|connection| connection.origin.as_ref());
        let url = format!(
            "{}{}",
            origin.map(ToString::to_string).unwrap_or_default(),
            exchange
                .target
                .as_ref()
                .map_or("/", |target| target.as_str())
        );
        let version = connection
            .and_then(|connection| connection.protocol)
            .map_or_else(
                || "unknown".to_owned(),
                |protocol| format!("HTTP/{}", protocol.as_str()),
            );
        let size = |bytes: Option<u64>| bytes.map_or(-1, |bytes| bytes as i64);
        let (bytes, outcome) = (&exchange.bytes, exchange.outcome);
        let (asked, answered) = (
            size(bytes.request_head_known(outcome)),
            size(bytes.head_known(exchange.status)),
        );
        // HAR has no value for a time that is not known
        let comment = match exchange.measured_latency() {
            Some(_) => "",
            None => "how long it took is unknown",
        };
        let server = connection
            .and_then(|connection| connection.peer)
            .map(|peer| peer.ip().to_string());
        json!({
            "startedDateTime": at.to_string(),
            "time": exchange.latency() as f64 / 1e6,
            "request": {
                "method": exchange.method.as_ref().map_or("", |method| method.as_str()),
                "url": url,
                "httpVersion": version,
                "cookies": [], "headers": [], "queryString": [],
                "headersSize": asked, "bodySize": bytes.request_body,
            },
            "response": {
                "status": exchange.status.unwrap_or(0),
                "statusText": "",
                "httpVersion": version,
                "cookies": [], "headers": [], "redirectURL": "",
                "content": {"size": bytes.decoded.unwrap_or(bytes.body), "mimeType": ""},
                "headersSize": answered, "bodySize": bytes.body,
                "_grpcStatus": exchange.grpc.and_then(|call| call.status),
                "_error": (!outcome.is_ok()).then(|| outcome.id()),
            },
            "comment": comment,
            "cache": {},
            "timings": {
                "blocked": ms(spans.blocked), "dns": ms(spans.dns), "connect": connect, "ssl": ms(spans.ssl),
                "send": ms(spans.send).max(0.0), "wait": ms(spans.wait).max(0.0), "receive": receive,
            },
            "serverIPAddress": server,
            "connection": exchange.connection.map(|id| id.0.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Vantage;
    use crate::time::Nanos;

    #[test]
    fn connect_includes_ssl_and_absent_is_minus_one() {
        let run = Run::new(
            crate::Producer::Other("test".to_owned()),
            "0",
            Vantage::Client,
            jiff::Timestamp::UNIX_EPOCH,
            1,
            &[],
        );
        let mut one = Exchange::new(1, Nanos(2_000_000));
        one.spans.connect = Some(Span::new(Nanos(2_000_000), Nanos(3_000_000)));
        one.spans.ssl = Some(Span::new(Nanos(3_000_000), Nanos(5_000_000)));
        one.end = Nanos(6_000_000);
        one.grpc = Some(crate::grpc::GrpcCall { status: Some(5) });
        let mut har = HarWriter::new(Vec::new(), &run).unwrap();
        har.entry(&one, None).unwrap();
        let json: Value = serde_json::from_slice(&har.finish().unwrap()).unwrap();
        let entry = &json["log"]["entries"][0];
        assert_eq!(entry["timings"]["connect"], 3.0);
        assert_eq!(entry["timings"]["ssl"], 2.0);
        assert_eq!(entry["timings"]["dns"], -1.0);
        assert_eq!(entry["request"]["headersSize"], -1);
        assert_eq!(entry["request"]["httpVersion"], "unknown");
        assert_eq!(entry["response"]["_grpcStatus"], 5);
        assert_eq!(entry["startedDateTime"], "1970-01-01T00:00:00.002Z");
    }
}
