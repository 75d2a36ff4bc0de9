//! A plan, and a measurer that sends no requests.

use intact_fleet::{
    FailureAction, Measure, MeasureError, Measured, Message, Plan, ReadSecret, Reference, RowFiles,
    Target,
};
use intact_ledger::{Exchange, Nanos, Producer, Reuse, Round, Run, Sink, Span, Tally, Vantage};
use std::path::Path;

/// A plan of REPETITIONS x 2 variants.
pub(crate) const TEXT: &str = "name = \"rig\"\nrepetitions = REPETITIONS\nduration = \"100ms\"\n\
     [limits]\nrequests = 1000000\nrate = 100.0\nworkers = 2\n\
     [[target]]\nname = \"t\"\nurl = \"http://host.test/\"\ni-own-this = \"host.test\"\n\
     [axes]\nkeepalive = [\"on\", \"off\"]\n";

/// A plan of `repetitions` x 2 variants.
pub(crate) fn plan(repetitions: u32) -> Plan {
    let text = TEXT.replace("REPETITIONS", &repetitions.to_string());
    intact_fleet::parse(Path::new("rig.toml"), &text).unwrap()
}

/// For plans without references.
pub(crate) struct NoSecrets;

impl ReadSecret for NoSecrets {
    fn read(&self, reference: &Reference) -> Result<String, String> {
        panic!("{reference} was read")
    }
}

/// Gives every message ten requests: 1 ms each with keep-alive, 3 ms without.
#[derive(Default)]
pub(crate) struct Fake {
    /// Messages that fail, and how.
    pub(crate) failure: Option<(String, FailureAction)>,
    /// Number of measured messages.
    pub(crate) measured: u32,
    /// The targets with their secrets, as they would be sent.
    pub(crate) targets: Vec<Target>,
}

impl Measure for Fake {
    fn measure(
        &mut self,
        message: &Message,
        rows: &mut RowFiles,
    ) -> Result<Measured, MeasureError> {
        self.targets.push(message.job.target.clone());
        if let Some((id, then)) = &self.failure
            && *id == message.id
        {
            return Err(MeasureError {
                words: "no luck".to_owned(),
                then: *then,
            });
        }
        self.measured += 1;
        let run = Run::new(
            Producer::Fleet,
            "0",
            Vantage::Client,
            jiff::Timestamp::UNIX_EPOCH,
            1,
            &[],
        );
        let mut tally = Tally::new();
        let latency = if message.job.axes["keepalive"] == "on" {
            1_000_000
        } else {
            3_000_000
        };
        for id in 0..10 {
            let mut exchange = Exchange::new(id, Nanos(id * 10_000_000));
            exchange.end = Nanos(exchange.at.0 + latency + u64::from(message.repetition) * 1_000);
            exchange.variant = message.variant;
            exchange.round = Some(1);
            exchange.status = Some(200);
            exchange.reuse = Some(if latency > 1_000_000 {
                Reuse::Fresh
            } else {
                Reuse::Reused
            });
            rows.add(&exchange);
            tally.record(intact_ledger::Event::Exchange(&exchange));
        }
        tally.record(intact_ledger::Event::Round(&Round::new(
            message.variant.unwrap(),
            1,
            Span::new(Nanos(0), Nanos(100_000_000)),
        )));
        Ok(Measured {
            run,
            tally,
            checked: None,
        })
    }
}
