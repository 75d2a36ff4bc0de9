//! Key log text and both directions of a connection: no panic, and nothing comes out that no key
//! vouches for.

#![no_main]

use intact_wire::Side;
use intact_wire::tls::decrypt::{Decryptor, KeyLog, SecretCheck};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (&str, Vec<(bool, Vec<u8>)>)| {
    let (text, pieces) = data;
    let mut keys = KeyLog::default();
    keys.add_text(text);
    let mut decryptor = Decryptor::new(4096);
    for (client, bytes) in &pieces {
        let from = if *client { Side::Client } else { Side::Server };
        let _ = decryptor.read(&keys, from, bytes, 0, |_| assert!(!keys.is_empty()));
        let _ = decryptor.status();
    }
    if let Some((_, secret)) = pieces.last() {
        let _ = SecretCheck::find(&decryptor.locks(), secret);
    }
});
