//! Servers that stop accepting connections while they are checked.

use crate::limits::{read_head, respond};
use intact_check::{Check, CheckProgress, Config, ProbeKind, ServerProfile};
use intact_client::Clock;
use intact_ledger::server_profile::Outage;
use intact_ledger::{Event, Failure};
use std::io::{BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

/// A server whose listener ends at a request, with every connection on which a request follows.
#[derive(Clone)]
struct Stopping {
    address: SocketAddr,
    /// Requests that have a response before it ends.
    after: u32,
    requests: Arc<AtomicU32>,
    is_stopped: Arc<AtomicBool>,
}

impl Stopping {
    /// Starts it. It listens again after `away`, if present.
    fn start(after: u32, away: Option<Duration>) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Stopping {
            address: listener.local_addr().unwrap(),
            after,
            requests: Arc::default(),
            is_stopped: Arc::default(),
        };
        let url = format!("http://{}/", server.address);
        thread::spawn(move || {
            server.listen(listener);
            if let Some(away) = away {
                thread::sleep(away);
                server.is_stopped.store(false, Ordering::SeqCst);
                server.listen(TcpListener::bind(server.address).unwrap());
            }
        });
        url
    }

    /// Accepts connections until it is stopped.
    fn listen(&self, listener: TcpListener) {
        while let Ok((stream, _)) = listener.accept() {
            if self.is_stopped.load(Ordering::SeqCst) {
                // the end of this connection reports the end of the listener
                drop(listener);
                return;
            }
            let server = self.clone();
            thread::spawn(move || server.serve(stream));
        }
    }

    fn serve(&self, stream: TcpStream) {
        let mut reader = BufReader::new(stream);
        while let Ok(true) = read_head(&mut reader) {
            if self.requests.fetch_add(1, Ordering::SeqCst) == self.after {
                self.is_stopped.store(true, Ordering::SeqCst);
                let mut last = TcpStream::connect(self.address).unwrap();
                let _ = last.read(&mut [0]);
                return;
            }
            if self.is_stopped.load(Ordering::SeqCst) || respond(&mut reader).is_err() {
                return;
            }
        }
    }
}

/// Keeps the requests that were sent before the idle limits.
#[derive(Default)]
struct BeforeIdle(u32);

impl CheckProgress for BeforeIdle {
    fn event(&mut self, _: Event<'_>) {}
    fn stage(&mut self, stage: ProbeKind, profile: &ServerProfile) {
        if stage == ProbeKind::Idle {
            self.0 = profile.requests_sent;
        }
    }
    fn waiting(&mut self, _: Duration) {}
    fn stopped(&self) -> bool {
        false
    }
}

/// Checks a server. Returns the profile, and the requests that were sent before the idle limits.
fn check(after: u32, away: Option<Duration>) -> (ServerProfile, u32) {
    let mut config = Config::new(&Stopping::start(after, away)).unwrap();
    config.idle_limit = Duration::from_millis(500);
    config.timeout = Duration::from_secs(2);
    let check = Check::new(config).unwrap();
    let mut before = BeforeIdle::default();
    let profile = check.run(Clock::start(), None, &mut before).unwrap();
    (profile, before.0)
}

fn only_outage(profile: &ServerProfile) -> &Outage {
    let [outage] = profile.outages.as_slice() else {
        panic!("{:?}", profile.outages);
    };
    assert_eq!(outage.failure, Failure::Refused);
    outage
}

#[test]
fn a_server_that_stops_ends_the_check() {
    let (profile, _) = check(60, None);
    let outage = only_outage(&profile);
    assert!(outage.requests > 50, "{outage:?}");
    assert_eq!(
        (outage.requests, outage.over_at),
        (profile.requests_sent, None)
    );
    let tried = profile.requests.as_ref().unwrap();
    assert!(tried.answered > 0 && tried.failed.is_some(), "{tried:?}");
    assert!(tried.lasted.is_some_and(|lasted| outage.covers(lasted.end)));
    assert_eq!(profile.idle, None);
    let mut skipped = profile.skipped.iter();
    let idle = skipped.find(|one| one.probe == "idle limits").unwrap();
    assert!(
        idle.cut_off && idle.why.contains("stopped accepting"),
        "{idle:?}"
    );
}

#[test]
fn a_server_that_returns_is_measured_further() {
    let (profile, _) = check(60, Some(Duration::from_millis(400)));
    let outage = only_outage(&profile);
    assert!(outage.over_at.is_some());
    let tried = profile.requests.as_ref().unwrap();
    assert!(tried.lasted.is_some_and(|lasted| outage.covers(lasted.end)));
    let idle = profile.idle.unwrap();
    assert_eq!((idle.answers_others, idle.samples.len()), (Some(true), 4));
}

#[test]
fn a_refused_connection_is_no_evidence_that_an_idle_one_blocks() {
    let (profile, before_idle) = check(u32::MAX, None);
    assert_eq!(profile.idle.unwrap().answers_others, Some(true));
    // it responds on the first idle connection, and stops at the request on another
    let (profile, _) = check(before_idle + 1, None);
    assert_eq!(profile.idle.as_ref().unwrap().answers_others, None);
    assert_eq!(only_outage(&profile).over_at, None);
}
