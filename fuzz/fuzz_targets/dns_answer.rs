//! Answers of a name server: no panic, no more aliases than are followed, and a TTL wherever there
//! is an address.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    for v6 in [false, true] {
        if let Some(Ok(found)) = intact_client::dns::read_any(data, "a.example.", v6) {
            assert!(found.aliases.len() <= 16);
            assert!(found.addresses.is_empty() || found.ttl_s.is_some());
            assert!(
                found
                    .addresses
                    .iter()
                    .all(|address| address.is_ipv6() == v6)
            );
        }
    }
});
