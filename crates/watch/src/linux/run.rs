//! One watched run. The supervisor handles calls in one thread, the relay handles data in another.
//! A third looks for keys where asked; from time to time the run looks at what is open.

use crate::platform::filter::{self, FilteredCalls};
use crate::platform::inspection::Inspection;
use crate::platform::node_preload::NODE_OPTIONS;
use crate::platform::relay::Relay;
use crate::platform::relay_command::RelaySender;
use crate::platform::run_context::FAULT;
use crate::platform::secrets::{ExitHolds, Keys};
use crate::platform::supervisor::{NodeNotes, RunRecord, Supervisor, WatchedProgram};
use crate::{Clock, Config, Mode, Outcome, Streams, WatchError, WatchSink};
use intact_ledger::{Caveat, Event};
use intact_sys::process::Inherited;
use intact_sys::seccomp::{self, LaunchError};
use intact_sys::signals::is_end;
use intact_sys::{process, terminal};
use std::ffi::OsStr;
use std::io;
use std::process::{Command, Stdio};

/// Runs the program to its end, and that of everything that it started, and records its
/// connections.
///
/// Must be called while the process has one thread: signals are blocked meanwhile and passed on to
/// the program.
pub fn run(
    config: &Config,
    clock: Clock,
    observer: &mut dyn WatchSink,
) -> Result<Outcome, WatchError> {
    let program = config.command.first().ok_or_else(|| {
        WatchError::Setup("no command", io::Error::from(io::ErrorKind::InvalidInput))
    })?;
    let setup = |what| move |error| WatchError::Setup(what, error);
    process::adopt_orphans().map_err(setup("prctl"))?;
    let signals = config.signals.take_over().map_err(setup("signalfd"))?;
    // one that was sent before the program of this run has begun
    if let Some(signal) = signals.find(is_end) {
        return Ok(Outcome::not_begun(signal, clock.now()));
    }
    let mut command = prepare(program, config).map_err(setup("the program's terminal"))?;
    let holds = ExitHolds::default();
    let inspection = Inspection::of_this_system(config.mode);
    let is_relayed = inspection.mode(config.mode) != Mode::Passthrough;
    let keys = match &config.keys {
        Some(logging) if is_relayed => {
            let prepared = Keys::prepare(logging, holds.clone());
            command.envs(prepared.environment);
            if let Some(caveat) = &prepared.caveat {
                observer.record(Event::Caveat(caveat));
            }
            Some(prepared.keys)
        }
        _ => None,
    };
    let notes = prepare_notes(config, &mut command);
    // its standard streams are others
    let has_own_streams = config.streams == Streams::Null || config.terminal.is_some();
    let inherited = Inherited::from_descriptor(if has_own_streams { 3 } else { 0 });
    let code = filter::program(FilteredCalls {
        relayed: is_relayed,
        sockets: inspection.makes_sockets(),
        ends: keys.is_some(),
        receives: inherited.has_unix_socket,
    });
    let relay = Relay::new(clock, &mut *observer, config, keys).map_err(setup("the relay"))?;
    let orders = relay.orders();
    if !is_relayed {
        orders.relay_nothing();
    }
    let requests = orders.clone();
    config.marker.attach(move |number| requests.mark(number));
    let began = clock.now();
    let (child, listener) = match seccomp::launch(command, &code, signals.before()) {
        Ok(launched) => launched,
        Err(error) => return not_launched(error, program, clock),
    };
    let finishing = Finishing(orders.clone());
    let program = WatchedProgram::new(child.id(), inherited, signals, began);
    let record = RunRecord::new(orders, clock, config);
    let supervisor = Supervisor::new(listener, program, record, holds, inspection, notes, config)
        .map_err(setup("the supervisor"))?;
    let (outcome, carried) = std::thread::scope(|scope| {
        let carrying = std::thread::Builder::new()
            .name("relay".to_owned())
            .spawn_scoped(scope, move || relay.run())
            .map_err(setup("the relay's thread"))?;
        let outcome = {
            let _finishing = finishing;
            supervisor.run()
        };
        Ok((outcome, carrying.join()))
    })?;
    // a panic in the relay is caught per connection; one outside of that has cut data and record
    if carried.is_err() {
        let words =
            "the relay broke: connections were cut, and the record ends there; please report it";
        observer.record(Event::Caveat(&Caveat::incomplete(FAULT, words)));
    }
    Ok(outcome)
}

/// Has Node note where it opens connections, if stacks are read; adds to the options that the
/// command has.
fn prepare_notes(config: &Config, command: &mut Command) -> Option<NodeNotes> {
    let so_far = config.code.as_ref()?.node_options.as_ref()?;
    let mut variables = command.get_envs();
    let set = variables.find_map(|(name, value)| value.filter(|_| name == NODE_OPTIONS));
    let options = set.map_or_else(|| so_far.clone(), OsStr::to_owned);
    let (notes, options) = NodeNotes::prepare(options)?;
    command.env(NODE_OPTIONS, options);
    Some(notes)
}

/// The program's command with its variables and standard streams.
fn prepare(program: &OsStr, config: &Config) -> io::Result<Command> {
    let mut command = Command::new(program);
    command.args(&config.command[1..]);
    command.envs(config.environment.iter().map(|(key, value)| (key, value)));
    if let Some(directory) = &config.directory {
        command.current_dir(directory);
    }
    if config.streams == Streams::Null {
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
    }
    if let Some(end) = &config.terminal {
        terminal::lead_session_on(&mut command, end)?;
    }
    Ok(command)
}

/// The end of a run whose program was not started.
fn not_launched(error: LaunchError, program: &OsStr, clock: Clock) -> Result<Outcome, WatchError> {
    Err(match error {
        LaunchError::Signalled(signal) => return Ok(Outcome::not_begun(signal, clock.now())),
        LaunchError::Filter(error) if error.raw_os_error() == Some(libc::EBUSY) => {
            WatchError::Nested
        }
        LaunchError::Filter(error) => WatchError::Refused(error),
        LaunchError::Exec(error) if error.kind() == io::ErrorKind::NotFound => {
            WatchError::NotFound(program.to_owned())
        }
        LaunchError::Exec(source) => WatchError::NotRunnable {
            program: program.to_owned(),
            source,
        },
        LaunchError::Io(error) => WatchError::Setup("starting the program", error),
    })
}

/// Ends the relay when the supervisor has ended, by a panic too.
struct Finishing(RelaySender);

impl Drop for Finishing {
    fn drop(&mut self) {
        self.0.finish();
    }
}
