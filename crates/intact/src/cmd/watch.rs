//! `intact watch -- CMD`: does my program reuse its connections?

use crate::console;
use crate::exit::{self, Failed};
use anyhow::Context;
use ledger::store::Writer;
use ledger::{Caveat, Event, Rows, Run, Sink, Tally, Vantage};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use watch::{Clock, Config, Ended, Mode, Observer, WatchError};

/// Does my program reuse its connections?
#[derive(clap::Args)]
#[command(after_help = "Examples:
  intact watch -- node server.js
  intact watch -- pytest
  intact watch --ledger before -- ./my-go-binary --flag
  intact watch -- sh -c 'for i in 1 2 3; do curl -s http://localhost:8080/; done'")]
pub(crate) struct Args {
    /// Keep the ledger in a new folder
    #[arg(long, value_name = "DIR")]
    ledger: Option<PathBuf>,
    /// The program and its arguments
    #[arg(required = true, last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

/// Takes the events of a watched program. Trouble with a file does not touch the program: it is told at the end.
struct Recording {
    tally: Tally,
    ledger: Option<Writer>,
    trouble: Option<String>,
    lost: u64,
}

impl Recording {
    fn start(run: &Run, ledger: Option<&Path>) -> anyhow::Result<Recording> {
        Ok(Recording {
            tally: Tally::new(),
            ledger: ledger
                .map(|folder| Writer::create(folder, run).context("--ledger"))
                .transpose()?,
            trouble: None,
            lost: 0,
        })
    }

    fn stumble(&mut self, error: &ledger::store::StoreError) {
        self.ledger = None;
        self.trouble = Some(format!("--ledger: {error}"));
    }

    /// Writes what is left.
    fn finish(&mut self) {
        if let Some(trouble) = &self.trouble {
            self.tally.caveats.push(Caveat {
                id: "not-written".to_owned(),
                words: format!("{trouble}; {} rows were not written", self.lost),
            });
        }
        if let Some(ledger) = &mut self.ledger {
            let written = ledger
                .flush()
                .and_then(|()| ledger.replace_tally(&self.tally));
            if let Err(error) = written {
                self.stumble(&error);
            }
        }
    }
}

impl Sink for Recording {
    fn record(&mut self, event: Event<'_>) {
        self.tally.record(event);
        if let Some(ledger) = &mut self.ledger
            && let Err(error) = ledger.append(event)
        {
            self.stumble(&error);
        }
        if self.trouble.is_some() {
            self.lost += 1;
        }
    }
}

impl Observer for Recording {
    fn tick(&mut self) {
        if let Some(ledger) = &mut self.ledger
            && let Err(error) = ledger.flush()
        {
            self.stumble(&error);
        }
    }
}

/// Runs the program, then prints the page to standard error; its exit code is ours.
pub(crate) fn run(args: &Args) -> Result<ExitCode, Failed> {
    let clock = Clock::start();
    let argv: Vec<String> = std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let mut head = Run::new(
        "watch",
        env!("CARGO_PKG_VERSION"),
        Vantage::Middle,
        jiff::Timestamp::now(),
        super::bench::run_id(),
        &argv,
    );
    head.host = bench::machine::host();
    head.rows = Rows::All;
    let mut recording = Recording::start(&head, args.ledger.as_deref())
        .map_err(|error| Failed::wrapper(exit::OWN_FAILURE, error))?;
    let mut key = [0; 32];
    for half in key.chunks_mut(16) {
        half.copy_from_slice(&super::bench::run_id().to_le_bytes());
    }
    let config = Config {
        command: args.command.clone(),
        mode: Mode::Auto,
        fingerprint_key: key,
    };
    let outcome = watch::run(&config, clock, &mut recording).map_err(|error| {
        let code = match error {
            WatchError::NotFound(_) => exit::NOT_FOUND,
            WatchError::NotRunnable { .. } => exit::NOT_RUNNABLE,
            WatchError::Unsupported | WatchError::Refused(_) => exit::NOT_PERMITTED,
            WatchError::Nested | WatchError::Setup(..) => exit::OWN_FAILURE,
        };
        Failed::wrapper(code, error)
    })?;
    recording.finish();
    console::note(&summary(&mut recording.tally));
    Ok(ExitCode::from(match outcome.ended {
        Ended::Code(code) => code as u8,
        Ended::Signal(number) => exit::by_signal(number as usize),
    }))
}

fn summary(tally: &mut Tally) -> String {
    let cell = tally.cell(None, None);
    let requests: u64 = cell.groups.iter().map(ledger::Group::count).sum();
    format!(
        "intact: {requests} requests on {} connections",
        cell.connections.opened
    )
}
