//! Servers that close connections with error responses, and announcements of the request limit.

use crate::limits::{NullObserver, read_head, server};
use intact_check::{Check, Config, ServerProfile};
use intact_client::Clock;
use std::io::{BufReader, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

fn checked(serve: fn(TcpStream)) -> ServerProfile {
    let mut config = Config::new(&server(serve)).unwrap();
    config.idle_limit = Duration::from_millis(500);
    let check = Check::new(config).unwrap();
    check.run(Clock::start(), None, &mut NullObserver).unwrap()
}

/// Responds 50 times. Then it responds 429, and closes.
fn serve_50(stream: TcpStream) {
    static REQUESTS: AtomicU32 = AtomicU32::new(0);
    let mut reader = BufReader::new(stream);
    while let Ok(true) = read_head(&mut reader) {
        let is_over = REQUESTS.fetch_add(1, Ordering::Relaxed) >= 50;
        let response: &[u8] = match is_over {
            true => b"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            false => b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        };
        if reader.get_mut().write_all(response).is_err() || is_over {
            return;
        }
    }
}

#[test]
fn an_end_with_an_error_response_is_recorded_with_its_status() {
    let profile = checked(serve_50);
    let tried = profile.requests.as_ref().unwrap();
    let error = tried.ended.unwrap().error.unwrap();
    assert_eq!(error.status, 429);
    // the server counts the preface of HTTP/2 as a request
    assert!((45..=50).contains(&error.requests), "{error:?}");
    let idle = profile.idle.as_ref().unwrap();
    assert!(!idle.samples.is_empty());
    for sample in &idle.samples {
        assert_eq!(sample.ended.unwrap().error.unwrap().status, 429);
    }
    // no idle limit and no age to look for
    assert_eq!((idle.between, profile.age), (None, None));
    assert!(profile.race.is_none());
}

/// Announces the requests that are left of 100.
fn serve_100(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    let mut left = 100;
    while let Ok(true) = read_head(&mut reader) {
        left -= 1;
        let response = format!(
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: timeout=5, max={left}\r\n\r\n"
        );
        if left == 0 || reader.get_mut().write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

/// Announces the same limit in each response.
fn serve_with_a_constant(stream: TcpStream) {
    let mut reader = BufReader::new(stream);
    let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nKeep-Alive: max=1000\r\n\r\n";
    while let Ok(true) = read_head(&mut reader) {
        if reader.get_mut().write_all(response).is_err() {
            return;
        }
    }
}

#[test]
fn a_max_that_counts_down_leaves_out_the_first_request() {
    let announced = |serve| checked(serve).requests.unwrap().announced;
    assert_eq!(announced(serve_100), Some(100));
    assert_eq!(announced(serve_with_a_constant), Some(1_000));
}
