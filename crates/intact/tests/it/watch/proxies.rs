//! Proxies are clients too: what one opens for nothing has its own setting in the fix, and with
//! that setting the finding is gone.

use crate::peers::{free_port, program, wait_for};
use crate::program::Server;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};

/// Requests that a client sends through the proxy, on one connection.
pub(super) const REQUESTS: usize = 12;

pub(super) fn request_through(port: u16) {
    let stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut reader = BufReader::new(&stream);
    for _ in 0..REQUESTS {
        // the name of a library, which proxies forward
        let request =
            "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: python-requests/2.31.0\r\n\r\n";
        (&stream).write_all(request.as_bytes()).unwrap();
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let (name, value) = line.split_once(':').unwrap_or_default();
            if name.eq_ignore_ascii_case("content-length") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        assert!(length > 0, "the proxy has no response of the server");
        reader.read_exact(&mut vec![0; length]).unwrap();
    }
}

/// The document of a watched proxy with this configuration.
fn watched(proxy: &Path, words: &[&str], configuration: &str, port: u16) -> Value {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("configuration");
    let at = folder.path().display().to_string();
    std::fs::write(&file, configuration.replace("@folder@", &at)).unwrap();
    let words: Vec<&OsStr> = [proxy.as_os_str()]
        .into_iter()
        .chain(words.iter().map(OsStr::new))
        .chain([file.as_os_str()])
        .collect();
    watched_service(folder.path(), &words, port, request_through)
}

/// The document of a service on this port that runs under `watch` until `drive` has used it.
pub(super) fn watched_service(
    home: &Path,
    words: &[impl AsRef<OsStr>],
    port: u16,
    drive: impl FnOnce(u16),
) -> Value {
    let json = home.join("watch.json");
    let mut watch = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["watch", "--quiet", &format!("--json={}", json.display())])
        .arg("--")
        .args(words)
        .env("HOME", home)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for(port);
    drive(port);
    let id = watch.id().to_string();
    assert!(Command::new("kill").arg(id).status().unwrap().success());
    watch.wait().unwrap();
    serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap()
}

/// A proxy with a line that makes it close connections, and with one in its place that does not.
fn closes(name: &str, words: &[&str], configuration: &str, lines: [&str; 2], setting: &str) {
    let Some(proxy) = program(name, "watch proxies") else {
        return;
    };
    let server = Server::start(&[]);
    let run = |line: &str| {
        let port = free_port();
        let configuration = configuration
            .replace("@port@", &port.to_string())
            .replace("@server@", &server.plain_port())
            .replace("@line@", line);
        watched(&proxy, words, &configuration, port)
    };
    let sick = run(lines[0]);
    let findings = sick["findings"].as_array().unwrap();
    let found = findings
        .iter()
        .find(|one| one["rule"] == "connection-close-sent");
    let fix = found.unwrap_or_else(|| panic!("{sick}"))["fix"]
        .as_str()
        .unwrap();
    assert!(
        fix.contains(setting) && !fix.contains("requests.Session"),
        "{fix}"
    );
    let healthy = run(lines[1]);
    let findings = healthy["findings"].as_array().unwrap();
    let is_warning = |one: &Value| one["severity"] != "info";
    assert!(!findings.iter().any(is_warning), "{healthy}");
}

#[test]
fn haproxy_that_closes_has_its_option_in_the_fix() {
    let configuration = "global\n nbthread 1\ndefaults\n mode http\n timeout connect 5s\n timeout client 30s\n timeout server 30s\n @line@\nfrontend f\n bind 127.0.0.1:@port@\n default_backend b\nbackend b\n server s 127.0.0.1:@server@\n";
    let lines = ["option http-server-close", "option http-keep-alive"];
    closes(
        "haproxy",
        &["-f"],
        configuration,
        lines,
        "`option http-server-close`",
    );
}

#[test]
fn nginx_that_closes_has_its_directives_in_the_fix() {
    // one process: each worker has a pool of its own
    let configuration = "daemon off; master_process off; pid @folder@/pid; error_log @folder@/error.log;
        events {}
        http {
          access_log off; client_body_temp_path @folder@/b; proxy_temp_path @folder@/p; fastcgi_temp_path @folder@/f; uwsgi_temp_path @folder@/u; scgi_temp_path @folder@/s;
          upstream u { server 127.0.0.1:@server@; keepalive 16; }
          server { listen 127.0.0.1:@port@; location / { @line@ proxy_pass http://u; } }
        }";
    let lines = [
        "proxy_http_version 1.1; proxy_set_header Connection close;",
        "proxy_http_version 1.1; proxy_set_header Connection '';",
    ];
    closes(
        "nginx",
        &["-c"],
        configuration,
        lines,
        "nginx: an upstream block with `keepalive N;`",
    );
}

#[test]
fn caddy_that_closes_has_its_option_in_the_fix() {
    let configuration = "{\n admin off\n auto_https off\n}\nhttp://127.0.0.1:@port@ {\n reverse_proxy 127.0.0.1:@server@ {\n transport http {\n @line@\n }\n }\n}\n";
    let words = ["run", "--adapter", "caddyfile", "--config"];
    let lines = ["keepalive off", "keepalive 30s"];
    closes(
        "caddy",
        &words,
        configuration,
        lines,
        "Caddy: `keepalive off`",
    );
}
