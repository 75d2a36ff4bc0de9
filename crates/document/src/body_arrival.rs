//! How responses arrive: header section and body together, or the body later. HTTP/1.1 servers tend
//! to send both in one packet, HTTP/2 servers HEADERS and DATA apart; the cost of the gap between
//! them is reported. One pass, a few counters.

use crate::figures::NANOS_PER_MS;
use intact_ledger::{Event, Exchange, Sink};
use serde::Serialize;

/// A fold over exchanges.
#[derive(Clone, Debug, Default)]
pub struct BodyArrival {
    plain: Shape,
    streams: Shape,
}

#[derive(Clone, Copy, Debug, Default)]
struct Shape {
    together: u64,
    apart: u64,
    gap: u64,
    latency: u64,
}

/// How the responses of one protocol arrived; only those with a body.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BodyArrivalFacts {
    /// `1` for HTTP/1, `2` where there are streams.
    pub http: &'static str,
    /// The first byte of the body came with the head.
    pub body_with_headers: u64,
    /// It came later.
    pub body_after_headers: u64,
    /// How much later, in milliseconds, mean over those.
    pub gap_ms: Option<f64>,
    /// All gaps as a share of the latency of all these responses.
    pub gap_share: Option<f64>,
}

impl BodyArrival {
    /// What was found out; protocols without a response are left out.
    pub fn facts(&self) -> Vec<BodyArrivalFacts> {
        let each = [("1", self.plain), ("2", self.streams)];
        let seen = each
            .iter()
            .filter(|(_, shape)| shape.together + shape.apart > 0);
        seen.map(|&(http, shape)| BodyArrivalFacts {
            http,
            body_with_headers: shape.together,
            body_after_headers: shape.apart,
            gap_ms: (shape.apart > 0).then(|| shape.gap as f64 / shape.apart as f64 / NANOS_PER_MS),
            gap_share: (shape.latency > 0).then(|| shape.gap as f64 / shape.latency as f64),
        })
        .collect()
    }

    fn exchange(&mut self, exchange: &Exchange) {
        if !exchange.outcome.is_ok() || exchange.body.read.unwrap_or(exchange.bytes.body) == 0 {
            return;
        }
        let shape = match exchange.stream {
            Some(_) => &mut self.streams,
            None => &mut self.plain,
        };
        shape.latency = shape.latency.saturating_add(exchange.latency());
        match exchange.spans.headers_to_body {
            Some(gap) => {
                shape.apart += 1;
                shape.gap = shape.gap.saturating_add(gap.nanos());
            }
            None => shape.together += 1,
        }
    }
}

impl Sink for BodyArrival {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            self.exchange(exchange);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::{Nanos, Span};

    #[test]
    fn gaps_are_counted_where_body_and_head_came_apart() {
        let mut answers = BodyArrival::default();
        let mut one = Exchange::new(1, Nanos(0));
        one.end = Nanos(4_000_000);
        one.body.read = Some(5);
        answers.record(Event::Exchange(&one));
        one.stream = Some(1);
        one.spans.headers_to_body = Some(Span::new(Nanos(1_000_000), Nanos(2_000_000)));
        answers.record(Event::Exchange(&one));
        one.body.read = Some(0);
        answers.record(Event::Exchange(&one));
        let facts = answers.facts();
        assert_eq!(
            (
                facts[0].body_with_headers,
                facts[0].body_after_headers,
                facts[0].gap_ms
            ),
            (1, 0, None)
        );
        assert_eq!(
            (facts[1].body_with_headers, facts[1].body_after_headers),
            (0, 1)
        );
        assert_eq!(
            (facts[1].gap_ms, facts[1].gap_share),
            (Some(1.0), Some(0.25))
        );
    }
}
