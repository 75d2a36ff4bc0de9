//! `intact check --chain`: limits as written, configurations on disk, the idle times of a log.

use crate::program::{Schema, intact};
use serde_json::Value;
use std::fmt::Write;
use std::path::Path;
use std::process::Output;

fn chain(words: &[&str]) -> (Output, Value) {
    let all = [&["check", "--json", "--chain"], words].concat();
    let out = intact(&all);
    let document = serde_json::from_slice(&out.stdout).unwrap_or(Value::Null);
    (out, document)
}

fn written(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// An access log of nginx with connection numbers: one connection that idles `gap` seconds before
/// each request.
fn log(gap: u64) -> String {
    let mut lines = String::new();
    for nth in 0..200_u64 {
        let (at, ordinal) = (1_795_249_183 + nth * gap, nth + 1);
        writeln!(
            lines,
            "10.0.0.1 - - [21/Nov/2026:08:19:43 +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"-\" msec={at}.500 rt=0.000 conn=7 reqs={ordinal} scheme=http host=app"
        )
        .unwrap();
    }
    lines
}

#[test]
fn a_written_chain_names_the_hops_and_passes_its_schema() {
    let (out, document) = chain(&[
        "client=60s",
        "alb=60s",
        "nginx=75s",
        "app=5s",
        "--fail-on",
        "warning",
    ]);
    assert_eq!(out.status.code(), Some(1));
    Schema::named("chain").check(&document);
    let orders: Vec<&str> = document["hops"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hop| hop["order"].as_str().unwrap())
        .collect();
    assert_eq!(orders, ["server-first", "client-first", "server-first"]);
    assert_eq!(document["hops"][2]["set_server_s"], 83.0);
    let (out, _) = chain(&[
        "client=4s",
        "alb",
        "nginx=75s",
        "app=90s",
        "--require",
        "chain.races == 0",
    ]);
    assert_eq!(out.status.code(), Some(0));
}

#[test]
fn a_configuration_is_read_with_its_includes_and_nothing_outside_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let nginx = written(
        folder.path(),
        "nginx/nginx.conf",
        "http { include sites/*; upstream app { server a; keepalive 8; } }",
    );
    written(
        folder.path(),
        "nginx/sites/a",
        "server { listen 80; keepalive_timeout 30s; location / { proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_pass http://app; } }",
    );
    let caddy = written(
        folder.path(),
        "Caddyfile",
        ":80 {\n reverse_proxy a {\n transport http {\n keepalive 10s\n }\n }\n}\n",
    );
    let (_, document) = chain(&[
        "client=60s",
        &format!("nginx={nginx}"),
        &format!("edge={caddy}"),
        "app=5s",
    ]);
    let hops = &document["hops"];
    assert_eq!(hops[0]["server_idle"]["seconds"], 30.0);
    let source = ["keepalive_timeout 30s (sites", "a:1)"].join(std::path::MAIN_SEPARATOR_STR);
    assert_eq!(hops[0]["server_idle"]["source"], source);
    assert_eq!(hops[1]["client_idle"]["seconds"], 60.0);
    assert_eq!(hops[2]["client_idle"]["seconds"], 10.0);
    assert_eq!(document["caveats"].as_array().unwrap().len(), 0);

    #[cfg(unix)]
    {
        // a link out of the folder is not followed, and closes the gate
        let secret = written(folder.path(), "secret", "keepalive_timeout 1s;");
        std::os::unix::fs::symlink(secret, folder.path().join("nginx/sites/b")).unwrap();
        let (out, document) = chain(&[
            "client=5s",
            &format!("nginx={nginx}"),
            "--require",
            "chain.races == 0",
        ]);
        assert_eq!(out.status.code(), Some(1));
        let caveat = document["caveats"][0]["message"].as_str().unwrap();
        assert!(caveat.contains("sites/b (outside the folder"), "{caveat}");
    }
}

#[test]
fn keepalive_alone_keeps_nothing_before_the_version_that_keeps_by_default() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(
        folder.path(),
        "nginx.conf",
        "http { upstream app { server a; keepalive 16; } server { location / { proxy_pass http://app; } } }",
    );
    let of = |version: &str| {
        let hop = format!("nginx{version}={file}");
        let (_, document) = chain(&["client=60s", &hop, "app=70s"]);
        let finding = &document["findings"][0];
        let fix = finding["fix"].as_str().unwrap_or_default().to_owned();
        (document["hops"][1]["order"].clone(), fix)
    };
    let (order, fix) = of("@1.22.1");
    assert_eq!(order, "not-kept");
    assert!(fix.contains("proxy_set_header Connection"), "{fix}");
    assert_eq!(of("@1.31.3").0, "client-first");
    let (order, fix) = of("");
    assert_eq!(order, "unknown");
    assert!(fix.contains("proxy_http_version 1.1"), "{fix}");
}

#[test]
fn losses_are_expected_from_the_idle_times_of_a_log() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "access.log", &log(4));
    let gaps = format!("app={file}");
    let (out, document) = chain(&[
        "client=60s",
        "app=5s",
        "--gaps",
        &gaps,
        "--rtt",
        "10ms",
        "--require",
        "chain.lost < 0.1%",
    ]);
    let loss = &document["hops"][0]["loss"];
    assert_eq!(document["gaps"]["count"], 199, "{document:#}");
    // all 199 idle times are in the last second, and one in a hundred crosses the close
    let share = loss["lost_share"].as_f64().unwrap();
    assert!((share - 1.99 / 200.0).abs() < 1e-6, "{loss}");
    assert_eq!(out.status.code(), Some(1), "1 % is lost");
    let file = written(folder.path(), "short.log", &log(1));
    let (out, document) = chain(&[
        "client=60s",
        "app=5s",
        "--gaps",
        &file,
        "--require",
        "chain.lost < 100%",
    ]);
    assert_eq!(document["hops"][0]["loss"]["is_beyond_the_log"], true);
    assert_eq!(out.status.code(), Some(1), "nothing is known");
}

#[test]
fn the_page_says_what_to_do_before_the_figures() {
    let out = intact(&["check", "--chain", "client=60s", "alb=60s", "app=5s"]);
    let page = String::from_utf8(out.stdout).unwrap();
    let parts = [
        "What stands out",
        "One set of limits",
        "Idle limits, hop by hop",
    ];
    let places = parts.map(|part| page.find(part).unwrap_or_else(|| panic!("{part}: {page}")));
    assert!(places.is_sorted(), "{page}");
}

#[test]
fn wrong_chains_are_refused_with_a_remedy() {
    for (words, remedy) in [
        (&["client=60s"][..], "two hops"),
        (&["client=60s", "client=5s"], "a name of its own"),
        (&["client=60", "app=5s"], "client=nginx:60"),
        (&["client=60s", "somewhere"], "somewhere=LIMIT"),
        (
            &["client=60s", "app=5s", "--gaps", "client=x"],
            "accepts no connections",
        ),
    ] {
        let (out, _) = chain(words);
        assert_eq!(out.status.code(), Some(2), "{words:?}");
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        assert!(said.contains(remedy), "{said}");
    }
    let (out, _) = chain(&["client=60s", "nginx=/no/such/nginx.conf"]);
    assert_eq!(out.status.code(), Some(5));
}
