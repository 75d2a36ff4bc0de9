//! Bytes of a watched program as the readers of its stacks take them: tables of lines of CPython,
//! the beginning of a function, the call before a return address, the tables of Go.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (u32, u64, &[u8])| {
    let (first, at, bytes) = data;
    intact_stacks::fuzz(bytes, first, at);
});
