//! The ways to a server: proxies, Unix sockets, other addresses, address families.

use crate::rig::{Counts, HELLO, config, request, run, send, server};
use intact_bench::Bench;
use intact_client::Family;
use intact_ledger::Protocol;
#[cfg(unix)]
use intact_ledger::Row;
#[cfg(unix)]
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;

fn keeps_alive() -> (std::net::SocketAddr, Arc<Counts>) {
    server(Box::new(|mut stream, _, counts| {
        while request(&mut stream, counts).is_some() {
            send(&mut stream, HELLO);
        }
    }))
}

#[test]
fn a_plain_request_goes_to_the_proxy_in_absolute_form() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let seen = heads.clone();
    let (proxy, counts) = server(Box::new(move |mut stream, _, counts| {
        while let Some(head) = request(&mut stream, counts) {
            seen.lock().unwrap().push(head);
            send(&mut stream, HELLO);
        }
    }));
    let mut config = config("http://intact.example/path");
    config.proxy = Some(format!("http://{proxy}"));
    let (ok, failed) = run(config).outcomes();
    assert_eq!(failed, []);
    assert_eq!(ok, counts.requests.load(Ordering::SeqCst));
    for head in heads.lock().unwrap().iter() {
        assert!(
            head.starts_with("GET http://intact.example/path HTTP/1.1\r\n"),
            "{head}"
        );
        assert!(head.contains("Host: intact.example\r\n"), "{head}");
    }
}

#[test]
fn http_2_goes_through_a_tunnel_and_a_proxy_that_refuses_it_is_named() {
    let (origin, _) = keeps_alive();
    let asked = Arc::new(AtomicU64::new(0));
    let tunnels = asked.clone();
    let (proxy, _) = server(Box::new(move |mut stream, _, counts| {
        let Some(head) = request(&mut stream, counts) else {
            return;
        };
        assert!(head.starts_with("CONNECT "), "{head}");
        tunnels.fetch_add(1, Ordering::SeqCst);
        send(
            &mut stream,
            b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n",
        );
    }));
    let mut config = config(&format!("http://{origin}/"));
    config.axes.http = vec![Protocol::Http2];
    config.proxy = Some(format!("http://{proxy}"));
    let (ok, failed) = run(config).outcomes();
    assert_eq!(ok, 0);
    assert_eq!(failed[0].0, "proxy");
    assert_eq!(failed[0].1, asked.load(Ordering::SeqCst));
}

#[cfg(unix)]
#[test]
fn a_unix_socket_carries_the_same_exchanges() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let counts = Arc::new(Counts::default());
    let seen = counts.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let seen = seen.clone();
            seen.connections.fetch_add(1, Ordering::SeqCst);
            thread::spawn(move || -> io::Result<()> {
                let mut head = Vec::new();
                let mut byte = [0];
                loop {
                    stream.read_exact(&mut byte)?;
                    head.push(byte[0]);
                    if head.ends_with(b"\r\n\r\n") {
                        head.clear();
                        seen.requests.fetch_add(1, Ordering::SeqCst);
                        stream.write_all(HELLO)?;
                    }
                }
            });
        }
    });
    let mut config = config("http://intact.example/");
    config.unix_socket = Some(path);
    let record = run(config);
    let (ok, failed) = record.outcomes();
    assert_eq!(failed, []);
    assert_eq!(ok, counts.requests.load(Ordering::SeqCst));
    assert_eq!(record.opened(), counts.connections.load(Ordering::SeqCst));
    assert!(record.rows.iter().any(
        |row| matches!(row, Row::Opened(one) if one.transport == intact_ledger::Transport::Unix)
    ));
}

#[test]
fn a_name_is_resolved_and_a_host_replaced_as_asked() {
    let (address, counts) = keeps_alive();
    let mut resolved = config("http://intact.example:8080/");
    resolved.route.resolve = vec![format!("intact.example:8080:{}", address.ip())];
    resolved.route.connect_to = vec![format!(
        "intact.example:8080:intact.example:{}",
        address.port()
    )];
    // --connect-to gives the port, --resolve would give the address of the old one
    resolved.route.resolve.push(format!(
        "intact.example:{}:{}",
        address.port(),
        address.ip()
    ));
    let (ok, failed) = run(resolved).outcomes();
    assert_eq!(failed, []);
    assert_eq!(ok, counts.requests.load(Ordering::SeqCst));
}

#[test]
fn a_family_is_kept_to() {
    let v6 = TcpListener::bind("[::1]:0").unwrap();
    let port = v6.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in v6.incoming() {
            let Ok(mut stream) = stream else { return };
            thread::spawn(move || {
                let counts = Counts::default();
                while request(&mut stream, &counts).is_some() {
                    send(&mut stream, HELLO);
                }
            });
        }
    });
    assert!(TcpStream::connect(("::1", port)).is_ok());
    // no other test listens on 127.9.9.9; 127.0.0.1 may have a listener on the same port
    let mut six = config(&format!("http://intact.example:{port}/"));
    six.route.resolve = vec![format!("intact.example:{port}:127.9.9.9,[::1]")];
    six.route.family = Family::V6;
    let (ok, failed) = run(six.clone()).outcomes();
    assert!(ok > 0 && failed.is_empty(), "{failed:?}");
    six.route.family = Family::V4;
    let (ok, failed) = run(six).outcomes();
    assert_eq!(ok, 0);
    assert_eq!(failed[0].0, "refused");
}

#[test]
fn an_option_that_no_variant_can_use_is_refused_and_one_that_some_can_use_is_not() {
    let refused = |change: fn(&mut intact_experiment::Axes)| {
        let mut config = config("http://127.0.0.1:9/");
        change(&mut config.axes);
        match Bench::new(config) {
            Err(error) => error.to_string(),
            Ok(bench) => format!("{} variants", bench.variants().len()),
        }
    };
    assert!(refused(|axes| axes.streams = vec![32]).starts_with("--streams: "));
    assert!(refused(|axes| axes.streams = vec![1, 1]).starts_with("--streams: "));
    assert!(refused(|axes| axes.resume = vec![false, true]).starts_with("--resume: "));
    assert!(refused(|axes| axes.resume = vec![true]).starts_with("--resume: "));
    // HTTP/1.1 runs once
    let partly = |axes: &mut intact_experiment::Axes| {
        axes.http = vec![Protocol::Http11, Protocol::Http2];
        axes.streams = vec![1, 8];
    };
    assert_eq!(refused(partly), "3 variants");
}
