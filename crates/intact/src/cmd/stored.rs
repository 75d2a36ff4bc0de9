//! Facts of stored ledgers that observe traffic: a replay of their events.

use crate::exit::Failed;
use findings::observe::{Observed, ObservedFacts};
use findings::requirement::Document;
use ledger::store::Reader;
use ledger::{Caveat, Event, Rows, Sink};

/// The facts of a ledger, whole or cut off by a kill.
pub(crate) fn observed(reader: &Reader) -> Result<ObservedFacts, Failed> {
    let mut observed = Observed::new(reader.run());
    let mut events = reader.events().map_err(Failed::unreadable)?;
    for row in events.by_ref() {
        observed.record(row.as_event());
    }
    for caveat in events.caveats() {
        observed.record(Event::Caveat(&caveat));
    }
    if reader.run().rows == Rows::Sample {
        observed.record(Event::Caveat(&Caveat {
            id: "sampled-rows".to_owned(),
            words:
                "this ledger holds a sample of its exchanges: counts and findings are of the sample"
                    .to_owned(),
        }));
    }
    Ok(observed.facts())
}

/// What can be asked of a ledger, by who recorded it.
pub(crate) fn document(producer: &str) -> Document {
    match producer {
        "bench" => Document::Bench,
        "audit" => Document::Audit,
        _ => Document::Watch,
    }
}
