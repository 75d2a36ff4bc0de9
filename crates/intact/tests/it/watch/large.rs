//! The two-ledger test with large programs, which have many processes and threads of their own:
//! nginx as a reverse proxy, and a browser.

use super::watch;
use crate::peers::{Peer, free_port, is_root, program, wait_for};
use crate::program::{Server, counted, exchanges};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// Requests and connections of the destinations on that port.
fn counts(document: &Value, port: &str) -> (u64, u64) {
    let end = format!(":{port}");
    let all = document["destinations"].as_array().unwrap();
    let ours = all
        .iter()
        .filter(|one| one["origin"].as_str().unwrap().ends_with(&end));
    ours.map(of)
        .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
}

fn of(one: &Value) -> (u64, u64) {
    (
        counted(&one["requests"], "total"),
        counted(&one["connections"], "opened"),
    )
}

/// What the server counted, at its end.
fn of_server(server: Server) -> (u64, u64) {
    let cell = &server.end()["cells"][0];
    (
        exchanges(cell),
        cell["connections"]["opened"].as_u64().unwrap(),
    )
}

fn port_of(server: &Server, scheme: &str) -> String {
    match scheme {
        "https" => server.tls_port(),
        _ => server.plain_port(),
    }
}

/// A request through the proxy, on a connection of its own.
fn ask(port: u16) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .write_all(b"GET /bytes/100 HTTP/1.0\r\n\r\n")
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn nginx_reuses_connections_to_its_upstream_only_if_configured() {
    const REQUESTS: u64 = 20;
    let Some(nginx) = program("nginx", "watch nginx as a reverse proxy") else {
        return;
    };
    for (scheme, keep, connections) in [
        ("http", false, REQUESTS),
        ("http", true, 1),
        ("https", false, REQUESTS),
        ("https", true, 1),
    ] {
        let server = Server::start(&[]);
        let (upstream, front) = (port_of(&server, scheme), free_port());
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path().display();
        let (pool, fields) = if keep {
            (
                "keepalive 4;",
                "proxy_http_version 1.1; proxy_set_header Connection \"\";",
            )
        } else {
            ("", "")
        };
        // nginx drops root for its workers, which then could not write below a folder of root's
        let user = if is_root() { "user root;" } else { "" };
        let config = format!(
            "daemon off; {user} worker_processes 1; pid {at}/pid; error_log {at}/error.log;
            events {{ }}
            http {{
              access_log off;
              client_body_temp_path {at}/b; proxy_temp_path {at}/p; fastcgi_temp_path {at}/f; uwsgi_temp_path {at}/u; scgi_temp_path {at}/s;
              upstream behind {{ server 127.0.0.1:{upstream}; {pool} }}
              server {{ listen 127.0.0.1:{front}; location / {{ proxy_pass {scheme}://behind; {fields} }} }}
            }}"
        );
        std::fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let json = folder.path().join("watch.json");
        let watched = Command::new(env!("CARGO_BIN_EXE_intact"))
            .args([
                "watch",
                "--quiet",
                &format!("--json={}", json.display()),
                "--",
            ])
            .arg(&nginx)
            .arg("-p")
            .arg(folder.path())
            .arg("-c")
            .arg(folder.path().join("nginx.conf"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut watched = Peer(watched);
        wait_for(front);
        for _ in 0..REQUESTS {
            let answer = ask(front);
            assert!(answer.starts_with("HTTP/1.1 200"), "{scheme}: {answer}");
        }
        // the signal is the program's
        crate::program::signal(watched.0.id(), "-TERM");
        watched.0.wait().unwrap();
        let document: Value = serde_json::from_slice(&std::fs::read(&json).unwrap()).unwrap();
        // it has ended: there is no process left to kill
        std::mem::forget(watched);
        // over HTTP/1.0 it calls its upstream by the name of the block, so the port is not in the
        // origin
        let ours = of(&document);
        assert_eq!(
            ours,
            of_server(server),
            "{scheme}, kept: {keep}: {document}"
        );
        assert_eq!(ours, (REQUESTS, connections), "{scheme}, kept: {keep}");
    }
}

/// Has the browser of that home trust a server's CA, and no other of ours.
fn trust(certutil: &Path, home: &Path, server: &Server) {
    let ca = home.join("ca.pem");
    let store = home.join(".pki/nssdb");
    let _ = std::fs::remove_dir_all(home);
    std::fs::create_dir_all(&store).unwrap();
    server.write_ca(&ca);
    let added = Command::new(certutil)
        .arg("-d")
        .arg(format!("sql:{}", store.display()))
        .args(["-A", "-n", "intact", "-t", "C,,", "-i"])
        .arg(&ca)
        .output()
        .unwrap();
    assert!(added.status.success(), "{added:?}");
}

#[test]
fn chromium_loads_a_page_as_the_server_counts_it_and_prints_what_it_prints_alone() {
    const IMAGES: u64 = 20;
    let Some(chromium) = program("chromium", "watch chromium") else {
        return;
    };
    let Some(certutil) = program("certutil", "watch chromium over TLS") else {
        return;
    };
    for scheme in ["http", "https"] {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        let page = folder.path().join("page.html");
        let words = |run: &str, port: &str| {
            let images: String = (0..IMAGES)
                .map(|nth| format!("<img src=\"{scheme}://localhost:{port}/bytes/1000?{nth}\">"))
                .collect();
            std::fs::write(&page, images).unwrap();
            vec![
                chromium.display().to_string(),
                "--headless".to_owned(),
                "--no-sandbox".to_owned(),
                "--disable-gpu".to_owned(),
                format!("--user-data-dir={}", folder.path().join(run).display()),
                "--dump-dom".to_owned(),
                format!("file://{}", page.display()),
            ]
        };
        let home_variable = format!("HOME={}", home.display());
        let alone = Server::start(&[]);
        trust(&certutil, &home, &alone);
        let port_alone = port_of(&alone, scheme);
        let unwatched = words("alone", &port_alone);
        let unwatched = Command::new("env")
            .arg(&home_variable)
            .args(&unwatched)
            .output()
            .unwrap();
        assert!(unwatched.status.success(), "{unwatched:?}");
        drop(alone);
        let server = Server::start(&[]);
        trust(&certutil, &home, &server);
        let port = port_of(&server, scheme);
        let watched = words("watched", &port);
        let watched: Vec<&str> = ["env", &home_variable]
            .into_iter()
            .chain(watched.iter().map(String::as_str))
            .collect();
        let (out, document) = watch(&[], &watched);
        assert!(out.status.success(), "{out:?}");
        let text = |bytes: &[u8], port: &str| {
            String::from_utf8_lossy(bytes).replace(&format!(":{port}/"), ":PORT/")
        };
        assert_eq!(
            text(&out.stdout, &port),
            text(&unwatched.stdout, &port_alone),
            "{scheme}"
        );
        let ours = counts(&document, &port);
        assert_eq!(ours, of_server(server), "{scheme}: {document}");
        assert_eq!(ours.0, IMAGES, "{scheme}");
    }
}
