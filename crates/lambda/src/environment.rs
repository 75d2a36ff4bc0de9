//! One execution environment: a process, and its own Runtime API.
#![allow(
    unsafe_code,
    reason = "the process must end with us, which only pre_exec can ask for"
)]

use crate::api;
use crate::freezer::{self, Frozen};
use crate::plan::Function;
use crate::room::Room;
use crate::{LambdaError, Plan};
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process, kill_process_group, waitid,
};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

/// A running environment. It ends with this value, and with all that it started.
pub(crate) struct Environment {
    pub(crate) number: u64,
    pub(crate) room: Arc<Room>,
    child: Child,
    pid: Pid,
    address: SocketAddr,
    threads: Vec<JoinHandle<()>>,
}

impl Environment {
    /// Starts the process. Its standard output leads to our standard error: ours is for the page.
    pub(crate) fn start(
        number: u64,
        function: &Function,
        plan: &Plan,
    ) -> Result<Environment, LambdaError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(LambdaError::Listen)?;
        let address = listener.local_addr().map_err(LambdaError::Listen)?;
        let room = Arc::new(Room::default());
        let child = spawn(function, plan, address)?;
        let pid = Pid::from_child(&child);
        let mut threads = Vec::new();
        let theirs = room.clone();
        threads.push(std::thread::spawn(move || api::listen(&listener, &theirs)));
        let theirs = room.clone();
        threads.push(std::thread::spawn(move || {
            // left to be reaped by the owner, so that its number cannot be another's meanwhile
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
        })
    }

    /// Stops everything that runs in it.
    pub(crate) fn freeze(&self) -> io::Result<Frozen> {
        freezer::freeze(self.pid)
    }

    /// How the process ended; for one that has.
    pub(crate) fn how_it_ended(&mut self) -> String {
        match self.child.wait() {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => format!("the process ended with exit code {code}"),
                (None, signal) => {
                    format!("the process was ended by signal {}", signal.unwrap_or(0))
                }
            },
            Err(error) => format!("the process has ended ({error})"),
        }
    }
}

impl Drop for Environment {
    fn drop(&mut self) {
        // what it started may have left the group: the tree is asked for while it can still be found
        let tree = freezer::tree(self.pid).unwrap_or_default();
        let _ = kill_process_group(self.pid, Signal::KILL);
        for pid in tree.into_iter().filter(|&pid| pid != self.pid) {
            let _ = kill_process(pid, Signal::KILL);
        }
        let _ = self.child.wait();
        self.room.close();
        // the listener sees that it is over with the next connection
        let _ = TcpStream::connect(self.address);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

fn spawn(function: &Function, plan: &Plan, address: SocketAddr) -> Result<Child, LambdaError> {
    let program = function.command.first().cloned().unwrap_or_default();
    let mut command = Command::new(&program);
    command.args(function.command.iter().skip(1));
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
    if let Some(handler) = &function.handler {
        command.env("_HANDLER", handler);
    }
    command
        .envs(function.environment.iter().map(|(key, value)| (key, value)))
        .stdin(Stdio::null())
        .stdout(io::stderr())
        .process_group(0);
    #[cfg(target_os = "linux")]
    // SAFETY: one system call, which is async-signal-safe.
    unsafe {
        command.pre_exec(|| {
            Ok(rustix::process::set_parent_process_death_signal(Some(
                Signal::KILL,
            ))?)
        });
    }
    command.spawn().map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => LambdaError::NotFound(program),
        _ => LambdaError::NotRunnable { program, source },
    })
}

/// Whole seconds, at least one.
fn seconds(limit: Duration) -> String {
    limit.as_secs().max(1).to_string()
}
