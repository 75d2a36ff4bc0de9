//! Whole campaigns: every message ends exactly once in the report.

use crate::rig::{Fake, NoSecrets, plan};
use intact_fleet::{
    Campaign, FailureAction, MessageHandler, MessageOutcome, Plan, Queue, SqliteQueue, Store,
    Worker,
};
use std::time::Duration;

struct Rig {
    folder: tempfile::TempDir,
    queue: SqliteQueue,
    store: Store,
    plan: Plan,
}

impl Rig {
    fn start(repetitions: u32) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let mut queue = SqliteQueue::open(&folder.path().join("q.sqlite"))
            .unwrap()
            .with_deliveries(2);
        let store = Store::open(folder.path().join("store").to_str().unwrap()).unwrap();
        let plan = plan(repetitions);
        store.put_plan(&plan).unwrap();
        queue.send(&mut plan.messages()).unwrap();
        Rig {
            folder,
            queue,
            store,
            plan,
        }
    }

    /// Runs one worker until no message is left.
    fn work(&mut self, fake: &mut Fake) -> Vec<MessageOutcome> {
        let mut worker = Worker {
            queue: &mut self.queue,
            desk: MessageHandler {
                worker: "w1".to_owned(),
                store: &self.store,
                measure: fake,
                secrets: &NoSecrets,
            },
        };
        let mut all = Vec::new();
        loop {
            match worker.step(Duration::ZERO).unwrap() {
                MessageOutcome::Idle => return all,
                done => all.push(done),
            }
        }
    }

    fn read(&self) -> Campaign {
        let started = jiff::Timestamp::UNIX_EPOCH;
        Campaign::read(&self.store, self.plan.clone(), started, &mut |_, _| {}).unwrap()
    }
}

#[test]
fn every_message_ends_in_the_report_and_rounds_are_repetitions() {
    let mut rig = Rig::start(10);
    rig.work(&mut Fake::default());
    let campaign = rig.read();
    assert_eq!(campaign.progress.planned, 20);
    assert_eq!(campaign.progress.finished, 20);
    assert_eq!(campaign.progress.missing, 0);
    let group = &campaign.groups[0];
    assert_eq!(group.tally.of_variant(0).count(), 10);
    let requests: u64 = group
        .tally
        .cells
        .iter()
        .flat_map(|cell| &cell.groups)
        .map(intact_ledger::Group::count)
        .sum();
    assert_eq!(requests, 200);
}

#[test]
fn a_message_that_was_delivered_twice_counts_once() {
    let mut rig = Rig::start(2);
    let body = serde_json::to_string(&rig.plan.messages().next().unwrap()).unwrap();
    let mut fake = Fake::default();
    let mut desk = MessageHandler {
        worker: "w9".to_owned(),
        store: &rig.store,
        measure: &mut fake,
        secrets: &NoSecrets,
    };
    // two workers held it at the same time: neither saw the other's result
    assert!(matches!(
        desk.handle(&body, 1).unwrap(),
        MessageOutcome::Measured(_)
    ));
    let message = rig.plan.messages().next().unwrap();
    let keys = rig
        .store
        .keys(&format!("results/plan={}", rig.plan.id))
        .unwrap();
    let again = rig.store.get(&keys[0]).unwrap();
    rig.store
        .put(&keys[0].replace("001.json", "002.json"), again)
        .unwrap();
    // a delivery after that finds the result and measures nothing
    let mut fake = Fake::default();
    let done = rig.work(&mut fake);
    assert!(done.contains(&MessageOutcome::AlreadyThere(message.id)));
    assert_eq!(fake.measured, 3);
    let campaign = rig.read();
    assert_eq!(campaign.progress.finished, 4);
    assert_eq!(campaign.progress.duplicates, 1);
    assert_eq!(rig.store.finished(&rig.plan.id).unwrap(), 4);
}

#[test]
fn a_poison_message_is_given_up_with_its_reason_and_the_rest_continues() {
    for then in [FailureAction::GivenUp, FailureAction::Again] {
        let mut rig = Rig::start(3);
        let id = rig.plan.messages().nth(1).unwrap().id;
        let mut fake = Fake {
            failure: Some((id.clone(), then)),
            ..Fake::default()
        };
        rig.work(&mut fake);
        assert_eq!(fake.measured, 5);
        let dead = rig.queue.dead().unwrap();
        assert_eq!(dead.len(), 1);
        assert_eq!(dead[0].reason, "no luck");
        let campaign = rig.read();
        assert_eq!(campaign.progress.finished, 5);
        if then == FailureAction::GivenUp {
            assert_eq!(campaign.progress.dead[0].message, id);
            assert_eq!(campaign.progress.missing, 0);
        }
    }
}

#[test]
fn a_foreign_message_goes_to_the_dead_letters() {
    let rig = Rig::start(1);
    let mut fake = Fake::default();
    let mut desk = MessageHandler {
        worker: "w".to_owned(),
        store: &rig.store,
        measure: &mut fake,
        secrets: &NoSecrets,
    };
    for body in [
        "",
        "{}",
        "[1,2]",
        "{\"format\":99}",
        "{\"format\":1,\"plan\":\"../../x\",\"id\":\"../y\"}",
    ] {
        let done = desk.handle(body, 1).unwrap();
        assert!(
            matches!(
                &done,
                MessageOutcome::Failed {
                    then: FailureAction::GivenUp,
                    ..
                }
            ),
            "{body}: {done:?}"
        );
    }
    assert_eq!(fake.measured, 0);
    // nothing was written outside of the store
    let outside: Vec<_> = std::fs::read_dir(rig.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .filter(|name| !name.to_string_lossy().starts_with("q.sqlite"))
        .collect();
    assert_eq!(outside, ["store"]);
}

/// Writes into the table of the queue as another program could.
fn write(rig: &Rig, statement: &str) {
    let file = rusqlite::Connection::open(rig.folder.path().join("q.sqlite")).unwrap();
    file.busy_timeout(Duration::from_secs(30)).unwrap();
    file.execute_batch(statement).unwrap();
}

#[test]
fn any_content_of_a_row_leaves_the_worker_alive_and_counts_as_dead() {
    for (body, strict) in [
        ("CAST(x'00ff41' AS TEXT)", true),
        ("'{\"format\": '", true),
        ("'[]'", true),
        ("replace(body, '\"format\":3', '\"format\":4')", true),
        ("replace(body, '\"format\":3', '\"format\":-1')", true),
        ("replace(body, '.0000.000\"', '.0001.000\"')", true),
        ("x'00ff'", false),
        ("17", false),
        ("''", false),
    ] {
        let mut rig = Rig::start(2);
        if !strict {
            // the table of a version without types
            write(
                &rig,
                "CREATE TABLE old AS SELECT * FROM messages; DROP TABLE messages; ALTER TABLE old RENAME TO messages;",
            );
        }
        write(
            &rig,
            &format!("UPDATE messages SET body = {body} WHERE seq = 1"),
        );
        let mut fake = Fake::default();
        let done = rig.work(&mut fake);
        assert_eq!((done.len(), fake.measured), (4, 3), "{body}: {done:?}");
        let dead = rig.queue.dead().unwrap();
        let first = rig.plan.messages().next().unwrap().id;
        assert_eq!(dead.len(), 1, "{body}");
        assert_eq!(
            (&*dead[0].plan, &*dead[0].message),
            (&*rig.plan.id, &*first)
        );
        assert!(!dead[0].reason.is_empty(), "{body}");
        assert_eq!(rig.queue.counts().unwrap().done, Some(3), "{body}");
    }
}

#[test]
fn a_row_with_text_for_numbers_is_delivered_and_held() {
    let mut rig = Rig::start(1);
    write(
        &rig,
        "CREATE TABLE old AS SELECT * FROM messages; DROP TABLE messages; ALTER TABLE old RENAME TO messages;
         UPDATE messages SET attempts = 'many', hold_ms = x'00' WHERE seq = 1;
         UPDATE messages SET attempts = -7, hold_ms = -1 WHERE seq = 2;",
    );
    for _ in 0..2 {
        let claim = rig.queue.claim("w", Duration::ZERO).unwrap().unwrap();
        assert_eq!(claim.attempt, 1);
    }
    // neither claim has expired
    assert_eq!(rig.queue.claim("v", Duration::ZERO).unwrap(), None);
}

#[test]
fn names_that_cannot_be_part_of_a_key_end_no_worker() {
    let mut rig = Rig::start(1);
    let long = "x".repeat(300);
    write(
        &rig,
        &format!(
            "UPDATE messages SET body = replace(body, '\"plan\":\"', '\"plan\":\"{long}') WHERE seq = 1;
             UPDATE messages SET body = replace(body, '\"id\":\"', '\"id\":\"{long}') WHERE seq = 2;"
        ),
    );
    let mut fake = Fake::default();
    let done = rig.work(&mut fake);
    assert_eq!((done.len(), fake.measured), (2, 0), "{done:?}");
    assert_eq!(rig.queue.counts().unwrap().dead, Some(2));
}

#[test]
fn a_secret_is_read_by_the_worker_and_never_stored() {
    let mut rig = Rig::start(1);
    let text = crate::rig::TEXT.replace("REPETITIONS", "1").replace(
        "i-own-this",
        "headers = [\"Authorization: Bearer {env:TOKEN}\"]\ni-own-this",
    );
    let text = text.replace("http://host.test/", "http://host.test/?key={env:TOKEN}");
    rig.plan = intact_fleet::parse("rig.toml".as_ref(), &text).unwrap();
    rig.store.put_plan(&rig.plan).unwrap();
    rig.queue.send(&mut rig.plan.messages()).unwrap();
    let bodies: Vec<String> = rig
        .plan
        .messages()
        .map(|message| serde_json::to_string(&message).unwrap())
        .collect();
    assert!(bodies[0].contains("{env:TOKEN}"), "{}", bodies[0]);
    struct Token(&'static str);
    impl intact_fleet::ReadSecret for Token {
        fn read(&self, reference: &intact_fleet::Reference) -> Result<String, String> {
            assert_eq!(reference.to_string(), "env:TOKEN");
            match self.0 {
                "" => Err("is not set".to_owned()),
                value => Ok(value.to_owned()),
            }
        }
    }
    let mut fake = Fake::default();
    let mut desk = MessageHandler {
        worker: "w".to_owned(),
        store: &rig.store,
        measure: &mut fake,
        secrets: &Token(""),
    };
    // a worker without it ends, which is not the message's fault
    let error = desk.handle(&bodies[0], 1).unwrap_err().to_string();
    assert_eq!(error, "target t: env:TOKEN: is not set");
    desk.secrets = &Token("s3cret/&");
    assert!(matches!(
        desk.handle(&bodies[0], 1).unwrap(),
        MessageOutcome::Measured(_)
    ));
    fake.failure = Some((
        rig.plan.messages().nth(1).unwrap().id,
        FailureAction::GivenUp,
    ));
    let mut desk = MessageHandler {
        worker: "w".to_owned(),
        store: &rig.store,
        measure: &mut fake,
        secrets: &Token("no luck"),
    };
    // the error of this measurer repeats the secret
    let MessageOutcome::Failed { reason, .. } = desk.handle(&bodies[1], 1).unwrap() else {
        panic!("measured");
    };
    assert_eq!(reason, "…");
    let asked = fake.targets;
    assert_eq!(asked[0].headers, ["Authorization: Bearer s3cret/&"]);
    assert_eq!(asked[0].url, "http://host.test/?key=s3cret%2F%26");
    for key in rig.store.keys("").unwrap() {
        let bytes = rig.store.get(&key).unwrap();
        let text = String::from_utf8_lossy(&bytes);
        assert!(
            !text.contains("s3cret") && !text.contains("no luck"),
            "{key}"
        );
    }
    assert!(rig.store.keys("results").unwrap().len() == 1);
}

#[test]
fn a_damaged_result_is_reported_and_its_message_is_missing() {
    let mut rig = Rig::start(2);
    rig.work(&mut Fake::default());
    let keys = rig.store.keys("results").unwrap();
    rig.store.put(&keys[0], &b"{\"format\":1,"[..]).unwrap();
    rig.store.put(&keys[1], &b"{\"format\":7}"[..]).unwrap();
    let campaign = rig.read();
    assert_eq!(campaign.progress.finished, 2);
    assert_eq!(campaign.progress.unreadable, 2);
    assert_eq!(campaign.progress.missing, 2);
    let caveats: Vec<&str> = campaign.groups[0]
        .tally
        .caveats
        .iter()
        .map(|caveat| &*caveat.message)
        .collect();
    assert!(
        caveats.iter().any(|words| words.contains("newer")),
        "{caveats:?}"
    );
}

#[test]
fn requests_are_stored_as_csv_and_as_parquet_that_can_be_read_back() {
    let mut rig = Rig::start(1);
    rig.work(&mut Fake::default());
    // separate: an SQL engine reads every file of its folder
    for (folder, kind) in [("exchanges", ".parquet"), ("csv", ".csv")] {
        let keys = rig.store.keys(folder).unwrap();
        assert_eq!(keys.len(), 2);
        assert!(keys.iter().all(|key| key.ends_with(kind)), "{keys:?}");
    }
    let mut keys = rig.store.keys("exchanges").unwrap();
    keys.extend(rig.store.keys("csv").unwrap());
    for key in keys {
        let bytes = rig.store.get(&key).unwrap();
        assert!(key.contains(&format!("plan={}/variant=keepalive-", rig.plan.id)));
        if key.ends_with(".csv") {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            assert_eq!(text.lines().count(), 11);
            assert!(text.starts_with("response-time,DNS+dialup,"));
        } else {
            let path = rig.folder.path().join("one.parquet");
            std::fs::write(&path, &bytes).unwrap();
            let file = std::fs::File::open(&path).unwrap();
            let reader = parquet::file::reader::SerializedFileReader::new(file).unwrap();
            use parquet::file::reader::FileReader;
            let rows: Vec<_> = reader
                .get_row_iter(None)
                .unwrap()
                .map(Result::unwrap)
                .collect();
            assert_eq!(rows.len(), 10);
            let fields: Vec<(&String, String)> = rows[3]
                .get_column_iter()
                .map(|(name, value)| (name, value.to_string()))
                .collect();
            let of = |wanted: &str| &fields.iter().find(|(name, _)| *name == wanted).unwrap().1;
            assert_eq!(of("id"), "3");
            assert_eq!(of("status"), "200");
            assert_eq!(of("outcome"), "\"ok\"");
            assert_eq!(of("connection"), "null");
            assert!(of("latency_ns") == "1000000" || of("latency_ns") == "3000000");
        }
    }
}
