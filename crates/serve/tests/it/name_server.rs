//! The name server on the wire: what it answers over UDP and TCP, what it refuses, and its counts.

use crate::rig::{Rig, is_timeout};
use intact_serve::{Config, Delay, LookupFault, NameServerConfig};
use intact_wire::dns::{self, Message};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

fn config() -> NameServerConfig {
    NameServerConfig {
        listen: SocketAddr::from(([127, 0, 0, 1], 0)),
        names: vec!["api.test=192.0.2.7,2001:db8::7".parse().unwrap()],
        usual: [127, 0, 0, 3].into(),
        ttl_s: 7,
        delay: Delay::default(),
        rate_limit: None,
        faults: "".parse().unwrap(),
    }
}

fn rig(names: NameServerConfig) -> Rig {
    Rig::start(Config {
        name_server: Some(names),
        ..Config::default()
    })
}

/// A socket whose reads end after a while: a lower bound of the time in which no response comes.
fn socket(rig: &Rig) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.connect(rig.names()).unwrap();
    socket
}

fn receive(socket: &UdpSocket, patience: Duration) -> Option<Message> {
    socket.set_read_timeout(Some(patience)).unwrap();
    let mut buffer = [0; 2048];
    match socket.recv(&mut buffer) {
        Ok(count) => Some(dns::parse(&buffer[..count]).unwrap()),
        Err(error) => {
            assert!(is_timeout(&error), "{error}");
            None
        }
    }
}

fn ask(socket: &UdpSocket, name: &str, kind: u16) -> Message {
    socket.send(&dns::query(1, name, kind).unwrap()).unwrap();
    receive(socket, Duration::from_secs(20)).unwrap()
}

#[test]
fn names_have_their_addresses_over_udp_and_tcp_and_others_do_not_exist() {
    let rig = rig(config());
    let socket = socket(&rig);
    let v4 = ask(&socket, "API.test", dns::A);
    assert!(v4.addresses().eq([IpAddr::from([192, 0, 2, 7])]));
    assert_eq!(v4.ttl_s(), Some(7));
    let v6 = ask(&socket, "api.test", dns::AAAA);
    assert!(
        v6.addresses()
            .eq(["2001:db8::7".parse::<IpAddr>().unwrap()])
    );
    assert_eq!(ask(&socket, "apt.test", dns::A).error(), Some("NXDOMAIN"));
    let mut stream = TcpStream::connect(rig.names()).unwrap();
    for id in [7, 8] {
        let query = dns::query(id, "api.test", dns::A).unwrap();
        stream
            .write_all(&(query.len() as u16).to_be_bytes())
            .unwrap();
        stream.write_all(&query).unwrap();
        let mut length = [0; 2];
        stream.read_exact(&mut length).unwrap();
        let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut bytes).unwrap();
        let read = dns::parse(&bytes).unwrap();
        assert_eq!((read.header.id, read.addresses().count()), (id, 1));
    }
    let lookups = rig.end().lookups.unwrap();
    assert_eq!(lookups.total, 5);
    assert_eq!(
        lookups.failed.into_iter().collect::<Vec<_>>(),
        [(LookupFault::Nxdomain, 1)]
    );
}

#[test]
fn beyond_the_limit_queries_fail_as_configured() {
    let rig = rig(NameServerConfig {
        rate_limit: Some("3/s:servfail".parse().unwrap()),
        // every name is there
        names: Vec::new(),
        ..config()
    });
    let socket = socket(&rig);
    let errors: Vec<_> = (0..50)
        .map(|_| ask(&socket, "any.test", dns::A))
        .map(|read| (read.error(), read.addresses().next()))
        .collect();
    let here = Some(IpAddr::from([127, 0, 0, 3]));
    assert_eq!(errors[..3], [(None, here); 3]);
    let failed = errors
        .iter()
        .filter(|one| **one == (Some("SERVFAIL"), None));
    let failed = failed.count() as u64;
    let lookups = rig.end().lookups.unwrap();
    assert_eq!(
        (lookups.total, lookups.failed[&LookupFault::Servfail]),
        (50, failed)
    );
    assert!(failed > 0);
}

#[test]
fn a_response_is_late_or_does_not_come() {
    let late = rig(NameServerConfig {
        delay: "200ms".parse().unwrap(),
        ..config()
    });
    let begun = Instant::now();
    ask(&socket(&late), "api.test", dns::A);
    assert!(begun.elapsed() >= Duration::from_millis(200));

    let silent = rig(NameServerConfig {
        faults: "timeout".parse().unwrap(),
        ..config()
    });
    let socket = socket(&silent);
    socket
        .send(&dns::query(1, "api.test", dns::A).unwrap())
        .unwrap();
    assert_eq!(receive(&socket, Duration::from_millis(150)), None);
    let lookups = silent.end().lookups.unwrap();
    assert_eq!(lookups.failed[&LookupFault::Timeout], 1);
}

#[test]
fn what_is_no_query_gets_no_response() {
    let rig = rig(config());
    let socket = socket(&rig);
    let response = dns::respond(
        &dns::query(1, "api.test", dns::A).unwrap(),
        dns::ResponseContent::Error(dns::REFUSED),
        dns::MAX_UDP,
    );
    for bytes in [&b""[..], b"x", &[0xff; 600], &response.unwrap()] {
        socket.send(bytes).unwrap();
    }
    // the first that is one is the first that is answered
    assert_eq!(ask(&socket, "api.test", dns::A).records.len(), 1);
    assert_eq!(rig.end().lookups.unwrap().total, 1);
}
