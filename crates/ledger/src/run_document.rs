//! `run.json`: the header of a ledger as JSON. The one place that knows the flags which older
//! versions wrote instead of `evidence`.

use crate::evidence::{Evidence, EvidenceSet};
use crate::run::{Run, Vantage};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A header of any version. Older ones have no `evidence`: they had every kind unless a flag was
/// false.
#[derive(Deserialize)]
struct RunDocument {
    evidence: Option<EvidenceSet>,
    ends_seen: Option<bool>,
    announcements_seen: Option<bool>,
    durations_seen: Option<bool>,
    lookups_seen: Option<bool>,
    #[serde(flatten, with = "Run")]
    run: Run,
}

impl RunDocument {
    fn evidence(&self) -> EvidenceSet {
        let is_at_server = self.run.vantage == Vantage::Server;
        let has = |kind: &Evidence| match kind {
            Evidence::Ends => self.ends_seen != Some(false),
            Evidence::Announcements => self.announcements_seen != Some(false),
            Evidence::Durations => self.durations_seen != Some(false),
            Evidence::Lookups => self.lookups_seen != Some(false) && !is_at_server,
            Evidence::Attempts => !is_at_server,
            // identities are never written, and processes are of a later version
            Evidence::Identities | Evidence::Processes => false,
            _ => true,
        };
        let before = || Evidence::ALL.into_iter().filter(has).collect();
        self.evidence.unwrap_or_else(before)
    }
}

impl<'de> Deserialize<'de> for Run {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Run, D::Error> {
        let document = RunDocument::deserialize(deserializer)?;
        let evidence = document.evidence();
        Ok(Run {
            evidence,
            ..document.run
        })
    }
}

impl Serialize for Run {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Run::serialize(self, serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Producer;

    /// A header of version 0.1.0 with some fields of its own.
    fn old(vantage: &str, more: &str) -> Run {
        let json = format!(
            r#"{{"id": "1", "schema": "intact.ledger/1", "producer": "audit", "version": "0.1.0",
                "vantage": "{vantage}", "started": "2026-01-01T00:00:00Z", "clock": "monotonic",
                "host": {{"os": "linux", "arch": "x86_64", "ephemeral_ports": [32768, 60999]}},
                "seed": 18446744073709551615, "argv": [], "rows": "all"{more}}}"#
        );
        serde_json::from_str(&json).unwrap()
    }

    /// The kinds that an old header can have.
    fn of_old() -> EvidenceSet {
        let all = EvidenceSet::from(Evidence::ALL);
        all.without(Evidence::Identities)
            .without(Evidence::Processes)
    }

    #[test]
    fn an_old_header_without_flags_has_every_kind_that_was_ever_recorded() {
        let run = old("client", "");
        assert_eq!(run.evidence, of_old());
        assert_eq!(run.seed, Some(u64::MAX));
        assert_eq!(run.host.ephemeral_ports, Some((32768, 60999)));
    }

    #[test]
    fn the_flags_of_an_old_header_take_kinds_away() {
        for (flag, kind) in [
            ("ends_seen", Evidence::Ends),
            ("announcements_seen", Evidence::Announcements),
            ("durations_seen", Evidence::Durations),
            ("lookups_seen", Evidence::Lookups),
        ] {
            let run = old("on-path", &format!(r#", "{flag}": false"#));
            assert_eq!(run.evidence, of_old().without(kind), "{flag}");
        }
    }

    #[test]
    fn an_old_header_of_a_server_has_no_attempts_and_no_lookups() {
        let run = old("server", r#", "ends_seen": false"#);
        assert!(!run.sees(Evidence::Attempts) && !run.sees(Evidence::Lookups));
        assert!(!run.sees(Evidence::Ends) && run.sees(Evidence::Announcements));
    }

    #[test]
    fn a_new_header_has_the_evidence_that_was_added_and_no_other() {
        let started = jiff::Timestamp::UNIX_EPOCH;
        let none = Run::new(Producer::Watch, "0", Vantage::Client, started, 1, &[]);
        assert!(none.evidence.is_empty());
        let some = none
            .clone()
            .with_evidence([Evidence::Reuse, Evidence::Ends]);
        for (run, evidence) in [(none, "[]"), (some, r#"["ends","reuse"]"#)] {
            let json = serde_json::to_string(&run).unwrap();
            assert!(
                json.contains(&format!(r#""evidence":{evidence}"#)),
                "{json}"
            );
            assert_eq!(serde_json::from_str::<Run>(&json).unwrap(), run);
        }
    }
}
