//! `--resolver` and `serve --dns`: sporadic failures of lookups, which a program that reuses its
//! connection does not have. The program, `watch` and the name server count the same.

use crate::link::on_link;
use crate::peers::program;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Output};

/// Requests of a Node program, one after the other; prints its errors by code.
const CLIENT: &str = r"
const http = require('http');
const agent = new http.Agent({ keepAlive: process.env.KEEPALIVE === '1' });
const errors = {};
const ask = left => {
  if (left === 0) return console.log(JSON.stringify(errors));
  const next = () => setImmediate(() => ask(left - 1));
  // the dot: no search list
  const family = Number(process.env.FAMILY ?? 4);
  const to = { host: 'api.test.', port: process.env.PORT, agent, family };
  http.get(to, response => { response.resume(); response.on('end', next); })
    .on('error', error => { errors[error.code] = (errors[error.code] ?? 0) + 1; next(); });
};
ask(Number(process.env.REQUESTS));
";

/// Starts a server, runs the other words, ends the server; in a network of its own, with port 53.
const STAGE: &str = r#"
ip link set lo up
mkfifo out
"$INTACT" serve --listen 127.0.0.1:8080 --tls-listen 127.0.0.1:0 --dns=127.0.0.9 $DNS --json=serve.json >out 2>&1 &
server=$!
exec 3<out
read -r line <&3
"$@"
code=$?
kill "$server"
cat <&3 >/dev/null
exit $code
"#;

/// What the program printed, what `watch` found, and what the server counted.
struct Seen {
    errors: Value,
    watch: Value,
    server: Value,
}

fn read(folder: &Path, name: &str) -> Value {
    let text = std::fs::read_to_string(folder.join(name));
    let text = text.unwrap_or_else(|error| panic!("{name}: {error}"));
    serde_json::from_str(&text).unwrap()
}

/// Runs the stage: a name server with these options, by default without a TTL, and `words` next to
/// it.
pub(crate) fn stage(
    folder: &Path,
    name_server: &str,
    words: &[&str],
    environment: &[(&str, &str)],
) -> Output {
    let ttl = match name_server.contains("--dns-ttl") {
        true => "",
        false => "--dns-ttl 0 ",
    };
    Command::new("unshare")
        .args([
            "--user",
            "--map-root-user",
            "--net",
            "sh",
            "-c",
            STAGE,
            "stage",
        ])
        .args(words)
        .env("INTACT", env!("CARGO_BIN_EXE_intact"))
        .env("DNS", format!("{ttl}{name_server}"))
        .env("NO_COLOR", "1")
        .env("PORT", "8080")
        .envs(environment.iter().copied())
        .current_dir(folder)
        .output()
        .unwrap()
}

/// The client under `watch --resolver`. `start` are the words that start `intact`.
fn watched(
    test: &str,
    start: &[&str],
    name_server: &str,
    environment: &[(&str, &str)],
) -> Option<Seen> {
    for name in ["node", "unshare", "ip"] {
        program(name, test)?;
    }
    let folder = tempfile::tempdir().unwrap();
    let intact = env!("CARGO_BIN_EXE_intact");
    let watch = [
        intact,
        "watch",
        "--quiet",
        "--json=watch.json",
        "--resolver",
        "127.0.0.9",
        "--",
    ];
    let words = [start, &watch, &["node", "-e", CLIENT]].concat();
    let out = stage(folder.path(), name_server, &words, environment);
    assert!(out.status.success(), "{out:?}");
    Some(Seen {
        errors: serde_json::from_slice(&out.stdout).unwrap_or_else(|_| panic!("{out:?}")),
        watch: read(folder.path(), "watch.json"),
        server: read(folder.path(), "serve.json"),
    })
}

/// The sentence about failed lookups.
fn headline(watch: &Value) -> Option<&str> {
    let mut sentences = watch["verdict"].as_array().unwrap().iter();
    sentences.find_map(|one| one.as_str().filter(|text| text.contains("failed (")))
}

#[test]
fn without_reuse_some_lookups_fail_and_with_reuse_none() {
    let test = "without_reuse_some_lookups_fail_and_with_reuse_none";
    // one a second: however slow the machine, 40 requests in turn meet the limit, and the first
    // does not
    let limit = "--dns-rate-limit 1/s:nxdomain";
    let run = |keepalive| {
        let environment = [("KEEPALIVE", keepalive), ("REQUESTS", "40")];
        watched(test, &[], limit, &environment)
    };
    let Some(new) = run("0") else { return };
    let failed = new.errors["ENOTFOUND"].as_u64().unwrap();
    assert!((1..40).contains(&failed), "{}", new.errors);
    assert_eq!(new.errors, json!({"ENOTFOUND": failed}));
    let lookups = &new.watch["totals"]["lookups"];
    assert_eq!(
        [&lookups["total"], &lookups["failed"]],
        [&json!(40), &json!(failed)]
    );
    assert_eq!(lookups["errors"], json!({"NXDOMAIN": failed}));
    assert_eq!(
        new.server["lookups"],
        json!({"total": 40, "failed": {"nxdomain": failed}})
    );
    let sentence =
        format!("{failed} of 40 lookups failed (NXDOMAIN {failed}), and their names were found");
    let said = headline(&new.watch).unwrap_or_else(|| panic!("{}", new.watch["verdict"]));
    assert!(said.starts_with(&sentence), "{said}");

    let kept = run("1").unwrap();
    assert_eq!(kept.errors, json!({}));
    assert_eq!(kept.server["lookups"], json!({"total": 1, "failed": {}}));
    assert_eq!(kept.watch["totals"]["lookups"]["total"], 1);
    assert_eq!(kept.watch["totals"]["requests"]["ok"], 40);
    assert_eq!(headline(&kept.watch), None);
}

#[test]
fn each_failure_of_a_name_server_is_the_error_that_the_program_gets() {
    let test = "each_failure_of_a_name_server_is_the_error_that_the_program_gets";
    for (failure, code, error) in [
        ("nxdomain", "ENOTFOUND", "NXDOMAIN"),
        ("servfail", "EAI_AGAIN", "SERVFAIL"),
        ("timeout", "EAI_AGAIN", "no answer"),
    ] {
        // both families: glibc sends both queries by a call that is seen
        let environment = [
            ("REQUESTS", "1"),
            ("FAMILY", "0"),
            ("RES_OPTIONS", "timeout:1 attempts:1"),
        ];
        // as a user without rights, who needs a user namespace to see another resolv.conf
        let start = ["unshare", "--user", "--map-user=1000", "--map-group=1000"];
        let fault = format!("--dns-fault {failure}");
        let Some(seen) = watched(test, &start, &fault, &environment) else {
            return;
        };
        assert_eq!(seen.errors, json!({code: 1}), "{failure}");
        assert_eq!(seen.watch["totals"]["lookups"]["errors"], json!({error: 1}));
        let asked = &seen.server["lookups"];
        assert_eq!(asked["failed"][failure], asked["total"], "{asked}");
        assert!(asked["total"].as_u64() >= Some(1), "{asked}");
        let first = seen.watch["verdict"][0].as_str().unwrap();
        let sentence = format!("No connection could be opened: 1 lookup failed ({error} 1: ");
        assert!(first.starts_with(&sentence), "{first}");
    }
}

#[test]
fn compare_shows_failed_lookups_of_both_programs() {
    let test = "compare_shows_failed_lookups_of_both_programs";
    for name in ["node", "unshare", "ip"] {
        if program(name, test).is_none() {
            return;
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let intact = env!("CARGO_BIN_EXE_intact");
    // what one program has used up is there again when the next one starts
    let words = "compare --rounds 2 --warm-up 0 --resolver 127.0.0.9 --env KEEPALIVE=0,1 --json=compare.json --ignore-failure";
    let words: Vec<&str> = words
        .split(' ')
        .chain(["--prepare", "sleep 1.2", "--"])
        .collect();
    let words = [&[intact], &words[..], &["node", "-e", CLIENT]].concat();
    let limit = "--dns-rate-limit 1/s:servfail";
    // a failed lookup is asked for once
    let environment = [("REQUESTS", "20"), ("RES_OPTIONS", "attempts:1")];
    let out = stage(folder.path(), limit, &words, &environment);
    assert!(out.status.success(), "{out:?}");
    let document = read(folder.path(), "compare.json");
    let [new, kept] = [0, 1].map(|at| &document["variants"][at]);
    // counts are of one run
    let rounds = document["rounds"].as_f64().unwrap();
    let all = |one: &Value, key: &str| (one[key].as_f64().unwrap() * rounds).round() as u64;
    let [lookups, failed] = ["lookups", "lookups_failed"].map(|key| all(new, key));
    assert!(failed > 0, "{document:#}");
    assert_eq!([all(kept, "lookups"), all(kept, "lookups_failed")], [2, 0]);
    let sentence =
        format!("Failed lookups: {failed} of {lookups} in KEEPALIVE=0, 0 of 2 in KEEPALIVE=1");
    let verdict = document["verdict"].as_array().unwrap();
    assert!(verdict.contains(&json!(sentence)), "{verdict:#?}");
}

/// `bench` of two ways to resolve names, with and without reuse, 20 requests each; its document and
/// the server's.
fn benched(test: &str, dns: &str, name_server: &str) -> Option<(Value, Value)> {
    for name in ["unshare", "ip"] {
        program(name, test)?;
    }
    let folder = tempfile::tempdir().unwrap();
    let words = "bench http://api.test:8080/ -4 -n 20 --rounds 2 --resolver 127.0.0.9 --json=bench.json --dns";
    let intact = env!("CARGO_BIN_EXE_intact");
    let words: Vec<&str> = words.split(' ').chain([dns]).collect();
    let words = [&[intact], &words[..]].concat();
    let out = stage(folder.path(), name_server, &words, &[]);
    assert!(out.status.success(), "{out:?}");
    let documents = ["bench.json", "serve.json"].map(|name| read(folder.path(), name));
    Some(documents.into())
}

/// Lookups of each variant, by its name.
fn lookups(bench: &Value) -> Vec<(&str, u64)> {
    let variants = bench["variants"].as_array().unwrap().iter();
    let count = |one: &Value| one["lookups"].as_u64().unwrap();
    variants
        .map(|one| (one["name"].as_str().unwrap(), count(one)))
        .collect()
}

#[test]
fn a_cache_of_names_and_reuse_each_save_lookups() {
    let test = "a_cache_of_names_and_reuse_each_save_lookups";
    let dns = "per-connection,cached";
    let Some((bench, server)) = benched(test, dns, "--dns-ttl 1h") else {
        return;
    };
    // one per round, one per request, and none: the first request of all has the answer
    let wanted = [
        ("keepalive=on dns=per-connection", 2),
        ("keepalive=off dns=per-connection", 20),
        ("keepalive=on dns=cached", 0),
        ("keepalive=off dns=cached", 0),
    ];
    assert_eq!(lookups(&bench), wanted);
    // and that first request of each variant
    let asked = 2 + 20 + 4;
    assert_eq!(server["lookups"], json!({"total": asked, "failed": {}}));

    // an answer that is not valid for any time is not kept
    let (bench, _) = benched(test, dns, "--dns-ttl 0").unwrap();
    assert_eq!(lookups(&bench)[3], ("keepalive=off dns=cached", 20));
}

#[test]
fn failed_lookups_of_a_bench_stand_in_its_verdict() {
    let test = "failed_lookups_of_a_bench_stand_in_its_verdict";
    let limit = "--dns-rate-limit 5/s:nxdomain";
    let Some((bench, _)) = benched(test, "system", limit) else {
        return;
    };
    let variants = bench["variants"].as_array().unwrap();
    let of = |name: &str| {
        let mut all = variants.iter();
        let one = all.find(|one| one["name"] == name).unwrap();
        let (failed, all) = (&one["lookups_failed"], &one["lookups"]);
        format!("{failed} of {all} in {name}")
    };
    let [kept, new] = ["keepalive=on", "keepalive=off"].map(of);
    assert!(!new.starts_with("0 "), "{new}");
    let sentence = format!("Failed lookups: {kept}, {new}");
    let verdict = bench["verdict"].as_array().unwrap();
    assert!(verdict.contains(&json!(sentence)), "{verdict:#?}");
}

#[test]
fn on_a_link_the_names_are_those_of_the_server() {
    let test = "on_a_link_the_names_are_those_of_the_server";
    if program("node", test).is_none() {
        return;
    }
    let client = format!("process.env.PORT = 80; process.env.REQUESTS = 3; {CLIENT}");
    let words = [
        "serve", "--dns", "--link", "rtt=2ms", "--", "node", "-e", &client,
    ];
    let Some(out) = on_link(&words, test) else {
        return;
    };
    assert_eq!(String::from_utf8_lossy(&out.stdout), "{}\n", "{out:?}");
}
