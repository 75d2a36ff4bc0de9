//! `intact serve` until a signal ends it: what it prints, and its memory.

use crate::program::{Schema, bench};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
#[cfg(target_os = "linux")]
use std::time::{Duration, Instant};

/// Starts it on free ports; itself, and the address of its plain port.
fn start(words: &[&str]) -> (Child, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args([
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--tls-listen",
            "127.0.0.1:0",
        ])
        .args(words)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    child.stdout = Some(lines.into_inner());
    let address = line.split('/').nth(2).unwrap().to_owned();
    (child, address)
}

/// Sends it a signal; what it prints after that, and its code.
fn end(mut child: Child, signal: &str) -> (String, Option<i32>) {
    crate::program::signal(child.id(), signal);
    let mut text = String::new();
    let mut out = child.stdout.take().unwrap();
    out.read_to_string(&mut text).unwrap();
    (text, child.wait().unwrap().code())
}

/// Asks twice on one connection, which the server then closes as it was configured.
fn ask(address: &str) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream
        .write_all(
            b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).unwrap();
    assert_eq!(answers.matches("HTTP/1.1 200 OK").count(), 2);
}

#[test]
fn a_signal_ends_it_with_a_summary_and_the_code_of_the_signal() {
    for (signal, code) in [("-INT", 130), ("-QUIT", 131), ("-TERM", 143), ("-HUP", 129)] {
        let (child, address) = start(&[]);
        ask(&address);
        let (page, exit) = end(child, signal);
        assert!(
            page.contains("2 requests on 1 connection; 50.0 % reused one\n"),
            "{page}"
        );
        let line = "  HTTP/1.1  2 requests on 1 connection, 2.0 on each that ended, at most 2\n            ended by: ";
        assert!(page.contains(line), "{page}");
        assert!(page.lines().all(|line| line.len() <= 80), "{page}");
        assert_eq!(exit, Some(code));
    }
}

#[test]
fn its_document_is_what_its_schema_says_live_and_at_the_end() {
    let schema = Schema::named("serve");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("totals.json");
    let json = format!("--json={}", file.display());
    let (child, address) = start(&[&json, "--fault", "truncated-body=0.5"]);
    bench(&[&format!("http://{address}/"), "-n", "40", "--rounds", "2"]);
    let mut stream = TcpStream::connect(&address).unwrap();
    stream
        .write_all(b"GET /.intact/ledger HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let live: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
    schema.check(&live);
    end(child, "-INT");
    let last: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    schema.check(&last);
    assert_eq!(live["requests"], last["requests"]);
    assert!(last["faults"]["truncated-body"].as_u64() > Some(0));
    assert_eq!(
        last["faults"]["truncated-body"],
        last["requests"]["failed"]["truncated"]
    );
}

#[test]
fn its_ledger_is_on_disk_with_what_it_prints() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    let (child, address) = start(&["--ledger", ledger.to_str().unwrap()]);
    ask(&address);
    end(child, "-INT");
    let run: Value =
        serde_json::from_str(&std::fs::read_to_string(ledger.join("run.json")).unwrap()).unwrap();
    assert_eq!(run["vantage"], "server");
    let tally: Value =
        serde_json::from_str(&std::fs::read_to_string(ledger.join("tally.json")).unwrap()).unwrap();
    assert_eq!(tally["cells"][0]["connections"]["opened"], 1);
}

#[cfg(target_os = "linux")]
#[test]
fn an_idle_connection_costs_little_memory() {
    const CONNECTIONS: u64 = 500;
    let (child, address) = start(&[]);
    let resident = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS"));
        let kb = line.and_then(|line| line.split_whitespace().nth(1));
        kb.unwrap().parse().unwrap()
    };
    // after a response that took much more room than the next request needs
    let used = || {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream
            .write_all(b"GET /bytes/100000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
            .unwrap();
        let mut response = vec![0; 100_000];
        stream.read_exact(&mut response).unwrap();
        stream
    };
    drop(used());
    let before = resident();
    let idle: Vec<TcpStream> = (0..CONNECTIONS).map(|_| used()).collect();
    let each = resident().saturating_sub(before) / CONNECTIONS;
    assert!(each < 12, "{each} kB");
    drop(idle);
    end(child, "-INT");
}

/// Bytes in the queues of the sockets whose own port is this one, by the kernel's table (proc(5),
/// `/proc/net/tcp`), and how many such connections there are.
#[cfg(target_os = "linux")]
fn queued(port: u16) -> (u64, u64) {
    let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
    let (mut bytes, mut connections) = (0, 0);
    for line in table.lines().skip(1) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (_, own) = fields[1].split_once(':').unwrap();
        if u16::from_str_radix(own, 16) != Ok(port) || fields[3] == "0A" {
            continue;
        }
        let (unsent, unread) = fields[4].split_once(':').unwrap();
        bytes += u64::from_str_radix(unsent, 16).unwrap();
        bytes += u64::from_str_radix(unread, 16).unwrap();
        connections += 1;
    }
    (bytes, connections)
}

#[cfg(target_os = "linux")]
#[test]
fn clients_that_do_not_read_take_little_memory_of_the_kernel() {
    const CLIENTS: u64 = 450;
    // the most that a connection may wait to send; without a bound the kernel takes 4 MB
    const MOST_EACH: u64 = 512 << 10;
    let (child, address) = start(&[]);
    let port = address.rsplit(':').next().unwrap().parse().unwrap();
    let silent: Vec<TcpStream> = (0..CLIENTS)
        .map(|_| {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream
                .write_all(b"GET /bytes/1073741824 HTTP/1.1\r\nHost: localhost\r\n\r\n")
                .unwrap();
            stream
        })
        .collect();
    // until every response has begun, and the queues grow no more
    let begun = Instant::now();
    let mut before = (0, 0);
    loop {
        std::thread::sleep(Duration::from_millis(200));
        let now = queued(port);
        let has_begun = now.1 == CLIENTS && now.0 > CLIENTS * 1_000;
        if has_begun && now == before {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{now:?}");
        before = now;
    }
    let (bytes, _) = before;
    assert!(bytes < CLIENTS * MOST_EACH, "{bytes} bytes");
    let mut other = TcpStream::connect(&address).unwrap();
    other
        .write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        .unwrap();
    let mut status = [0; 12];
    other.read_exact(&mut status).unwrap();
    assert_eq!(&status, b"HTTP/1.1 200");
    drop(silent);
    end(child, "-INT");
}

/// Asks for a response that never comes, and closes the socket; its kernel forgets it 1 s later
/// (TCP_LINGER2; 60 s without this). One more waits with its side shut. Prints the descriptors of
/// the server once those that were closed are gone.
#[cfg(target_os = "linux")]
const LEAVES: &str = "
import os, socket, sys, time
host, port = sys.argv[1].split(':')
folder = '/proc/%s/fd' % sys.argv[2]
before = len(os.listdir(folder))
def ask():
    one = socket.create_connection((host, int(port)))
    one.setsockopt(socket.IPPROTO_TCP, 8, 1)
    one.sendall(b'GET /delay/86400000 HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n')
    return one
waits = ask()
waits.shutdown(socket.SHUT_WR)
leave = [ask() for _ in range(50)]
while len(os.listdir(folder)) < before + 51: time.sleep(0.05)
for one in leave: one.close()
until = time.time() + 120
while len(os.listdir(folder)) > before + 1 and time.time() < until: time.sleep(0.1)
print(len(os.listdir(folder)) - before)
";

#[cfg(target_os = "linux")]
#[test]
fn a_client_that_has_closed_its_socket_is_forgotten_and_one_that_waits_is_not() {
    if crate::peers::program("python3", "leave a server that waits").is_none() {
        return;
    }
    let (child, address) = start(&[]);
    let out = Command::new("python3")
        .args(["-c", LEAVES, &address, &child.id().to_string()])
        .output()
        .unwrap();
    assert_eq!(out.stdout, b"1\n", "{out:?}");
    end(child, "-INT");
}
