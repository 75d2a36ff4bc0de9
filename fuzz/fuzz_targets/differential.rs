//! Any bytes as HTTP/1, as header blocks and as the first flight of TLS: ours reads what
//! independent readers read, with the exceptions that the comparison lists. The first byte chooses
//! the comparison. Header blocks are separated by 0x1e.
#![no_main]

#[path = "../../crates/wire/tests/it/differential/mod.rs"]
mod differential;

use differential::{hpack, http1_heads, http1_messages, tls};
use intact_fuzz::mutate_text;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, room: usize, seed: u32| {
    mutate_text(data, size, room, seed)
});

fuzz_target!(|data: &[u8]| {
    let Some((&which, bytes)) = data.split_first() else {
        return;
    };
    let verdict = match which % 6 {
        0 => http1_heads::compare_request(bytes),
        1 => http1_heads::compare_response(bytes),
        2 => http1_messages::compare_requests(bytes),
        3 => http1_messages::compare_response(bytes),
        4 => hpack::compare(&bytes.split(|byte| *byte == 0x1e).collect::<Vec<_>>()),
        _ => tls::compare(bytes),
    };
    if let Err(differential::Disagreement(text)) = verdict {
        panic!("{}\n{text}", bytes.escape_ascii());
    }
});
