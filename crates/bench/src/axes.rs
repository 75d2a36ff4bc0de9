//! The axes of a bench and their product, the variants.

use intact_ledger::{Protocol, TlsVersion, Variant};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The TLS of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsChoice {
    /// Plain.
    None,
    /// Whatever is negotiated.
    Any,
    /// This version only.
    Version(TlsVersion),
}

impl TlsChoice {
    /// The word on the command line and in axes.
    pub fn as_str(self) -> &'static str {
        match self {
            TlsChoice::None => "none",
            TlsChoice::Any => "any",
            TlsChoice::Version(version) => version.as_str(),
        }
    }
}

/// The values of each axis, in the order in which they were given. None is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axes {
    /// Are connections kept?
    pub keepalive: Vec<bool>,
    /// HTTP versions.
    pub http: Vec<Protocol>,
    /// TLS.
    pub tls: Vec<TlsChoice>,
    /// May TLS sessions be resumed?
    pub resume: Vec<bool>,
    /// Connections at once.
    pub concurrency: Vec<u32>,
    /// Streams per connection.
    pub streams: Vec<u32>,
}

/// One value of each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AxisValues {
    pub(crate) keepalive: bool,
    pub(crate) http: Protocol,
    pub(crate) tls: TlsChoice,
    pub(crate) resume: bool,
    pub(crate) concurrency: u32,
    pub(crate) streams: u32,
}

impl Axes {
    /// The product. Where a value has no meaning beside another (resumption without TLS, streams without HTTP/2), the
    /// combinations fall together and are measured once.
    pub(crate) fn choices(&self) -> Vec<AxisValues> {
        let mut choices: Vec<AxisValues> = Vec::new();
        // an A/A comparison names a value twice and wants it measured twice
        for &concurrency in &self.concurrency {
            for &http in &self.http {
                for &tls in &self.tls {
                    for (nth, &resume) in self.resume.iter().enumerate() {
                        if tls == TlsChoice::None && nth > 0 {
                            continue;
                        }
                        for (nth, &streams) in self.streams.iter().enumerate() {
                            if http != Protocol::Http2 && nth > 0 {
                                continue;
                            }
                            for &keepalive in &self.keepalive {
                                choices.push(AxisValues {
                                    keepalive,
                                    http,
                                    tls,
                                    resume: resume && tls != TlsChoice::None,
                                    concurrency,
                                    streams: if http == Protocol::Http2 { streams } else { 1 },
                                });
                            }
                        }
                    }
                }
            }
        }
        choices
    }

    /// The axes with more than one value, in the order of the command line's help.
    pub fn varied(&self) -> Vec<String> {
        let lengths = [
            ("keepalive", self.keepalive.len()),
            ("http", self.http.len()),
            ("tls", self.tls.len()),
            ("resume", self.resume.len()),
            ("c", self.concurrency.len()),
            ("streams", self.streams.len()),
        ];
        lengths
            .iter()
            .filter(|(_, length)| *length > 1)
            .map(|(axis, _)| (*axis).to_owned())
            .collect()
    }
}

/// The variants as the ledger names them: by the axes in which they differ, a repeated one by its number.
pub(crate) fn variants(choices: &[AxisValues], varied: &[String]) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for choice in choices {
        let on_off = |on| if on { "on" } else { "off" }.to_owned();
        let axes = BTreeMap::from([
            ("keepalive".to_owned(), on_off(choice.keepalive)),
            ("http".to_owned(), choice.http.as_str().to_owned()),
            ("tls".to_owned(), choice.tls.as_str().to_owned()),
            ("resume".to_owned(), on_off(choice.resume)),
            ("c".to_owned(), choice.concurrency.to_string()),
            ("streams".to_owned(), choice.streams.to_string()),
        ]);
        let differing = varied
            .iter()
            .filter_map(|axis| Some(format!("{axis}={}", axes.get(axis)?)));
        let mut name = differing.collect::<Vec<_>>().join(" ");
        if name.is_empty() {
            name = format!("keepalive={}", axes["keepalive"]);
        }
        let same = variants.iter().filter(|other| other.axes == axes).count();
        if same > 0 {
            name = format!("{name} ({})", same + 1);
        }
        variants.push(Variant { name, axes });
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Axes {
        Axes {
            keepalive: vec![true, false],
            http: vec![Protocol::Http11],
            tls: vec![TlsChoice::None],
            resume: vec![false],
            concurrency: vec![1],
            streams: vec![1],
        }
    }

    #[test]
    fn variants_are_named_by_what_differs() {
        let mut axes = axes();
        axes.http.push(Protocol::Http2);
        let variants = variants(&axes.choices(), &axes.varied());
        let names: Vec<_> = variants.iter().map(|variant| &*variant.name).collect();
        assert_eq!(
            names,
            [
                "keepalive=on http=1.1",
                "keepalive=off http=1.1",
                "keepalive=on http=2",
                "keepalive=off http=2"
            ]
        );
    }

    #[test]
    fn a_value_named_twice_is_an_a_a_comparison() {
        let mut axes = axes();
        axes.keepalive = vec![true, true];
        let variants = variants(&axes.choices(), &axes.varied());
        assert_eq!(variants[0].name, "keepalive=on");
        assert_eq!(variants[1].name, "keepalive=on (2)");
    }

    #[test]
    fn what_has_no_meaning_is_measured_once() {
        let mut axes = axes();
        axes.tls = vec![TlsChoice::None, TlsChoice::Any];
        axes.resume = vec![false, true];
        axes.streams = vec![1, 32];
        // plain: keepalive only; TLS: keepalive x resume; streams need HTTP/2
        assert_eq!(axes.choices().len(), 2 + 4);
    }
}
