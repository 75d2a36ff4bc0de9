//! A link for a test, with programs on its sides.

pub(crate) use crate::skip::skip;

use intact_link::{Link, LinkEnd, LinkError};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

pub(crate) const PEER: &str = env!("CARGO_BIN_EXE_link-peer");

/// A link, or a loud line that the test is skipped; in CI that fails.
pub(crate) fn link(spec: &str, test: &str) -> Option<Link> {
    let helper = || {
        let mut helper = Command::new(PEER);
        helper.arg("keep");
        helper
    };
    match Link::start(&spec.parse().unwrap(), None, helper) {
        Ok(link) => Some(link),
        Err(error @ LinkError::Forbidden { .. }) => {
            skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// A program of ours on a side; killed with the test.
pub(crate) struct Program {
    child: Child,
    out: BufReader<ChildStdout>,
}

impl Program {
    pub(crate) fn start(link: &Link, side: LinkEnd, words: &[&str]) -> Program {
        let mut command = Command::new(PEER);
        command
            .args(words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        link.enter(side, &mut command);
        let mut child = command.spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        Program { child, out }
    }

    /// The server of [`ask`](Self::ask) and fetch, once it listens.
    pub(crate) fn server(link: &Link) -> Program {
        let mut server = Program::start(link, LinkEnd::Server, &["serve", "198.18.0.2:80"]);
        assert_eq!(server.line(), "ready");
        server
    }

    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Writes a line.
    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{line}").unwrap();
    }

    /// Writes a line and reads one.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.line()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program of ours to its end; what it printed.
pub(crate) fn words(link: &Link, side: LinkEnd, words: &[&str]) -> String {
    let mut command = Command::new(PEER);
    command.args(words).stdin(Stdio::null());
    link.enter(side, &mut command);
    let out = command.output().unwrap();
    assert!(out.status.success(), "{words:?}: {out:?}");
    String::from_utf8(out.stdout).unwrap().trim_end().to_owned()
}

/// Runs a program of ours to its end; the numbers that it printed.
pub(crate) fn numbers(link: &Link, side: LinkEnd, program: &[&str]) -> Vec<u64> {
    let text = words(link, side, program);
    let numbers: Option<Vec<u64>> = text.lines().map(|line| line.parse().ok()).collect();
    numbers.unwrap_or_else(|| panic!("{text}"))
}
