//! A server that demands a certificate of the client refuses it within the handshake. In TLS 1.3
//! the client has sent its request by then, and the alert is encrypted: nothing was executed.

use super::watch;
use crate::peers::program;
use std::io::Write;

/// Posts to a server of its own, without a certificate. The server ends the connection after all
/// bytes of the client, so no RST can overtake its alert.
const PROGRAM: &str = "
import http.client, os, socket, ssl, sys, threading
version = ssl.TLSVersion[sys.argv[2]]
demanding = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
demanding.load_cert_chain(sys.argv[1])
demanding.load_verify_locations(sys.argv[1])
demanding.verify_mode = ssl.CERT_REQUIRED
demanding.maximum_version = version
listener = socket.create_server(('127.0.0.1', 0))
def serve():
    while True:
        accepted = listener.accept()[0]
        end = accepted.dup()
        try:
            demanding.wrap_socket(accepted, server_side=True)
        except ssl.SSLError:
            end.shutdown(socket.SHUT_WR)
            while end.recv(65536):
                pass
            end.close()
threading.Thread(target=serve, daemon=True).start()
trusting = ssl.create_default_context(cafile=sys.argv[1])
for _ in range(3):
    connection = http.client.HTTPSConnection('localhost', listener.getsockname()[1], context=trusting)
    try:
        connection.request('POST', '/pay', body='x')
        connection.getresponse()
        print('accepted')
    except (ssl.SSLError, OSError):
        print('refused')
    connection.close()
";

#[test]
fn a_refused_client_certificate_is_a_failed_handshake() {
    if program("python3", "watch a server that demands a certificate").is_none() {
        return;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let pem = made.signing_key.serialize_pem() + &made.cert.pem();
    file.write_all(pem.as_bytes()).unwrap();
    let path = file.path().to_str().unwrap();
    for (version, keys) in [("TLSv1_2", "on"), ("TLSv1_3", "on"), ("TLSv1_3", "off")] {
        let command = ["python3", "-c", PROGRAM, path, version];
        let (out, facts) = watch(&["--keys", keys], &command);
        assert_eq!(out.stdout, b"refused\n".repeat(3), "{version}: {out:?}");
        let totals = &facts["totals"];
        assert_eq!(totals["requests"]["total"], 0, "{version} {keys}: {totals}");
        let failed = serde_json::json!({"tls-alert": 3});
        assert_eq!(totals["connections"]["failed"], failed, "{version} {keys}");
        assert_eq!(facts["findings"], serde_json::json!([]), "{version} {keys}");
        assert_eq!(facts["caveats"], serde_json::json!([]), "{version} {keys}");
    }
}
