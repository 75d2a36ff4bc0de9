//! Tests of `open`.

use super::*;
use intact_wire::dns::{self, A, AAAA, Record, RecordData};

const MS: u64 = 1_000_000;

fn asker(pid: u32) -> Asker {
    Asker {
        owner: Some(Owner {
            pid,
            command: "test".into(),
        }),
        server: "192.0.2.53:53".parse().unwrap(),
    }
}

fn message(id: u16, name: &str, kind: u16, addresses: &[&str]) -> Message {
    let mut message = dns::parse(&dns::query(id, name, kind).unwrap()).unwrap();
    message.header.is_answer = !addresses.is_empty();
    message.records = addresses
        .iter()
        .map(|address| Record {
            name: name.to_owned(),
            ttl_s: u32::from(id),
            data: RecordData::Address(address.parse().unwrap()),
        })
        .collect();
    message
}

fn ended(open: &mut LookupsOpen, now: u64) -> Vec<Lookup> {
    let mut over = Vec::new();
    open.settle(now, false, |_, _| false, |lookup| over.push(lookup));
    over
}

#[test]
fn addresses_of_both_kinds_are_one_look_up_with_the_smaller_ttl() {
    let mut open = LookupsOpen::default();
    let one = asker(1);
    open.ask(&one, (7, 40), &message(40, "a.example", A, &[]), 0);
    open.ask(&one, (7, 30), &message(30, "a.example", AAAA, &[]), 0);
    let v4 = message(40, "a.example", A, &["192.0.2.1"]);
    open.answer(&one, (7, 40), &v4, 0, 3 * MS);
    assert!(ended(&mut open, 100 * MS).is_empty());
    let address = "192.0.2.1".parse().unwrap();
    let span = open.claim(1, address, 4 * MS).unwrap();
    assert_eq!((span.start, span.end), (Nanos(0), Nanos(3 * MS)));
    assert!(open.claim(1, address, 4 * MS).is_none());
    let v6 = message(30, "a.example", AAAA, &["2001:db8::1"]);
    open.answer(&one, (7, 30), &v6, 0, 5 * MS);
    assert!(ended(&mut open, 6 * MS).is_empty());
    let over = ended(&mut open, 30 * MS);
    assert_eq!(over.len(), 1);
    assert_eq!(over[0].ttl_s, Some(30));
    assert_eq!(over[0].span, Span::new(Nanos(0), Nanos(5 * MS)));
    let answer = over[0].answer.clone().unwrap().unwrap();
    assert_eq!(answer.len(), 2);
    assert!(
        open.claim(1, address, 6 * MS).is_none(),
        "claimed before it was over"
    );
}

#[test]
fn the_same_question_next_to_the_first_is_another_lookup_and_later_a_retry() {
    let mut open = LookupsOpen::default();
    let question = message(1, "a.example", A, &[]);
    open.ask(&asker(1), (7, 1), &question, 0);
    open.ask(&asker(1), (8, 1), &question, MS);
    open.ask(&asker(2), (9, 1), &question, MS);
    assert_eq!(open.open.len(), 3);
    open.ask(&asker(1), (10, 1), &question, 5_000 * MS);
    assert_eq!(open.open.len(), 3);
    let over = ended(&mut open, 20_000 * MS);
    assert_eq!(over.len(), 3);
    assert!(
        over.iter()
            .all(|lookup| lookup.answer == Some(Err("no answer".into())))
    );
}

#[test]
fn an_answer_to_a_question_that_was_not_seen_has_its_name() {
    let mut open = LookupsOpen::default();
    let one = asker(1);
    let v4 = message(1, "a.example", A, &["192.0.2.1"]);
    let v6 = message(2, "a.example", AAAA, &["2001:db8::1"]);
    open.answer(&one, (7, 1), &v4, MS, 3 * MS);
    open.answer(&one, (8, 2), &v6, 2 * MS, 4 * MS);
    let over = ended(&mut open, 90 * MS);
    assert_eq!(over.len(), 1);
    assert_eq!(over[0].span, Span::new(Nanos(MS), Nanos(4 * MS)));
}

#[test]
fn an_answer_that_was_not_read_has_a_time_and_no_content() {
    let mut open = LookupsOpen::default();
    open.ask(&asker(1), (7, 1), &message(1, "a.example", A, &[]), 0);
    open.lose(7, None, 2 * MS);
    open.lose(7, None, 3 * MS);
    let over = ended(&mut open, 90 * MS);
    assert_eq!(
        (over[0].answer.clone(), over[0].span.end),
        (None, Nanos(2 * MS))
    );
    open.ask(&asker(1), (7, 1), &message(1, "a.example", A, &[]), 0);
    open.lose(7, Some(UNREACHABLE), 2 * MS);
    let over = ended(&mut open, 90 * MS);
    assert_eq!(over[0].answer, Some(Err(UNREACHABLE.into())));
}
