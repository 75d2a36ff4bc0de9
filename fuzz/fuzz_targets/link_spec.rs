//! Any text as a link or a change: no panic, and what is understood is understood again from its
//! own words.

#![no_main]

use intact_link::{LinkChange, Spec};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = text.parse::<LinkChange>();
    if let Ok(spec) = text.parse::<Spec>() {
        assert_eq!(spec.to_string().parse(), Ok(spec));
    }
});
