//! Any bytes as an input of `audit`: an answer or an error, never a panic. Seeds:
//! `fixtures/captures`, `fixtures/har`, `fixtures/logs`. `cargo +nightly fuzz run audit
//! fuzz/corpus/audit fixtures/captures fixtures/har fixtures/logs`
#![no_main]

use intact_audit::{Audit, Input, InputOptions, KeyLog, LadderSelection, Options};
use intact_fuzz::NullSink;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

fuzz_target!(|bytes: &[u8]| {
    let reader = Box::new(Cursor::new(bytes.to_vec()));
    let Ok(input) = Input::from_reader(Path::new("fuzz"), reader, None, &InputOptions::default())
    else {
        return;
    };
    let base = input.begins_at().unwrap_or(0);
    let mut audit = Audit::new(Options {
        keys: KeyLog::default(),
        ladder: Some(LadderSelection::First),
        random: [7; 32],
        base,
    });
    let _ = audit.read(input, &mut NullSink, &mut || true);
    audit.finish(&mut NullSink);
    audit.ladder();
});
