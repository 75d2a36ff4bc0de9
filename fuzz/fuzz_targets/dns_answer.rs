//! Answers of a name server: no panic, no more aliases than are followed, and a TTL wherever there is an address.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for v6 in [false, true] {
        if let Some(Ok(told)) = intact_check::dns::read_any(data, "a.example.", v6) {
            assert!(told.aliases.len() <= 16);
            assert!(told.addresses.is_empty() || told.ttl_s.is_some());
            assert!(told.addresses.iter().all(|address| address.is_ipv6() == v6));
        }
    }
});
