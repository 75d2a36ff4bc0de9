//! Compares with tshark on the same captures: both must count the same requests on each stream.

use crate::reading;
use crate::skip::skip;
use intact_audit::KeyLog;
use std::collections::BTreeMap;
use std::process::Command;

/// Number of requests by the client's port, according to tshark.
fn by_tshark(file: &str, keys: Option<&str>) -> Option<BTreeMap<u16, usize>> {
    let mut command = Command::new("tshark");
    command.args([
        "-r",
        file,
        "-T",
        "fields",
        "-e",
        "tcp.srcport",
        "-e",
        "http.request.method",
        "-e",
        "http2.headers.method",
    ]);
    command.args(["-Y", "http.request or http2.headers.method"]);
    if let Some(keys) = keys {
        command.args(["-o", &format!("tls.keylog_file:{keys}")]);
    }
    let out = command.output().ok()?;
    let mut counts = BTreeMap::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let columns: Vec<&str> = line.split('\t').collect();
        let methods = columns[1..].iter().flat_map(|cell| cell.split(','));
        let requests = methods.filter(|method| !method.is_empty()).count();
        *counts.entry(columns[0].parse().unwrap()).or_default() += requests;
    }
    Some(counts)
}

#[test]
fn tshark_counts_the_same_requests_on_each_stream() {
    if Command::new("tshark").arg("-v").output().is_err() {
        skip(
            "tshark_counts_the_same_requests_on_each_stream",
            "tshark is not installed",
        );
        return;
    }
    for name in [
        "100-continue.pcap",
        "bro.org.pcap",
        "get_nosyn.pcap",
        "nginx-curl.pcap",
        "nginx-curl.pcapng",
        "one_http_stream_rst.pcap",
        "pipelined-requests.pcap",
        "tls-1.2-stream-keylog.pcap",
        "websocket.pcap",
    ] {
        let file = format!("captures/{name}");
        let (keys, key_file) = if name.contains("keylog") {
            let path = "captures/tls-1.2-stream-keylog.keys";
            (reading::keys(path), Some(reading::fixture(path)))
        } else {
            (KeyLog::default(), None)
        };
        let outcome = reading::file(&file, keys);
        let mut ours = BTreeMap::new();
        for connection in outcome.connections() {
            let requests = outcome.exchanges_on(connection.id).len();
            if requests > 0 {
                *ours.entry(connection.local.unwrap().port()).or_default() += requests;
            }
        }
        let path = reading::fixture(&file);
        let key_file = key_file.as_ref().map(|path| path.to_str().unwrap());
        let theirs = by_tshark(path.to_str().unwrap(), key_file).unwrap();
        assert_eq!(ours, theirs, "{name}");
    }
}
