//! `pinned-to-old-address` on real traffic: a name that moves while a client keeps its connection,
//! and one that goes along.

use super::names::Stage;
use crate::peers::program;
use crate::rule_pairs::field::copy_programs;
use serde_json::Value;

/// Asks on a connection that is kept, looks the name up for another purpose, and asks on for longer
/// than the rule has patience.
const PYTHON: &str = "
import http.client, sys, time, urllib.request
name, goes_along = sys.argv[1], sys.argv[2] == 'goes-along'
kept = http.client.HTTPConnection(name)
def ask():
    kept.request('GET', '/')
    kept.getresponse().read()
ask()
urllib.request.urlopen(f'http://{name}/').read()
if goes_along: kept.close()
for _ in range(8):
    time.sleep(4)
    ask()
";

/// The same with an agent, and `fetch`, which has a pool of its own.
const NODE: &str = "
const http = require('http');
const [name, what] = process.argv.slice(1);
const agent = new http.Agent({ keepAlive: true });
const ask = () => new Promise((done, fail) =>
  http.get(`http://${name}/`, { agent }, (answer) => answer.resume().on('end', done)).on('error', fail));
(async () => {
  await ask();
  await (await fetch(`http://${name}/`)).text();
  if (what === 'goes-along') agent.destroy();
  for (let i = 0; i < 8; i++) {
    await new Promise((done) => setTimeout(done, 4000));
    await ask();
  }
  agent.destroy();
})();
";

/// A program, the option that takes its code, and the code.
type Client = (&'static str, &'static str, &'static str);

const CLIENTS: [Client; 2] = [("python3", "-c", PYTHON), ("node", "-e", NODE)];

/// A run of a client: the file of its document, or of its packets, and the name that it asks.
struct Run {
    file: String,
    kind: &'static str,
    name: String,
}

/// A command that runs one of the clients as `kind`, and the run; `label` is the producer.
fn run(
    stage: &Stage,
    label: &str,
    client: &Client,
    kind: &'static str,
    command: impl Fn(&str, &str) -> String,
) -> (String, Run) {
    let (program, option, code) = client;
    let name = format!("moving-{label}-{program}-{kind}");
    let code_path = stage.path(&format!("{label}-{program}.code"));
    std::fs::write(&code_path, code).unwrap();
    let file = stage.path(&format!("{name}.json"));
    let words = format!("{program} {option} \"$(cat {code_path})\" {name}.example {kind}");
    let line = format!("{} &\n", command(&file, &words));
    (line, Run { file, kind, name })
}

/// The client under each producer that claims the rule, except `watch`.
fn under_others(stage: &Stage, kind: &'static str, port: u16) -> Vec<(String, Run)> {
    let intact = env!("CARGO_BIN_EXE_intact");
    copy_programs(stage);
    let [function, service] = ["function.py", "service.py"].map(|name| stage.path(name));
    let client = &CLIENTS[0];
    let compare = |file: &str, words: &str| {
        let options = "--rounds 1 --warm-up 0";
        format!("{intact} compare {options} --json={file} -- true -- {words} >/dev/null")
    };
    let lambda = |file: &str, words: &str| {
        format!(
            "{intact} lambda -n 1 --timeout 99s --json={file} -- python3 {function} {words} >/dev/null"
        )
    };
    let bench = |file: &str, words: &str| {
        let script = format!("{file}.sh");
        std::fs::write(
            &script,
            format!("WHILE=1 PORT={port} exec python3 {service} {words}"),
        )
        .unwrap();
        let url = format!("http://127.0.0.1:{port}/");
        format!(
            "{intact} bench {url} -c 1 -z 36s --rate 2/s --rounds 1 --json={file} --service 'sh {script}' >/dev/null 2>&1"
        )
    };
    vec![
        run(stage, "compare", client, kind, compare),
        run(stage, "lambda", client, kind, lambda),
        run(stage, "service", client, kind, bench),
    ]
}

#[test]
fn a_kept_connection_to_an_address_that_the_name_has_left_is_found_and_one_that_goes_along_is_not()
{
    let what = "watch a name that moves";
    let Some(stage) = Stage::set(what) else {
        return;
    };
    let mut runs = Vec::new();
    for (kind, port) in [("stays", 7071), ("goes-along", 7072)] {
        for client in &CLIENTS {
            let watch = |file: &str, words: &str| {
                format!(
                    "{} watch -q --json={file} -- {words}",
                    env!("CARGO_BIN_EXE_intact")
                )
            };
            if program(client.0, what).is_some() {
                runs.push(run(&stage, "watch", client, kind, watch));
            }
        }
        runs.extend(under_others(&stage, kind, port));
    }
    // all at once: they wait most of the time
    let lines: String = runs.iter().map(|(line, _)| line.as_str()).collect();
    let out = stage.run("127.0.0.53", &["sh", "-c", &(lines + "wait\n")]);
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    for (_, run) in &runs {
        let Run { file, kind, name } = run;
        let text = std::fs::read(file).unwrap_or_else(|error| panic!("{name}: {error}: {out:?}"));
        let document: Value = serde_json::from_slice(&text).unwrap();
        let observed = document.pointer("/services/0").unwrap_or(&document);
        assert_eq!(observed["requests"]["total"], 10, "{name}: {document}");
        let findings = document["findings"].as_array().unwrap();
        let found: Vec<&Value> = findings
            .iter()
            .filter(|one| one["rule"] == "pinned-to-old-address")
            .collect();
        if *kind == "goes-along" {
            assert!(found.is_empty(), "{name}: {found:?}");
            continue;
        }
        assert_eq!(found.len(), 1, "{name}: {document}");
        let said = found[0].to_string();
        for words in [
            "went to 127.0.0.1 after the name had stopped resolving to it",
            "after the first lookup without that address",
        ] {
            assert!(said.contains(words), "{name}: {said}");
        }
    }
}
