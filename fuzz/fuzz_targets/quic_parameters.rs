//! Transport parameters of QUIC: no panic, and where quinn accepts those of a server, ours are
//! read, too.

#![no_main]

use intact_wire::quic::TransportParameters;
use libfuzzer_sys::fuzz_target;
use quinn_proto::Side;
use quinn_proto::transport_parameters::TransportParameters as Theirs;

fuzz_target!(|data: &[u8]| {
    let ours = TransportParameters::read(data);
    // the side is the reader's
    if Theirs::read(Side::Client, &mut &data[..]).is_ok() {
        assert!(ours.is_some());
    }
    if let Some(ours) = ours {
        // RFC 9000 section 16: a number has 62 bits
        assert!(ours.max_idle_timeout_ms >> 62 == 0 && ours.max_request_streams >> 62 == 0);
    }
});
