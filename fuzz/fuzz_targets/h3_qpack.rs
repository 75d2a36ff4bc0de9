//! Header blocks of HTTP/3 and the instructions of QPACK: no panic, no list beyond the limit, and
//! what decodes can be encoded and decoded again.

#![no_main]

use intact_wire::h3::qpack::{self, DecoderInstructions, EncoderInstructions};
use libfuzzer_sys::fuzz_target;

const LIMIT: usize = 8192;

fn decode(block: &[u8]) -> Result<Vec<(Vec<u8>, Vec<u8>, bool)>, qpack::Error> {
    let (mut fields, mut size) = (Vec::new(), 0);
    qpack::decode(block, LIMIT, &mut Vec::new(), |field| {
        size += field.name.len() + field.value.len() + 32;
        fields.push((field.name.to_vec(), field.value.to_vec(), field.sensitive));
    })?;
    assert!(size <= LIMIT);
    Ok(fields)
}

fuzz_target!(|data: &[u8]| {
    let _ = EncoderInstructions.read(data);
    let _ = DecoderInstructions::default().read(data);
    let Ok(fields) = decode(data) else {
        return;
    };
    let mut again = Vec::new();
    qpack::begin(&mut again);
    for (name, value, sensitive) in &fields {
        qpack::encode(name, value, *sensitive, &mut again);
    }
    assert_eq!(decode(&again).expect("our own encoding"), fields);
});
