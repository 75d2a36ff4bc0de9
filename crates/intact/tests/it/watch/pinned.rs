//! `pinned-to-old-address` on real traffic: a name that moves while a client keeps its connection,
//! and one that goes along.

use super::names::Stage;
use crate::peers::program;
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

#[test]
fn a_kept_connection_to_an_address_that_the_name_has_left_is_found_and_one_that_goes_along_is_not()
{
    let what = "watch a name that moves";
    let Some(stage) = Stage::set(what) else {
        return;
    };
    let clients = [("python3", "-c", PYTHON), ("node", "-e", NODE)];
    let clients = clients.iter().filter(|one| program(one.0, what).is_some());
    let kinds = ["stays", "goes-along"];
    let cases: Vec<_> = clients
        .flat_map(|client| kinds.map(|kind| (client, kind, format!("moving-{}-{kind}", client.0))))
        .collect();
    // all at once: they wait most of the time
    let mut script = String::new();
    for ((client, option, code), kind, name) in &cases {
        let code_path = stage.path(&format!("{name}.code"));
        std::fs::write(&code_path, code).unwrap();
        let json = stage.path(&format!("{name}.json"));
        script.push_str(&format!(
            "{} watch -q --json={json} -- {client} {option} \"$(cat {code_path})\" {name}.example {kind} &\n",
            env!("CARGO_BIN_EXE_intact")
        ));
    }
    script.push_str("wait\n");
    let out = stage.run("127.0.0.53", &["sh", "-c", &script]);
    assert!(out.status.success() && out.stderr.is_empty(), "{out:?}");
    for (_, kind, name) in &cases {
        let text = std::fs::read(stage.path(&format!("{name}.json"))).unwrap();
        let document: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(document["requests"]["total"], 10, "{name}: {document}");
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
