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
