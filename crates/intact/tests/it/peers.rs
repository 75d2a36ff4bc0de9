//! Real servers as their packages ship them: our ledger equals their own count.
//!
//! A test without its server is skipped and named; in CI that fails.

pub(crate) use crate::skip::skip;

use crate::program::bench;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

/// A server that ends with the test.
pub(crate) struct Peer(pub(crate) Child);

impl Drop for Peer {
    fn drop(&mut self) {
        // nginx' workers go with their master only when it is asked to go
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Where a program is, or a loud line that its test is skipped.
pub(crate) fn program(name: &str, test: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let home = std::env::var_os("HOME").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .chain(["go/bin", ".local/bin"].map(|folder| Path::new(&home).join(folder)))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file());
    if cfg!(windows) {
        // Wine finds those of the Linux machine, and neither starts nor ends them as they need it
        skip(test, &format!("{name} is tested on Unix"));
        return None;
    }
    if found.is_none() {
        skip(
            test,
            &format!("{name} is not installed: cargo xtask test --install"),
        );
    }
    found
}

/// An address at which nothing listens. A free port of the ephemeral range may go to another test.
pub(crate) const CLOSED: &str = "127.0.0.1:9";

/// A port for a server that cannot choose its own: below the ephemeral range, so that no connection
/// of another test takes it first.
pub(crate) fn free_port() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(20_000);
    loop {
        let port = NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("0.0.0.0", port)).is_ok() {
            return port;
        }
    }
}

/// Waits until something listens.
pub(crate) fn wait_for(port: u16) {
    for _ in 0..500 {
        if TcpStream::connect(("127.0.0.1", port)).is_ok() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("nothing listens on port {port}");
}

/// Requests and connections of all variants, preflight and warm-up included; nothing may have
/// failed.
pub(crate) fn totals(document: &Value) -> (u64, u64) {
    let mut requests = 0;
    let mut connections = 0;
    for variant in document["variants"].as_array().unwrap() {
        assert_eq!(
            variant["requests"]["failed"],
            serde_json::json!({}),
            "{variant:#}"
        );
        assert!(
            variant["requests"]["total"].as_u64() > Some(0),
            "left out: {} {:#}",
            variant["name"],
            document["caveats"]
        );
        requests += variant["requests"]["total"].as_u64().unwrap()
            + variant["warmup"]["requests"].as_u64().unwrap();
        connections += variant["connections"]["opened"].as_u64().unwrap()
            + variant["warmup"]["connections"].as_u64().unwrap();
    }
    (requests, connections)
}

pub(crate) fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args([
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
        ])
        .args(["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"])
        .arg("-keyout")
        .arg(folder.join("key.pem"))
        .arg("-out")
        .arg(folder.join("cert.pem"))
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(made.success());
}

/// nginx with its defaults on a plain and a TLS port, and its own count of connections and
/// requests.
pub(crate) struct Nginx {
    _peer: Peer,
    _folder: tempfile::TempDir,
    pub(crate) plain: u16,
    pub(crate) tls: u16,
    status: u16,
}

impl Nginx {
    pub(crate) fn start(test: &str, settings: &str) -> Option<Nginx> {
        let nginx = program("nginx", test)?;
        program("openssl", test)?;
        // another test may take a port before nginx does
        let started = (0..5).find_map(|_| Nginx::try_start(&nginx, settings));
        Some(started.expect("nginx found its ports taken five times"))
    }

    /// Absent if something else answers in place of nginx.
    fn try_start(nginx: &Path, settings: &str) -> Option<Nginx> {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        certificate(folder.path());
        let (plain, tls, status) = (free_port(), free_port(), free_port());
        // nginx drops root for its workers, which then could not write below a folder of root's
        let root = if is_root() { "user root;" } else { "" };
        let config = format!(
            "daemon off; {root} worker_processes 1; pid {at}/pid; error_log {at}/error.log;
            events {{ }}
            http {{
              access_log off; {settings}
              client_body_temp_path {at}/b; proxy_temp_path {at}/p; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;
              ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {at}/cert.pem; ssl_certificate_key {at}/key.pem;
              server {{ listen 127.0.0.1:{plain}; location / {{ return 200 \"hello\"; }} }}
              server {{ listen 127.0.0.1:{tls} ssl http2; location / {{ return 200 \"hello\"; }} }}
              server {{ listen 127.0.0.1:{status}; location / {{ stub_status; }} }}
            }}"
        );
        std::fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let peer = Command::new(nginx)
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(folder.path().join("nginx.conf"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let started = Nginx {
            _peer: Peer(peer),
            _folder: folder,
            plain,
            tls,
            status,
        };
        wait_for(status);
        started.try_count().is_some().then_some(started)
    }

    /// Connections accepted and requests served so far, this one included.
    pub(crate) fn count(&self) -> (u64, u64) {
        self.try_count().expect("nginx has no status")
    }

    fn try_count(&self) -> Option<(u64, u64)> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.status)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .ok()?;
        stream.write_all(b"GET / HTTP/1.0\r\n\r\n").ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        let mut lines = text
            .lines()
            .skip_while(|line| !line.starts_with("server accepts"));
        let numbers = lines.nth(1)?.split_whitespace();
        let numbers: Vec<u64> = numbers.map(|word| word.parse().unwrap()).collect();
        Some((numbers[0], numbers[2]))
    }

    /// Runs a bench and holds its totals against nginx' own.
    fn agrees(&self, words: &[&str]) -> Value {
        let plain = format!("http://127.0.0.1:{}/", self.plain);
        let tls = self.tls.to_string();
        let mut all = vec![plain.as_str(), "--tls-port", &tls, "--insecure"];
        all.extend_from_slice(words);
        let before = self.count();
        let document = bench(&all);
        let after = self.count();
        // each count is a request on a connection of its own
        let (connections, requests) = (after.0 - before.0 - 1, after.1 - before.1 - 1);
        assert_eq!(totals(&document), (requests, connections));
        document
    }
}

#[cfg(unix)]
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Windows has no such user.
#[cfg(not(unix))]
pub(crate) fn is_root() -> bool {
    false
}

#[test]
fn nginx_counts_what_we_count() {
    let Some(nginx) = Nginx::start("nginx_counts_what_we_count", "") else {
        return;
    };
    nginx.agrees(&[
        "--http",
        "1.0,1.1",
        "--tls",
        "none,1.2,1.3",
        "-c",
        "1,4",
        "-n",
        "64",
        "--rounds",
        "8",
    ]);
}

#[test]
fn nginx_counts_http_2_as_we_do() {
    let Some(nginx) = Nginx::start("nginx_counts_http_2_as_we_do", "") else {
        return;
    };
    nginx.agrees(&[
        "--http",
        "2",
        "--tls",
        "1.2,1.3",
        "-c",
        "1,4",
        "--streams",
        "1,8",
        "-n",
        "128",
        "--rounds",
        "8",
    ]);
}

#[test]
fn nginx_closing_after_five_requests_is_seen_and_said() {
    let Some(nginx) = Nginx::start(
        "nginx_closing_after_five_requests_is_seen_and_said",
        "keepalive_requests 5;",
    ) else {
        return;
    };
    let document = nginx.agrees(&[
        "-n", "200", "--rounds", "8", "--tls", "none,1.3", "--http", "1.1",
    ]);
    let said: Vec<&str> = document["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|finding| finding["rule"] == "server-closes-early")
        .map(|finding| finding["claim"].as_str().unwrap())
        .collect();
    assert_eq!(said, ["the server closes connections after 5 requests"; 2]);
}

#[test]
fn node_counts_what_we_count() {
    let Some(node) = program("node", "node_counts_what_we_count") else {
        return;
    };
    let script = "
        let requests = 0, connections = 0;
        const server = require('http').createServer((request, response) => {
            if (request.url === '/count') return response.end(JSON.stringify([requests, connections]));
            requests++; response.end('hello');
        });
        server.on('connection', () => connections++);
        server.listen(0, '127.0.0.1', () => console.log(server.address().port));";
    let mut child = Command::new(node)
        .args(["-e", script])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let port: u16 = line.trim().parse().unwrap();
    let _peer = Peer(child);
    let document = bench(&[
        &format!("http://127.0.0.1:{port}/"),
        "--http",
        "1.0,1.1",
        "-c",
        "1,4",
        "-n",
        "64",
        "--rounds",
        "8",
    ]);
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream.write_all(b"GET /count HTTP/1.0\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let counts: Vec<u64> = serde_json::from_str(text.rsplit("\r\n\r\n").next().unwrap()).unwrap();
    assert_eq!(totals(&document), (counts[0], counts[1] - 1));
}

#[test]
fn caddy_counts_what_we_count() {
    let Some(caddy) = program("caddy", "caddy_counts_what_we_count") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path().display();
    let port = free_port();
    let log = folder.path().join("access.log");
    let config = format!(
        "{{\n admin off\n auto_https off\n storage file_system {at}\n}}\nhttp://127.0.0.1:{port} {{\n bind 127.0.0.1\n respond \"hello\"\n log {{\n  output file {at}/access.log\n  format json\n }}\n}}\n"
    );
    let file = folder.path().join("Caddyfile");
    std::fs::write(&file, config).unwrap();
    let child = Command::new(caddy)
        .args(["run", "--adapter", "caddyfile", "--config"])
        .arg(&file)
        .env("HOME", folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let _peer = Peer(child);
    wait_for(port);
    let document = bench(&[
        &format!("http://127.0.0.1:{port}/"),
        "--http",
        "1.0,1.1",
        "-c",
        "1,4",
        "-n",
        "64",
        "--rounds",
        "8",
    ]);
    let (requests, connections) = totals(&document);
    // Caddy logs a request after it was answered, and knows connections by their remote port
    let mut lines: Vec<Value> = Vec::new();
    for _ in 0..250 {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        if text.lines().count() as u64 >= requests {
            let parsed = text.lines().map(|line| serde_json::from_str(line).unwrap());
            lines = parsed.collect();
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(lines.len() as u64, requests);
    // a port serves another connection after the one before has ended, which closes that the client
    // sends show
    let mut open = std::collections::HashSet::new();
    let mut logged = 0;
    for line in &lines {
        let request = &line["request"];
        let port = request["remote_port"].to_string();
        logged += u64::from(open.insert(port.clone()));
        let connection = request["headers"]["Connection"][0].as_str();
        if connection == Some("close") || (request["proto"] == "HTTP/1.0" && connection.is_none()) {
            open.remove(&port);
        }
    }
    assert!(
        logged <= connections && logged + 8 >= connections,
        "{logged} {connections}"
    );
}
