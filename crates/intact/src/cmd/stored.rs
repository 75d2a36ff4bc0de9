//! Facts of stored ledgers that observe traffic: a replay of their events.

use crate::exit::Failed;
use intact_findings::compare::{CompareFacts, Comparison};
use intact_findings::lambda::{Invocations, LambdaFacts};
use intact_findings::requirement::Document;
use intact_findings::traffic::TrafficAnalysis;
use intact_ledger::store::Reader;
use intact_ledger::{Caveat, Event, Producer, Rows, Run, Sink};

/// The traffic of a ledger, of a run that ended or was killed.
pub(crate) fn observed(reader: &Reader) -> Result<TrafficAnalysis, Failed> {
    let mut observed = TrafficAnalysis::new(reader.run());
    replay(reader, &mut observed)?;
    Ok(observed)
}

/// Hands the events to a fold, then what is missing from them.
fn replay(reader: &Reader, fold: &mut impl Sink) -> Result<(), Failed> {
    let mut events = reader.events().map_err(Failed::unreadable)?;
    for row in events.by_ref() {
        fold.record(row.as_event());
    }
    for caveat in events.caveats() {
        fold.record(Event::Caveat(&caveat));
    }
    if let Some(caveat) = sampled_rows(reader.run()) {
        fold.record(Event::Caveat(&caveat));
    }
    Ok(())
}

/// What limits counts that are made from the rows of a ledger; none where every exchange has a row.
pub(crate) fn sampled_rows(run: &Run) -> Option<Caveat> {
    (run.rows == Rows::Sample).then(|| {
        Caveat::incomplete(
            "sampled-rows",
            "this ledger holds a sample of its exchanges: counts and findings are of the sample",
        )
    })
}

/// The facts of a comparison that was stored.
pub(crate) fn compared(reader: &Reader) -> Result<CompareFacts, Failed> {
    let mut contest = Comparison::new(reader.run());
    replay(reader, &mut contest)?;
    Ok(contest.facts())
}

/// The facts of a function's run that was stored.
pub(crate) fn invoked(reader: &Reader) -> Result<LambdaFacts, Failed> {
    let mut invoked = Invocations::new(reader.run());
    replay(reader, &mut invoked)?;
    Ok(invoked.facts())
}

/// The document that a ledger is read as, by its producer.
pub(crate) fn document(producer: &Producer) -> Document {
    match producer {
        Producer::Bench => Document::Bench,
        Producer::Check => Document::Check,
        Producer::Audit => Document::Audit,
        Producer::Compare => Document::Compare,
        Producer::Lambda => Document::Lambda,
        // they observed traffic, as does a foreign producer that writes our events
        Producer::Watch
        | Producer::Link
        | Producer::Serve
        | Producer::Fleet
        | Producer::Other(_) => Document::Watch,
    }
}
