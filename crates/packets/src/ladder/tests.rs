//! Tests of `ladder`.

use super::*;

#[test]
fn records_are_named_across_any_split() {
    let mut bytes = vec![22, 3, 1, 0, 8, 1, 0, 0, 0, 2, 0, 0, 0];
    bytes.extend([20, 3, 3, 0, 1, 1, 23, 3, 3, 0, 2, 9, 9]);
    let wanted = [
        "ClientHello",
        "ServerHello",
        "ChangeCipherSpec",
        "1 encrypted record",
    ];
    for at in 0..=bytes.len() {
        let (mut records, mut names) = (Records::default(), Vec::new());
        records.read(&bytes[..at], &mut names);
        records.read(&bytes[at..], &mut names);
        assert_eq!(names, wanted, "{at}");
    }
}

#[test]
fn frames_are_named_across_any_split_after_the_preface() {
    let mut bytes = PREFACE.to_vec();
    bytes.extend([0, 0, 0, 4, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 5, 9]);
    let wanted = ["preface", "SETTINGS ACK", "DATA[5] end"];
    for at in 9..=bytes.len() {
        let (mut frames, mut names) = (Frames::default(), Vec::new());
        frames.read(&bytes[..at], &mut names);
        frames.read(&bytes[at..], &mut names);
        assert_eq!(names, wanted, "{at}");
    }
}

#[test]
fn packets_of_a_datagram_are_named_by_their_types() {
    let long = |first: u8| [first, 0, 0, 0, 1, 0, 0].to_vec();
    // an empty token, then a number of one byte and its packet
    let initial = [long(0xc0), vec![0, 1, 9]].concat();
    let early = [long(0xd0), vec![1, 9]].concat();
    let handshake = [long(0xe0), vec![1, 9]].concat();
    let short = vec![0x40, 1, 2, 3];
    let named = |parts: &[&Vec<u8>]| {
        let bytes: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
        packet_types(&bytes)
    };
    assert_eq!(named(&[&initial, &early]), ["Initial", "0-RTT"]);
    let both = [&initial, &handshake, &handshake, &short];
    assert_eq!(named(&both), ["Initial", "2 Handshake", "1-RTT"]);
    assert_eq!(named(&[&long(0xf0)]), ["Retry"]);
    let negotiation = vec![0x80, 0, 0, 0, 0, 0, 0];
    assert_eq!(named(&[&negotiation]), ["Version Negotiation"]);
    // a peer may repeat types without end
    let many: Vec<&Vec<u8>> = [&early, &handshake].into_iter().cycle().take(99).collect();
    assert_eq!(named(&many).len(), MAX_NAMES);
}
