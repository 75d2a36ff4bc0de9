//! Requests that a client of TLS 1.3 sends before the server responds (0-RTT): `openssl s_client`,
//! whose keys are not known. The built-in server takes them. Started again it has other ticket
//! keys, and rejects them: the event that the reference of faults names.

use super::watch;
use crate::peers::program;
use crate::program::Server;

#[test]
fn early_data_that_a_new_server_rejects_fail_no_connection() {
    if program("openssl", "watch early data").is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (session, request) = (path("session"), path("request"));
    let text = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    std::fs::write(&request, text).unwrap();
    // standard input stays open until the server closes
    let ask = |server: &Server, input: &str, options: &str| {
        let port = server.tls_port();
        let client = format!("openssl s_client -connect 127.0.0.1:{port} -quiet {options} 2>&1");
        let script = format!("{{ {input} sleep 2; }} | {client}");
        watch(&[], &["sh", "-c", &script])
    };
    let first = Server::start(&["--early-data"]);
    let late = format!("cat {request};");
    ask(&first, &late, &format!("-sess_out {session}"));
    let early = format!("-sess_in {session} -early_data {request}");
    let (out, taken) = ask(&first, "", &early);
    assert!(
        String::from_utf8_lossy(&out.stdout).contains("200 OK"),
        "{out:?}"
    );
    let kinds = |server: Server| {
        let tally = server.end();
        tally["cells"][0]["connections"]["handshakes"].to_string()
    };
    let counted = kinds(first);
    assert!(counted.contains("early-data"), "{counted}");
    let second = Server::start(&["--early-data"]);
    let (out, rejected) = ask(&second, &late, &early);
    assert!(
        String::from_utf8_lossy(&out.stdout).contains("200 OK"),
        "{out:?}"
    );
    let counted = kinds(second);
    assert!(
        counted.contains("full") && !counted.contains("early-data"),
        "{counted}"
    );
    for document in [&taken, &rejected] {
        let connections = &document["totals"]["connections"];
        assert_eq!(connections["opened"], 1, "{connections}");
        assert_eq!(
            connections["failed"],
            serde_json::json!({}),
            "{connections}"
        );
    }
    // what was sent early came to nothing, and the request after it has its response
    assert_eq!(rejected["totals"]["requests"]["status"]["200"], 1);
    // the first response came within the handshake: the requests are not known
    let requests = &taken["totals"]["requests"];
    assert!(requests["ok"].is_null(), "{requests}");
    assert!(requests["failed"]["closed"].is_null(), "{requests}");
}
