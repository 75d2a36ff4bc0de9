//! One event as it is stored. A value of an unexpected type counts as absent, so no version of
//! Chromium breaks the reader.

use super::constants::Kind;
use crate::lenient::Lenient;
use serde::de::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// Whether an event starts or ends a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventPhase {
    /// The event has no duration.
    Point,
    Begin,
    End,
}

/// One event of the file. Most kinds are not used, so the parameters stay text.
#[derive(Debug, serde::Deserialize)]
pub(super) struct RawEvent<'a> {
    #[serde(borrow, default)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    phase: u64,
    pub(super) source: RawSource,
    /// Milliseconds in ticks.
    pub(super) time: Lenient,
    #[serde(rename = "type")]
    pub(super) kind: u64,
}

/// The source that an event belongs to.
#[derive(Clone, Copy, Debug, Default, serde::Deserialize)]
pub(super) struct RawSource {
    #[serde(deserialize_with = "source_id")]
    pub(super) id: u64,
    #[serde(rename = "type", default)]
    pub(super) kind: u64,
}

/// An event of a kind that is used.
pub(super) struct UsedEvent {
    pub(super) kind: Kind,
    pub(super) phase: EventPhase,
    /// The number of its source.
    pub(super) id: u64,
    /// Nanoseconds since 1970.
    pub(super) at: u64,
    pub(super) params: Params,
}

/// The parameters that are used.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Params {
    pub(super) url: Lenient,
    pub(super) method: Lenient,
    pub(super) host: Lenient,
    pub(super) group_id: Lenient,
    pub(super) group_name: Lenient,
    pub(super) local_address: Lenient,
    pub(super) source_address: Lenient,
    pub(super) remote_address: Lenient,
    pub(super) peer_address: Lenient,
    pub(super) net_error: Lenient,
    pub(super) error_code: Lenient,
    pub(super) next_proto: Lenient,
    pub(super) version: Lenient,
    pub(super) cipher_suite: Lenient,
    pub(super) is_resumed: Lenient,
    pub(super) byte_count: Lenient,
    pub(super) reason: Lenient,
    pub(super) id: Lenient,
    pub(super) value: Lenient,
    /// The source that this source depends on.
    #[serde(rename = "source_dependency", deserialize_with = "number")]
    pub(super) dependency: Option<u64>,
    /// Fields of a header section, each as `name: value`.
    #[serde(deserialize_with = "texts")]
    pub(super) headers: Vec<String>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Dependency {
    id: Lenient,
}

/// Reads a value of another type as the default.
fn or_default<'de, D: Deserializer<'de>, T>(deserializer: D) -> Result<T, D::Error>
where
    T: Default + Deserialize<'de>,
{
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).unwrap_or_default())
}

/// Reads the number of an event's own source. Chromium has negative ones for what is shared, such
/// as certificates and the state of the network.
fn source_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
    i64::deserialize(deserializer).map(i64::cast_unsigned)
}

/// Reads the number of a source; `None` for another value.
fn number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let source: Dependency = or_default(deserializer)?;
    Ok(source.id.count())
}

/// Reads a list of texts: empty for other values, and without elements that are no text.
fn texts<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let list: Vec<Lenient> = or_default(deserializer)?;
    Ok(list.iter().filter_map(Lenient::text).collect())
}

impl RawEvent<'_> {
    /// Reads a line, which ends in a comma; `None` if it is damaged.
    pub(super) fn read(line: &[u8]) -> Option<RawEvent<'_>> {
        let line = line.trim_ascii();
        let line = line.strip_suffix(b",").unwrap_or(line);
        serde_json::from_slice(line).ok()
    }

    pub(super) fn edge(&self) -> EventPhase {
        match self.phase {
            1 => EventPhase::Begin,
            2 => EventPhase::End,
            _ => EventPhase::Point,
        }
    }

    pub(super) fn params(&self) -> Params {
        let params = self.params.map(|raw| serde_json::from_str(raw.get()));
        params.and_then(Result::ok).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_another_type_are_absent() {
        let event = RawEvent::read(
            br#"{"params":{"headers":{"line":""},"url":["x"],"source_dependency":7,"net_error":-105,"x":{"y":[1]}},"phase":2,"source":{"id":4},"time":5,"type":7}"#,
        )
        .unwrap();
        let params = event.params();
        assert!(params.headers.is_empty());
        assert_eq!(params.url, Lenient::Nothing);
        assert_eq!(params.dependency, None);
        assert_eq!(params.net_error.number(), Some(-105.0));
        assert_eq!(event.edge(), EventPhase::End);
        assert!(
            RawEvent::read(b"{\"params\":[1],\"source\":{\"id\":1},\"time\":\"1\",\"type\":1},")
                .is_some()
        );
        assert!(RawEvent::read(b"{\"params\"").is_none());
    }

    #[test]
    fn a_source_that_is_shared_has_a_negative_number() {
        let event = br#"{"phase":2,"source":{"id":-2147483646,"type":25},"time":"1","type":497}"#;
        assert!(RawEvent::read(event).is_some());
    }
}
