//! Datagrams and the frames of Initial packets: no panic, and the hello that frames give does not
//! depend on their being read twice.

#![no_main]

use intact_wire::quic::{Assembly, QuicClientHello, packets};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: Vec<Vec<u8>>| {
    let mut greeting = QuicClientHello::default();
    let mut once = Assembly::default();
    for bytes in &data {
        for (_, head) in packets(bytes) {
            assert!(head.is_none_or(|head| head.number_at <= head.packet.len()));
        }
        greeting.read(bytes);
        once.read(bytes);
    }
    if let Some(hello) = once.client_hello() {
        let mut twice = once.clone();
        data.iter().for_each(|bytes| twice.read(bytes));
        assert_eq!(twice.client_hello(), Some(hello));
    }
});
