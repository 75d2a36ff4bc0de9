//! Any text as a description of a chain: no panic, and every prediction is finite, not negative and
//! not better with new connections.
#![no_main]

use intact_fuzz::mutate_text;
use intact_model::{Counting, Forecast, Reuse};
use intact_report::terminal::TerminalOptions;
use intact_report::{documents, html, json, terminal};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};

fuzz_mutator!(|data: &mut [u8], size: usize, room: usize, seed: u32| {
    mutate_text(data, size, room, seed)
});

fuzz_target!(|text: &str| {
    let Ok(chain) = intact_model::parse(text) else {
        return;
    };
    for counting in [Counting::Tcp, Counting::Series] {
        let total = |reuse| intact_model::predict(&chain, counting, reuse).total_ms;
        let (reused, configured, new) = (
            total(Reuse::Always),
            total(Reuse::Configured),
            total(Reuse::Never),
        );
        assert!(new.is_finite() && reused >= 0.0, "{reused} to {new}");
        // the sums are of the same terms in another order
        let slack = 1e-9 * new.max(1.0);
        assert!(
            reused <= configured + slack && configured <= new + slack,
            "{reused} {configured} {new}"
        );
        let forecast = Forecast::new(&chain, counting, Reuse::Configured);
        let page = documents::model(&forecast, "fuzz", None);
        let text = terminal::write(&page, TerminalOptions::plain(80));
        assert!(
            text.chars()
                .all(|letter| letter == '\n' || !letter.is_control())
        );
        html::write(std::slice::from_ref(&page)).expect("a page");
        json::model("fuzz", &forecast, None).expect("a document");
        intact_report::mermaid(&documents::sequence_of(&forecast.sequence));
    }
});
