//! Questions to name servers and answers as an observer reads them: no panic, bounded names and records.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(message) = intact_wire::dns::parse(data) {
        assert!(message.name.len() <= 1024);
        assert!(message.records.len() <= 256);
        assert!(message.header.is_answer || message.records.is_empty());
    }
});
