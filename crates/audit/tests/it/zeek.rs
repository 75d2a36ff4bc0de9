//! Zeek's conn.log, ssl.log and http.log, alone and joined.

use crate::hostile::holds_together;
use crate::reading::{self, Outcome};
use intact_audit::{Input, InputOptions, KeyLog};
use intact_ledger::{
    Close, CloseKind, ClosePoint, Failure, Handshake, Protocol, Reuse, Side, TlsVersion,
};
use proptest::prelude::*;
use std::io::Cursor;
use std::path::Path;

const ALL: [&str; 3] = ["conn", "ssl", "http"];

fn text(name: &str) -> String {
    std::fs::read_to_string(reading::fixture(&format!("logs/zeek/{name}.log"))).unwrap()
}

fn input(content: &[u8]) -> Option<Input> {
    let reader = Box::new(Cursor::new(content.to_vec()));
    Input::from_reader(Path::new("zeek"), reader, None, &InputOptions::default()).ok()
}

fn audited(logs: &[String]) -> Outcome {
    let inputs = logs.iter().map(|log| input(log.as_bytes()).unwrap());
    let outcome = reading::inputs(inputs.collect(), KeyLog::default()).unwrap();
    holds_together(&outcome);
    outcome
}

fn joined(names: &[&str]) -> Outcome {
    audited(&names.iter().map(|name| text(name)).collect::<Vec<_>>())
}

/// The same lines as Zeek writes them with `LogAscii::use_json=T`.
fn as_json(columns: &str) -> String {
    let head = columns
        .lines()
        .find_map(|line| line.strip_prefix("#fields\t"));
    let names: Vec<&str> = head.unwrap().split('\t').collect();
    let object = |line: &str| {
        let value = |(name, value): (&&str, &str)| {
            let is_number = value.parse::<f64>().is_ok();
            let value = match value {
                "-" | "(empty)" => return None,
                "T" => "true".to_owned(),
                "F" => "false".to_owned(),
                number if is_number && *name != "version" => number.to_owned(),
                text => format!("\"{text}\""),
            };
            Some(format!("\"{name}\":{value}"))
        };
        let values: Vec<String> = names
            .iter()
            .zip(line.split('\t'))
            .filter_map(value)
            .collect();
        format!("{{{}}}\n", values.join(","))
    };
    let lines = columns.lines().filter(|line| !line.starts_with('#'));
    lines.map(object).collect()
}

/// The end of the connection from this port.
fn end_of(outcome: &Outcome, port: u16) -> Close {
    let from = |local: Option<std::net::SocketAddr>| local.is_some_and(|end| end.port() == port);
    let all = outcome.connections();
    let id = all.iter().find(|one| from(one.local)).unwrap().id;
    outcome.end_of(id).unwrap().close.clone()
}

#[test]
fn logs_are_joined_in_any_order_and_layout() {
    let expected = joined(&ALL);
    assert_eq!(expected.connections().len(), 18);
    assert_eq!(expected.exchanges().count(), 17);
    for names in [["http", "ssl", "conn"], ["ssl", "http", "conn"]] {
        assert_eq!(joined(&names).rows, expected.rows);
    }
    let objects: Vec<String> = ALL.iter().map(|name| as_json(&text(name))).collect();
    assert_eq!(audited(&objects).rows, expected.rows);
}

#[test]
fn the_side_that_closed_and_the_close_point_are_recorded() {
    let outcome = joined(&ALL);
    let fresh = end_of(&outcome, 40_000);
    assert_eq!(
        (fresh.by, fresh.how),
        (Some(Side::Client), Some(CloseKind::Fin))
    );
    assert_eq!(fresh.moment, Some(ClosePoint::AfterExchange));
    assert_eq!((fresh.exchanges, fresh.bytes.sent), (Some(1), 120));
    let kept = end_of(&outcome, 41_000);
    assert_eq!((kept.by, kept.exchanges), (Some(Side::Server), Some(5)));
    assert_eq!(kept.moment, Some(ClosePoint::Idle));
    let unused = end_of(&outcome, 41_001);
    assert_eq!(
        (unused.moment, unused.exchanges),
        (Some(ClosePoint::Unused), Some(0))
    );
    // encrypted: neither used nor unused
    let encrypted = end_of(&outcome, 42_000);
    assert_eq!((encrypted.moment, encrypted.exchanges), (None, None));
    let failed = outcome.connections();
    let failed: Vec<_> = failed
        .iter()
        .filter_map(|one| one.failed.as_ref())
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].kind, Failure::Refused);
}

#[test]
fn a_quic_dial_without_an_answer_failed() {
    let conn = text("conn");
    let head: String = conn
        .lines()
        .take_while(|line| !line.contains("Cfresh00"))
        .map(|line| format!("{line}\n"))
        .collect();
    let line = |uid: &str, state: &str, received: &str| {
        format!(
            "1795248000.5\t{uid}\t192.0.2.7\t4000\t198.51.100.9\t443\tudp\tquic\t3.0\t4800\t{received}\t{state}\tT\tF\t0\tD\t4\t4900\t0\t0\t-\n"
        )
    };
    for (state, received, expected) in [
        ("S0", "0", Some(Failure::ConnectTimeout)),
        ("S0", "-", Some(Failure::ConnectTimeout)),
        ("SHR", "0", Some(Failure::ConnectTimeout)),
        ("SF", "5200", None),
    ] {
        let outcome = audited(&[head.clone() + &line("Cquic", state, received)]);
        let all = outcome.connections();
        assert_eq!(all[0].transport, intact_ledger::Transport::Quic);
        let failed = all[0].failed.as_ref().map(|failed| failed.kind);
        assert_eq!(failed, expected, "{state} {received}");
        assert_eq!(outcome.end_of(all[0].id).is_none(), expected.is_some());
    }
}

#[test]
fn an_end_that_was_not_seen_has_no_closing_side() {
    // the same connection, still open when Zeek stopped, and closed by an unknown side
    let with = |state: &str, history: &str| {
        let of_kept = |line: &str| match line.contains("\tCkept") {
            true => line.replace("\tSF\t", &format!("\t{state}\t")),
            false => line.to_owned(),
        };
        let lines = text("conn").lines().map(of_kept).collect::<Vec<_>>();
        let conn = lines.join("\n") + "\n";
        let line = conn.lines().find(|line| line.contains("\tCkept")).unwrap();
        let old = line.split('\t').nth(15).unwrap();
        let changed = line.replace(old, history);
        audited(&[conn.replace(line, &changed), text("http")])
    };
    let open = with("S1", "ShADad");
    let all = open.connections();
    let kept = all.iter().find(|one| one.local.unwrap().port() == 41_000);
    let id = kept.unwrap().id;
    assert_eq!(open.exchanges_on(id).len(), 5);
    assert!(open.end_of(id).is_none());
    let gone = end_of(&with("SF", "-"), 41_000);
    assert_eq!((gone.by, gone.how, gone.moment), (None, None, None));
    assert_eq!(gone.exchanges, Some(5));
}

#[test]
fn a_request_lasts_until_the_next_one_or_its_connections_end_and_no_longer_than_a_second() {
    let outcome = joined(&ALL);
    let all = outcome.connections();
    let of = |port: u16| {
        let one = all.iter().find(|one| one.local.unwrap().port() == port);
        let exchanges = outcome.exchanges_on(one.unwrap().id);
        let took = exchanges.iter().map(|one| one.latency() / 1_000_000);
        took.collect::<Vec<_>>()
    };
    assert_eq!(of(41_000), [1000; 5]);
    assert_eq!(of(40_000), [31]);
    let kept = all.iter().find(|one| one.local.unwrap().port() == 41_000);
    let fresh: Vec<_> = outcome
        .exchanges_on(kept.unwrap().id)
        .iter()
        .map(|one| one.reuse == Some(Reuse::Fresh))
        .collect();
    assert_eq!(fresh, [true, false, false, false, false]);
    assert_eq!(kept.unwrap().protocol, Some(Protocol::Http11));
    assert_eq!(
        kept.unwrap().origin.as_ref().unwrap().to_string(),
        "http://api.example:8080"
    );
}

#[test]
fn the_first_request_of_a_connection_that_zeek_joined_later_is_unknown() {
    let of_kept = |line: &str| match line.contains("\tCkept") {
        true => line.replace("\tSF\t", "\tOTH\t").replace("\tSh", "\t"),
        false => line.to_owned(),
    };
    let lines = text("conn").lines().map(of_kept).collect::<Vec<_>>();
    let outcome = audited(&[lines.join("\n") + "\n", text("http")]);
    let all = outcome.connections();
    let kept = all.iter().find(|one| one.local.unwrap().port() == 41_000);
    let reuse: Vec<_> = outcome
        .exchanges_on(kept.unwrap().id)
        .iter()
        .map(|one| (one.reuse.map(|reuse| !reuse.is_reused()), one.ordinal))
        .collect();
    let reused = (Some(false), None);
    assert_eq!(reuse, [(None, None), reused, reused, reused, reused]);
}

#[test]
fn bytes_that_zeek_missed_are_reported() {
    let whole = joined(&ALL);
    assert!(whole.caveat("packets-missing").is_none());
    let conn = text("conn");
    let line = conn.lines().find(|line| line.contains("\tCkept")).unwrap();
    let mut values: Vec<&str> = line.split('\t').collect();
    assert_eq!(values[14], "0");
    values[14] = "1448";
    let outcome = audited(&[conn.replace(line, &values.join("\t")), text("http")]);
    let caveat = outcome.caveat("packets-missing").unwrap();
    assert!(caveat.incomplete);
    assert!(
        caveat.message.contains("1 connection "),
        "{}",
        caveat.message
    );
}

#[test]
fn handshakes_provide_names_and_resumption() {
    let outcome = joined(&["conn", "ssl"]);
    let tls: Vec<_> = outcome
        .connections()
        .into_iter()
        .filter_map(|one| Some((one.tls.as_ref()?, one.origin.as_ref()?.to_string())))
        .collect();
    let handshakes: Vec<_> = tls.iter().map(|(tls, _)| tls.handshake).collect();
    let (full, resumed) = (Some(Handshake::Full), Some(Handshake::Resumed));
    assert_eq!(handshakes, [full, resumed, resumed]);
    assert!(
        tls.iter()
            .all(|(tls, name)| tls.version == Some(TlsVersion::Tls13)
                && name == "https://pay.example")
    );
    assert!(outcome.caveat("zeek-without-requests").is_some());
}

#[test]
fn a_malformed_host_name_is_ignored() {
    let with = |name: &str| {
        let ssl = text("ssl").replace("\tpay.example\t", &format!("\t{name}\t"));
        let outcome = audited(&[text("conn"), ssl]);
        let all = outcome.connections();
        let one = all.iter().find(|one| one.tls.is_some()).unwrap();
        let name = one.tls.as_ref().unwrap().server_name.clone();
        (
            name.map(|name| name.to_string()),
            one.origin.as_ref().map(ToString::to_string),
        )
    };
    let good = ("pay.example", "https://pay.example");
    let good = (Some(good.0.to_owned()), Some(good.1.to_owned()));
    assert_eq!(with("Pay.Example"), good);
    assert_eq!(with("a b/\u{1b}[31m"), (None, None));
    assert_eq!(with(&"a".repeat(300)), (None, None));
}

#[test]
fn requests_at_the_same_time_are_recorded_once_and_in_order() {
    let http = text("http");
    let is_head = |line: &&str| line.starts_with('#');
    let head: String = http
        .lines()
        .filter(is_head)
        .fold(String::new(), |head, line| head + line + "\n");
    let line = http
        .lines()
        .find(|line| line.contains("\tCkept\t"))
        .unwrap();
    let lines = (1..=3_000u32).map(|nth| {
        // nine hundred in each second
        let at = f64::from(nth) / 900.0;
        let mut values: Vec<String> = line.split('\t').map(str::to_owned).collect();
        values[0] = format!("{:.6}", 1_795_248_001.0 + at);
        values[6] = nth.to_string();
        values.join("\t") + "\n"
    });
    let outcome = audited(&[text("conn"), head + &lines.collect::<String>()]);
    let ordinals: Vec<u32> = outcome.exchanges().filter_map(|one| one.ordinal).collect();
    assert_eq!(ordinals, (1..=3_000).collect::<Vec<_>>());
    let took: Vec<u64> = outcome.exchanges().map(|one| one.latency()).collect();
    assert!(
        took[..2_999].iter().all(|took| *took < 2_000_000),
        "{took:?}"
    );
    assert_eq!(took[2_999], 1_000_000_000);
}

#[test]
fn each_log_alone_reports_what_it_does_not_show() {
    let connections = joined(&["conn"]);
    assert_eq!(connections.exchanges().count(), 0);
    assert_eq!(connections.connections().len(), 18);
    assert!(connections.caveat("zeek-without-requests").is_some());
    let requests = joined(&["http"]);
    assert_eq!(requests.exchanges().count(), 17);
    assert_eq!(requests.connections().len(), 13);
    assert!(
        requests
            .caveat("zeek-without-connections")
            .unwrap()
            .incomplete
    );
    assert!(
        requests
            .rows
            .iter()
            .all(|row| !matches!(row, intact_ledger::Row::Closed(_)))
    );
}

#[test]
fn requests_on_a_connection_that_is_still_open_are_kept() {
    let conn = text("conn");
    let without: Vec<&str> = conn
        .lines()
        .filter(|line| !line.contains("Ckept"))
        .collect();
    let outcome = audited(&[without.join("\n") + "\n", text("http")]);
    assert_eq!(outcome.exchanges().count(), 17);
    assert!(outcome.caveat("zeek-strays").is_some());
}

#[test]
fn other_logs_of_zeek_are_refused_by_their_name() {
    for (name, columns) in [
        ("dns", "query"),
        ("smtp", "trans_depth\thelo"),
        ("sip", "trans_depth\tmethod\turi\tstatus_code"),
    ] {
        let values = columns.replace(|letter| letter != '\t', "1");
        let log = format!(
            "#separator \\x09\n#set_separator\t,\n#path\t{name}\n#fields\tts\tuid\t{columns}\n1.5\tCa\t{values}\n"
        );
        let error = reading::bytes(log.as_bytes(), KeyLog::default()).unwrap_err();
        let expected = format!("Zeek's {name}.log");
        assert!(error.to_string().contains(&expected), "{error}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn damaged_logs_are_joined_up_to_the_damage(
        changes in prop::collection::vec((0..3usize, any::<prop::sample::Index>(), any::<u8>()), 0..16),
        cuts in any::<[prop::sample::Index; 3]>(),
        objects in any::<bool>(),
    ) {
        let mut logs: Vec<Vec<u8>> = ALL
            .iter()
            .map(|name| if objects { as_json(&text(name)) } else { text(name) })
            .map(String::into_bytes)
            .collect();
        for (which, place, byte) in changes {
            let at = place.index(logs[which].len());
            logs[which][at] = byte;
        }
        for (log, cut) in logs.iter_mut().zip(cuts) {
            log.truncate(cut.index(log.len()) + 1);
        }
        let inputs: Vec<Input> = logs.iter().filter_map(|log| input(log)).collect();
        if let Ok(outcome) = reading::inputs(inputs, KeyLog::default()) {
            holds_together(&outcome);
        }
    }
}

#[test]
fn every_truncation_ends_cleanly() {
    let whole = text("conn");
    for end in 0..whole.len() {
        if let Some(cut) = input(&whole.as_bytes()[..end]) {
            let outcome = reading::inputs(vec![cut], KeyLog::default());
            outcome.iter().for_each(holds_together);
        }
    }
}
