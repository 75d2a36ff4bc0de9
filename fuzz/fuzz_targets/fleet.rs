//! Any bytes as a plan, a message or a stored plan: no panic, workers take each message of a plan
//! that was accepted, and no message ends a worker. The first byte chooses.
#![no_main]

use intact_fleet::{
    Measure, MeasureError, Measured, Message, MessageHandler, Plan, ReadSecret, Reference, RowFiles,
    Store, parse, plan_json, plan_page,
};
use intact_ledger::{Producer, Run, Tally, Vantage};
use libfuzzer_sys::fuzz_target;
use std::cell::Cell;
use std::path::Path;

const PLAN: &str = "name = \"p\"\nrepetitions = 2\nduration = \"2s\"\nslice = \"1s\"\nlabels = [\"a\", \"b\"]\n\
    [limits]\nrequests = 100000\nrate = 10\nworkers = 2\n\
    [[target]]\nname = \"t\"\nurl = \"https://t.test:8443/p?k={env:K}\"\ni-own-this = [\"t.test\", \"::1\"]\n\
    resolve = [\"t.test:8443:[::1]\"]\nheaders = [\"A: b\", \"Cookie: file:/c\"]\n\
    [[target]]\nname = \"c\"\nurl = \"http://c.test/\"\ni-own-this = \"c.test\"\nmeasure = \"bench\"\n\
    [axes]\nhttp = [1.1, 2]\ntls = [\"none\", \"1.3\"]\nc = [1, 5]\n";

/// Measures nothing, and finds what it was given fit to be sent.
struct Fake;

impl Measure for Fake {
    fn measure(&mut self, message: &Message, _: &mut RowFiles) -> Result<Measured, MeasureError> {
        let target = &message.job.target;
        let texts = target.headers.iter().chain([&target.url]);
        assert!(
            texts
                .into_iter()
                .all(|text| !text.contains(['\r', '\n', '\0']))
        );
        let started = Default::default();
        Ok(Measured {
            run: Run::new(Producer::Fleet, "0", Vantage::Client, started, 1, &[]),
            tally: Tally::new(),
            checked: None,
        })
    }
}

struct Secrets;

impl ReadSecret for Secrets {
    fn read(&self, reference: &Reference) -> Result<String, String> {
        // a value that cannot be sent ends a worker on purpose; the name of a file may have such
        // characters
        Ok(format!("value of {reference}").replace(char::is_control, "?"))
    }
}

/// Replaces bytes of a text: where, how many, by what.
fn patched(text: &str, patch: &[u8]) -> String {
    let [high, low, length, new @ ..] = patch else {
        return text.to_owned();
    };
    let mut bytes = text.as_bytes().to_vec();
    let at = usize::from(u16::from_be_bytes([*high, *low])) % bytes.len();
    let end = (at + usize::from(*length)).min(bytes.len());
    bytes.splice(at..end, new.iter().copied());
    String::from_utf8_lossy(&bytes).into_owned()
}

fn plan(text: &str) {
    let Ok(plan) = parse(Path::new("p.toml"), text) else {
        return;
    };
    let _ = (plan_page(&plan), plan_json(&plan), plan.warnings());
    for message in plan.messages().take(50) {
        let body = serde_json::to_string(&message).unwrap();
        assert_eq!(Message::parse(&body), Ok(message), "{body}");
    }
}

fn message(body: &str) {
    thread_local! {
        static STORE: (tempfile::TempDir, Store) = {
            let folder = tempfile::tempdir().unwrap();
            let store = Store::open(folder.path().to_str().unwrap()).unwrap();
            (folder, store)
        };
        static RUNS: Cell<u32> = const { Cell::new(0) };
    }
    STORE.with(|(folder, store)| {
        let mut handler = MessageHandler {
            worker: "w".to_owned(),
            store,
            measure: &mut Fake,
            secrets: &Secrets,
        };
        handler.handle(body, 1).expect("no message ends a worker");
        RUNS.set(RUNS.get() + 1);
        if RUNS.get() % 1_000 == 0 {
            for name in ["dead", "results", "csv", "exchanges"] {
                let _ = std::fs::remove_dir_all(folder.path().join(name));
            }
        }
    });
}

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    match kind % 5 {
        0 => plan(&text),
        1 => plan(&patched(PLAN, rest)),
        2 => message(&text),
        3 => {
            let good = parse(Path::new("p.toml"), PLAN).unwrap();
            let good = good.messages().nth(usize::from(kind) % 16).unwrap();
            message(&patched(&serde_json::to_string(&good).unwrap(), rest));
        }
        _ => {
            if let Ok(plan) = serde_json::from_str::<Plan>(&text) {
                let _ = (plan.len(), plan.is_empty());
            }
        }
    }
});
