//! A message's job as a check.

use super::{again, head, pointless, unless_interrupted};
use crate::interrupt::Interrupt;
use intact_check::{CheckError, CheckProgress, ProbeKind};
use intact_client::Clock;
use intact_fleet::{CheckResult, MeasureError, Measured, Message, RowFiles};
use intact_ledger::server_profile::{ServerProfile, WATERFALL};
use intact_ledger::{Caveat, Event, Exchange, Sink, Tally};
use std::time::{Duration, Instant};

/// Checks. What has not been probed when the message's time is over is left out, and the result
/// says so.
pub(super) fn measure(
    message: &Message,
    rows: &mut RowFiles,
    interrupt: &Interrupt,
) -> Result<Measured, MeasureError> {
    let job = &message.job;
    let check = job
        .target
        .check(job.rate_per_s)
        .map_err(|error| pointless(&error))?;
    let budget = u64::from(check.budget().requests());
    if budget > job.most_requests {
        return Err(pointless(&format!(
            "a check sends up to {budget} requests, the message allows {}: raise limits.requests",
            job.most_requests
        )));
    }
    let mut run = head(message);
    run.host = intact_bench::machine::host();
    run.add_evidence(intact_client::EVIDENCE);
    run.subject = Some(check.config().url());
    let mut watch = Watch {
        rows,
        tally: Tally::new(),
        waterfall: Vec::new(),
        interrupt,
        deadline: Instant::now().checked_add(Duration::from_millis(job.ms)),
    };
    let profile = check
        .run(Clock::start(), None, &mut watch)
        .map_err(|error| match error {
            CheckError::Config(error) => pointless(&error),
            CheckError::Loop(error) | CheckError::Server(error) => again(&error),
        })?;
    unless_interrupted(interrupt)?;
    let is_late = watch.is_late();
    let Watch {
        mut tally,
        waterfall,
        ..
    } = watch;
    if is_late {
        tally.caveats.push(Caveat::new(
            "time-over",
            "the message's time was over before all probes had run: the server answers slowly",
        ));
    }
    Ok(Measured {
        run,
        tally,
        checked: Some(CheckResult { profile, waterfall }),
    })
}

struct Watch<'a> {
    rows: &'a mut RowFiles,
    tally: Tally,
    waterfall: Vec<Exchange>,
    interrupt: &'a Interrupt,
    /// Absent where the time has no end.
    deadline: Option<Instant>,
}

impl Watch<'_> {
    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|end| Instant::now() >= end)
    }
}

impl CheckProgress for Watch<'_> {
    fn event(&mut self, event: Event<'_>) {
        self.tally.record(event);
        if let Event::Exchange(exchange) = event {
            self.rows.add(exchange);
            if exchange.tag.as_deref() == Some(WATERFALL) {
                self.waterfall.push(exchange.clone());
            }
        }
    }

    fn stage(&mut self, _: ProbeKind, _: &ServerProfile) {}

    fn waiting(&mut self, _: Duration) {}

    fn stopped(&self) -> bool {
        self.interrupt.signal().is_some() || self.is_late()
    }
}
