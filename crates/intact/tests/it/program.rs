//! Running the binary, and servers for it.

use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
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

    pub(crate) fn tls_port(&self) -> String {
        let address = self.ready["tls"].as_str().unwrap();
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
