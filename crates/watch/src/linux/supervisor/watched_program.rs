//! The watched program: signals for it and from it, its end, and its CPU time.

use crate::platform::wait_readable;
use crate::{Cpu, Ended, Outcome};
use intact_ledger::{Nanos, Span};
use intact_sys::process::{self, Inherited};
use intact_sys::signals::{self, Signals};
use mio::{Registry, Token};
use std::io;
use std::sync::Arc;

/// The watched program.
pub(crate) struct WatchedProgram {
    process: u32,
    /// What it was started with, until that is taken.
    pub(super) inherited: Inherited,
    signals: Arc<Signals>,
    began: Nanos,
    over: Nanos,
    ended: Option<Ended>,
    cpu: Cpu,
    memory: u64,
    abandoned: bool,
    interrupted: Option<i32>,
}

impl WatchedProgram {
    /// A program that was started at `began`. The run's signals are taken over.
    pub(crate) fn new(
        process: u32,
        inherited: Inherited,
        signals: Arc<Signals>,
        began: Nanos,
    ) -> WatchedProgram {
        WatchedProgram {
            process,
            inherited,
            signals,
            began,
            over: Nanos(0),
            ended: None,
            cpu: Cpu::default(),
            memory: 0,
            abandoned: false,
            interrupted: None,
        }
    }

    pub(super) fn register(&self, registry: &Registry, token: Token) -> io::Result<()> {
        wait_readable(registry, &*self.signals, token)
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// The user stopped waiting for processes that the program left behind.
    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// Passes signals on to the program, and collects what has ended by `now`.
    pub(super) fn take_signals(&mut self, now: Nanos) {
        while let Some(signal) = self.signals.next() {
            if signals::is_end(signal.number) {
                self.interrupted.get_or_insert(signal.number);
            }
            match signal.number {
                libc::SIGCHLD => self.reap(now),
                // the terminal has sent it to the program too
                _ if signal.by_terminal && self.ended.is_none() => {}
                number if self.ended.is_none() => signals::send(self.process, number),
                // the processes that are left continue without us
                _ => self.abandoned = true,
            }
        }
    }

    /// Collects the program, and its orphans.
    pub(super) fn reap(&mut self, now: Nanos) {
        while let Some(gone) = process::reap() {
            let [user, system] = gone.cpu;
            self.cpu.user += user;
            self.cpu.system += system;
            self.memory = self.memory.max(gone.memory);
            if gone.process == self.process {
                self.over = now;
                self.ended = Some(if libc::WIFSIGNALED(gone.status) {
                    Ended::Signal(libc::WTERMSIG(gone.status))
                } else {
                    Ended::Code(libc::WEXITSTATUS(gone.status))
                });
            }
        }
    }

    /// The outcome of the run.
    pub(super) fn outcome(self) -> Outcome {
        Outcome {
            ended: self.ended.unwrap_or(Ended::Code(0)),
            span: Span::new(self.began, self.over),
            cpu: self.cpu,
            memory: self.memory,
            interrupted: self.interrupted,
        }
    }
}
