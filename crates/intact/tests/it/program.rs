//! Running the binary, and servers for it.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
#[cfg(target_os = "linux")]
use std::process::ChildStdin;
use std::process::{Child, ChildStdout, Command, Output, Stdio};

/// Runs `intact` to its end.
pub(crate) fn intact(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(words)
        .env("NO_COLOR", "1")
        .env("COLUMNS", "120")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// Sends a signal (`-TERM`) to a process.
#[cfg(unix)]
pub(crate) fn signal(process: u32, signal: &str) {
    let sent = Command::new("kill")
        .args([signal, &process.to_string()])
        .status();
    assert!(sent.unwrap().success());
}

/// Waits for a file that a program writes, for half a minute at most.
#[cfg(unix)]
pub(crate) fn wait_for(path: &Path) {
    for _ in 0..3000 {
        if path.exists() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Runs a bench and gives its JSON.
pub(crate) fn bench(words: &[&str]) -> Value {
    let mut all = vec!["bench", "--json"];
    all.extend_from_slice(words);
    let out = intact(&all);
    let text = String::from_utf8(out.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| {
        panic!(
            "{words:?}: {error}: {text} {}",
            String::from_utf8_lossy(&out.stderr)
        )
    })
}

/// A server process that ends with the test.
pub(crate) struct Server {
    child: Child,
    out: BufReader<ChildStdout>,
    pub(crate) ready: Value,
}

impl Server {
    /// Starts the built-in server with these options of `serve`.
    pub(crate) fn start(options: &[&str]) -> Server {
        let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
            .arg("internal")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let job = intact::server_job(options).unwrap();
        let stdin = child.stdin.as_mut().unwrap();
        stdin.write_all(job.as_bytes()).unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let ready = serde_json::from_str(&line).unwrap();
        Server { child, out, ready }
    }

    pub(crate) fn plain(&self) -> String {
        format!("http://{}/", self.ready["plain"].as_str().unwrap())
    }

    /// The server's process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn plain_port(&self) -> String {
        self.port("plain")
    }

    pub(crate) fn tls_port(&self) -> String {
        self.port("tls")
    }

    fn port(&self, kind: &str) -> String {
        let address = self.ready[kind].as_str().unwrap();
        address.rsplit(':').next().unwrap().to_owned()
    }

    /// Writes its CA to a file.
    pub(crate) fn write_ca(&self, path: &Path) {
        std::fs::write(path, self.ready["ca"].as_str().unwrap()).unwrap();
    }

    /// Ends it; its tally of all traffic.
    pub(crate) fn end(mut self) -> Value {
        drop(self.child.stdin.take());
        let mut text = String::new();
        self.out.read_to_string(&mut text).unwrap();
        self.child.wait().unwrap();
        serde_json::from_str(&text).unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The sum of a list of groups' counts in a tally's only cell.
pub(crate) fn exchanges(cell: &Value) -> u64 {
    let groups = cell["groups"].as_array().unwrap();
    groups
        .iter()
        .map(|group| group["latency"]["count"].as_u64().unwrap())
        .sum()
}

/// A count in a document: what is known of it, or was inferred, or the least that it can be.
pub(crate) fn counted(group: &Value, key: &str) -> u64 {
    let bounds = &group["bounds"][key];
    let values = [&group[key], &bounds["inferred"], &bounds["low"]];
    let value = values.iter().find_map(|value| value.as_u64());
    value.unwrap_or_else(|| panic!("{key}: {group:#}"))
}

/// A program that prints `ready` and then runs until its standard input ends.
#[cfg(target_os = "linux")]
pub(crate) struct ReadyProgram {
    child: Child,
    input: Option<ChildStdin>,
}

#[cfg(target_os = "linux")]
impl ReadyProgram {
    /// Starts it, and waits until it is ready.
    pub(crate) fn start(words: &[&str]) -> ReadyProgram {
        let mut child = Command::new(words[0])
            .args(&words[1..])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        lines.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n", "{words:?}");
        ReadyProgram {
            input: child.stdin.take(),
            child,
        }
    }

    /// Its process id.
    pub(crate) fn id(&self) -> String {
        self.child.id().to_string()
    }

    /// Sends it a line, and ends its standard input.
    pub(crate) fn go_on(&mut self) {
        if let Some(mut input) = self.input.take() {
            input.write_all(b"\n").unwrap();
        }
    }
}

#[cfg(target_os = "linux")]
impl Drop for ReadyProgram {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

/// A JSON schema of `docs/reference/schema`.
pub(crate) struct Schema(jsonschema::Validator);

impl Schema {
    pub(crate) fn named(name: &str) -> Schema {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/schema");
        let text = std::fs::read_to_string(format!("{docs}/{name}.schema.json")).unwrap();
        let schema = serde_json::from_str(&text).unwrap();
        Schema(jsonschema::validator_for(&schema).unwrap())
    }

    /// Panics where the document is not what the schema says.
    pub(crate) fn check(&self, document: &Value) {
        let faults: Vec<String> = self
            .0
            .iter_errors(document)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{faults:#?} in {document:#}");
    }
}
