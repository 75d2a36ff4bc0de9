//! How late the open loop starts requests, next to a bare absolute sleep on the same core, in
//! pairs.
//!
//! `cargo run --release -p intact-bench --example scheduling -- RATE SECONDS PAIRS CONNECTIONS`
//! docs/internals/open-loop.md has figures. Linux only.
#![allow(
    clippy::print_stdout,
    reason = "an example is a program: its output is its result"
)]

#[cfg(not(target_os = "linux"))]
fn main() {}

#[cfg(target_os = "linux")]
fn main() {
    linux::main();
}

#[cfg(target_os = "linux")]
mod linux {
    use intact_bench::{Bench, BenchObserver, Config, IoChoice, Length, Position};
    use intact_client::Clock;
    use intact_experiment::{Axes, Load, RequestRate};
    use intact_ledger::{Histogram, Row};
    use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
    use rustix::time::{ClockId, Timespec, clock_gettime};
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener};
    use std::num::NonZeroU64;
    use std::thread;
    use std::time::Duration;

    struct Nothing;

    impl BenchObserver for Nothing {
        fn rows(&mut self, _: &[Row]) {}
        fn tick(&mut self, _: Position) {}
    }

    pub(super) fn main() {
        let mut numbers = std::env::args().skip(1).map(|word| word.parse::<u32>());
        let mut next = |otherwise| numbers.next().and_then(Result::ok).unwrap_or(otherwise);
        let (rate, seconds, pairs, connections) = (next(500), next(3), next(9), next(10));
        pin(1);
        let address = server();
        pin(0);
        println!("{rate}/s for {seconds} s on {connections} connections; late by, in us");
        println!("pair    bare p50      p99    open loop p50      p99    ratio of p99");
        let mut ratios = Vec::new();
        for pair in 1..=pairs {
            let times: [Histogram; 2] = match pair % 2 {
                0 => [
                    bare(rate, seconds),
                    open_loop(address, rate, seconds, connections),
                ],
                _ => {
                    let open = open_loop(address, rate, seconds, connections);
                    [bare(rate, seconds), open]
                }
            };
            let us = |nth: usize, q| times[nth].quantile(q).unwrap_or(0.0) / 1e3;
            let ratio = us(1, 0.99) / us(0, 0.99);
            ratios.push(ratio);
            println!(
                "{pair:4} {:11.1} {:8.1} {:16.1} {:8.1} {ratio:15.2}",
                us(0, 0.5),
                us(0, 0.99),
                us(1, 0.5),
                us(1, 0.99)
            );
        }
        ratios.sort_by(f64::total_cmp);
        println!("median ratio {:.2}", ratios[ratios.len() / 2]);
    }

    fn pin(core: usize) {
        let mut set = CpuSet::new();
        set.set(core);
        // without a second core everything shares the first
        let _ = sched_setaffinity(None, &set);
    }

    fn server() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port on loopback");
        let address = listener.local_addr().expect("its address");
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut buffer = [0; 4096];
                    // requests are small and come one at a time: a read is a request
                    while stream.read(&mut buffer).is_ok_and(|count| count > 0) {
                        let response = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
                        if stream.write_all(response).is_err() {
                            return;
                        }
                    }
                });
            }
        });
        address
    }

    /// Sleeps until each moment of the schedule, and does nothing else.
    fn bare(rate: u32, seconds: u32) -> Histogram {
        let sleeper = thread::spawn(move || {
            // without it the sleeps end later
            let _ = set_current_timer_slack(NonZeroU64::new(1));
            let now = || nanos(clock_gettime(ClockId::Monotonic));
            let start = now() + 5_000_000;
            let mut late = Histogram::new();
            for nth in 0..u64::from(rate * seconds) {
                let due = start + nth * 1_000_000_000 / u64::from(rate);
                let until = Timespec {
                    tv_sec: (due / 1_000_000_000) as i64,
                    tv_nsec: (due % 1_000_000_000) as _,
                };
                let slept = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &until);
                if slept.is_ok() {
                    late.record(now().saturating_sub(due));
                }
            }
            late
        });
        sleeper.join().expect("the sleeper does not panic")
    }

    fn nanos(time: Timespec) -> u64 {
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    fn open_loop(address: SocketAddr, rate: u32, seconds: u32, connections: u32) -> Histogram {
        let axes = Axes {
            concurrency: vec![connections],
            load: Load {
                rate: vec![RequestRate::constant(rate.into())],
                ..Load::default()
            },
            ..Axes::default()
        };
        let config = Config {
            length: Length::Time(Duration::from_secs(seconds.into())),
            rounds: Some(1),
            seed: 1,
            io: IoChoice::Epoll,
            ..Config::new(format!("http://{address}/"), axes)
        };
        let bench = Bench::new(config).expect("the configuration is complete");
        let tally = bench.run(Clock::start(), &mut Nothing).expect("it runs");
        let mut late = Histogram::new();
        let groups = tally.cells.iter().flat_map(|cell| &cell.groups);
        for times in groups.filter_map(|group| group.open_loop.as_deref()) {
            late.merge(&times.scheduling_error);
        }
        late
    }
}
