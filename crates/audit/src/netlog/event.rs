//! One event as it is stored. A value of an unexpected type counts as absent, so no version of
//! Chromium breaks the reader.

use crate::lenient::Lenient;
use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Whether an event starts or ends a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventPhase {
    /// The event has no duration.
    Point,
    Begin,
    End,
}

/// One event of the file.
#[derive(Debug, Default, serde::Deserialize)]
pub(super) struct RawEvent {
    #[serde(default)]
    pub(super) params: Params,
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
    pub(super) id: u64,
    #[serde(rename = "type", default)]
    pub(super) kind: u64,
}

/// The parameters that are used.
#[derive(Debug, Default)]
pub(super) struct Params {
    pub(super) url: Lenient,
    pub(super) method: Lenient,
    pub(super) host: Lenient,
    pub(super) group: Lenient,
    pub(super) local_address: Lenient,
    pub(super) remote_address: Lenient,
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
    pub(super) dependency: Option<u64>,
    /// Fields of a header section, each as `name: value`.
    pub(super) headers: Vec<String>,
}

impl RawEvent {
    /// Reads a line, which ends in a comma; `None` if it is damaged.
    pub(super) fn read(line: &[u8]) -> Option<RawEvent> {
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
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Params, D::Error> {
        deserializer.deserialize_any(Any(Params::default()))
    }
}

struct Any(Params);

impl<'de> Visitor<'de> for Any {
    type Value = Params;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("parameters")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Params, E> {
        Ok(self.0)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Params, E> {
        Ok(self.0)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Params, E> {
        Ok(self.0)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Params, E> {
        Ok(self.0)
    }

    fn visit_str<E>(self, _: &str) -> Result<Params, E> {
        Ok(self.0)
    }

    fn visit_unit<E>(self) -> Result<Params, E> {
        Ok(self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Params, A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(self.0)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Params, A::Error> {
        let mut params = self.0;
        while let Some(key) = object.next_key::<String>()? {
            let place = match key.as_str() {
                "url" => &mut params.url,
                "method" => &mut params.method,
                "host" => &mut params.host,
                "group_id" | "group_name" => &mut params.group,
                "local_address" | "source_address" => &mut params.local_address,
                "remote_address" | "peer_address" => &mut params.remote_address,
                "net_error" => &mut params.net_error,
                "error_code" => &mut params.error_code,
                "next_proto" => &mut params.next_proto,
                "version" => &mut params.version,
                "cipher_suite" => &mut params.cipher_suite,
                "is_resumed" => &mut params.is_resumed,
                "byte_count" => &mut params.byte_count,
                "reason" => &mut params.reason,
                "id" => &mut params.id,
                "value" => &mut params.value,
                "source_dependency" => {
                    params.dependency = object.next_value::<Dependency>()?.0;
                    continue;
                }
                "headers" => {
                    params.headers = object.next_value::<Texts>()?.0;
                    continue;
                }
                _ => {
                    object.next_value::<IgnoredAny>()?;
                    continue;
                }
            };
            *place = object.next_value()?;
        }
        Ok(params)
    }
}

/// The `id` of an object; `None` for other values.
#[derive(Default)]
struct Dependency(Option<u64>);

impl<'de> Deserialize<'de> for Dependency {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Dependency, D::Error> {
        // `id` is one of the parameters that are read
        Ok(Dependency(Params::deserialize(deserializer)?.id.count()))
    }
}

/// A list of texts: empty for other values, and without elements that are no text.
#[derive(Default)]
struct Texts(Vec<String>);

impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Texts, D::Error> {
        #[derive(serde::Deserialize)]
        #[serde(untagged)]
        enum Either {
            List(Vec<Lenient>),
            Other(IgnoredAny),
        }
        Ok(match Either::deserialize(deserializer)? {
            Either::List(list) => Texts(list.iter().filter_map(|item| item.text()).collect()),
            Either::Other(_) => Texts::default(),
        })
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
        assert!(event.params.headers.is_empty());
        assert_eq!(event.params.url, Lenient::Nothing);
        assert_eq!(event.params.dependency, None);
        assert_eq!(event.params.net_error.number(), Some(-105.0));
        assert_eq!(event.edge(), EventPhase::End);
        assert!(
            RawEvent::read(b"{\"params\":[1],\"source\":{\"id\":1},\"time\":\"1\",\"type\":1},")
                .is_some()
        );
        assert!(RawEvent::read(b"{\"params\"").is_none());
    }
}
