//! Any text as a log format, and any text as a line in it.
#![no_main]

use intact_audit::{Audit, Input, InputOptions, KeyLog, Options, Pattern};
use intact_fuzz::NullSink;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

fuzz_target!(|texts: (&str, &[u8])| {
    let (format, lines) = texts;
    let Ok(pattern) = Pattern::new(format) else {
        return;
    };
    let hints = InputOptions {
        log_format: Some(pattern),
    };
    let reader = Box::new(Cursor::new(lines.to_vec()));
    let Ok(input) = Input::from_reader(Path::new("fuzz"), reader, None, &hints) else {
        return;
    };
    let mut audit = Audit::new(Options {
        keys: KeyLog::default(),
        ladder: None,
        random: [7; 32],
        base: 0,
    });
    let _ = audit.read(input, &mut NullSink, &mut || true);
    audit.finish(&mut NullSink);
});
