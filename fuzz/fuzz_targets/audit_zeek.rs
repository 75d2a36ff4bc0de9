//! Any bytes as Zeek's logs that are joined: parts between empty lines are files of their own.
//! Seeds: `fixtures/logs/zeek`. `cargo +nightly fuzz run audit_zeek fuzz/corpus/audit_zeek
//! fixtures/logs/zeek`
#![no_main]

use intact_audit::{Audit, Input, InputOptions, KeyLog, Options};
use intact_fuzz::NullSink;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    let mut inputs: Vec<Input> = text
        .split("\n\n")
        .take(8)
        .filter_map(|part| {
            let reader = Box::new(Cursor::new(part.as_bytes().to_vec()));
            Input::from_reader(Path::new("fuzz"), reader, None, &InputOptions::default()).ok()
        })
        .collect();
    inputs.sort_by_key(Input::turn);
    let base = inputs.iter().filter_map(Input::begins_at).min();
    let mut audit = Audit::new(Options {
        keys: KeyLog::default(),
        ladder: None,
        random: [7; 32],
        base: base.unwrap_or(0),
    });
    for input in inputs {
        let _ = audit.read(input, &mut NullSink, &mut || true);
    }
    audit.finish(&mut NullSink);
});
