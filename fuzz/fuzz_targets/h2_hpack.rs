//! Header blocks: no panic, no list beyond the limit, and what decodes can be encoded and decoded
//! again.

#![no_main]

use intact_wire::h2::hpack::{Decoder, Encoder, Indexing};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 8192;

fuzz_target!(|blocks: Vec<Vec<u8>>| {
    let mut decoder = Decoder::new(LIMIT);
    let (mut encoder, mut back) = (Encoder::default(), Decoder::new(LIMIT));
    for block in &blocks {
        let (mut fields, mut again) = (Vec::new(), Vec::new());
        let Ok(seen) = decoder.decode(block, |field| {
            let indexing = if field.sensitive {
                Indexing::Never
            } else {
                Indexing::Incremental
            };
            encoder.encode(field.name, field.value, indexing, &mut again);
            fields.push((field.name.to_vec(), field.value.to_vec()));
        }) else {
            return;
        };
        assert!(seen.list_size <= LIMIT && seen.fields == fields.len());
        let mut expected = fields.iter();
        back.decode(&again, |field| {
            let (name, value) = expected.next().expect("no more fields than before");
            assert_eq!(
                (field.name, field.value),
                (name.as_slice(), value.as_slice())
            );
        })
        .expect("our own encoding");
    }
});
