//! Plans: the messages that they expand to, and the errors of invalid ones.

use crate::rig::plan;
use intact_fleet::{BadMessage, FORMAT, Kind, Message, Plan, parse};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::path::Path;

const GOOD: &str = r#"name = "rig"
repetitions = 2
duration = "10m"
slice = "4m"
labels = ["eu", "us"]
[limits]
requests = 100000
rate = 50
workers = 5
[[target]]
name = "a"
url = "https://a.test/health"
i-own-this = "a.test"
[axes]
http = [1.1, 2]
tls = ["1.2", "1.3"]
keepalive = [true, false]
"#;

fn refused(text: &str) -> String {
    parse(Path::new("p.toml"), text).unwrap_err().to_string()
}

#[test]
fn a_plan_becomes_messages_with_unique_ids_in_interleaved_order() {
    let plan = parse(Path::new("p.toml"), GOOD).unwrap();
    // 2 labels x 8 variants x 2 repetitions x 3 slices
    assert_eq!(plan.len(), 96);
    let messages: Vec<Message> = plan.messages().collect();
    assert_eq!(messages.len(), 96);
    let ids: BTreeSet<&str> = messages.iter().map(|message| &*message.id).collect();
    assert_eq!(ids.len(), 96);
    let first: BTreeSet<u32> = messages[..8]
        .iter()
        .filter_map(|message| message.variant)
        .collect();
    assert_eq!(first.len(), 8, "the variants lie next to each other");
    assert_eq!(messages[0].job.ms, 240_000);
    assert!((messages[0].job.rate_per_s - 10.0).abs() < 1e-9);
}

#[test]
fn the_limit_holds_even_if_every_message_is_delivered_as_often_as_allowed() {
    let plan = parse(Path::new("p.toml"), GOOD).unwrap();
    let sum: u64 = plan
        .messages()
        .map(|message| message.job.most_requests * 3)
        .sum();
    assert!(sum <= 100_000, "{sum}");
    assert!(plan.estimate().most_per_target <= 100_000);
}

#[test]
fn a_message_survives_its_text() {
    for message in plan(3).messages() {
        let text = serde_json::to_string(&message).unwrap();
        assert_eq!(Message::parse(&text).unwrap(), message);
        // a fast reader of numbers is off by the last bit of this one
        let mut uneven = message;
        uneven.job.rate_per_s = 5.0 / 11.0;
        let text = serde_json::to_string(&uneven).unwrap();
        assert_eq!(Message::parse(&text).unwrap(), uneven);
    }
}

#[test]
fn a_wrong_key_is_named_with_its_line_and_the_nearest() {
    let text = GOOD.replace("repetitions = 2", "repetions = 2");
    assert_eq!(
        refused(&text),
        "p.toml:2: unknown key `repetions`: did you mean `repetitions`?"
    );
    let text = GOOD.replace("workers = 5", "wokers = 5");
    assert_eq!(
        refused(&text),
        "p.toml:9: unknown key `wokers`: did you mean `workers`?"
    );
}

#[test]
fn tls_follows_the_urls_unless_the_plan_names_it() {
    assert_eq!(plan(1).variants[0].axes["tls"], "none");
    let text = GOOD.replace("tls = [\"1.2\", \"1.3\"]\n", "");
    let plan = parse(Path::new("p.toml"), &text).unwrap();
    assert_eq!(plan.variants[0].axes["tls"], "any");
    let both = "[[target]]\nname = \"b\"\nurl = \"http://b.test\"\ni-own-this = \"b.test\"\n[axes]";
    assert!(refused(&text.replace("[axes]", both)).contains("axes.tls"));
}

#[test]
fn variants_are_those_of_a_bench() {
    let plan = parse(Path::new("p.toml"), GOOD).unwrap();
    assert_eq!(plan.variants[1].name, "keepalive=off http=1.1 tls=1.2");
    assert_eq!(plan.varied, ["keepalive", "http", "tls"]);
    // without TLS there is no resumption, and HTTP/1.1 has no streams
    let axes =
        "http = [1.1]\ntls = [\"none\", \"1.3\"]\nresume = [false, true]\nstreams = [1, 8]\n";
    let (before, _) = GOOD.split_once("http = [1.1").unwrap();
    let plan = parse(Path::new("p.toml"), &format!("{before}{axes}")).unwrap();
    assert_eq!(plan.variants.len(), 3);
}

#[test]
fn http3_runs_over_tls_1_3_only_and_needs_the_feature() {
    let (before, _) = GOOD.split_once("http = [1.1").unwrap();
    let text = |tls: &str| format!("{before}keepalive = [true]\nhttp = [2, 3]\n{tls}");
    let both = "tls = [\"1.2\", \"1.3\"]\n";
    if !intact_client::HAS_HTTP3 {
        assert!(refused(&text(both)).contains("--features fleet,http3"));
        return;
    }
    let plan = parse(Path::new("p.toml"), &text(both)).unwrap();
    let names: Vec<&str> = plan.variants.iter().map(|one| &*one.name).collect();
    assert_eq!(
        names,
        ["http=2 tls=1.2", "http=2 tls=1.3", "http=3 tls=1.3"]
    );
    let without = refused(&text("tls = [\"1.2\"]\n"));
    assert!(without.contains("http = 3 contains TLS 1.3"), "{without}");
}

#[test]
fn a_value_that_an_axis_does_not_have_is_refused() {
    for (values, wanted) in [
        ("http = [4]", "axes: http = \"4\": one of 1.0, 1.1, 2, 3"),
        ("c = [0]", "axes: c = 0: from 1 to 10000"),
        ("c = [\"x\"]", "axes: c = \"x\": a whole number"),
    ] {
        let (before, _) = GOOD.split_once("http = [1.1").unwrap();
        let error = refused(&format!("{before}{values}\n"));
        assert!(error.ends_with(wanted), "{error}");
    }
    let many = format!("c = {:?}\n", (1..=1_001).collect::<Vec<u32>>());
    let (before, _) = GOOD.split_once("http = [1.1").unwrap();
    assert!(refused(&format!("{before}{many}")).contains("more than 1000 variants"));
}

#[test]
fn a_target_that_is_not_acknowledged_is_refused() {
    let text = GOOD.replace("i-own-this = \"a.test\"", "i-own-this = \"b.test\"");
    assert!(refused(&text).contains("i-own-this"), "{}", refused(&text));
}

#[test]
fn invalid_values_are_refused_by_name() {
    for (from, to, named) in [
        ("name = \"rig\"", "name = \"a/b\"", "name"),
        ("duration = \"10m\"", "duration = \"10\"", "duration"),
        ("slice = \"4m\"", "slice = \"11m\"", "slice"),
        ("[\"eu\", \"us\"]", "[\"eu\", \"eu\"]", "labels"),
        ("requests = 100000", "requests = 10", "limits.requests"),
        ("rate = 50", "rate = 0", "limits.rate"),
        ("[1.1, 2]", "[1.1, 4]", "http"),
        ("[\"1.2\", \"1.3\"]", "[\"1.1\"]", "tls"),
        ("https://a.test", "ftp://a.test", "http or https"),
    ] {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD);
        assert!(refused(&text).contains(named), "{to}: {}", refused(&text));
    }
}

#[test]
fn a_message_of_a_newer_format_asks_for_an_update() {
    let message = plan(1).messages().next().unwrap();
    let mut value = serde_json::to_value(&message).unwrap();
    value["format"] = (FORMAT + 1).into();
    value["something-new"] = true.into();
    assert_eq!(
        Message::parse(&value.to_string()),
        Err(BadMessage::Newer(FORMAT + 1))
    );
}

#[test]
fn a_message_whose_target_was_exchanged_is_refused() {
    let message = plan(1).messages().next().unwrap();
    let text = serde_json::to_string(&message)
        .unwrap()
        .replace("http://host.test/", "http://victim.test/");
    assert!(matches!(Message::parse(&text), Err(BadMessage::Refused(_))));
}

#[test]
fn text_that_cannot_be_one_line_of_a_request_is_refused_when_the_plan_is_read() {
    let url = "https://a.test/health";
    let host = "i-own-this = \"a.test\"";
    for (from, to, named) in [
        (url, "https://a.test/\\r\\nX: 1", "url: a line end"),
        (url, "https://a.test/\\u0000", "url: a line end"),
        (url, "https://a.test\\t.evil.test/", "url: a line end"),
        (url, "https://me:s3cret@a.test/", "url: user and password"),
        (url, "https://s3cret@a.test/", "url: user and password"),
        (url, "https://evil.test\\\\@a.test/", "url: "),
        (url, "a.test/health", "http or https"),
        (url, "https://a.test/{env:TOKEN", "url: the brace"),
        (url, "https://{env:HOST}/", "i-own-this"),
        (
            host,
            "i-own-this = \"a.test\"\nheaders = [\"A: b\\r\\nC: d\"]",
            "headers: a line end",
        ),
        (
            host,
            "i-own-this = \"a.test\"\nheaders = [\"A: b\\n\"]",
            "headers: a line end",
        ),
        (
            host,
            "i-own-this = \"a.test\"\nheaders = [\"A: \\u007f\"]",
            "headers: a line end",
        ),
        (
            host,
            "i-own-this = \"a.test\"\nheaders = [\"A b: c\"]",
            "headers: \"A b\"",
        ),
        (
            host,
            "i-own-this = \"a.test\"\nheaders = [\"A\"]",
            "headers: \"A\"",
        ),
        (
            host,
            "i-own-this = \"a.test\"\nheaders = [\"A: env:\"]",
            "env:NAME or file:PATH",
        ),
        (host, "i-own-this = 7", "a host, or a list of hosts"),
    ] {
        let text = GOOD.replace(from, to);
        assert_ne!(text, GOOD);
        let said = refused(&text);
        assert!(said.contains(named), "{to}: {said}");
        assert!(!said.contains("s3cret"), "{said}");
    }
}

#[test]
fn the_acknowledged_host_is_the_one_that_is_dialled() {
    // two parsers of a URL may find different hosts: the one of `client` counts
    for url in [
        "https://a.test@evil.test/",
        "https://evil.test#@a.test/",
        "https://evil.test?@a.test/",
        "https://evil.test/@a.test/",
    ] {
        let text = GOOD.replace("https://a.test/health", url);
        assert!(parse(Path::new("p.toml"), &text).is_err(), "{url}");
    }
    for (url, own) in [
        ("https://A.test/", "a.TEST"),
        ("https://[::1]:8443/", "::1"),
        ("https://[::1]/", "[::1]"),
    ] {
        let text = GOOD.replace("https://a.test/health", url);
        let text = text.replace(
            "i-own-this = \"a.test\"",
            &format!("i-own-this = \"{own}\""),
        );
        parse(Path::new("p.toml"), &text).unwrap();
    }
}

#[test]
fn resolve_leads_only_to_addresses_that_are_acknowledged() {
    let own = "i-own-this = \"a.test\"";
    let with = |own_this: &str, rule: &str| {
        let text = GOOD.replace(
            own,
            &format!("i-own-this = {own_this}\nresolve = [\"{rule}\"]"),
        );
        parse(Path::new("p.toml"), &text)
    };
    for (own_this, rule, named) in [
        (
            "\"a.test\"",
            "a.test:443:203.0.113.9",
            "resolve: sends the load to \"203.0.113.9\"",
        ),
        (
            "\"a.test\"",
            "a.test:443:127.0.0.1",
            "add \"127.0.0.1\" to `i-own-this`",
        ),
        (
            "[\"a.test\", \"::1\"]",
            "a.test:443:::1,203.0.113.9",
            "203.0.113.9",
        ),
        (
            "[\"203.0.113.9\"]",
            "a.test:443:203.0.113.9",
            "must repeat the host",
        ),
        ("\"a.test\"", "a.test:443", "HOST:PORT:ADDRESS"),
        ("\"a.test\"", "a.test:443:evil.test", "HOST:PORT:ADDRESS"),
    ] {
        let said = with(own_this, rule).unwrap_err().to_string();
        assert!(said.contains(named), "{own_this} {rule}: {said}");
    }
    let plan = with(
        "[\"a.test\", \"203.0.113.9\", \"::1\"]",
        "a.test:443:203.0.113.9,[::1]",
    )
    .unwrap();
    // and again by the worker
    let message = plan.messages().next().unwrap();
    let text = serde_json::to_string(&message).unwrap();
    assert_eq!(Message::parse(&text).unwrap(), message);
    let exchanged = text.replace("a.test:443:203.0.113.9", "a.test:443:203.0.113.7");
    assert_ne!(exchanged, text);
    let Err(BadMessage::Refused(reason)) = Message::parse(&exchanged) else {
        panic!("taken");
    };
    assert!(reason.contains("203.0.113.7"), "{reason}");
}

#[test]
fn a_message_that_no_plan_makes_is_refused() {
    let message = plan(1).messages().next().unwrap();
    let good = serde_json::to_value(&message).unwrap();
    for (pointer, value) in [
        ("/id", "t.here.000.0009.000".into()),
        ("/id", "x".repeat(5000).into()),
        ("/plan", "../../x-1".into()),
        ("/plan", "".into()),
        ("/target", "other".into()),
        ("/label", "a/b".into()),
        ("/variant", serde_json::Value::Null),
        ("/variant_name", "../x".into()),
        ("/variant_name", "".into()),
        ("/recipe/ms", 0.into()),
        ("/recipe/rate_per_s", 0.into()),
        ("/recipe/rate_per_s", (-1).into()),
        ("/recipe/axes/c", "4000000000".into()),
        ("/recipe/axes/http", "9".into()),
        (
            "/recipe/target/headers",
            serde_json::json!(["A: b\r\nC: d"]),
        ),
        ("/recipe/target/url", "http://me:x@host.test/".into()),
        ("/recipe/target/url", "http://host.test/\r\nX: 1".into()),
        ("/recipe/target/measure", "check".into()),
        ("/recipe/target/name", "other".into()),
    ] {
        let mut bad = good.clone();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        bad.pointer_mut(parent).unwrap()[key] = value;
        let done = Message::parse(&bad.to_string());
        assert!(
            matches!(done, Err(BadMessage::Refused(_))),
            "{pointer}: {done:?}"
        );
    }
}

#[test]
fn the_reason_why_a_message_is_unreadable_repeats_nothing_of_it() {
    let message = plan(1).messages().next().unwrap();
    let mut bad = serde_json::to_value(&message).unwrap();
    bad["recipe"]["target"]["headers"] = "Authorization: s3cret".into();
    let said = Message::parse(&bad.to_string()).unwrap_err().to_string();
    assert!(said.contains("a value of another type at line 1"), "{said}");
    assert!(!said.contains("s3cret"), "{said}");
}

#[test]
fn a_secret_in_the_plan_causes_a_warning_with_the_remedy() {
    let warnings = |headers: &str, url: &str| {
        let text = GOOD
            .replace("i-own-this", &format!("headers = [{headers}]\ni-own-this"))
            .replace("https://a.test/health", url);
        parse(Path::new("p.toml"), &text).unwrap().warnings()
    };
    let url = "https://a.test/?token=s3cret";
    let said = warnings("\"Authorization: Bearer s3cret\", \"Accept: x\"", url);
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(
        said[0].contains("write `Authorization: env:NAME`"),
        "{said:?}"
    );
    assert!(said[1].contains("write `token={env:NAME}`"), "{said:?}");
    assert!(said.iter().all(|line| !line.contains("s3cret")), "{said:?}");
    let fine = warnings(
        "\"Authorization: Bearer {file:/run/token}\"",
        "https://a.test/?token={env:T}",
    );
    assert_eq!(fine, Vec::<String>::new());
}

const CHECKED: &str = r#"name = "cards"
repetitions = 2
duration = "10m"
slice = "5m"
labels = ["eu", "us"]
[limits]
requests = 4000
rate = 50
workers = 5
[[target]]
name = "c"
url = "https://c.test/"
i-own-this = "c.test"
measure = "check"
"#;

fn cards() -> Plan {
    parse(Path::new("p.toml"), CHECKED).unwrap()
}

#[test]
fn a_check_occurs_once_per_repetition_for_any_slices_and_axes() {
    let messages: Vec<Message> = cards().messages().collect();
    let ids: Vec<&str> = messages.iter().map(|message| &*message.id).collect();
    assert_eq!(
        ids,
        [
            "c.eu.check.0000",
            "c.us.check.0000",
            "c.eu.check.0001",
            "c.us.check.0001"
        ]
    );
    assert_eq!(cards().len(), 4);
    let both = CHECKED.replace(
        "measure = \"check\"\n",
        "measure = \"check\"\n[[target]]\nname = \"b\"\nurl = \"http://b.test\"\ni-own-this = \"b.test\"\n\
         [axes]\nkeepalive = [\"on\", \"off\"]\n",
    );
    let plan = parse(Path::new("p.toml"), &both).unwrap();
    let messages: Vec<Message> = plan.messages().collect();
    assert_eq!((plan.len(), messages.len()), (20, 20));
    let checks = messages
        .iter()
        .filter(|message| message.job.target.measure == Kind::Check);
    assert_eq!(checks.count(), 4);
    // the https of the check does not affect the TLS of benches
    assert_eq!(plan.variants[0].axes["tls"], "none");
}

#[test]
fn the_whole_budget_of_each_check_counts_towards_the_limit() {
    let plan = cards();
    let budget = u64::from(plan.targets[0].check(10.0).unwrap().budget().requests());
    let estimate = plan.estimate();
    assert_eq!(estimate.requests_per_target, 4 * budget);
    assert_eq!(estimate.most_per_target, 4 * 3 * budget);
    assert!(estimate.most_per_target <= 4000);
    let all = 4 * 3 * budget;
    let exact = CHECKED.replace("requests = 4000", &format!("requests = {all}"));
    assert_eq!(
        parse(Path::new("p.toml"), &exact).unwrap().limits.requests,
        all
    );
    let few = CHECKED.replace("requests = 4000", &format!("requests = {}", all - 1));
    let said = refused(&few);
    assert!(said.contains("limits.requests"), "{said}");
    assert!(said.contains(&format!("need a limit of {all}")), "{said}");
}

#[test]
fn a_check_that_does_not_fit_the_plan_is_refused_with_the_key_that_is_too_small() {
    let check = "measure = \"check\"";
    for (from, to, named) in [
        (
            "slice = \"5m\"",
            "slice = \"2m\"",
            "slice: a check of c may take",
        ),
        ("rate = 50", "rate = 1", "slice: a check of c may take"),
        (check, "measure = \"chek\"", "unknown variant `chek`"),
        (
            check,
            "measure = \"check\"\nidle-limit = \"10\"",
            "idle-limit: 10 of what?",
        ),
        (check, "idle-limit = \"10s\"", "measure = \"check\""),
        (
            check,
            "measure = \"check\"\ntls-port = 443",
            "tls-port is for benches",
        ),
        (check, "measure = \"check\"\nheaders = [\"a b\"]", "a b"),
        (
            check,
            "measure = \"check\"\n[axes]\nhttp = [2]",
            "axes: no target is benched",
        ),
    ] {
        let text = CHECKED.replace(from, to);
        assert_ne!(text, CHECKED);
        assert!(refused(&text).contains(named), "{to}: {}", refused(&text));
    }
    let quick = CHECKED.replace(check, "measure = \"check\"\nidle-limit = \"0\"");
    let quick = quick.replace("slice = \"5m\"", "slice = \"50s\"");
    let plan = parse(Path::new("p.toml"), &quick).unwrap();
    assert!(!plan.targets[0].check(10.0).unwrap().config().idle);
    // without a limit of its own, a check takes the time that it needs, independent of the duration
    // of benches
    let with_bench = CHECKED
        .replace("duration = \"10m\"", "duration = \"100ms\"")
        .replace("slice = \"5m\"\n", "");
    let plan = parse(Path::new("p.toml"), &with_bench).unwrap();
    // 198 requests at 10/s, an idle limit of 90 s, the race, the card
    let needed = 19_800 + 90_000 + 30_000 + 30_000;
    assert!(plan.messages().all(|message| message.job.ms == needed));
    assert_eq!(
        plan.estimate().duration.as_millis(),
        u128::from(4 * needed / 5)
    );
}

/// A text with some bytes replaced.
fn patched(text: &str, at: prop::sample::Index, cut: usize, new: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let at = at.index(bytes.len());
    let end = (at + cut).min(bytes.len());
    bytes.splice(at..end, new.bytes());
    String::from_utf8_lossy(&bytes).into_owned()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn workers_take_each_message_of_a_plan_that_was_accepted(
        at: prop::sample::Index,
        cut in 0usize..12,
        new in "[0-9a-z.\"{}:/=\\[\\]\\\\ \n-]{0,8}",
    ) {
        if let Ok(plan) = parse(Path::new("p.toml"), &patched(GOOD, at, cut, &new)) {
            let _ = (intact_fleet::plan_page(&plan), plan.warnings());
            for message in plan.messages().take(40) {
                let body = serde_json::to_string(&message).unwrap();
                prop_assert_eq!(Message::parse(&body), Ok(message), "{}", body);
            }
        }
    }

    #[test]
    fn a_damaged_message_is_taken_or_refused_and_ends_no_worker(
        at: prop::sample::Index,
        cut in 0usize..12,
        new in "[0-9a-z.\"{}:/=\\[\\]\\\\ -]{0,8}",
    ) {
        let message = plan(1).messages().next().unwrap();
        let body = patched(&serde_json::to_string(&message).unwrap(), at, cut, &new);
        if let Ok(taken) = Message::parse(&body) {
            // the stored names are those of a plan
            let names = [&taken.plan, &taken.id, &taken.label, &taken.variant_name];
            prop_assert!(names.iter().all(|name| name.len() < 256 && !name.contains('/')));
            prop_assert!(taken.job.target.url.contains("host.test"));
        }
    }
}

proptest! {
    #[test]
    fn any_text_is_a_plan_or_a_clear_refusal(text in "\\PC{0,200}") {
        let _ = parse(Path::new("p.toml"), &text);
        let _ = Message::parse(&text);
    }

    #[test]
    fn a_plan_with_any_line_damaged_is_read_or_refused(line in 0usize..16, damage in "\\PC{0,20}") {
        let lines: Vec<String> = GOOD
            .lines()
            .enumerate()
            .map(|(at, text)| if at == line { damage.clone() } else { text.to_owned() })
            .collect();
        let _ = parse(Path::new("p.toml"), &lines.join("\n"));
    }
}
