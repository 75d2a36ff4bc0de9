//! Responses that a program does not read to their end: pools that stand still, and streams that
//! are left before their last chunk. Each program runs with the fault, and without it.

use super::broken_reuse::finds;
use super::watch;
use crate::peers::program;

/// Four requests whose client has the response and does not read its body, or does. Then nothing is
/// sent until the program ends. A large body stays in the socket, a small one in the client.
const HOLDING: &str = "
import http.client, socket, sys, threading, time
server = socket.create_server(('127.0.0.1', 0))
body = b'x' * (20 if sys.argv[1] == 'small' else 100000)
head = b'HTTP/1.1 200 OK\\r\\nContent-Length: %d\\r\\n\\r\\n' % len(body)
def serve(s):
    while s.recv(65536): s.sendall(head + body)
def accept():
    while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
port, held = server.getsockname()[1], []
c = http.client.HTTPConnection('127.0.0.1', port)
for _ in range(4):
    c.request('GET', '/')
    r = c.getresponse()
    if sys.argv[1] == 'reads': r.read()
    else:
        held.append((c, r))
        c = http.client.HTTPConnection('127.0.0.1', port)
time.sleep(3.5)
";

#[test]
fn a_pool_of_unread_responses_stands_still_and_one_that_reads_does_not() {
    if program("python3", "watch unread responses").is_none() {
        return;
    }
    let rule = "body-not-drained";
    let found = finds(rule, &[], &["python3", "-c", HOLDING], ["large", "reads"]);
    assert_eq!(found["severity"], "warning", "{found}");
    let values = &found["values"];
    assert_eq!(values["unread"], 4, "{found}");
    assert!(values["rest_bytes"].as_u64() > Some(4 * 50_000), "{found}");
    assert!(values.get("standstill_ms").is_some(), "{found}");
}

#[test]
fn connections_that_are_held_without_a_sign_why_have_both_causes() {
    if program("python3", "watch held connections").is_none() {
        return;
    }
    let rule = "leaked-connections";
    let found = finds(rule, &[], &["python3", "-c", HOLDING], ["small", "reads"]);
    assert_eq!(found["severity"], "warning", "{found}");
    assert_eq!(found["values"]["held"], 4, "{found}");
}

/// Five streams that end 30 ms after their last event, which the client leaves or reads to the end.
const STREAMS: &str = "
import http.client, socket, sys, threading, time
server = socket.create_server(('127.0.0.1', 0))
def serve(s):
    try:
        while s.recv(65536):
            s.sendall(b'HTTP/1.1 200 OK\\r\\nContent-Type: text/event-stream\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n')
            for n in range(10):
                time.sleep(0.02)
                s.sendall(b'9\\r\\ndata: %d\\n\\n\\r\\n' % n)
            time.sleep(0.03)
            s.sendall(b'0\\r\\n\\r\\n')
    except OSError: pass
def accept():
    while True: threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
threading.Thread(target=accept, daemon=True).start()
c = http.client.HTTPConnection('127.0.0.1', server.getsockname()[1])
for _ in range(5):
    c.request('GET', '/events')
    r = c.getresponse()
    for line in r:
        if line == b'data: 9\\n': break
    if sys.argv[1] == 'leaves': c.close()
    else: r.read()
";

#[test]
fn a_stream_that_is_left_before_its_end_is_judged_and_named() {
    if program("python3", "watch streams").is_none() {
        return;
    }
    let command = ["python3", "-c", STREAMS];
    let found = finds("body-not-drained", &[], &command, ["leaves", "reads"]);
    assert_eq!(found["severity"], "warning", "{found}");
    assert!(found["values"]["left_bytes"].as_u64() > Some(80), "{found}");
    let options = ["--require", "avoidable == 0"];
    let (out, document) = watch(&options, &[&command[..], &["leaves"]].concat());
    assert_eq!(out.status.code(), Some(1), "{out:?}");
    assert_eq!(document["totals"]["avoidable"], 4, "{document}");
    let verdict = document["verdict"].to_string();
    assert!(verdict.contains("the client left"), "{verdict}");
    assert!(!verdict.contains("got a complete response"), "{verdict}");
}
