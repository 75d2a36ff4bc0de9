//! One execution environment: a process, and its own Runtime API.

use super::adapter;
use super::api;
use super::cgroup::ControlGroup;
use super::freezer::{self, Frozen};
use super::mailbox::Mailbox;
use super::watcher::{self, NotRun, WatcherConfig, WatcherSummary};
use crate::plan::{Freezer, Function, RunPosition, Watcher};
use crate::{LambdaError, Plan};
use intact_ledger::Row;
use intact_sys::guard::end_with_us;
use intact_watch::Ended;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use std::ffi::OsString;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a watcher may take to send the rest once its program has ended.
const REST: Duration = Duration::from_secs(6);

/// A running environment. It ends with this value, and with all that it started.
pub(crate) struct Environment {
    pub(crate) number: u64,
    pub(crate) room: Arc<Mailbox>,
    child: Child,
    pid: Pid,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
    /// Takes the messages of the watcher; ends with it.
    watched: Option<JoinHandle<WatcherSummary>>,
    freezer: Option<ControlGroup>,
    _cpu: Option<ControlGroup>,
}

/// What an environment is started as.
pub(crate) struct Start<'a> {
    pub(crate) number: u64,
    pub(crate) place: RunPosition,
    pub(crate) function: &'a Function,
    pub(crate) plan: &'a Plan,
    /// When the run began.
    pub(crate) run: Instant,
    /// Where the rows of its connections go.
    pub(crate) rows: Sender<Row>,
}

impl Environment {
    /// Starts the process. Its standard output goes to our standard error, because the page goes to
    /// our standard output.
    pub(crate) fn start(start: &Start<'_>) -> Result<Environment, LambdaError> {
        let Start {
            function,
            plan,
            number,
            ..
        } = *start;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(LambdaError::Listen)?;
        let address = listener.local_addr().map_err(LambdaError::Listen)?;
        let room = Arc::new(Mailbox::default());
        let serves = match &function.serves {
            Some(path) => {
                let at = adapter::free_port().map_err(LambdaError::Listen)?;
                Some((path.clone(), at))
            }
            None => None,
        };
        let cpu = plan
            .cpu_share
            .and_then(|share| ControlGroup::cpu(number, share).ok());
        let port = serves.as_ref().map(|(_, at)| at.port());
        let (child, watched) = match &plan.watcher {
            None => {
                let mut command = prepare(&function.command, start, address, port);
                command.stdin(Stdio::null());
                end_with_us(&mut command);
                let child = spawn(&mut command, &function.command)?;
                limit(cpu.as_ref(), &child)?;
                (child, None)
            }
            Some(watcher) => {
                let (child, watched) = spawn_watched(watcher, start, address, port, cpu.as_ref())?;
                (child, Some(watched))
            }
        };
        let pid = Pid::from_child(&child);
        let freezer = match plan.freezer {
            Some(Freezer::ControlGroup) => {
                Some(ControlGroup::freezer(number).map_err(LambdaError::Freezer)?)
            }
            Some(Freezer::Signals) | None => None,
        };
        let mut threads = Vec::new();
        let theirs = room.clone();
        let is_user = move |user| freezer::has_user(pid, user);
        threads.push(std::thread::spawn(move || {
            api::listen(&listener, &theirs, is_user);
        }));
        if let Some((path, at)) = serves {
            let theirs = room.clone();
            // not joined: a request without a response ends with the process, and no other thread
            // waits for it
            std::thread::spawn(move || adapter::serve(at, &path, &theirs));
        }
        let theirs = room.clone();
        threads.push(std::thread::spawn(move || {
            // the owner reaps it, so that its process id cannot be reused before
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(rustix::io::Errno::INTR) = waitid(WaitId::Pid(pid), options) {}
            theirs.exited();
        }));
        Ok(Environment {
            number,
            room,
            child,
            pid,
            address,
            threads,
            watched,
            freezer,
            _cpu: cpu,
        })
    }

    /// Freezes all processes of the environment, but not its watcher.
    pub(crate) fn freeze(&self) -> io::Result<Frozen> {
        let ours = usize::from(self.watched.is_some());
        let tree = || Ok(freezer::tree(self.pid)?.split_off(ours));
        let Some(group) = &self.freezer else {
            return freezer::freeze(tree);
        };
        for pid in tree()? {
            group.take(pid)?;
        }
        group.freeze()?;
        Ok(Frozen::Grouped)
    }

    /// Thaws the environment.
    pub(crate) fn thaw(&self, frozen: Frozen) -> io::Result<()> {
        match (frozen, &self.freezer) {
            (Frozen::Stopped(pids), _) => freezer::go_on(pids),
            (Frozen::Grouped, Some(group)) => group.thaw(),
            (Frozen::Grouped, None) => Ok(()),
        }
    }

    /// The end of the process, which must have ended, as text.
    ///
    /// # Errors
    /// It was never run.
    pub(crate) fn how_it_ended(&mut self, function: &Function) -> Result<String, LambdaError> {
        let how = match self.watched.take().map(|reader| reader.join()) {
            None => self.child.wait().ok().and_then(how),
            Some(joined) => {
                let last = joined.unwrap_or_default();
                if let Some((why, words)) = last.not_run {
                    return Err(not_run(why, words, function));
                }
                last.how
            }
        };
        Ok(match how {
            Some(Ended::Code(code)) => format!("the process ended with exit code {code}"),
            Some(Ended::Signal(number)) => format!("the process was ended by signal {number}"),
            None => "the process has ended".to_owned(),
        })
    }

    /// Waits for the last message of the watcher.
    fn end_watched(&mut self) {
        freezer::end_below(self.pid);
        self.room.ends_within(REST);
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        if self.watched.is_some() {
            self.end_watched();
        }
        // lists the tree before the kill: processes that left the process group could not be found
        // later
        let tree = freezer::tree(self.pid).unwrap_or_default();
        let _ = kill_process_group(self.pid, Signal::KILL);
        for pid in tree.into_iter().filter(|&pid| pid != self.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.wait();
        self.room.close();
        // wakes the listener, which ends at its next connection
        let _ = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some(reader) = self.watched.take() {
            let _ = reader.join();
        }
    }
}

/// The function below a watcher, and the thread that takes the watcher's messages.
fn spawn_watched(
    watcher: &Watcher,
    start: &Start<'_>,
    address: SocketAddr,
    port: Option<u16>,
    cpu: Option<&ControlGroup>,
) -> Result<(Child, JoinHandle<WatcherSummary>), LambdaError> {
    let failed = |error: io::Error| LambdaError::Watcher(error.to_string());
    let (mut ours, theirs) = UnixStream::pair().map_err(failed)?;
    let mut words = watcher.command.clone();
    words.extend_from_slice(&start.function.command);
    let mut command = prepare(&words, start, address, port);
    command.stdin(Stdio::from(OwnedFd::from(theirs)));
    let child = spawn(&mut command, &words)?;
    // it starts the function after its first message
    limit(cpu, &child)?;
    // it holds the other end, which closes when the watcher ends
    drop(command);
    let given = WatcherConfig {
        start: watcher::on_monotonic(start.run),
        environment: start.number,
        variant: start.place.variant,
        round: start.place.round,
        apart: address,
        fingerprint_key: watcher.fingerprint_key,
        code_root: watcher.code_root.clone(),
        fault: watcher.fault.clone(),
    };
    let line = serde_json::to_string(&given).map_err(|error| failed(error.into()))?;
    // a watcher that has ended reads nothing: its exit status is enough
    let _ = writeln!(ours, "{line}");
    let (rows, number) = (start.rows.clone(), start.number);
    let listening = std::thread::spawn(move || watcher::listen(ours, number, &rows));
    Ok((child, listening))
}

fn prepare(
    words: &[OsString],
    start: &Start<'_>,
    address: SocketAddr,
    port: Option<u16>,
) -> Command {
    let Start { function, plan, .. } = *start;
    let mut command = Command::new(words.first().cloned().unwrap_or_default());
    command.args(words.iter().skip(1));
    let folder = std::env::current_dir().unwrap_or_else(|_| "/".into());
    command
        .env("AWS_LAMBDA_RUNTIME_API", address.to_string())
        .env("LAMBDA_TASK_ROOT", folder)
        .env("AWS_LAMBDA_FUNCTION_NAME", "intact")
        .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
        .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "1024")
        .env("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
        .env("AWS_LAMBDA_LOG_GROUP_NAME", "/aws/lambda/intact")
        .env("AWS_LAMBDA_LOG_STREAM_NAME", "local")
        .env("AWS_REGION", "local")
        .env("AWS_LAMBDA_FUNCTION_TIMEOUT", seconds(plan.timeout));
    if let Some(port) = port {
        command.env("PORT", port.to_string());
    }
    if let Some(handler) = &function.handler {
        command.env("_HANDLER", handler);
    }
    command
        .envs(function.environment.iter().map(|(key, value)| (key, value)))
        .stdout(io::stderr())
        .process_group(0);
    command
}

fn limit(cpu: Option<&ControlGroup>, child: &Child) -> Result<(), LambdaError> {
    cpu.map_or(Ok(()), |group| group.take(Pid::from_child(child)))
        .map_err(LambdaError::Cpu)
}

fn spawn(command: &mut Command, words: &[OsString]) -> Result<Child, LambdaError> {
    let program = words.first().cloned().unwrap_or_default();
    command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => LambdaError::NotFound(program),
        _ => LambdaError::NotRunnable { program, source },
    })
}

fn not_run(why: NotRun, words: String, function: &Function) -> LambdaError {
    let program = function.command.first().cloned().unwrap_or_default();
    match why {
        NotRun::NotFound => LambdaError::NotFound(program),
        NotRun::NotRunnable => LambdaError::NotRunnable {
            program,
            source: io::Error::other(words),
        },
        NotRun::Refused => LambdaError::Refused(words),
        NotRun::Failed => LambdaError::Watcher(words),
    }
}

fn how(status: std::process::ExitStatus) -> Option<Ended> {
    let signal = || status.signal().map(Ended::Signal);
    status.code().map(Ended::Code).or_else(signal)
}

/// Whole seconds, at least one.
fn seconds(limit: Duration) -> String {
    limit.as_secs().max(1).to_string()
}
