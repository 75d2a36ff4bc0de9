//! Every script of `fixtures/hostile/scripts/` against one watched program, plain and over TLS: the
//! program ends as it would unwatched, each connection is counted, and no response counts that the
//! script does not complete.

use super::watch;
use crate::peers::program;
use intact_ledger::Outcome;
use intact_serve::{CertificateAuthority, TlsConfig};
use intact_test_servers::{Script, ScriptedServer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Sends one request to each peer, all at once, and reads until the peer ends, says nothing for 2
/// s, or has sent 1 MiB. It ends with a reset: a FIN could be that of a client that reads on, and a
/// body without a length is whole where the server then closes.
const CLIENT: &str = r#"
import socket, ssl, struct, sys, threading
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000 04 00 00000000")
def request(port, tls, h2):
    host = b"localhost:%d" % port
    if not h2:
        return b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n\r\n"
    block = bytes([0x82, 0x87 if tls else 0x86, 0x84, 0x41, len(host)]) + host
    return PREFACE + len(block).to_bytes(3, "big") + bytes.fromhex("01 05 00000001") + block
def talk(port, tls, h2):
    try:
        stream = socket.create_connection(("127.0.0.1", port), timeout=2)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if tls:
            context = ssl.create_default_context()
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
            if h2:
                context.set_alpn_protocols(["h2"])
            stream = context.wrap_socket(stream, server_hostname="localhost")
        stream.sendall(request(port, tls, h2))
        read = 0
        while read < 1 << 20:
            chunk = stream.recv(65536)
            if not chunk:
                break
            read += len(chunk)
        stream.close()
    except OSError:
        pass
peers = [word.split(":") for word in sys.argv[1:]]
threads = [threading.Thread(target=talk, args=(int(port), tls == "1", h2 == "1")) for port, tls, h2 in peers]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(len(threads))
"#;

/// Scripts that a client may accept: fields of HTTP/1 connections in HTTP/2, and no SETTINGS.
const ACCEPTED: [&str; 3] = ["connection-field", "no-settings", "transfer-encoding-field"];

/// A peer: its script, and whether it is reached over TLS.
struct Peer {
    script: Script,
    is_tls: bool,
    server: ScriptedServer,
}

fn peers() -> Vec<Peer> {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/hostile/scripts"
    );
    let scripts = Script::read_all(Path::new(folder)).unwrap();
    let authority = Arc::new(CertificateAuthority::make(&[]).unwrap());
    let start = |script: &Script, tls: Option<TlsConfig>| Peer {
        script: script.clone(),
        is_tls: tls.is_some(),
        server: ScriptedServer::start(script, tls.as_ref()).unwrap(),
    };
    let mut peers = Vec::new();
    for script in &scripts {
        peers.push(start(script, Some(script.tls_config(&authority))));
        if !script.needs_tls {
            peers.push(start(script, None));
        }
    }
    peers
}

/// The rows of a document by the port of the destination.
fn by_port(document: &Value) -> BTreeMap<u16, &Value> {
    let rows = document["destinations"].as_array().unwrap();
    let port = |row: &Value| {
        let origin = row["origin"].as_str()?;
        origin.rsplit(':').next()?.parse().ok()
    };
    rows.iter()
        .filter_map(|row| Some((port(row)?, row)))
        .collect()
}

#[test]
fn every_script_is_survived_by_a_watched_program_and_counted() {
    let Some(_) = program("python3", "watch under hostile peers") else {
        return;
    };
    let peers = peers();
    assert!(peers.len() >= 150, "{}", peers.len());
    let words = peers.iter().map(|peer| {
        let (tls, h2) = (u8::from(peer.is_tls), u8::from(peer.script.is_http2));
        format!("{}:{tls}:{h2}", peer.server.address().port())
    });
    let words: Vec<String> = words.collect();
    let mut command = vec!["python3", "-c", CLIENT];
    command.extend(words.iter().map(String::as_str));
    let (out, document) = watch(&[], &command);
    let printed = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{printed}");
    assert_eq!(
        String::from_utf8_lossy(&out.stdout).trim(),
        peers.len().to_string(),
        "{printed}"
    );
    let rows = by_port(&document);
    let mut wrong = Vec::new();
    for peer in &peers {
        let port = peer.server.address().port();
        let name = format!("{} tls={}", peer.script.name, peer.is_tls);
        let Some(row) = rows.get(&port) else {
            wrong.push(format!("{name}: no row"));
            continue;
        };
        if row["connections"]["opened"] != 1 {
            wrong.push(format!("{name}: {}", row["connections"]));
        }
        let may_be_ok = peer.script.expect.contains(&Outcome::Ok)
            || ACCEPTED
                .iter()
                .any(|name| peer.script.name.starts_with(name));
        // what follows a broken rule of HTTP/2 is not read
        let requests = &row["requests"];
        let is_unread = requests["ok"].is_null() && requests["bounds"]["ok"]["low"] == 0;
        if requests["ok"] != 0 && !is_unread && !may_be_ok {
            wrong.push(format!(
                "{name}: {} expected {:?}",
                row["requests"], peer.script.expect
            ));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
