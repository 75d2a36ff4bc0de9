//! Questions to name servers and answers as an observer reads them: no panic, bounded names and
//! records. What our name server responds to a question is read as a response about the same name.

#![no_main]

use intact_wire::dns::{self, ResponseContent};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    if let Some(message) = dns::parse(data) {
        assert!(message.name.len() <= 1024);
        assert!(message.records.len() <= 256);
        assert!(message.header.is_answer || message.records.is_empty());
        let addresses = [[192, 0, 2, 7].into(), [0; 16].into()];
        let content = ResponseContent::Addresses(&addresses, 7);
        if let Some(response) = dns::respond(data, content, dns::MAX_UDP) {
            let read = dns::parse(&response).unwrap();
            assert!(read.header.is_answer && read.is_whole);
            assert_eq!(read.name, message.name);
        }
    }
});
