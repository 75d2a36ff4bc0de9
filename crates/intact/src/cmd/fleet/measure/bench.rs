//! A message's job as a bench of one variant in one round.

use super::{again, head, pointless, unless_interrupted};
use crate::interrupt::Interrupt;
use intact_bench::{Bench, BenchObserver, Config, Length, Position, RowPolicy, Target};
use intact_client::Clock;
use intact_experiment::{Axes, AxisValues};
use intact_fleet::{MeasureError, Measured, Message, RowFiles};
use intact_ledger::{Row, Rows};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Benches.
pub(super) fn measure(
    message: &Message,
    rows: &mut RowFiles,
    interrupt: &Interrupt,
) -> Result<Measured, MeasureError> {
    let config = config(message).map_err(|words| pointless(&words))?;
    let bench = Bench::new(config).map_err(|error| pointless(&error))?;
    let mut run = head(message);
    bench.describe(&mut run);
    let mut watch = Watch {
        rows,
        interrupt,
        gauge: bench.gauge(),
    };
    let mut tally = bench
        .run(Clock::start(), &mut watch)
        .map_err(|error| again(&error))?;
    unless_interrupted(interrupt)?;
    for cell in &mut tally.cells {
        cell.variant = message.variant;
    }
    Ok(Measured {
        run,
        tally,
        checked: None,
    })
}

struct Watch<'a> {
    rows: &'a mut RowFiles,
    interrupt: &'a Interrupt,
    gauge: Arc<intact_bench::Gauge>,
}

impl BenchObserver for Watch<'_> {
    fn rows(&mut self, rows: &[Row]) {
        for row in rows {
            if let Row::Exchange(exchange) = row {
                self.rows.add(exchange);
            }
        }
    }

    fn tick(&mut self, _: Position) {
        if self.interrupt.signal().is_some() {
            self.gauge.stop.store(true, Ordering::Relaxed);
        }
    }
}

/// The bench that a message asks for.
fn config(message: &Message) -> Result<Config, String> {
    let job = &message.job;
    let values =
        AxisValues::read(&message.variant_name, &job.axes).map_err(|error| error.to_string())?;
    let (concurrency, streams) = (values.concurrency, values.streams);
    // the preflight, and a first request on each connection that is left out
    let first_requests = 1 + u64::from(concurrency) * u64::from(streams);
    let most = job
        .most_requests
        .checked_sub(first_requests)
        .filter(|&most| most > 0)
        .ok_or_else(|| {
            format!(
                "{} requests do not suffice for c={concurrency}: raise limits.requests",
                job.most_requests
            )
        })?;
    let target = &job.target;
    let axes = Axes {
        keepalive: vec![values.keepalive],
        http: vec![values.http],
        tls: vec![values.tls],
        resume: vec![values.resume],
        dns: vec![values.dns.unwrap_or_default()],
        concurrency: vec![concurrency],
        streams: vec![streams],
        ..Axes::default()
    };
    Ok(Config {
        target: Target {
            url: target.url.clone(),
            plain_port: target.plain_port,
            tls_port: target.tls_port,
        },
        length: Length::Time(Duration::from_millis(job.ms)),
        rounds: Some(1),
        seed: u64::from(message.repetition) << 32 | u64::from(message.slice),
        requests_per_s: Some(job.rate_per_s),
        most: Some(most),
        headers: target.headers.clone(),
        user_agent: concat!("intact-fleet/", env!("CARGO_PKG_VERSION")).to_owned(),
        expect: target.expect,
        credentials: target.credentials(),
        route: target.route(),
        keep: RowPolicy::Ledger(Rows::All),
        ..Config::new(target.url.clone(), axes)
    })
}
