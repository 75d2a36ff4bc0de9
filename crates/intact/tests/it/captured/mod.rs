//! The two-ledger test for captures: what `audit` reads from the packets, what `watch` recorded of
//! the same run, and what the server counted are the same. The packets are recorded on loopback by
//! dumpcap; without it, or without the right to capture, the test is skipped and named.

#![cfg(target_os = "linux")]

mod caddy;
mod rows;

use crate::peers::{Peer, free_port, program, skip};
use crate::program::{Server, exchanges, intact};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A capture under way.
struct Capture {
    child: Child,
    file: PathBuf,
}

impl Capture {
    /// Starts to record the packets of some ports; `None` where that is not possible here.
    fn start(test: &str, folder: &Path, ports: &[&str]) -> Option<Capture> {
        let dumpcap = program("dumpcap", test)?;
        let file = folder.join("run.pcapng");
        let ports: Vec<String> = ports
            .iter()
            .map(|port| format!("tcp port {port}"))
            .collect();
        let child = Command::new(dumpcap)
            .args(["-q", "-i", "lo", "-f", &ports.join(" or "), "-w"])
            .arg(&file)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut capture = Capture { child, file };
        let mut said = BufReader::new(capture.child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("File:") {
            line.clear();
            if said.read_line(&mut line).unwrap() == 0 {
                skip(test, "dumpcap may not capture here");
                return None;
            }
        }
        std::thread::spawn(move || std::io::copy(&mut said, &mut std::io::sink()));
        Some(capture)
    }

    /// Ends it once the last packets are in the file.
    fn end(&mut self, wanted: u64, keys: &Path) -> Value {
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut document = Value::Null;
        while Instant::now() < deadline {
            document = self.audit(keys);
            let open = document["connections"]["open"].as_u64();
            if document["requests"]["total"] == wanted && open.unwrap_or(0) == 0 {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let id = self.child.id().to_string();
        Command::new("kill").args(["-INT", &id]).status().unwrap();
        self.child.wait().unwrap();
        match self.audit(keys) {
            Value::Null => document,
            whole => whole,
        }
    }

    fn audit(&self, keys: &Path) -> Value {
        let file = self.file.to_str().unwrap();
        let mut words = vec!["audit", "--json", file];
        if keys.exists() {
            words.extend(["--keylog", keys.to_str().unwrap()]);
        }
        serde_json::from_slice(&intact(&words).stdout).unwrap_or_default()
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Requests, connections, requests on a connection that was there.
fn counts(document: &Value) -> [u64; 3] {
    [
        &document["requests"]["total"],
        &document["connections"]["opened"],
        &document["reused"],
    ]
    .map(|count| count.as_u64().unwrap_or_else(|| panic!("{document:#}")))
}

#[test]
fn packets_the_watched_program_and_the_server_agree() {
    let test = "captured::packets_the_watched_program_and_the_server_agree";
    let Some(curl) = program("curl", test) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let server = Server::start(&["--max-requests", "3"]);
    server.write_ca(&path("ca.pem"));
    let (plain, tls) = (server.plain(), server.tls_port());
    let plain_port = plain
        .trim_end_matches('/')
        .rsplit(':')
        .next()
        .unwrap()
        .to_owned();
    let Some(mut capture) = Capture::start(test, folder.path(), &[&plain_port, &tls]) else {
        return;
    };
    let script = format!(
        "{curl} -s {plain}a {plain}b {plain}c {plain}d {plain}e
         {curl} -s --cacert {ca} --http1.1 --tls-max 1.2 https://localhost:{tls}/f https://localhost:{tls}/g
         {curl} -s --cacert {ca} --http1.1 https://localhost:{tls}/h
         {curl} -s --cacert {ca} --http2 https://localhost:{tls}/i https://localhost:{tls}/j",
        curl = curl.display(),
        ca = path("ca.pem").display(),
    );
    let json = path("watch.json");
    let watched = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["watch", "--quiet", &format!("--json={}", json.display())])
        .args(["--", "sh", "-c", &script])
        .env("SSLKEYLOGFILE", path("keys.txt"))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(watched.status.success(), "{watched:?}");
    let watched: Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    let audited = capture.end(10, &path("keys.txt"));
    let served = server.end();
    let cell = &served["cells"][0];
    // two connections in the clear, since the server ends the first after three requests, and three
    // with TLS
    assert_eq!(counts(&audited), [10, 5, 5]);
    assert_eq!(counts(&watched), [10, 5, 5]);
    assert_eq!(exchanges(cell), 10);
    assert_eq!(cell["connections"]["opened"], 5);
    // for the end that the server announces both sides race, and on the wire another may be first
    // than at the program
    let ended = |document: &Value| {
        let by = |who: &str| {
            document["connections"]["ended_by"][who]
                .as_u64()
                .unwrap_or(0)
        };
        [by("server"), by("client") + by("server-announced")]
    };
    assert_eq!(ended(&audited), [0, 5], "{audited:#}");
    assert_eq!(ended(&watched), [0, 5], "{watched:#}");
}

/// What audit reports of a server's log.
fn read_log(file: &Path) -> Value {
    let run = intact(&["audit", "--json", file.to_str().unwrap()]);
    serde_json::from_slice(&run.stdout).unwrap()
}

/// nginx' own log, in the format that we recommend, against the packets: Python, curl and h2load,
/// TLS 1.2 and 1.3.
#[test]
fn packets_and_the_log_of_nginx_agree() {
    let test = "captured::packets_and_the_log_of_nginx_agree";
    let tools = ["nginx", "openssl", "curl", "python3", "h2load"].map(|name| program(name, test));
    let [Some(nginx), Some(_), Some(curl), Some(python), Some(h2load)] = tools else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let (plain, tls) = (free_port(), free_port());
    crate::peers::certificate(folder.path());
    let temp: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .map(|kind| format!("{kind}_temp_path {at}/{kind};"))
        .concat();
    let configuration = format!(
        "daemon off; pid {at}/pid; error_log {at}/error.log; events {{}} http {{ {temp}
         log_format intact '$remote_addr - - [$time_local] \"$request\" $status $body_bytes_sent \"-\" \"$http_user_agent\" '
           'msec=$msec rt=$request_time conn=$connection reqs=$connection_requests scheme=$scheme host=$host tls=$ssl_protocol';
         access_log {at}/access.log intact; keepalive_requests 4;
         server {{ listen 127.0.0.1:{plain}; return 200 'hello'; }}
         server {{ listen 127.0.0.1:{tls} ssl http2; ssl_protocols TLSv1.2 TLSv1.3;
           ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem; return 200 'hello'; }} }}"
    );
    std::fs::write(folder.path().join("nginx.conf"), configuration).unwrap();
    let child = Command::new(nginx)
        .args(["-c", &format!("{at}/nginx.conf")])
        .stderr(Stdio::null())
        .spawn();
    let _peer = Peer(child.unwrap());
    let deadline = Instant::now() + Duration::from_secs(10);
    while !folder.path().join("pid").exists() {
        assert!(Instant::now() < deadline, "nginx does not start");
        std::thread::sleep(Duration::from_millis(20));
    }
    let ports = [plain.to_string(), tls.to_string()];
    let Some(mut capture) = Capture::start(test, folder.path(), &[&ports[0], &ports[1]]) else {
        return;
    };
    let script = format!(
        "set -e
         {curl} -s http://127.0.0.1:{plain}/1 http://127.0.0.1:{plain}/2
         {curl} -sk --http1.1 --tls-max 1.2 https://localhost:{tls}/3 https://localhost:{tls}/4
         {curl} -sk --http2 --tlsv1.3 https://localhost:{tls}/5 https://localhost:{tls}/6
         {h2load} -n 12 -c 2 -m 3 http://127.0.0.1:{plain}/7 --h1
         {python} -c '
import http.client, ssl, urllib.request
context = ssl.create_default_context(cafile=\"{at}/cert.pem\")
one = http.client.HTTPSConnection(\"localhost\", {tls}, context=context)
for path in \"abc\":
    one.request(\"GET\", \"/\" + path); one.getresponse().read()
one.close()
for path in \"de\":
    urllib.request.urlopen(\"http://127.0.0.1:{plain}/\" + path).read()
'",
        curl = curl.display(),
        h2load = h2load.display(),
        python = python.display(),
    );
    let ran = Command::new("sh")
        .args(["-c", &script])
        .env("SSLKEYLOGFILE", folder.path().join("keys.txt"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    let packets = capture.end(23, &folder.path().join("keys.txt"));
    let log = read_log(&folder.path().join("access.log"));
    assert_eq!(counts(&packets), counts(&log), "{packets:#}");
    assert_eq!(counts(&log)[0], 23);
    assert_eq!(packets["requests"]["status"], log["requests"]["status"]);
}

/// One connection and one cookie: the second credential is that of another user, or of the same
/// one.
#[test]
fn packets_show_a_cookie_that_stays_with_another_user() {
    let test = "captured::packets_show_a_cookie_that_stays_with_another_user";
    let Some(curl) = program("curl", test) else {
        return;
    };
    for (second, is_found) in [("Basic Ym9iOg==", true), ("Basic YW5uOg==", false)] {
        let folder = tempfile::tempdir().unwrap();
        let server = Server::start(&[]);
        let port = server.plain_port();
        let Some(mut capture) = Capture::start(test, folder.path(), &[&port]) else {
            return;
        };
        let request = |user: &str| {
            let fields = [format!("Authorization: {user}"), "Cookie: sid=1".to_owned()];
            let fields = fields
                .into_iter()
                .flat_map(|field| ["-H".to_owned(), field]);
            let url = [server.plain(), "-o".to_owned(), "/dev/null".to_owned()];
            fields.chain(url).collect::<Vec<String>>()
        };
        let status = Command::new(&curl)
            .arg("-s")
            .args(request("Basic YW5uOg=="))
            .args(["--next", "-s"])
            .args(request(second))
            .status();
        assert!(status.unwrap().success());
        let document = capture.end(2, Path::new("none"));
        let findings = document["findings"].as_array().unwrap();
        let is_there = findings
            .iter()
            .any(|one| one["rule"] == "state-carried-over");
        assert_eq!(is_there, is_found, "{document:#}");
    }
}
