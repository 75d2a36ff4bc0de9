//! Requirements as a person writes them, and their results as a page prints them.

use intact_document::requirement::{
    Dimension, DocumentKind, FIGURES, Op, Outcome, ParseError, ParseErrorKind, Requirement,
    SELECTORS, Unit,
};
use intact_document::{Claims, Conclusions, Facts, RuleState, Subject, Unobserved};
use intact_reading::{Reading, Why};
use proptest::prelude::*;
use std::num::NonZero;
use std::sync::LazyLock;

fn parse(expression: &str) -> Requirement {
    expression.parse().unwrap_or_else(|fault| panic!("{fault}"))
}

fn fault(expression: &str) -> String {
    expression.parse::<Requirement>().unwrap_err().to_string()
}

/// Every document has the same rule.
fn check_requirement(requirement: &Requirement, document: DocumentKind) -> Result<(), ParseError> {
    requirement.check_for(document, |_| vec!["stale-reuse"])
}

#[test]
fn the_examples_of_the_contract_are_understood() {
    let requirement = parse("keepalive=on: p99 < 50ms");
    assert_eq!(
        (
            requirement.selectors()[0].key(),
            requirement.selectors()[0].value()
        ),
        ("keepalive", "on")
    );
    assert_eq!(requirement.name(), "p99");
    assert_eq!(requirement.op(), Op::Below);
    assert_eq!(
        (requirement.value().base(), requirement.value().unit()),
        (50e6, Unit::Millisecond)
    );

    assert_eq!(
        parse("host=api.example.com: connections <= 4")
            .value()
            .base(),
        4.0
    );
    assert_eq!(parse("avoidable == 0").selectors(), []);
    assert_eq!(parse("reuse >= 90%").value().base(), 0.9);
    assert_eq!(parse("idle-timeout >= 60s").value().base(), 60e9);
}

#[test]
fn spaces_are_free_and_zero_needs_no_unit() {
    assert_eq!(parse("p99<50ms"), parse("  p99  <  50 ms "));
    assert_eq!(
        parse("keepalive=on,tls=1.3:p99<50ms"),
        parse("keepalive = on , tls = 1.3 : p99 < 50ms")
    );
    assert_eq!(parse("dns.mean == 0").value().base(), 0.0);
    assert_eq!(parse("reuse >= 0.9").value().base(), 0.9);
    assert_eq!(parse("saved > -2ms").value().base(), -2e6);
}

#[test]
fn every_unit_is_read_in_base_units() {
    for (expression, base) in [
        ("p50 < 7ns", 7.0),
        ("p50 < 7us", 7e3),
        ("p50 < 7s", 7e9),
        ("p50 < 2min", 120e9),
        ("idle-timeout > 1h", 3_600e9),
        ("throughput > 100/s", 100.0),
        ("throughput > 100", 100.0),
        ("bytes-per-request < 3B", 3.0),
        ("bytes-per-request < 3kB", 3_000.0),
        ("bytes-per-request < 3MB", 3e6),
        ("bytes-per-request < 3KiB", 3_072.0),
        ("bytes-per-request < 3MiB", 3_145_728.0),
    ] {
        assert_eq!(parse(expression).value().base(), base, "{expression}");
    }
}

#[test]
fn the_last_colon_ends_the_selectors() {
    assert_eq!(
        parse("host=[::1]:8443: connections <= 4").selectors()[0].value(),
        "[::1]:8443"
    );
    assert_eq!(
        parse("origin=https://a.example:443,http=2: p99 < 1s")
            .selectors()
            .len(),
        2
    );
    assert_eq!(
        parse(r#"tag="a, \"b\": c": ok > 0"#).selectors()[0].value(),
        r#"a, "b": c"#
    );
}

#[test]
fn a_selector_with_fixed_values_is_written_with_a_dot_or_alone() {
    let selected = |expression: &str| {
        let requirement = parse(expression);
        let one = &requirement.selectors()[0];
        (one.key(), one.value().to_owned())
    };
    let black_hole = ("fault", "black-hole".to_owned());
    assert_eq!(selected("fault.black-hole: hung < 10s"), black_hole);
    assert_eq!(selected("fault=black-hole: hung < 10s"), black_hole);
    assert_eq!(selected("fault: duplicated == 0"), ("fault", String::new()));
    let both = parse("host=api.example.com:8443, fault.stale : failed == 0");
    assert_eq!(
        both.to_string(),
        "host=api.example.com:8443,fault.stale: failed == 0"
    );
    for (wrong, expected) in [
        ("fault.blackhole: hung < 10s", "did you mean `black-hole`?"),
        ("fault.earthquake: hung < 10s", "there is stale, fin-race"),
        ("fault.: hung < 10s", "unknown fault"),
        ("fault=: hung < 10s", "unknown fault"),
        ("fault.stale: hang < 10s", "did you mean `hung`?"),
    ] {
        let said = fault(wrong);
        assert!(said.contains(expected), "{wrong}: {said}");
    }
    for document in [DocumentKind::Watch, DocumentKind::Bench] {
        let refused = check_requirement(&parse("fault: duplicated == 0"), document);
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("watch --fault"), "{said}");
    }
}

#[test]
fn families_take_their_parameter() {
    for name in [
        "failed.connect-timeout",
        "status.5xx",
        "status.503",
        "findings.stale-reuse",
    ] {
        let requirement = parse(&format!("{name} == 0"));
        assert_eq!(requirement.name(), name);
        assert!(name.starts_with(requirement.figure().stem()));
    }
    for wrong in [
        "status.99 == 0",
        "status.6xx == 0",
        "failed. == 0",
        "failed.A == 0",
        "failed.timout == 0",
        "findings.Stale == 0",
        "p99.x < 1s",
    ] {
        assert!(wrong.parse::<Requirement>().is_err(), "{wrong}");
    }
    let refused = check_requirement(&parse("findings.stale-reus == 0"), DocumentKind::Watch);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "`intact watch` has no rule `stale-reus`; did you mean `stale-reuse`?\n  findings.stale-reus == 0\n           ^^^^^^^^^^"
    );
}

#[test]
fn a_caret_stands_under_the_fault_and_the_nearest_name_next_to_it() {
    for (expression, shown) in [
        (
            "keepalive=on: p98 < 50ms",
            "unknown metric `p98`; did you mean `p90`?\n  keepalive=on: p98 < 50ms\n                ^^^",
        ),
        (
            "keepalive=on p99 < 50ms",
            "unknown metric `keepalive`; it is a selector: write `keepalive=VALUE: METRIC ...`\n  keepalive=on p99 < 50ms\n  ^^^^^^^^^",
        ),
        (
            "rate > 100",
            "unknown metric `rate`; did you mean `throughput`, or the selector `rate=VALUE: METRIC ...`?\n  rate > 100\n  ^^^^",
        ),
        (
            "req/s > 100",
            "unknown metric `req/s`; did you mean `throughput`?\n  req/s > 100\n  ^^^^^",
        ),
        (
            "keepalve=on: p99 < 50ms",
            "unknown selector `keepalve`; did you mean `keepalive`?\n  keepalve=on: p99 < 50ms\n  ^^^^^^^^",
        ),
        (
            "p99 = 50ms",
            "an operator belongs here: <, <=, >, >=, == or !=\n  p99 = 50ms\n      ^",
        ),
        (
            "p99 < 50",
            "p99 takes a time with its unit: ns, us, ms, s, min or h\n  p99 < 50\n        ^^",
        ),
        (
            "connections < 50ms",
            "`ms` does not fit connections, which takes a plain number\n  connections < 50ms\n                  ^^",
        ),
        (
            "reuse >= 90",
            "a share is at most 1; for a percentage write 90%\n  reuse >= 90\n           ^^",
        ),
        (
            "reused >= 0.9",
            "`reused` is a count; for a share write `reuse >= 0.9`, or a percentage: `reused >= 90%`\n  reused >= 0.9\n            ^^^",
        ),
        (
            "tag=é,oops: ok > 0",
            "a selector is written key=value, such as keepalive=on; quote a value with a comma or a quote in it\n  tag=é,oops: ok > 0\n        ^^^^",
        ),
        (
            "host=a:",
            "a metric is missing here, such as p99\n  host=a:\n         ^",
        ),
        (
            "ok",
            "an operator belongs here: <, <=, >, >=, == or !=\n  ok\n    ^",
        ),
        (
            "ok >",
            "a number belongs here: a plain number\n  ok >\n      ^",
        ),
    ] {
        assert_eq!(fault(expression), shown);
    }
}

#[test]
fn a_metric_of_another_command_is_refused_before_the_run() {
    let requirement = parse("http=2: idle-timeout >= 60s");
    let refused = check_requirement(&requirement, DocumentKind::Bench).unwrap_err();
    assert!(matches!(
        refused.kind(),
        ParseErrorKind::NotInDocument {
            document: DocumentKind::Bench,
            ..
        }
    ));
    assert_eq!(
        refused.to_string(),
        "`idle-timeout` is not known to `intact bench`; it is to check, fleet\n  http=2: idle-timeout >= 60s\n          ^^^^^^^^^^^^"
    );
    let check = |expression, document| check_requirement(&parse(expression), document);
    assert!(check("idle-timeout >= 60s", DocumentKind::Check).is_ok());
    assert!(check("keepalive=on: ok > 0", DocumentKind::Watch).is_err());
}

/// Two variants of `bench`, or the last one of them. p99 of the second has too few samples, and
/// the server was not measured.
struct Bench(usize);

/// Both variants.
const BENCH: Bench = Bench(2);
const FEW: Why = Why::TooFew {
    had: 120,
    needed: 1_000,
};

impl Facts for Bench {
    fn subjects(&self) -> Vec<Subject> {
        let subject = |keepalive: &str, p50: f64, p99: Reading, reuse: f64| {
            let name = format!("keep-alive {keepalive}");
            let mut subject = Subject::new(name).label("keepalive", keepalive);
            let readings = &mut subject.readings;
            readings.set("p50", Reading::known(p50));
            readings.set("p99", p99);
            readings.set("reuse", Reading::known(reuse));
            readings.set("mean", Reading::known(f64::NAN));
            readings.set("saved-share", Reading::interval(0.68, 0.45, 0.83));
            let server = Reading::unknown(Why::not_measured("add --server-pid"));
            readings.set("server-cpu-per-request", server);
            subject
        };
        let mut subjects = vec![
            subject("on", 31e6, Reading::known(50_000_300.0), 0.999),
            subject("off", 92e6, Reading::unknown(FEW), 0.0),
        ];
        subjects.split_off(2 - self.0)
    }

    fn conclusions(&self) -> Conclusions<'_> {
        static NONE: LazyLock<Claims> = LazyLock::new(Claims::default);
        Conclusions::new(&NONE, &[], &[])
    }

    fn rules(&self) -> Vec<RuleState> {
        Vec::new()
    }

    fn any_success(&self) -> bool {
        true
    }

    fn unobserved(&self) -> Unobserved {
        Unobserved::default()
    }
}

#[test]
fn each_subject_has_its_measured_value_and_its_limit() {
    let verdict = parse("p50 < 50ms").evaluate(&BENCH);
    assert!(!verdict.passed());
    assert_eq!(
        verdict.to_string(),
        "NOT met: p50 < 50ms\n  keep-alive on: p50 is 31 ms\n  keep-alive off: p50 is 92 ms, required < 50ms"
    );
    assert!(parse("keepalive=ON: p50 < 50ms").evaluate(&BENCH).passed());
    assert!(parse("p50 < 1s").evaluate(&BENCH).passed());
}

#[test]
fn a_percentage_of_reused_is_a_share() {
    assert_eq!(
        parse("reused > 80 %").evaluate(&BENCH).results()[0].to_string(),
        parse("reuse > 80%").evaluate(&BENCH).results()[0].to_string()
    );
    assert!("connections > 80 %".parse::<Requirement>().is_err());
}

#[test]
fn a_near_miss_shows_the_digits_that_missed() {
    let verdict = parse("keepalive=on: p99 <= 50ms").evaluate(&BENCH);
    assert_eq!(
        verdict.results()[0].to_string(),
        "keep-alive on: p99 is 50.0003 ms, required <= 50ms"
    );
}

#[test]
fn what_has_no_data_never_passes() {
    let verdict = parse("p99 < 1h").evaluate(&BENCH);
    assert!(!verdict.passed());
    assert_eq!(
        *verdict.results()[1].outcome(),
        Outcome::Unknown(Reading::unknown(FEW))
    );
    assert_eq!(
        verdict.results()[1].to_string(),
        "keep-alive off: p99 is unknown (120 samples measured, at least 1,000 needed)"
    );
    for never in [
        "server-cpu-per-request >= 0",
        "mean >= 0",
        "mean != 1s",
        "mean < 1h",
    ] {
        assert!(!parse(never).evaluate(&BENCH).passed(), "{never}");
    }
}

#[test]
fn a_variant_that_fixes_the_metric_is_left_out_and_named() {
    let verdict = parse("reuse >= 99.9%").evaluate(&BENCH);
    assert!(verdict.passed());
    assert_eq!(
        verdict.results()[1].to_string(),
        "keep-alive off: reuse left out, keepalive=off fixes it"
    );
    // asked by name it is checked like any other
    assert!(
        !parse("keepalive=off: reuse >= 90%")
            .evaluate(&BENCH)
            .passed()
    );
}

#[test]
fn a_requirement_without_a_subject_fails_with_its_reason() {
    let verdict = parse("keepalive=maybe: p50 < 1s").evaluate(&BENCH);
    assert!(!verdict.passed() && verdict.results().is_empty());
    assert_eq!(
        verdict.nothing_checked().unwrap(),
        "nothing here has keepalive=maybe; there is keepalive=on, off"
    );
    let verdict = parse("tls=1.3: p50 < 1s").evaluate(&BENCH);
    assert_eq!(
        verdict.nothing_checked().unwrap(),
        "nothing here has a `tls` to select by"
    );
    let verdict = parse("reuse >= 0%").evaluate(&Bench(1));
    assert!(!verdict.passed());
    assert!(
        verdict
            .nothing_checked()
            .unwrap()
            .starts_with("every variant fixes this figure")
    );
}

#[test]
fn rounding_decides_no_comparison() {
    assert!(Op::AtLeast.holds(999.0 / 1000.0, 99.9 / 100.0));
    assert!(Op::Equal.holds(0.1 + 0.2, 0.3) && !Op::Unequal.holds(0.1 + 0.2, 0.3));
    assert!(!Op::Below.holds(0.3, 0.1 + 0.2) && !Op::Above.holds(0.1 + 0.2, 0.3));
    assert!(Op::Equal.holds(0.0, 0.0) && !Op::Equal.holds(1.0, 0.0));
}

fn written_requirement() -> impl Strategy<Value = String> {
    let selector = (0..SELECTORS.len(), any::<String>()).prop_map(|(key, value)| {
        let entry = &SELECTORS[key];
        if let Some(count) = NonZero::new(entry.values.len()) {
            let fixed = entry.values[value.len() % count];
            return format!("{}.{fixed}", entry.key);
        }
        let escaped = value.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{}=\"{escaped}\"", entry.key)
    });
    let op = prop::sample::select(vec!["<", "<=", ">", ">=", "==", "!="]);
    (
        prop::collection::vec(selector, 0..4),
        0..FIGURES.len(),
        op,
        any::<u32>(),
        0..3_usize,
    )
        .prop_map(|(selectors, metric, op, number, unit)| {
            let entry = &FIGURES[metric];
            let parameter = match entry.stem() {
                "status." => "404",
                "findings." => "stale-reuse",
                _ => "timeout",
            };
            let name = if entry.parameter.is_some() {
                [entry.stem(), parameter].concat()
            } else {
                entry.name.into()
            };
            let unit = match entry.dimension {
                Dimension::Time => ["ns", "ms", "h"][unit],
                Dimension::Share => "%",
                Dimension::Rate => ["", "/s", "/s"][unit],
                Dimension::Bytes => ["B", "KiB", "MB"][unit],
                Dimension::Count | Dimension::Ratio => "",
            };
            let colon = if selectors.is_empty() { "" } else { ":" };
            format!(
                "{}{colon} {name} {op} {}{unit}",
                selectors.join(","),
                f64::from(number) / 1_000.0
            )
        })
}

proptest! {
    #[test]
    fn what_is_printed_reads_back_as_the_same(expression in written_requirement()) {
        let requirement = parse(&expression);
        prop_assert_eq!(&parse(&requirement.to_string()), &requirement, "{}", requirement);
    }

    #[test]
    fn arbitrary_text_is_refused_without_a_panic(expression in any::<String>()) {
        if let Err(fault) = expression.parse::<Requirement>() {
            prop_assert!(expression.get(fault.span()).is_some());
            prop_assert_eq!(fault.to_string().lines().count(), 3);
        }
    }

    #[test]
    fn text_made_of_the_grammars_own_pieces_never_panics(
        pieces in prop::collection::vec(
            prop::sample::select(vec!["keepalive", "=", "on", ",", ":", "\"", "\\", " ", "p99", "<", "<=", "-", ".", "5", "ms", "é"]),
            0..14,
        )
    ) {
        let expression = pieces.concat();
        match expression.parse::<Requirement>() {
            Ok(requirement) => {
                prop_assert_eq!(&parse(&requirement.to_string()), &requirement);
                for document in [DocumentKind::Check, DocumentKind::Bench, DocumentKind::Watch] {
                    drop(check_requirement(&requirement, document).map_err(|fault| fault.to_string()));
                }
            }
            Err(fault) => prop_assert!(fault.to_string().contains('^')),
        }
    }
}

#[test]
fn a_gate_on_an_interval_prints_its_value_and_the_end_that_decides() {
    for (expression, words) in [
        (
            "keepalive=on: saved-share > 95%",
            "saved-share is 68 % (45 % to 83 %); the lower end is below 95 %",
        ),
        (
            "keepalive=on: saved-share > 50%",
            "saved-share is 68 % (45 % to 83 %); the lower end is below 50 %",
        ),
        (
            "keepalive=on: saved-share < 80%",
            "saved-share is 68 % (45 % to 83 %); the upper end is above 80 %",
        ),
    ] {
        let verdict = parse(expression).evaluate(&Bench(2));
        assert!(!verdict.passed());
        assert_eq!(verdict.results()[0].words(), words);
    }
    assert!(
        parse("keepalive=on: saved-share > 40%")
            .evaluate(&Bench(2))
            .passed()
    );
}
