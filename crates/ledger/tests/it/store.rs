//! A ledger on disk can be read after a cut at any byte.

use intact_ledger::store::{Reader, StoreError, Writer};
use intact_ledger::{Event, Exchange, Nanos, Producer, Row, Run, Tally, Vantage};
use std::fs;
use std::path::Path;

fn epoch() -> jiff::Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn run() -> Run {
    Run::new(
        Producer::Other("test".to_owned()),
        "0",
        Vantage::Client,
        epoch(),
        7,
        &[],
    )
}

/// Reads all events of a folder. Returns their number, and the ids of the caveats.
fn read(folder: &Path) -> (u64, Vec<String>) {
    let mut events = Reader::open(folder).unwrap().events().unwrap();
    let read = events.by_ref().count() as u64;
    let caveats = events.caveats();
    assert!(
        caveats.iter().all(|caveat| caveat.incomplete),
        "{caveats:?}"
    );
    (read, caveats.into_iter().map(|caveat| caveat.id).collect())
}

#[test]
fn what_was_written_reads_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(folder.path(), &run()).unwrap();
    for id in 0..100 {
        writer
            .append(Event::Exchange(&Exchange::new(id, Nanos(id))))
            .unwrap();
        if id % 10 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.replace_tally(&Tally::new()).unwrap();
    writer.finish(epoch()).unwrap();
    let reader = Reader::open(folder.path()).unwrap();
    assert_eq!(reader.run(), &run());
    assert_eq!(reader.tally().unwrap(), Some(Tally::new()));
    let mut events = reader.events().unwrap();
    let ids: Vec<u64> = events
        .by_ref()
        .map(|row| match row {
            Row::Exchange(exchange) => exchange.id,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, (0..100).collect::<Vec<_>>());
    assert!(events.caveats().is_empty());
}

#[test]
fn a_tail_cut_at_any_byte_is_a_caveat_and_loses_nothing_before_its_frame() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(folder.path(), &run()).unwrap();
    let path = folder.path().join("events.jsonl.zst");
    let mut flushed = vec![(0, 0)];
    for id in 0..6 {
        writer
            .append(Event::Exchange(&Exchange::new(id, Nanos(id))))
            .unwrap();
        writer.flush().unwrap();
        flushed.push((fs::metadata(&path).unwrap().len() as usize, id + 1));
    }
    writer.finish(epoch()).unwrap();
    let whole = fs::read(&path).unwrap();
    for cut in 0..whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let safe = flushed.iter().rfind(|(at, _)| *at <= cut).unwrap().1;
        let (read, caveats) = read(folder.path());
        assert!(read >= safe, "cut at {cut}: {read} of {safe}");
        // between two frames only the end mark shows that events are missing
        assert_eq!(caveats, ["cut-tail"], "cut at {cut}");
    }
}

#[test]
fn a_ledger_without_an_end_mark_is_incomplete_even_if_its_file_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(folder.path(), &run()).unwrap();
    for id in 0..3 {
        let exchange = Exchange::new(id, Nanos(id));
        writer.append(Event::Exchange(&exchange)).unwrap();
    }
    writer.flush().unwrap();
    // a run that is not over, or was killed between two flushes
    assert_eq!(
        read(folder.path()),
        (3, vec!["run-not-finished".to_owned()])
    );
    writer.finish(epoch()).unwrap();
    assert_eq!(read(folder.path()), (3, Vec::new()));
}

#[test]
fn a_reader_that_stops_early_does_not_report_the_rest_as_missing() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = Writer::create(folder.path(), &run()).unwrap();
    for id in 0..3 {
        let exchange = Exchange::new(id, Nanos(id));
        writer.append(Event::Exchange(&exchange)).unwrap();
    }
    writer.finish(epoch()).unwrap();
    let mut events = Reader::open(folder.path()).unwrap().events().unwrap();
    assert!(events.next().is_some());
    assert!(events.caveats().is_empty());
}

#[test]
fn damaged_and_newer_events_are_counted_not_fatal() {
    let folder = tempfile::tempdir().unwrap();
    let writer = Writer::create(folder.path(), &run()).unwrap();
    writer.finish(epoch()).unwrap();
    let lines = "{\"event\":\"from-the-future\"}\nnonsense\n{\"event\":\"exchange\",\"id\":1,\"at\":0,\"end\":0,\"outcome\":\"ok\",\"new_field\":1}\n";
    fs::write(
        folder.path().join("events.jsonl.zst"),
        zstd::bulk::compress(lines.as_bytes(), 1).unwrap(),
    )
    .unwrap();
    let mut events = Reader::open(folder.path()).unwrap().events().unwrap();
    assert_eq!(events.by_ref().count(), 1);
    assert_eq!(events.caveats()[0].id, "unknown-events");
}

#[test]
fn a_folder_with_a_ledger_is_not_overwritten_and_one_without_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    assert!(matches!(
        Reader::open(folder.path()).unwrap_err(),
        StoreError::NotALedger(_)
    ));
    drop(Writer::create(folder.path(), &run()).unwrap());
    assert!(matches!(
        Writer::create(folder.path(), &run()),
        Err(StoreError::Exists(_))
    ));
    let mut newer = run();
    newer.schema = "intact.ledger/9".to_owned();
    fs::write(
        folder.path().join("run.json"),
        serde_json::to_vec(&newer).unwrap(),
    )
    .unwrap();
    assert!(matches!(
        Reader::open(folder.path()).unwrap_err(),
        StoreError::Schema { .. }
    ));
}
