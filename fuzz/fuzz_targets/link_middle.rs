//! Any frames through a link with everything on it: no panic, and every packet is counted once.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    for spec in [
        "rtt=30ms,jitter=5ms,loss=10%,nat-idle=50ms:rst",
        "up=1ms,rate=1mbit,nat-idle=20ms:silent",
        "rtt=2ms,jitter=1ms,reorder=yes,drop=up",
    ] {
        intact_link::forward(&spec.parse().expect("a link"), bytes);
    }
});
