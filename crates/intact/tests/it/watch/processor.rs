//! `--cpu` and `--flamegraph`: where processor time went, by programs whose work is known. Where
//! the system refuses to sample, the reason is printed, and that is what is tested.

use super::watch;
use crate::peers::program;
use crate::program::Server;

const BUSY: &str = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done";

#[test]
fn processor_time_has_its_categories_or_the_reason_why_not() {
    let (out, facts) = watch(&["--cpu"], &["sh", "-c", BUSY]);
    assert!(out.status.success(), "{out:?}");
    let schema = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/schema/traffic.schema.json"
    );
    let schema = serde_json::from_str(&std::fs::read_to_string(schema).unwrap()).unwrap();
    jsonschema::validate(&schema, &facts).unwrap();
    let cpu = &facts["cpu"];
    assert!(cpu["user_ms"].as_f64().unwrap() > 0.0, "{cpu}");
    let Some(work) = cpu["work"].as_object() else {
        assert!(cpu["not_sampled"].is_string(), "{cpu}");
        return;
    };
    assert!(work["samples"].as_u64().unwrap() > 0);
    assert!(
        work["other"].as_f64().unwrap() > 0.5,
        "a loop is no socket work: {cpu}"
    );
    let shares =
        ["socket", "tls", "dns", "readiness", "other"].map(|name| work[name].as_f64().unwrap());
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{cpu}");
}

#[test]
fn without_the_option_there_is_no_processor_time() {
    let (_, facts) = watch(&[], &["true"]);
    assert!(facts.get("cpu").is_none(), "{facts}");
}

#[test]
fn a_flame_graph_names_functions_of_javascript_and_its_lists_are_gone_afterwards() {
    if program("node", "watch --flamegraph").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let svg = folder.path().join("flame.svg");
    let script = "console.log(process.pid);
        function countToMany() { let n = 0; for (let i = 0; i < 2e8; i++) n += i % 7; return n; }
        require('http').get(process.argv[1], answer => { answer.resume(); answer.on('end', countToMany); });";
    let words = ["node", "-e", script, &server.plain()];
    let (out, facts) = watch(&["--flamegraph", svg.to_str().unwrap()], &words);
    if out.status.code() == Some(4) {
        let said = String::from_utf8_lossy(&out.stderr);
        assert!(said.contains("perf_event_paranoid"), "{said}");
        return;
    }
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    let pid = String::from_utf8(out.stdout).unwrap();
    let list = format!("/tmp/perf-{}.map", pid.trim());
    assert!(!std::path::Path::new(&list).exists(), "{list}");
    assert_eq!(facts["requests"]["total"], 1);
    let text = std::fs::read_to_string(&svg).unwrap();
    assert!(
        text.contains("countToMany"),
        "{}",
        &text[text.len() / 2..][..500]
    );
}
