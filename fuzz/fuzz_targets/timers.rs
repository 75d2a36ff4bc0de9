//! Configuration files of nginx, HAProxy, Apache and Caddy, with an include of what follows the
//! first 0x1e; and the hops of a chain.
#![no_main]

use intact_timers::{FileError, Files, HopSpec, Idle, Product};
use libfuzzer_sys::fuzz_target;
use std::path::Path;

/// Two texts in one folder: the first includes what it names, and finds the second under every
/// other name.
struct Texts<'a>(&'a str, &'a str);

impl Files for Texts<'_> {
    fn read(&self, path: &Path) -> Result<String, FileError> {
        Ok(if path == Path::new("/c/main") {
            self.0
        } else {
            self.1
        }
        .to_owned())
    }

    fn list(&self, _: &Path) -> Result<Vec<String>, FileError> {
        Ok(vec!["a".to_owned(), "b.conf".to_owned()])
    }
}

fuzz_target!(|text: &str| {
    let (main, included) = text.split_once('\x1e').unwrap_or((text, ""));
    let _ = main.parse::<HopSpec>();
    for product in [
        Product::Nginx,
        Product::Haproxy,
        Product::Apache,
        Product::Caddy,
    ] {
        let hop = intact_timers::read("x", product, None, Path::new("/c/main"), &Texts(main, included))
            .expect("the main file is there");
        for timer in hop.accepts.iter().chain(&hop.keeps) {
            assert!(!matches!(timer.idle, Idle::After(time) if time.is_zero()));
        }
    }
});
