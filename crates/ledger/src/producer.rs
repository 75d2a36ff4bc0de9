//! The command that recorded a run. An unknown name is kept.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The command that recorded a run; text in `run.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
pub enum Producer {
    /// `intact audit`
    Audit,
    /// `intact bench`, and the merged results of a `fleet`
    Bench,
    /// `intact check`
    Check,
    /// `intact compare`
    Compare,
    /// `intact fleet`, one message
    Fleet,
    /// `intact lambda`
    Lambda,
    /// `intact link`
    Link,
    /// `intact serve`
    Serve,
    /// `intact watch`
    Watch,
    /// Another program, or a newer version.
    Other(String),
}

impl Producer {
    /// Every producer of this version.
    const KNOWN: [Producer; 9] = [
        Producer::Audit,
        Producer::Bench,
        Producer::Check,
        Producer::Compare,
        Producer::Fleet,
        Producer::Lambda,
        Producer::Link,
        Producer::Serve,
        Producer::Watch,
    ];

    /// The name as in `run.json`. The name of another program may contain any characters.
    pub fn as_str(&self) -> &str {
        match self {
            Producer::Audit => "audit",
            Producer::Bench => "bench",
            Producer::Check => "check",
            Producer::Compare => "compare",
            Producer::Fleet => "fleet",
            Producer::Lambda => "lambda",
            Producer::Link => "link",
            Producer::Serve => "serve",
            Producer::Watch => "watch",
            Producer::Other(name) => name,
        }
    }
}

impl From<String> for Producer {
    fn from(name: String) -> Producer {
        let mut known = Producer::KNOWN.into_iter();
        known
            .find(|producer| producer.as_str() == name)
            .unwrap_or(Producer::Other(name))
    }
}

impl From<Producer> for String {
    fn from(producer: Producer) -> String {
        producer.as_str().to_owned()
    }
}

impl fmt::Display for Producer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_reads_back_and_an_unknown_one_is_kept() {
        for producer in Producer::KNOWN {
            assert_eq!(Producer::from(producer.to_string()), producer);
            assert!(!matches!(producer, Producer::Other(_)));
        }
        let foreign: Producer = serde_json::from_str("\"mitmproxy\"").unwrap();
        assert_eq!(foreign, Producer::Other("mitmproxy".to_owned()));
        assert_eq!(serde_json::to_string(&foreign).unwrap(), "\"mitmproxy\"");
    }
}
