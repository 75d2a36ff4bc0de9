//! Every script of a folder, plain and over TLS, until it is killed: `cargo run -p
//! intact-test-servers --example scripted_peers -- fixtures/hostile/scripts`.
//!
//! Prints a line per peer: its name, its URL, and the outcomes that a careful client's requests
//! have. So any client can be tried on them.

#![allow(clippy::print_stdout, reason = "an example talks to a person")]

use intact_ledger::Outcome;
use intact_serve::CertificateAuthority;
use intact_test_servers::{Script, ScriptedServer};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("name a folder of scripts")?;
    let authority = Arc::new(CertificateAuthority::make(&[])?);
    let mut servers = Vec::new();
    for script in Script::read_all(Path::new(&folder))? {
        let tls = script.tls_config(&authority);
        let expect: Vec<&str> = script.expect.iter().map(id).collect();
        for tls in [None, Some(&tls)] {
            if script.needs_tls && tls.is_none() {
                continue;
            }
            let server = ScriptedServer::start(&script, tls)?;
            let scheme = if tls.is_some() { "https" } else { "http" };
            let name = script.name.replace(' ', "-");
            println!(
                "{name} {scheme}://{}/ {}",
                server.address(),
                expect.join(",")
            );
            servers.push(server);
        }
    }
    loop {
        std::thread::park();
    }
}

fn id(outcome: &Outcome) -> &'static str {
    outcome.failure().map_or("ok", |kind| kind.id())
}
