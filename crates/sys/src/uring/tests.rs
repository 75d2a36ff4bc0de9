//! The ring against sockets on loopback. Where io_uring is forbidden, the tests print that and
//! pass.

use super::*;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Instant;

const SECOND: Duration = Duration::from_secs(1);
const SMALL: Sizes = Sizes {
    completions: 16,
    buffers: 4,
    buffer: 100,
};

#[allow(
    clippy::print_stdout,
    reason = "the output of a test says that it was skipped"
)]
fn ring(sizes: Sizes) -> Option<Ring> {
    match Ring::new(sizes) {
        Ok(ring) => Some(ring),
        Err(reason) => {
            println!("skipped: {reason}");
            None
        }
    }
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let sender = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (sender, listener.accept().unwrap().0)
}

/// The next completion, waiting for it.
fn next(ring: &mut Ring) -> Completion {
    let begun = Instant::now();
    loop {
        if let Some(completion) = ring.next_completion() {
            return completion;
        }
        assert!(begun.elapsed() < 10 * SECOND, "nothing happened");
        ring.wait(SECOND, None).unwrap();
    }
}

#[test]
fn data_comes_with_the_time_of_its_arrival_and_then_the_end() {
    let Some(mut ring) = ring(SMALL) else { return };
    let (mut sender, receiver) = pair();
    crate::timestamps::enable(&receiver).unwrap();
    ring.receive(&receiver, 7).unwrap();
    // the kernel switches timestamps on a moment after the option is set, so the first may be
    // missing
    let mut timestamps = 0;
    let begun = Instant::now();
    while timestamps < 3 && begun.elapsed() < 10 * SECOND {
        let now = || std::time::UNIX_EPOCH.elapsed().unwrap().as_nanos() as u64;
        let before = now();
        sender.write_all(b"hello").unwrap();
        let continues = true;
        assert_eq!(next(&mut ring), Completion::Received { key: 7, continues });
        let (bytes, at) = ring.payload().unwrap();
        assert_eq!(bytes, b"hello");
        if let Some(at) = at {
            assert!((before..=now()).contains(&at));
            timestamps += 1;
        }
    }
    assert_eq!(timestamps, 3);
    sender.shutdown(Shutdown::Write).unwrap();
    assert_eq!(next(&mut ring), Completion::End { key: 7 });
    assert_eq!(ring.in_flight.len() + ring.receives, 0);
}

#[test]
fn more_data_than_the_buffers_hold_arrives_in_order_and_complete() {
    let Some(mut ring) = ring(SMALL) else { return };
    let (mut sender, receiver) = pair();
    let sent: Vec<u8> = (0..100_000u32).map(|nth| (nth % 251) as u8).collect();
    let copy = sent.clone();
    let writer = std::thread::spawn(move || sender.write_all(&copy).unwrap());
    ring.receive(&receiver, 1).unwrap();
    let mut received = Vec::new();
    loop {
        match next(&mut ring) {
            Completion::Received { continues, .. } => {
                received.extend_from_slice(ring.payload().unwrap().0);
                if !continues {
                    ring.resume(&receiver, 1).unwrap();
                }
            }
            Completion::Paused { .. } => ring.resume(&receiver, 1).unwrap(),
            Completion::End { .. } => break,
            other => panic!("{other:?}"),
        }
    }
    writer.join().unwrap();
    assert!(received == sent);
}

#[test]
fn a_reset_is_an_error() {
    let Some(mut ring) = ring(SMALL) else { return };
    let (mut sender, mut receiver) = pair();
    ring.receive(&sender, 3).unwrap();
    ring.wait(Duration::ZERO, None).unwrap();
    // data that the peer has not read makes its close a reset
    sender.write_all(b"unread").unwrap();
    receiver.read_exact(&mut [0]).unwrap();
    drop(receiver);
    let error = libc::ECONNRESET;
    assert_eq!(next(&mut ring), Completion::Failed { key: 3, error });
}

#[test]
fn a_forgotten_descriptor_is_closed_at_once_and_its_number_is_free() {
    let Some(mut ring) = ring(SMALL) else { return };
    let (mut sender, receiver) = pair();
    // not yet submitted
    ring.receive(&receiver, 4).unwrap();
    ring.forget(4).unwrap();
    drop(receiver);
    let (other_sender, other) = pair();
    ring.receive(&other, 5).unwrap();
    ring.wait(Duration::from_millis(10), None).unwrap();
    sender
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    assert_eq!(sender.read(&mut [0]).unwrap(), 0, "the FIN");
    (&other_sender).write_all(b"x").unwrap();
    assert!(matches!(
        next(&mut ring),
        Completion::Received { key: 5, .. }
    ));
}

#[test]
fn a_poll_reports_a_descriptor_once() {
    let Some(mut ring) = ring(SMALL) else { return };
    let (mut writer, reader) = UnixStream::pair().unwrap();
    let descriptor = reader.as_raw_fd();
    ring.poll(descriptor, libc::POLLIN as u32, 9).unwrap();
    ring.wait(Duration::from_millis(1), None).unwrap();
    assert!(ring.is_polling(9) && ring.next_completion().is_none());
    writer.write_all(b"x").unwrap();
    let events = libc::POLLIN as u32;
    assert_eq!(next(&mut ring), Completion::Ready { key: 9, events });
    assert!(!ring.is_polling(9));
}

#[test]
fn a_ring_ends_with_receives_in_flight() {
    let Some(mut ring) = ring(SMALL) else { return };
    let (sender, receiver) = pair();
    ring.receive(&receiver, 1).unwrap();
    ring.poll(receiver.as_raw_fd(), libc::POLLOUT as u32, 2)
        .unwrap();
    ring.wait(Duration::ZERO, None).unwrap();
    assert!(ring.cancel_all());
    assert_eq!(ring.receives, 0);
    drop((ring, sender, receiver));
}

#[test]
fn a_wait_ends_with_its_limit_or_with_the_batch() {
    let Some(mut ring) = ring(SMALL) else { return };
    let begun = Instant::now();
    ring.wait(Duration::from_millis(20), None).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(20));
    if !ring.can_batch() {
        return;
    }
    let (mut sender, receiver) = pair();
    ring.receive(&receiver, 1).unwrap();
    sender.write_all(b"x").unwrap();
    let batch = Batch {
        completions: 2,
        pause: Duration::from_millis(30),
    };
    let begun = Instant::now();
    ring.wait(SECOND, Some(batch)).unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(30));
    assert!(ring.next_completion().is_some());
}

/// Data and the end after it, whatever the order in which the kernel and the receive come to them.
fn data_and_end(nth: u64, is_reset: bool) {
    let Some(mut ring) = ring(SMALL) else { return };
    let (mut sender, receiver) = pair();
    crate::timestamps::enable(&receiver).unwrap();
    if is_reset {
        let linger = Some(Duration::ZERO);
        socket2::SockRef::from(&sender).set_linger(linger).unwrap();
    }
    let pause = Duration::from_micros(nth % 50);
    let writer = std::thread::spawn(move || {
        sender.write_all(b"data").unwrap();
        std::thread::sleep(pause);
    });
    std::thread::sleep(Duration::from_micros(nth % 200));
    ring.receive(&receiver, 3).unwrap();
    let mut received = Vec::new();
    let end = loop {
        match next(&mut ring) {
            Completion::Received { continues, .. } => {
                received.extend_from_slice(ring.payload().unwrap().0);
                assert!(continues);
            }
            Completion::Paused { .. } => ring.resume(&receiver, 3).unwrap(),
            end => break end,
        }
    };
    writer.join().unwrap();
    match is_reset {
        // a RST may discard data that was not read
        true => assert!(received.is_empty() || received == b"data"),
        false => assert_eq!(received, b"data"),
    }
    let error = libc::ECONNRESET;
    match is_reset {
        true => assert_eq!(end, Completion::Failed { key: 3, error }),
        false => assert_eq!(end, Completion::End { key: 3 }),
    }
}

#[test]
fn no_end_after_data_is_missed() {
    for nth in 0..300 {
        data_and_end(nth, nth % 2 == 0);
    }
}
