//! Where the programs of the rows run: a network of their own, with a name server and few ports.

use super::Kind;
use crate::peers::{certificate, program};
use crate::watch::names::Stage;
use serde_json::Value;
use std::process::Output;

const FILES: [(&str, &str); 17] = [
    ("runtime.py", include_str!("../runtime.py")),
    ("peer.py", include_str!("peer.py")),
    ("rows.py", include_str!("rows.py")),
    ("http2.js", include_str!("http2.js")),
    ("run.py", include_str!("run.py")),
    ("frozen.py", include_str!("frozen.py")),
    ("served.py", include_str!("served.py")),
    ("served.sh", include_str!("served.sh")),
    ("browsed.py", include_str!("browsed.py")),
    ("browsed.js", include_str!("browsed.js")),
    ("function.py", include_str!("function.py")),
    ("capture.sh", include_str!("capture.sh")),
    ("servers.py", include_str!("servers.py")),
    ("logged.py", include_str!("logged.py")),
    ("logged.sh", include_str!("logged.sh")),
    ("with_server.sh", include_str!("with_server.sh")),
    ("service.py", include_str!("service.py")),
];

/// Limits the ports, and runs a command.
const LIMITED: &str = "echo $PORTS > /proc/sys/net/ipv4/ip_local_port_range; exec \"$@\"";

/// The ports of a machine, and how many connections the row of ports opens.
#[derive(Clone, Copy)]
pub(super) struct Load {
    pub(super) ports: u32,
    pub(super) openings: u32,
}

/// Connections that take more than half of Linux' default range within a minute, at the rate of the
/// whole recording: it lasts less than 12 s, and without the rate more were needed.
pub(super) const OF_RECORDING: Load = Load {
    ports: 6000,
    openings: 5000,
};

/// Writes the programs of the rows to the folder of the stage: some import another.
pub(crate) fn copy_programs(stage: &Stage) {
    for (name, text) in FILES {
        std::fs::write(stage.path(name), text).unwrap();
    }
}

/// A folder with the programs, and the namespaces that they run in.
pub(super) struct Field {
    stage: Stage,
}

impl Field {
    /// `None` where a namespace cannot be made or a program is missing.
    pub(super) fn set(test: &str) -> Option<Field> {
        for name in ["node", "openssl"] {
            program(name, test)?;
        }
        let stage = Stage::set(test)?;
        copy_programs(&stage);
        certificate(stage.path("").as_ref());
        Some(Field { stage })
    }

    /// A file in the folder.
    pub(super) fn path(&self, name: &str) -> String {
        self.stage.path(name)
    }

    /// The command that runs the programs of these rows.
    pub(super) fn rows(&self, kind: Kind, rules: &[&str]) -> Vec<String> {
        self.rows_of("rows.py", kind, rules)
    }

    /// The command that runs the programs of these rows, which are in `script`.
    pub(super) fn rows_of(&self, script: &str, kind: Kind, rules: &[&str]) -> Vec<String> {
        let (run, script) = (self.path("run.py"), self.path(script));
        let words = ["python3", &run, &script, kind.word()].into_iter();
        words
            .chain(rules.iter().copied())
            .map(str::to_owned)
            .collect()
    }

    /// Runs a command in namespaces of its own.
    fn run(&self, load: Load, words: &[String]) -> Output {
        let folder = format!("FOLDER={}", self.path(""));
        let openings = format!("OPENINGS={}", load.openings);
        let ports = format!("PORTS=32768 {}", 32_767 + load.ports);
        let limited = ["sh", "-c", LIMITED, "sh"];
        let mut all = vec!["env", &folder, &openings, &ports];
        all.extend(limited);
        all.extend(words.iter().map(String::as_str));
        self.stage.run("127.0.0.53", &all)
    }

    /// Runs a command that succeeds.
    pub(super) fn record(&self, load: Load, words: &[String]) {
        let out = self.run(load, words);
        assert!(out.status.success(), "{words:?}: {out:?}");
    }

    /// The JSON document that a command writes to a file.
    pub(super) fn document(&self, load: Load, words: &[String]) -> Value {
        self.record(load, words);
        let text = std::fs::read(self.path("out.json"));
        let text = text.unwrap_or_else(|error| panic!("{words:?}: {error}"));
        std::fs::remove_file(self.path("out.json")).unwrap();
        serde_json::from_slice(&text).unwrap()
    }
}
