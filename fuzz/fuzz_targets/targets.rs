//! Any text as a file of targets, and as a pattern of paths: no panic, an accepted target has the
//! line that it begins in, and a problem names a line of the text. The first byte chooses between
//! both, and gives the choices of a pattern.
#![no_main]

use intact_scenario::{random_paths, targets};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else {
        return;
    };
    let text = String::from_utf8_lossy(rest);
    if *first >= 192 {
        let below = |most: u64| u64::from(*first) % most;
        if let Ok(paths) = random_paths(&text, 2, below) {
            assert!(paths.iter().all(|one| one.url.starts_with('/')));
        }
        return;
    }
    let lines = text.lines().count().max(1);
    let body = |path: &str| Ok(path.as_bytes().to_vec());
    match targets("x.txt", &text, &body) {
        Ok(all) => assert!(all.iter().all(|one| (1..=lines).contains(&one.line))),
        Err(error) => {
            for problem in error.problems() {
                assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)), "{problem:?}");
            }
        }
    }
});
