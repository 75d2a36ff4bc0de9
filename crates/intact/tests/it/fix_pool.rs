//! `intact fix nginx --pool-for DIR`: the proxy that it configures saves connections and changes no
//! response. Hosts and credentials stay apart.

use crate::peers::{Peer, free_port, program, wait_for};
use crate::program::{Server, intact};
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// Requests to each server, each of a process and a user of its own.
const REQUESTS: u64 = 10;

/// A server that responds with the name it has, and with what it was asked for and by whom.
struct Witness {
    port: u16,
    connections: Arc<AtomicU64>,
    hosts: Arc<Mutex<Vec<String>>>,
}

impl Witness {
    fn start(name: &'static str) -> Witness {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let witness = Witness {
            port: listener.local_addr().unwrap().port(),
            connections: Arc::default(),
            hosts: Arc::default(),
        };
        let (connections, hosts) = (witness.connections.clone(), witness.hosts.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                connections.fetch_add(1, Ordering::Relaxed);
                let hosts = hosts.clone();
                std::thread::spawn(move || serve(name, stream, &hosts));
            }
        });
        witness
    }

    /// The connections since the last call.
    fn take(&self) -> u64 {
        self.connections.swap(0, Ordering::Relaxed)
    }
}

fn serve(name: &str, stream: TcpStream, hosts: &Mutex<Vec<String>>) {
    let mut stream = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            lines.push(line.trim_end().to_owned());
        }
        let field = |name: &str| {
            let mut values = lines.iter().filter_map(|line| line.split_once(": "));
            let found = values.find(|(field, _)| field.eq_ignore_ascii_case(name));
            found.map_or("-", |(_, value)| value).to_owned()
        };
        hosts.lock().unwrap().push(field("host"));
        let body = format!(
            "{name} {} {} {}\n",
            lines[0],
            field("authorization"),
            field("cookie")
        );
        let response = format!(
            "HTTP/1.1 200 OK\r\nServer: {name}\r\nSet-Cookie: of={name}\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if stream.get_mut().write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Requests of curl processes to both servers, with their responses.
fn calls(ports: [u16; 2]) -> String {
    let [one, other] = ports;
    format!(
        "for n in $(seq {REQUESTS}); do for port in {one} {other}; do \
         curl -s -i -u user$n:secret$n -b session=$n \"http://127.0.0.1:$port/a//b%2F?n=$n\"; done; done"
    )
}

fn bash(line: &str, proxy: Option<u16>) -> String {
    let mut command = Command::new("bash");
    command.args(["-c", line]).env_remove("no_proxy");
    command.env_remove("http_proxy");
    if let Some(port) = proxy {
        command.env("http_proxy", format!("http://127.0.0.1:{port}"));
    }
    String::from_utf8(command.output().unwrap().stdout).unwrap()
}

/// The bodies and the `Server` fields, which a proxy must leave as they are. Names of fields have
/// no case.
fn meaning(responses: &str) -> Vec<String> {
    let lines = responses
        .lines()
        .map(|line| line.trim_end().replace("Server:", "server:"));
    let is_kept = |line: &String| {
        let beginnings = ["one GET", "other GET", "server:"];
        beginnings.iter().any(|one| line.starts_with(one))
    };
    lines.filter(is_kept).collect()
}

/// Starts the proxy that `fix` configures for a ledger, to listen at the first port, and waits
/// until it accepts connections at the second.
fn proxy(
    name: &str,
    ledger: &Path,
    folder: &Path,
    [port, accepts]: [u16; 2],
    ca: Option<&Path>,
) -> Option<Peer> {
    let found = program(name, "the pool of fix")?;
    let listen = format!("127.0.0.1:{port}");
    let ledger = ledger.to_str().unwrap();
    let out = intact(&["fix", name, "--pool-for", ledger, "--pool-listen", &listen]);
    assert_eq!(out.status.code(), Some(0), "{out:?}");
    let mut text = String::from_utf8(out.stdout).unwrap();
    if let Some(ca) = ca {
        text = text.replace("/etc/ssl/certs/ca-certificates.crt", ca.to_str().unwrap());
    }
    let file = folder.join(format!("{name}.conf"));
    std::fs::write(&file, text).unwrap();
    let mut command = Command::new(found);
    match name {
        "nginx" => command
            .args(["-e", "stderr", "-g", "daemon off; pid nginx.pid;", "-p"])
            .arg(folder)
            .arg("-c"),
        _ => command.args(["-db", "-f"]),
    };
    let child = command.arg(file).stderr(Stdio::null()).spawn().unwrap();
    let peer = Peer(child);
    wait_for(accepts);
    Some(peer)
}

/// What commands print under `intact watch`, which keeps its ledger there.
fn recorded(ledger: &Path, line: &str) -> String {
    let ledger = ledger.to_str().unwrap();
    let watch = intact(&[
        "watch", "--quiet", "--ledger", ledger, "--", "bash", "-c", line,
    ]);
    String::from_utf8(watch.stdout).unwrap()
}

#[test]
fn a_pool_saves_connections_and_mixes_neither_hosts_nor_credentials() {
    if program("curl", "the pool of fix").is_none() {
        return;
    }
    let (one, other) = (Witness::start("one"), Witness::start("other"));
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("run");
    let line = calls([one.port, other.port]);
    let direct = recorded(&ledger, &line);
    assert_eq!(meaning(&direct).len() as u64, 4 * REQUESTS, "{direct}");
    assert_eq!((one.take(), other.take()), (REQUESTS, REQUESTS));
    for name in ["nginx", "haproxy"] {
        let port = free_port();
        let Some(proxy) = proxy(name, &ledger, folder.path(), [port, port], None) else {
            return;
        };
        let pooled = bash(&line, Some(port));
        assert_eq!(meaning(&pooled), meaning(&direct), "{name}");
        assert_eq!((one.take(), other.take()), (1, 1), "{name}");
        for witness in [&one, &other] {
            let own = format!("127.0.0.1:{}", witness.port);
            let hosts = witness.hosts.lock().unwrap();
            assert!(hosts.iter().all(|host| *host == own), "{name}: {hosts:?}");
        }
        // another host is refused
        let status = "curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:9/";
        assert_eq!(bash(status, Some(port)), "421", "{name}");
        drop(proxy);
    }
}

#[test]
fn a_pool_of_tls_checks_the_certificate_and_saves_handshakes() {
    if program("curl", "the pool of fix").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("run");
    for (nth, name) in ["nginx", "haproxy"].into_iter().enumerate() {
        let server = Server::start(&[]);
        let ca = folder.path().join("ca.pem");
        server.write_ca(&ca);
        let path = "bytes/100";
        let url = format!("https://localhost:{}/{path}", server.tls_port());
        let line = format!("curl -s --cacert {} {url}", ca.display());
        let ledger = ledger.with_extension(nth.to_string());
        recorded(&ledger, &line);
        // plain HTTP has no destination, so only the port above listens
        let port = free_port();
        let own = port + 1;
        let Some(proxy) = proxy(name, &ledger, folder.path(), [port, own], Some(&ca)) else {
            return;
        };
        let each =
            format!("for n in $(seq {REQUESTS}); do curl -s http://127.0.0.1:{own}/{path}; done");
        assert_eq!(
            bash(&each, None),
            "x".repeat(100 * REQUESTS as usize),
            "{name}"
        );
        drop(proxy);
        let tally = server.end();
        let cells = tally["cells"].as_array().unwrap().iter();
        let opened: u64 = cells
            .filter_map(|cell| cell["connections"]["opened"].as_u64())
            .sum();
        assert_eq!(opened, 2, "{name}: {tally:#}");
    }
}
