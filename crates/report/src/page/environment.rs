//! The machine and the link of a run, as facts.

use intact_ledger::{Rows, Run};

/// What is known of it; what is not is empty.
pub(super) fn environment(run: &Run) -> Vec<(&'static str, String)> {
    let host = &run.host;
    let cpus = host
        .cpus
        .map_or(String::new(), |cpus| format!(", {cpus} processors"));
    vec![
        ("Machine", format!("{} {}{cpus}", host.os, host.arch)),
        ("Kernel", host.kernel.clone().unwrap_or_default()),
        (
            "TCP congestion control",
            host.congestion_control.clone().unwrap_or_default(),
        ),
        (
            "Link",
            run.link.clone().unwrap_or_else(|| "as it is".to_owned()),
        ),
        (
            "Rows in the ledger",
            match run.rows {
                Rows::All => "all",
                Rows::Sample => "a sample; counts are complete",
            }
            .to_owned(),
        ),
        ("Run", run.id.clone()),
    ]
}
