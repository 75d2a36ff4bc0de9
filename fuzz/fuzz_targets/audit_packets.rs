//! Any bytes as the packets of a capture, so that the fuzzer need not find out how files are
//! framed: the first byte chooses the link type, then each packet has a byte for its length.
#![no_main]

use intact_audit::{Audit, Input, InputOptions, KeyLog, LadderSelection, Options};
use intact_fuzz::NullSink;
use libfuzzer_sys::fuzz_target;
use std::io::Cursor;
use std::path::Path;

const LINKS: [u32; 20] = [
    0, 1, 6, 9, 10, 11, 50, 51, 101, 104, 105, 109, 113, 117, 127, 192, 228, 239, 258, 276,
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&link, mut rest)) = bytes.split_first() else {
        return;
    };
    let link = LINKS[usize::from(link) % LINKS.len()];
    let mut file = vec![
        0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0,
    ];
    file.extend(link.to_le_bytes());
    let mut second = 0u32;
    while let Some((&len, after)) = rest.split_first() {
        let len = usize::from(len).min(after.len());
        second += 1;
        for word in [second, 0, len as u32, len as u32] {
            file.extend(word.to_le_bytes());
        }
        file.extend(&after[..len]);
        rest = &after[len..];
    }
    let input = Input::from_reader(
        Path::new("fuzz"),
        Box::new(Cursor::new(file)),
        None,
        &InputOptions::default(),
    );
    let Ok(input) = input else { return };
    let mut audit = Audit::new(Options {
        keys: KeyLog::default(),
        ladder: Some(LadderSelection::First),
        random: [7; 32],
        base: 0,
    });
    let _ = audit.read(input, &mut NullSink, &mut || true);
    audit.finish(&mut NullSink);
});
