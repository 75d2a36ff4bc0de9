//! Whole campaigns: every message ends exactly once in the report.

use crate::rig::{Fake, NoSecrets, plan};
use intact_fleet::{Campaign, FailureAction, Indices, MessageHandler, MessageOutcome, Plan, Store};

struct Rig {
    folder: tempfile::TempDir,
    store: Store,
    plan: Plan,
}

impl Rig {
    fn start(repetitions: u32) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(folder.path().join("store").to_str().unwrap()).unwrap();
        let plan = plan(repetitions);
        store.put_plan(&plan).unwrap();
        Rig {
            folder,
            store,
            plan,
        }
    }

    fn left(&self) -> Indices {
        Indices::left(&self.plan, &self.store).unwrap()
    }

    /// Measures what is left, each message once. Returns the outcomes.
    fn work(&self, fake: &mut Fake) -> Vec<MessageOutcome> {
        let mut handler = MessageHandler {
            worker: "w1".to_owned(),
            store: &self.store,
            measure: fake,
            secrets: &NoSecrets,
        };
        let mut left = self.left();
        let each = std::iter::from_fn(|| left.take());
        let message = |index| self.plan.message(index).unwrap();
        each.map(|one| handler.measure(message(one.index), one.number).unwrap())
            .collect()
    }

    fn read(&self) -> Campaign {
        let started = jiff::Timestamp::UNIX_EPOCH;
        Campaign::read(&self.store, self.plan.clone(), started, &mut |_, _| {}).unwrap()
    }
}

#[test]
fn every_message_ends_in_the_report_and_rounds_are_repetitions() {
    let rig = Rig::start(10);
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
    let rig = Rig::start(2);
    let message = rig.plan.message(0).unwrap();
    let mut fake = Fake::default();
    let mut handler = MessageHandler {
        worker: "w9".to_owned(),
        store: &rig.store,
        measure: &mut fake,
        secrets: &NoSecrets,
    };
    let measured = handler.measure(message.clone(), 1).unwrap();
    assert_eq!(measured, MessageOutcome::Measured(message.id.clone()));
    // two workers held it at the same time: neither saw the other's result
    let keys = rig.store.keys("results").unwrap();
    let again = rig.store.get(&keys[0]).unwrap();
    let second = keys[0].replace("001.json", "002.json");
    rig.store.put(&second, again).unwrap();
    // a delivery after that finds the result and measures nothing
    let repeated = handler.measure(message.clone(), 3).unwrap();
    assert_eq!(repeated, MessageOutcome::AlreadyThere(message.id));
    rig.work(&mut fake);
    assert_eq!(fake.measured, 4);
    let campaign = rig.read();
    assert_eq!(campaign.progress.finished, 4);
    assert_eq!(campaign.progress.duplicates, 1);
    assert_eq!(rig.store.finished(&rig.plan.id).unwrap().len(), 4);
}

#[test]
fn the_first_result_of_a_delivery_stays() {
    let rig = Rig::start(1);
    rig.work(&mut Fake::default());
    let message = rig.plan.message(0).unwrap();
    let key = &rig.store.keys("results").unwrap()[0];
    let first = rig.store.get(key).unwrap();
    let mut second: intact_fleet::DeliveryResult = serde_json::from_slice(&first).unwrap();
    second.worker = "late".to_owned();
    assert!(!rig.store.put_outcome(&message, &second).unwrap());
    assert_eq!(rig.store.get(key).unwrap(), first);
}

#[test]
fn an_index_names_the_same_message_as_its_place_in_the_plan() {
    let checked = "[[target]]\nname = \"c\"\nurl = \"http://c.test/\"\ni-own-this = \"c.test\"\n\
         measure = \"check\"\nidle-limit = \"0\"\n";
    let text = crate::rig::TEXT.replace("REPETITIONS", "3");
    let mixed = text.replace("[axes]", &format!("{checked}[axes]"));
    let mixed = mixed.replace(
        "duration = \"100ms\"",
        "duration = \"10m\"\nslice = \"3m\"\nlabels = [\"a\", \"b\"]",
    );
    let mixed = intact_fleet::parse("rig.toml".as_ref(), &mixed).unwrap();
    assert_eq!((mixed.slices, mixed.len()), (4, 3 * (4 * 4 + 2)));
    for plan in [plan(3), mixed] {
        let all: Vec<_> = plan.messages().collect();
        for (index, message) in (0..).zip(&all) {
            assert_eq!(plan.message(index).as_ref(), Some(message));
        }
        assert_eq!(plan.len(), all.len() as u64);
        for after in [plan.len(), plan.len() + 1, u64::MAX] {
            assert_eq!(plan.message(after), None);
        }
    }
}

#[test]
fn what_has_a_result_or_a_dead_letter_is_not_left() {
    let rig = Rig::start(2);
    let id = rig.plan.message(2).unwrap().id;
    let mut fake = Fake {
        failure: Some((id, FailureAction::GivenUp)),
        ..Fake::default()
    };
    assert_eq!(rig.left().len(), 4);
    rig.work(&mut fake);
    assert!(rig.left().is_empty());
    let results = rig.folder.path().join("store/results");
    std::fs::remove_dir_all(results).unwrap();
    let mut left = rig.left();
    let indices: Vec<u64> = std::iter::from_fn(|| left.take())
        .map(|one| one.index)
        .collect();
    assert_eq!(indices, [0, 1, 3]);
}

#[test]
fn a_failed_delivery_comes_back_until_its_last_and_an_interruption_does_not_count() {
    let rig = Rig::start(1);
    let mut left = rig.left();
    let first = left.take().unwrap();
    for _ in 0..5 {
        left.release(first);
        assert_eq!(left.take(), Some(first));
    }
    assert!(left.again(first));
    let second = left.take().unwrap();
    assert_eq!(second.index, 1, "others come first");
    // the plan allows three deliveries
    for number in 2..=3 {
        let again = left.take().unwrap();
        assert_eq!((again.index, again.number), (first.index, number));
        assert_eq!(left.again(again), number < 3);
    }
    assert!(left.is_empty());
}

#[test]
fn a_poison_message_is_given_up_with_its_reason_and_the_rest_continues() {
    let rig = Rig::start(3);
    let id = rig.plan.message(1).unwrap().id;
    let mut fake = Fake {
        failure: Some((id.clone(), FailureAction::GivenUp)),
        ..Fake::default()
    };
    rig.work(&mut fake);
    assert_eq!(fake.measured, 5);
    let campaign = rig.read();
    assert_eq!(campaign.progress.finished, 5);
    let dead = &campaign.progress.dead;
    assert_eq!((&dead[0].message, &*dead[0].reason), (&id, "no luck"));
    assert_eq!(campaign.progress.missing, 0);
}

#[test]
fn a_foreign_message_goes_to_the_dead_letters() {
    let rig = Rig::start(1);
    let own = serde_json::to_string(&rig.plan.message(0).unwrap()).unwrap();
    let changed = |from: &str, to: &str| {
        let text = own.replace(from, to);
        assert_ne!(text, own);
        text
    };
    // names that cannot be part of a key
    let long = "x".repeat(300);
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
        &changed("\"format\":3", "\"format\":4"),
        &changed("\"format\":3", "\"format\":-1"),
        &changed(".0000.000\"", ".0001.000\""),
        &changed("\"plan\":\"", &format!("\"plan\":\"{long}")),
        &changed("\"id\":\"", &format!("\"id\":\"{long}")),
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
        .collect();
    assert_eq!(outside, ["store"]);
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
    let rig = Rig::start(2);
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
    let rig = Rig::start(1);
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
