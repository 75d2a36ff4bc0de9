//! As `foreign_text`, for runs: names of certificates, frames on a terminal, what clients ask
//! `serve` for, campaigns, and labels of metrics.

use crate::check_peers::{next_request, peer};
use crate::foreign_text::{
    FEW, HOSTILE, assert_harmless, conclude, harmless, is_hostile, os, os_of,
};
use crate::peers::program;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// What a certificate may hold of [`HOSTILE`]: ASCII in a name of a host.
const HOSTILE_ASCII: &str = "\x1b[8m\x07::stop-commands::x##vso[task.x]##[error]<hostile>";

/// A child that ends with the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Speaks TLS with the certificate in its folder, and responds to every request with a hostile
/// header section.
const TLS_SERVER: &str = r#"
import http.server, ssl, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        self.wfile.write(b"HTTP/1.1 200 \x1b[8mOK\r\nServer: x\xe2\x80\xae\x1b[8m##[error]\r\nContent-Length: 2\r\n\r\nok")
    do_HEAD = do_GET
    def log_message(self, *words):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// A certificate whose subject, issuer and alternative name are hostile, and a server that has it.
fn tls_server(folder: &Path) -> Option<(Killed, String, String)> {
    program("python3", "names of certificates")?;
    let key = rcgen::KeyPair::generate().unwrap();
    let name = rcgen::SanType::DnsName(HOSTILE_ASCII.try_into().unwrap());
    let mut parameters = rcgen::CertificateParams::default();
    parameters.subject_alt_names = vec![name];
    let subject = &mut parameters.distinguished_name;
    subject.push(rcgen::DnType::CommonName, HOSTILE);
    subject.push(rcgen::DnType::OrganizationName, HOSTILE);
    let certificate = parameters.self_signed(&key).unwrap();
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (chain, key) = (
        write("c.pem", certificate.pem()),
        write("k.pem", key.serialize_pem()),
    );
    let mut child = Command::new("python3")
        .args(["-c", TLS_SERVER, &chain, &key])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut port = String::new();
    let mut lines = BufReader::new(child.stdout.take().unwrap());
    lines.read_line(&mut port).unwrap();
    let url = format!("https://127.0.0.1:{}/", port.trim());
    Some((Killed(child), url, chain))
}

#[test]
fn no_name_of_a_certificate_is_more_than_text() {
    let folder = tempfile::tempdir().unwrap();
    let Some((_server, url, chain)) = tls_server(folder.path()) else {
        return;
    };
    let bench = ["bench", &url, "-n", "8", "--rounds", "2"];
    let check = ["check", &url, "--no-idle", "--max-time", "20s"];
    for trust in [&["--insecure"][..], &["--cacert", &chain], &[]] {
        for words in [&bench[..], &check] {
            let words: Vec<&OsStr> = words.iter().chain(trust).map(os_of).collect();
            for ci in ["GITHUB_ACTIONS", "TF_BUILD"] {
                let code = harmless(&words, ci);
                // without trust nothing succeeds
                let expected = if trust == ["--insecure"] { 0 } else { 3 };
                assert_eq!(code, expected, "{words:?}");
            }
        }
    }
    let words = ["check", &url, "--no-idle", "--insecure"].map(|word| word.to_owned());
    let words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
    conclude(&words, "idle-timeout >= 1s", folder.path());
}

/// A plain server whose responses are hostile wherever text may be. Control characters of ASCII
/// would make them malformed.
fn plain_server() -> SocketAddr {
    peer(|stream, _| {
        let mut reader = BufReader::new(stream);
        let is_field = |letter: &char| !letter.is_ascii_control();
        let text: String = HOSTILE.chars().filter(is_field).collect();
        let response = format!(
            "HTTP/1.1 200 {text}\r\nServer: {text}\r\nVia: 1.1 {text}\r\nSet-Cookie: x{text}=1\r\nWWW-Authenticate: {text}\r\n\
             Keep-Alive: timeout=5, {text}\r\nX: {text}\r\nContent-Length: 2\r\n\r\nok"
        );
        while next_request(&mut reader) && reader.get_mut().write_all(response.as_bytes()).is_ok() {
        }
    })
}

/// What a terminal is sent by a command, without our own escape sequences.
fn on_a_terminal(line: &str) -> Option<String> {
    program("script", "frames on a terminal")?;
    let out = Command::new("timeout")
        .args(["60", "script", "-qec", line, "/dev/null"])
        .env("TERM", "xterm-256color")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Some(String::from_utf8_lossy(&out.stdout).into_owned())
}

#[test]
fn no_frame_on_a_terminal_has_text_of_others_as_anything_but_text() {
    let address = plain_server();
    let intact = env!("CARGO_BIN_EXE_intact");
    let client = format!(
        "import socket; s = socket.create_connection((\"127.0.0.1\", {})); s.sendall(b\"GET /\\x1b[8m\\xe2\\x80\\xae HTTP/1.1\\r\\nHost: a\\xe2\\x80\\xae\\x1b[8m\\r\\nUser-Agent: x\\x1b[8m\\r\\n\\r\\n\"); s.recv(999)",
        address.port()
    );
    for line in [
        format!("{intact} bench http://{address}/ -n 40 --rounds 4"),
        format!("{intact} check http://{address}/ --no-idle"),
        format!("{intact} watch -- python3 -c '{client}'"),
        format!("{intact} watch --live -- python3 -c '{client}'"),
    ] {
        let Some(sent) = on_a_terminal(&line) else {
            return;
        };
        assert!(
            sent.contains("127.0.0.1") || sent.contains("connection"),
            "{line}: {sent}"
        );
        // frames have escape sequences of ours, none of which conceals (8m)
        assert!(!sent.contains("\x1b[8m"), "{line}: {sent:?}");
        let ours = ['\x1b', '\r', '\x07', '\x08', '\x0f'];
        let foreign = |letter: char| is_hostile(letter) && !ours.contains(&letter);
        assert!(!sent.contains(foreign), "{line}: {sent:?}");
    }
}

#[test]
fn nothing_that_a_client_sends_to_serve_is_more_than_text() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = folder.path().join("ledger");
    for json in [false, true] {
        let _ = fs::remove_dir_all(&ledger);
        let mut command = Command::new(env!("CARGO_BIN_EXE_intact"));
        command
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(["--tls-listen", "127.0.0.1:0", "--ledger"])
            .arg(&ledger)
            .args(json.then_some("--json"))
            .env("GITHUB_ACTIONS", "true")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = Killed(command.spawn().unwrap());
        let (mut out, mut err) = (
            BufReader::new(child.0.stdout.take().unwrap()),
            BufReader::new(child.0.stderr.take().unwrap()),
        );
        let mut said = String::new();
        let first: &mut dyn BufRead = if json { &mut err } else { &mut out };
        while !said.contains("Ctrl-C ends it") {
            assert!(first.read_line(&mut said).unwrap() > 0, "{said}");
        }
        let address = said.split('/').nth(2).unwrap().to_owned();
        let text = HOSTILE.replace(['\r', '\n'], "");
        for request in [
            format!("GET /{text} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            format!("{text} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
            format!("GET / HTTP/1.1\r\nHost: {text}\r\nConnection: close\r\n\r\n"),
            format!("GET / HTTP/1.1\r\nHost: a\r\nUser-Agent: {text}\r\nX: {text}\r\nConnection: close\r\n\r\n"),
            "GET /%1b%5b8m%e2%80%ae HTTP/1.1\r\nHost: a\r\nUser-Agent: x\r\nConnection: close\r\n\r\n".to_owned(),
        ] {
            let mut stream = TcpStream::connect(&address).unwrap();
            stream.write_all(request.as_bytes()).unwrap();
            // some requests are refused without a response
            let _ = stream.read_to_end(&mut Vec::new());
        }
        crate::program::signal(child.0.id(), "-TERM");
        out.read_to_string(&mut said).unwrap();
        err.read_to_string(&mut said).unwrap();
        assert!(child.0.wait().unwrap().code().is_some());
        assert_harmless("serve", &said);
        conclude(&[os("report"), ledger.as_os_str()], FEW, folder.path());
    }
}

#[test]
fn no_text_of_a_campaign_is_more_than_text() {
    let folder = tempfile::tempdir().unwrap();
    let address = plain_server();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (plan, store, page) = (at("plan.toml"), at("store"), at("page.md"));
    let hostile = serde_json::to_string(&format!("n{HOSTILE}")).unwrap();
    let write = |name: &str, target: &str, label: &str| {
        let text = format!(
            "name = {name}\nrepetitions = 1\nduration = \"20ms\"\nlabels = [{label}]\n[limits]\nrequests = 10000\nrate = 400\nworkers = 1\n\
             [[target]]\nname = {target}\nurl = \"http://{address}/\"\ni-own-this = \"127.0.0.1\"\nmeasure = \"check\"\n"
        );
        fs::write(&plan, text).unwrap();
    };
    for [name, target, label] in [
        [&hostile, "\"own\"", "\"here\""],
        ["\"t\"", &hostile, "\"here\""],
        ["\"t\"", "\"own\"", &hostile],
        ["\"t\"", "\"own\"", "\"here\""],
    ] {
        write(name, target, label);
        let _ = fs::remove_dir_all(&store);
        let clean = [name, target, label]
            .iter()
            .all(|text| !text.contains("hostile"));
        for words in [
            &["fleet", "plan", &plan][..],
            &["fleet", "plan", &plan, "--json"],
            &["fleet", "run", &plan, "--store", &store],
            &["fleet", "report", &store, "--report", &page],
            &["fleet", "report", &store, "--json"],
        ] {
            let words: Vec<&OsStr> = words.iter().map(os_of).collect();
            let code = harmless(&words, "GITHUB_ACTIONS");
            assert!(code == 0 || !clean, "{words:?}: {code}");
        }
        if let Ok(text) = fs::read_to_string(&page) {
            assert!(!text.contains(is_hostile), "{text}");
        }
    }
}

#[test]
fn no_label_of_a_metric_is_more_than_text() {
    let folder = tempfile::tempdir().unwrap();
    let har = folder.path().join("a.har");
    let host = "a\u{202e}\u{200b}\u{9b}8m.example";
    let agent = serde_json::to_string(&format!("Tool{HOSTILE}")).unwrap();
    let url = serde_json::to_string(&format!("https://{host}/p{HOSTILE}")).unwrap();
    let method = serde_json::to_string(&format!("GET{HOSTILE}")).unwrap();
    let text = format!(
        r#"{{"log":{{"creator":{{"name":{agent}}},"entries":[{{"startedDateTime":"2024-01-01T00:00:00Z","time":5,"request":{{"method":{method},"url":{url},"headers":[{{"name":"User-Agent","value":{agent}}}]}},"response":{{"status":200}},"timings":{{"connect":1,"send":1,"wait":1,"receive":1}}}}]}}}}"#
    );
    fs::write(&har, text).unwrap();
    let metrics = folder.path().join("metrics.prom");
    let words = [
        os("audit"),
        har.as_os_str(),
        os("--prometheus"),
        metrics.as_os_str(),
    ];
    assert_eq!(harmless(&words, "GITHUB_ACTIONS"), 0);
    let text = fs::read_to_string(&metrics).unwrap();
    assert!(text.contains("server_address=\"a"), "{text}");
    assert!(!text.contains(is_hostile), "{text:?}");
}
