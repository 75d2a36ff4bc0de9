//! Both observers on bytes and holes of both directions: no panic, and every exchange that opens
//! ends once.

#![no_main]

use intact_wire::Side;
use intact_wire::exchange::Event;
use intact_wire::{h2, http1};
use libfuzzer_sys::fuzz_target;

fn count(event: Event<'_>, opened: &mut usize, done: &mut usize) {
    match event {
        Event::Opened(_) => *opened += 1,
        Event::Done(exchange, _) => *done += usize::from(exchange.request.is_some()),
        Event::Body { bytes, .. } => assert!(!bytes.is_empty()),
        Event::GoingAway { .. } => {}
    }
}

fuzz_target!(|data: (bool, Vec<(bool, Vec<u8>, u8)>)| {
    let (late, pieces) = data;
    let mut first = if late {
        http1::Http1Observer::mid_stream()
    } else {
        http1::Http1Observer::default()
    };
    let mut second = h2::Http2Observer::default();
    let (mut opened, mut done) = ([0; 2], [0; 2]);
    for (at, (client, bytes, hole)) in pieces.iter().enumerate() {
        let from = if *client { Side::Client } else { Side::Server };
        first.read(from, bytes, at as u64, |event| {
            count(event, &mut opened[0], &mut done[0])
        });
        second.read(from, bytes, at as u64, |event| {
            count(event, &mut opened[1], &mut done[1])
        });
        if *hole > 200 {
            first.lose(from, u64::from(*hole), at as u64, |event| {
                count(event, &mut opened[0], &mut done[0])
            });
            second.lose(from);
        }
    }
    for side in [Side::Client, Side::Server] {
        first.end(side, 0, |event| count(event, &mut opened[0], &mut done[0]));
        second.end(side, |event| count(event, &mut opened[1], &mut done[1]));
    }
    assert_eq!(opened, done);
    assert_eq!((first.outstanding(), second.outstanding()), (0, 0));
});
