//! Bare `intact`: the demonstration.

use super::{bench, link, on_link};
use crate::console;
use crate::exit::Failed;
use intact_experiment::TlsChoice;
use intact_ledger::TlsVersion;
use intact_link::LinkError;
use std::process::ExitCode;
use std::time::Duration;

/// The distance of the built-in server.
const LINK: &str = "rtt=30ms";
/// Time per variant; there are two.
const TIME: Duration = Duration::from_secs(5);
const ROUNDS: u32 = 12;

/// A bench of the built-in server on a link; on plain loopback where links are not possible.
pub(crate) fn run() -> Result<ExitCode, Failed> {
    console::note("intact: the demonstration, about 12 s (intact --help has the commands)");
    let mut options = bench::Args::defaults();
    options.axes.tls = vec![TlsChoice::Version(TlsVersion::Tls13)];
    options.time = Some(TIME);
    options.rounds = Some(ROUNDS);
    options.is_demonstration = true;
    let config = bench::Config::from(options);
    let spec = LINK.parse().map_err(Failed::usage)?;
    let signals = link::signals()?;
    match link::make(&spec, None) {
        Ok(link) => on_link::run(&link, signals, config),
        Err(error @ (LinkError::Forbidden { .. } | LinkError::Platform)) => {
            drop(signals);
            console::note_lines(&format!("{error}\nso this is plain loopback"));
            bench::run(config)
        }
        Err(error) => Err(anyhow::Error::from(error).into()),
    }
}
