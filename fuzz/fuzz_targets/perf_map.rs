//! Any text as the list of a JIT compiler and as that of the kernel, whole and as it grows: the
//! same names, each inside its code. The first byte chooses where the list is cut.
#![no_main]

use intact_fuzz::mutate_text;
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, room: usize, seed: u32| {
    mutate_text(data, size, room, seed)
});

fuzz_target!(|data: &[u8]| {
    let Some((&cut, text)) = data.split_first() else {
        return;
    };
    let cut = text.len() * usize::from(cut) / 255;
    assert_eq!(
        intact_profile::fuzz::perf_map(&[text]),
        intact_profile::fuzz::perf_map(&[&text[..cut], text])
    );
    intact_profile::fuzz::kernel_symbols(text);
});
