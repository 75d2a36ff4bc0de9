//! Bare `intact`: the demonstration.

use super::{link, on_link};
use crate::console;
use crate::exit::Failed;
use clap::Parser;
use intact_link::LinkError;
use std::ffi::OsString;
use std::process::ExitCode;

/// How far away our server is put.
const LINK: &str = "rtt=30ms";
/// Two variants of 5 s.
const WORDS: [&str; 7] = [
    "--tls",
    "1.3",
    "-z",
    "5s",
    "--rounds",
    "12",
    "--demonstration",
];

/// A bench of the built-in server behind a link; on plain loopback where there can be no link.
pub(crate) fn run() -> Result<ExitCode, Failed> {
    #[derive(Parser)]
    struct Demonstration {
        #[command(flatten)]
        args: super::bench::Args,
    }
    console::note("intact: the demonstration, about 12 s (intact --help has the commands)");
    let spec = LINK.parse().map_err(Failed::usage)?;
    match link::make(&spec) {
        Ok(link) => {
            let words = ["bench", "--link", LINK].iter().chain(&WORDS);
            let words: Vec<OsString> = words.map(OsString::from).collect();
            on_link::run_on(&link, &words)
        }
        Err(error @ (LinkError::Forbidden { .. } | LinkError::Platform)) => {
            console::note(&format!("{error}\nso this is plain loopback"));
            let words = ["intact"].iter().chain(&WORDS);
            super::bench::run(Demonstration::parse_from(words).args)
        }
        Err(error) => Err(anyhow::Error::from(error).into()),
    }
}
