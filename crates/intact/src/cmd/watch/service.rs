//! Options for programs that run already: which ones, and what of them is read.

use super::{Keys, key_logging};
use crate::cmd::{options, run_header};
use intact_watch::{AttachConfig, Mode, Sides, Subjects};
use std::path::PathBuf;
use std::time::Duration;

/// Which running programs to follow, and what of them.
#[derive(clap::Args)]
pub(super) struct ServiceOptions {
    /// Follow programs that run already, with their descendants, from outside. With CAP_NET_RAW
    /// (root) their packets show requests; else connections and bytes are counted
    #[arg(long, value_name = "PID,..", value_delimiter = ',', group = "running", conflicts_with_all = ["command", "rtt", "fault"], help_heading = "Running programs")]
    pub(super) pid: Vec<u32>,
    /// Follow the programs with this name, as `ps -e` prints it, also after a restart
    #[arg(long, value_name = "NAME", group = "running", conflicts_with_all = ["command", "rtt", "fault"], help_heading = "Running programs")]
    name: Option<String>,
    /// Follow the programs of this unit of systemd, also after a restart
    #[arg(long, value_name = "UNIT", group = "running", conflicts_with_all = ["command", "rtt", "fault"], help_heading = "Running programs")]
    unit: Option<String>,
    /// Follow the programs of the container with this id: at least 12 digits, as `docker ps` and
    /// `crictl ps` print it
    #[arg(long, value_name = "ID", group = "running", conflicts_with_all = ["command", "rtt", "fault"], help_heading = "Running programs")]
    container: Option<String>,
    /// Watch every process that you may inspect: connections and bytes, no requests
    #[arg(long, group = "running", conflicts_with_all = ["command", "rtt", "cpu", "flamegraph", "fault"], help_heading = "Running programs")]
    all: bool,
    /// Follow for this long; without it until the programs end, or Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = crate::cmd::bench::time, conflicts_with = "command", help_heading = "Running programs")]
    at_most: Option<Duration>,
    /// Follow again and again, for the time of `--for` each: a long look that costs little. The
    /// value is the time from one start to the next. What happens in between is not seen, and no
    /// requirement passes by it
    #[arg(long, value_name = "TIME", value_parser = crate::cmd::bench::time, requires = "at_most", conflicts_with = "command", help_heading = "Running programs")]
    every: Option<Duration>,
    /// Which connections: those that the programs open (`client`), those that they accept
    /// (`server`), or `both`
    #[arg(long, value_parser = options::words(SIDES), default_value = "client", requires = "running", help_heading = "Running programs")]
    side: Sides,
    /// Read keys of TLS from this key log too, which the service writes. Without it, the file that
    /// SSLKEYLOGFILE names in the environment of the service
    #[arg(
        long,
        value_name = "FILE",
        requires = "running",
        help_heading = "Running programs"
    )]
    keylog: Option<PathBuf>,
    /// Memory for packets that are not read yet, in MiB
    #[arg(long, value_name = "MIB", default_value_t = AttachConfig::BUFFER >> 20, value_parser = buffer, requires = "running", help_heading = "Running programs")]
    buffer: usize,
}

const SIDES: &[(&str, Sides)] = &[
    ("client", Sides::Client),
    ("server", Sides::Server),
    ("both", Sides::Both),
];

/// The largest ring, in MiB.
const MAX_BUFFER: usize = AttachConfig::MOST_BUFFER >> 20;

/// A number of MiB.
fn buffer(text: &str) -> Result<usize, String> {
    let number = text.parse().ok();
    number
        .filter(|mib| (2..=MAX_BUFFER).contains(mib))
        .ok_or_else(|| format!("not a number of MiB from 2 to {MAX_BUFFER}"))
}

impl ServiceOptions {
    /// What is followed instead of a command, if anything is.
    fn subjects(&self) -> Option<Subjects> {
        let named = self.name.clone().map(Subjects::Named);
        let group = self.unit.as_ref().or(self.container.as_ref());
        let group = group.cloned().map(Subjects::Group);
        let processes = (!self.pid.is_empty()).then(|| Subjects::Processes(self.pid.clone()));
        let all = self.all.then_some(Subjects::All);
        all.or(processes).or(named).or(group)
    }

    /// What is followed instead of a command, if anything is, and how closely.
    pub(super) fn config(&self, keys: Keys, mode: Mode) -> anyhow::Result<Option<AttachConfig>> {
        let Some(subjects) = self.subjects() else {
            return Ok(None);
        };
        if let (Some(every), Some(at_most)) = (self.every, self.at_most)
            && every <= at_most
        {
            anyhow::bail!(
                "--every {every:?} is not longer than --for {at_most:?}: leave --every out to follow without a gap"
            );
        }
        let mut config = AttachConfig::new(subjects, run_header::fingerprint_key()?);
        config.every = self.every;
        config.sides = self.side;
        config.at_most = self.at_most;
        config.mode = mode;
        config.buffer = self.buffer << 20;
        // the key log of our own environment is not the service's
        config.keys = key_logging(keys).map(|mut logging| {
            logging.own_file.clone_from(&self.keylog);
            logging
        });
        Ok(Some(config))
    }

    /// What is followed, on one line.
    pub(super) fn subject(&self) -> Option<String> {
        let what = match self.subjects()? {
            Subjects::All => return Some("all processes".to_owned()),
            Subjects::Processes(pids) => {
                let pids: Vec<String> = pids.iter().map(ToString::to_string).collect();
                format!("process {}", pids.join(", "))
            }
            Subjects::Named(name) => format!("processes named {name}"),
            Subjects::Group(group) => format!("processes of {group}"),
        };
        Some(match self.side {
            Sides::Client => what,
            Sides::Server => format!("{what}, accepted connections"),
            Sides::Both => format!("{what}, opened and accepted connections"),
        })
    }
}
