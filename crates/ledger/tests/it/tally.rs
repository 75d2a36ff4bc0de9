//! The tally agrees with the rows when all rows are kept.

use intact_ledger::{Event, Exchange, Failure, Nanos, Outcome, Reuse, Row, Sink, Span, Tally};
use proptest::prelude::*;

fn exchange() -> impl Strategy<Value = Exchange> {
    (
        0..3u32,
        0..3u32,
        prop::option::of(prop::sample::select(&Reuse::ALL[..])),
        any::<bool>(),
        0..3usize,
        1u64..1 << 40,
    )
        .prop_map(|(variant, round, reuse, warmup, outcome, latency)| {
            let mut one = Exchange::new(0, Nanos(5));
            one.variant = Some(variant);
            one.round = Some(round);
            one.reuse = reuse;
            one.warmup = warmup;
            one.outcome = [
                Outcome::Ok,
                Outcome::Failed(Failure::Reset),
                Outcome::Failed(Failure::Timeout),
            ][outcome];
            one.end = Nanos(5 + latency);
            if reuse == Some(Reuse::Fresh) {
                one.spans.connect = Some(Span::new(Nanos(5), Nanos(5 + latency / 2)));
            }
            one
        })
}

proptest! {
    #[test]
    fn counts_and_sums_are_those_of_the_rows(exchanges in prop::collection::vec(exchange(), 0..200), cut in 0usize..200) {
        // two parts merged, as from two threads
        let cut = cut.min(exchanges.len());
        let mut tally = Tally::new();
        let mut other = Tally::new();
        let mut rows: Vec<Row> = Vec::new();
        for (at, one) in exchanges.iter().enumerate() {
            let half = if at < cut { &mut tally } else { &mut other };
            half.record(Event::Exchange(one));
            rows.record(Event::Exchange(one));
        }
        tally.merge(&other);
        for cell in &tally.cells {
            for group in &cell.groups {
                let mine: Vec<&Exchange> = rows.iter().filter_map(|row| match row {
                    Row::Exchange(one) => Some(&**one),
                    _ => None,
                }).filter(|one| one.variant == cell.variant && one.round == cell.round && one.reuse == group.key.reuse
                    && one.warmup == group.key.warmup && one.outcome == group.key.outcome).collect();
                prop_assert_eq!(group.count(), mine.len() as u64);
                prop_assert_eq!(group.latency.sum(), mine.iter().map(|one| one.latency()).sum::<u64>());
                prop_assert_eq!(group.without_setup.sum(), mine.iter().map(|one| one.latency_without_setup()).sum::<u64>());
            }
        }
        let counted: u64 = tally.cells.iter().flat_map(|cell| &cell.groups).map(|group| group.count()).sum();
        prop_assert_eq!(counted, exchanges.len() as u64);
    }
}
