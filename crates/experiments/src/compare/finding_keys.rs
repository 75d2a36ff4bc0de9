//! What a finding is recognised by in another run: its rule and its destinations. A test starts its
//! server on any free port, so a port of this machine that a single run has called says nothing.

use super::variant::Program;
use intact_document::finding::Finding;
use intact_ledger::Run;
use std::collections::{BTreeMap, BTreeSet};

/// The ephemeral ports of a machine that does not report them: those of Linux.
const EPHEMERAL: (u16, u16) = (32768, 60999);

/// The destinations whose port is another one in each run.
pub(super) struct FindingKeys {
    passing: BTreeSet<String>,
}

impl FindingKeys {
    /// Those of these programs.
    pub(super) fn of_programs(run: &Run, programs: &[Program]) -> FindingKeys {
        let (first, last) = run.host.ephemeral_ports.unwrap_or(EPHEMERAL);
        let mut runs: BTreeMap<&str, u32> = BTreeMap::new();
        for name in programs.iter().flat_map(Program::called) {
            *runs.entry(name).or_default() += 1;
        }
        let is_passing = |name: &str| {
            let port = split(name).map(|(_, port)| port);
            port.is_some_and(|port| (first..=last).contains(&port))
        };
        let once = runs.into_iter().filter(|(_, runs)| *runs == 1);
        let passing = once.filter(|(name, _)| is_passing(name));
        FindingKeys {
            passing: passing.map(|(name, _)| name.to_owned()).collect(),
        }
    }

    /// The key of a destination.
    pub(super) fn key(&self, name: &str) -> String {
        match split(name) {
            Some((host, _)) if self.passing.contains(name) => format!("{host}:*"),
            _ => name.to_owned(),
        }
    }

    /// The keys of the destinations of a finding.
    pub(super) fn of(&self, finding: &Finding) -> BTreeSet<String> {
        let all = std::iter::once(&finding.subject).chain(&finding.also);
        all.map(|name| self.key(name)).collect()
    }
}

/// Scheme and host, and the port, of a destination on this machine.
fn split(name: &str) -> Option<(&str, u16)> {
    let (host, port) = name.rsplit_once(':')?;
    let bare = host.split_once("://").map_or(host, |(_, bare)| bare);
    let is_local = bare == "localhost" || bare == "[::1]" || bare.starts_with("127.");
    let port = port.parse().ok()?;
    is_local.then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_destination_on_this_machine_has_a_port_of_its_own() {
        assert_eq!(
            split("http://127.0.0.1:40001"),
            Some(("http://127.0.0.1", 40001))
        );
        assert_eq!(split("http://[::1]:40001"), Some(("http://[::1]", 40001)));
        for name in ["http://api.example:40001", "http://localhost", "(others)"] {
            assert_eq!(split(name), None, "{name}");
        }
    }
}
