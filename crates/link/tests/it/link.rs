//! What a link does to packets.

use crate::stage::{Program, link as start, numbers};
use intact_link::{Blocked, LinkChange, LinkEnd};
use std::time::Duration;

#[test]
fn a_connect_takes_at_least_the_round_trip_and_so_says_the_probe() {
    let Some(link) = start("rtt=30ms", "round trip") else {
        return;
    };
    assert!(
        link.facts().round_trip.min_ms >= 30.0,
        "{:?}",
        link.facts().round_trip
    );
    let times = numbers(&link, LinkEnd::Client, &["connect", "198.18.0.2:9", "10"]);
    assert_eq!(times.len(), 10);
    assert!(times.iter().all(|us| *us >= 30_000), "{times:?}");
    let account = link.account().unwrap();
    assert_eq!((account.up.arrived, account.down.delivered), (10, 10));
    assert_eq!(account.up.failed + account.down.failed, 0);
}

#[test]
fn ipv6_is_as_far_away() {
    let Some(link) = start("rtt=20ms", "IPv6") else {
        return;
    };
    if !link.facts().v6 {
        return;
    }
    let times = numbers(&link, LinkEnd::Client, &["connect", "[2001:2::2]:9", "3"]);
    assert!(times.iter().all(|us| *us >= 20_000), "{times:?}");
}

#[test]
fn each_way_takes_its_own_time() {
    let Some(link) = start("up=40ms,down=10ms", "asymmetric") else {
        return;
    };
    let mut mirror = Program::start(&link, LinkEnd::Server, &["mirror", "198.18.0.2:7"]);
    assert_eq!(mirror.line(), "ready");
    let ways = numbers(&link, LinkEnd::Client, &["ways", "198.18.0.2:7", "5"]);
    for pair in ways.chunks(2) {
        assert!(pair[0] >= 40_000 && pair[1] >= 10_000, "{ways:?}");
    }
    // the shorter way is not the longer one: at least one of five is on time even on a busy machine
    assert!(ways.chunks(2).any(|pair| pair[1] < 40_000), "{ways:?}");
}

#[test]
fn the_share_of_packets_that_was_asked_for_is_lost() {
    let Some(link) = start("rtt=1ms,loss=10%", "loss") else {
        return;
    };
    numbers(&link, LinkEnd::Client, &["flood", "198.18.0.2:7", "4000"]);
    // the kernel's own backlog may hold some of a flood for a while, or drop it: then it counts as
    // failed
    let mut up = link.account().unwrap().up;
    for _ in 0..500 {
        if up.arrived + up.failed >= 4000 {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        up = link.account().unwrap().up;
    }
    assert_eq!(up.arrived + up.failed, 4000, "{up:?}");
    assert!(up.arrived > 2000, "{up:?}");
    let (expected, six_deviations) = (up.arrived / 10, 120);
    assert!(up.lost.abs_diff(expected) < six_deviations, "{up:?}");
}

#[test]
fn a_transfer_is_no_faster_than_the_rate() {
    let Some(link) = start("rtt=2ms,rate=20mbit", "rate") else {
        return;
    };
    let _server = Program::server(&link);
    let rates = numbers(
        &link,
        LinkEnd::Client,
        &["fetch", "198.18.0.2:80", "1000000"],
    );
    // the first packets are on their way when the clock starts
    assert!((1..2_700_000).contains(&rates[0]), "{rates:?} bytes/s");
}

#[test]
fn a_flow_that_idled_is_reset_where_the_box_says_so() {
    let Some(link) = start("rtt=4ms,nat-idle=200ms:rst", "nat-idle rst") else {
        return;
    };
    let _server = Program::server(&link);
    let mut client = Program::start(&link, LinkEnd::Client, &["ask", "198.18.0.2:80"]);
    assert_eq!(client.line(), "connected");
    assert!(client.ask("10").starts_with("ok"));
    // idling is what is tested
    std::thread::sleep(Duration::from_millis(250));
    assert_eq!(client.ask("10"), "ConnectionReset");
    assert!(link.account().unwrap().up.forgotten > 0);
}

#[test]
fn a_flow_that_idled_is_met_with_silence_where_the_box_says_so() {
    let Some(link) = start("rtt=4ms,nat-idle=200ms:silent", "nat-idle silent") else {
        return;
    };
    let _server = Program::server(&link);
    let mut client = Program::start(&link, LinkEnd::Client, &["ask", "198.18.0.2:80"]);
    assert_eq!(client.line(), "connected");
    assert!(client.ask("10").starts_with("ok"));
    std::thread::sleep(Duration::from_millis(250));
    // the client's own limit
    assert_eq!(client.ask("10"), "WouldBlock");
    let up = link.account().unwrap().up;
    assert!(up.forgotten > 0, "{up:?}");
}

#[test]
fn a_freeze_in_the_middle_of_a_transfer_stops_it_until_it_ends() {
    let Some(link) = start("rtt=10ms,rate=20mbit", "freeze") else {
        return;
    };
    let _server = Program::server(&link);
    let mut client = Program::start(&link, LinkEnd::Client, &["ask", "198.18.0.2:80"]);
    assert_eq!(client.line(), "connected");
    // 0.4 s at that rate; frozen once some of it has arrived
    client.send("1000000");
    let arrived = || link.account().unwrap().down.delivered;
    while arrived() < 100 {
        std::thread::yield_now();
    }
    link.change(&LinkChange::freeze(Blocked::Both)).unwrap();
    let at_freeze = arrived();
    // long enough for a sender to retransmit into the void
    while link.account().unwrap().down.dropped == 0 {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(arrived(), at_freeze, "nothing passes a frozen link");
    link.change(&LinkChange::freeze(Blocked::None)).unwrap();
    assert!(client.line().starts_with("ok"), "TCP makes up for it");
}

#[test]
fn delay_and_loss_change_while_it_runs() {
    let Some(link) = start("rtt=5ms", "change") else {
        return;
    };
    link.change(&"rtt=60ms".parse().unwrap()).unwrap();
    let times = numbers(&link, LinkEnd::Client, &["connect", "198.18.0.2:9", "3"]);
    assert!(times.iter().all(|us| *us >= 60_000), "{times:?}");
    link.change(&"rtt=1ms,loss=100%".parse().unwrap()).unwrap();
    numbers(&link, LinkEnd::Client, &["flood", "198.18.0.2:7", "50"]);
    assert_eq!(link.account().unwrap().up.lost, 50);
}
