//! Ways in which `watch --pid` can miss something: no requirement passes by what was not seen, even
//! one that every run meets.

use super::semantics::{Stage, text};
use super::service::{Service, followed, met, missing, opened_and_requests, script};
use crate::peers::{Peer, certificate, program};
use crate::program::Server;
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// What every run meets.
const GATES: [&str; 4] = [
    "requests <= 1000000",
    "reuse <= 100%",
    "avoidable <= 1000000",
    "failed <= 1000000",
];
const WHAT: &str = "losses of watch --pid";

/// Follows with the gates; which of them passed, and the document.
fn gated(words: &[&str], act: impl FnOnce()) -> ([bool; 4], Value) {
    let gates = GATES.iter().flat_map(|gate| ["--require", gate]);
    let words: Vec<&str> = words.iter().copied().chain(gates).collect();
    let (out, document) = followed(&words, |_| act());
    (met(&out, GATES), document)
}

/// A server with TLS and a client, both services.
fn with_tls(stage: &Stage, script: &Path) -> Option<(Service, Service)> {
    program("openssl", WHAT)?;
    let folder = stage.path("");
    certificate(&folder);
    let files = [folder.join("cert.pem"), folder.join("key.pem")];
    let server = Service::start(&[], script, "server", &[text(&files[0]), text(&files[1])]);
    Some((server, Service::start(&[], script, "client", &[])))
}

#[test]
fn keys_that_are_missing_or_a_handshake_from_before_pass_no_requirement() {
    let Some((stage, script)) = script(WHAT) else {
        return;
    };
    let Some((server, mut client)) = with_tls(&stage, &script) else {
        return;
    };
    let get = format!("get 4 {}", server.url("https"));
    let id = client.id();
    let (met, document) = gated(&["--pid", &id, "--keys", "off"], || _ = client.ask(&get));
    assert_eq!(met, [false; 4], "{document}");
    // the connection is there, and its handshake has passed
    let (met, document) = gated(&["--pid", &id], || _ = client.ask(&get));
    assert_eq!(met, [false; 4], "{document}");
    assert_eq!(document["totals"]["open_before"], 1, "{document}");
    // the same with its handshake: where no key is found, requests are inferred
    client.ask("close");
    let (met, document) = gated(&["--pid", &id], || _ = client.ask(&get));
    let is_read = document["totals"]["requests"]["total"] == 4;
    assert_eq!(met, [is_read; 4], "{document}");
}

#[test]
fn http2_from_before_passes_no_requirement() {
    let Some(curl) = program("curl", WHAT) else {
        return;
    };
    if script(WHAT).is_none() {
        return;
    }
    let server = Server::start(&[]);
    let url = format!("{}?[1-400]", server.plain());
    let client = Command::new(curl)
        .args(["-s", "--http2-prior-knowledge", "--rate", "20/s", &url])
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let client = Peer(client);
    let port: u16 = server.plain_port().parse().unwrap();
    // the table of the kernel: own address, peer, state 01
    let peer = format!(" 0100007F:{port:04X} 01 ");
    while !std::fs::read_to_string("/proc/net/tcp")
        .unwrap()
        .contains(&peer)
    {
        std::thread::sleep(Duration::from_millis(5));
    }
    // its first request has a header section that later ones refer to
    let id = client.0.id().to_string();
    let (met, document) = gated(&["--pid", &id, "--for", "500ms"], || {});
    assert_eq!(document["totals"]["open_before"], 1, "{document}");
    assert_eq!(met, [false; 4], "{document}");
}

#[test]
fn without_packets_or_in_another_namespace_no_requirement_passes() {
    let Some((_stage, script)) = script(WHAT) else {
        return;
    };
    let server = Service::start(&[], &script, "server", &[]);
    let mut client = Service::start(&[], &script, "client", &[]);
    let (get, id) = (format!("get 4 {}", server.url("http")), client.id());
    let words = ["--pid", &id, "--mode", "passthrough"];
    let (met, document) = gated(&words, || _ = client.ask(&get));
    assert_eq!(met, [false; 4], "{document}");
    client.ask("close");
    // and one of two services in another network namespace
    if program("unshare", WHAT).is_none() {
        return;
    }
    let elsewhere = Service::start(&["unshare", "--net"], &script, "elsewhere", &[]);
    let both = format!("{id},{}", elsewhere.id());
    let (met, document) = gated(&["--pid", &both], || _ = client.ask(&get));
    assert_eq!(met, [false; 4], "{document}");
}

/// Namespaces `a` and `c` with a router between them. Its way to `c` takes packets of 600 bytes
/// only, and `a` sends larger ones without DF, so that they arrive in fragments.
const NARROW: &str = r#"
for end in a b c; do ip netns add $1$end; ip -n $1$end link set lo up; done
ip -n $1a link add e0 type veth peer name e1 netns $1b
ip -n $1b link add e2 type veth peer name e3 netns $1c
ip -n $1a addr add 192.0.2.1/30 dev e0; ip -n $1b addr add 192.0.2.2/30 dev e1
ip -n $1b addr add 192.0.2.5/30 dev e2; ip -n $1c addr add 192.0.2.6/30 dev e3
ip -n $1b link set e2 mtu 600
for one in a:e0 b:e1 b:e2 c:e3; do ip -n $1${one%%:*} link set ${one#*:} up; done
ip netns exec $1b sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward'
ip netns exec $1a sh -c 'echo 1 > /proc/sys/net/ipv4/ip_no_pmtu_disc'
ip -n $1a route add default via 192.0.2.2
ip -n $1c route add default via 192.0.2.5
"#;

/// Removes the namespaces.
struct Narrow(String);

impl Narrow {
    fn make() -> Narrow {
        let name = format!("intact{}", std::process::id());
        let made = Command::new("sh")
            .args(["-ec", NARROW, "sh", &name])
            .status();
        assert!(made.unwrap().success());
        Narrow(name)
    }

    fn inside(&self, end: &str) -> [String; 4] {
        let name = format!("{}{end}", self.0);
        ["ip", "netns", "exec", &name].map(str::to_owned)
    }
}

impl Drop for Narrow {
    fn drop(&mut self) {
        for end in ["a", "b", "c"] {
            let name = format!("{}{end}", self.0);
            let _ = Command::new("ip").args(["netns", "del", &name]).status();
        }
    }
}

/// A count of IP in `/proc/PID/net/snmp`: a line of names, a line of values.
fn count_of_ip(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter(|line| line.starts_with("Ip:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut both = names.split(' ').zip(values.split(' '));
    let found = both.find(|(other, _)| *other == name).unwrap();
    found.1.parse().unwrap()
}

#[test]
fn large_segments_and_fragments_are_read_whole() {
    let Some((_stage, script)) = script(WHAT) else {
        return;
    };
    if program("ip", WHAT).is_none() {
        return;
    }
    // segments of 64 KiB, which the loopback device does not cut
    let server = Service::start(&[], &script, "server", &[]);
    let mut client = Service::start(&[], &script, "client", &[]);
    let get = format!("get 5 {}?3000000", server.url("http"));
    let (met, document) = gated(&["--pid", &client.id()], || _ = client.ask(&get));
    assert_eq!(opened_and_requests(&document), [1, 5], "{document}");
    assert_eq!((met, missing(&document)), ([true; 4], vec![]), "{document}");
    let narrow = Narrow::make();
    let [at_server, at_client] = ["a", "c"].map(|end| narrow.inside(end));
    let [at_server, at_client] =
        [&at_server, &at_client].map(|all| all.each_ref().map(|one| &**one));
    let server = Service::start(&at_server, &script, "server", &[]);
    let mut client = Service::start(&at_client, &script, "client", &[]);
    let url = server.url("http").replace("localhost", "192.0.2.1");
    let get = format!("get 5 {url}?60000");
    let (met, document) = gated(&["--pid", &client.id()], || _ = client.ask(&get));
    assert_eq!(opened_and_requests(&document), [1, 5], "{document}");
    assert_eq!((met, missing(&document)), ([true; 4], vec![]), "{document}");
    let counts = std::fs::read_to_string(format!("/proc/{}/net/snmp", client.id())).unwrap();
    assert!(
        count_of_ip(&counts, "ReasmOKs") > 50,
        "no fragment came: {counts}"
    );
}
