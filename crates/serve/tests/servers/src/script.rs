//! Peers that send bytes by a script, which no HTTP server can be made to send: each is a file in
//! `fixtures/hostile/scripts/`.
//!
//! A script has steps: `text` and `hex` are bytes of the connection, over TLS in records; `record
//! TYPE` is one TLS record of that content type; `raw` goes to the transport as it is.

use crate::hostile::{self, HostileError, ValueError, outcomes};
use intact_ledger::{Outcome, TlsVersion};
use intact_serve::{CertificateAuthority, TlsConfig};
use intact_units::duration::or_seconds;
use serde::Deserialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// One peer that follows a script, for one version of HTTP.
#[derive(Clone, Debug)]
pub struct Script {
    /// The name of its file without the ending, and the version of HTTP.
    pub name: String,
    /// What it does, in a sentence.
    pub about: String,
    /// Whether it understands the request as HTTP/2.
    pub is_http2: bool,
    /// Whether it only makes sense over TLS.
    pub needs_tls: bool,
    /// Whether TLS 1.2 is all that it speaks.
    tls12: bool,
    /// Sent once, after the request has come.
    pub(crate) start: Vec<Step>,
    /// Sent again and again after that.
    pub(crate) repeat: Vec<Step>,
    /// The time between two repetitions.
    pub(crate) every: Duration,
    /// What happens when nothing is left to send.
    pub(crate) end: End,
    /// How a careful client's requests may end.
    pub expect: Vec<Outcome>,
}

/// Something to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Bytes of the connection.
    Data(Vec<u8>),
    /// A TLS record of this content type.
    Record(u8, Vec<u8>),
    /// Bytes of the transport.
    Raw(Vec<u8>),
}

/// What happens when nothing is left to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum End {
    /// The connection stays open until the client closes it.
    #[default]
    Hold,
    /// A FIN, while the client is still read.
    HalfClose,
    /// A FIN.
    Fin,
    /// A RST.
    Rst,
}

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct File {
    about: String,
    #[serde(default)]
    needs_tls: bool,
    #[serde(default)]
    tls12: bool,
    http1: Option<Steps>,
    http2: Option<Steps>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Steps {
    #[serde(default)]
    start: Vec<String>,
    #[serde(default)]
    repeat: Vec<String>,
    every: Option<String>,
    #[serde(default)]
    end: End,
    expect: Vec<String>,
}

impl Script {
    /// Reads every `.toml` of a folder, in the order of their names.
    ///
    /// # Errors
    /// A file cannot be read, or is not written as a script is.
    pub fn read_all(folder: &Path) -> Result<Vec<Script>, HostileError> {
        let mut all = Vec::new();
        for path in hostile::toml_files(folder)? {
            all.extend(Script::read(&path)?);
        }
        Ok(all)
    }

    /// The TLS that the peer speaks, with a certificate of this CA.
    pub fn tls_config(&self, authority: &Arc<CertificateAuthority>) -> TlsConfig {
        let mut versions = vec![TlsVersion::Tls12];
        if !self.tls12 {
            versions.push(TlsVersion::Tls13);
        }
        TlsConfig::new(authority.clone(), versions)
    }

    /// Reads one file: a script for each version of HTTP that it names.
    fn read(path: &Path) -> Result<Vec<Script>, HostileError> {
        let file: File = hostile::parse(path)?;
        let name = hostile::name_of(path);
        let mut scripts = Vec::new();
        for (version, steps) in [("1.1", &file.http1), ("2", &file.http2)] {
            let Some(steps) = steps else { continue };
            let script = file.script(&name, version, steps);
            scripts.push(script.map_err(|source| HostileError::Value {
                path: path.to_owned(),
                source,
            })?);
        }
        Ok(scripts)
    }
}

impl File {
    fn script(&self, name: &str, version: &str, steps: &Steps) -> Result<Script, ValueError> {
        let read = |texts: &[String]| {
            let steps = texts.iter().map(|text| step(text));
            steps.collect::<Result<Vec<_>, _>>()
        };
        Ok(Script {
            name: format!("{name} over HTTP/{version}"),
            about: self.about.clone(),
            is_http2: version == "2",
            needs_tls: self.needs_tls,
            tls12: self.tls12,
            start: read(&steps.start)?,
            repeat: read(&steps.repeat)?,
            every: steps
                .every
                .as_deref()
                .map_or(Ok(Duration::ZERO), or_seconds)?,
            end: steps.end,
            expect: outcomes(&steps.expect)?,
        })
    }
}

/// `text ...`, `hex 00 ff`, `record 23 00 ff`, `raw 00 ff`.
fn step(text: &str) -> Result<Step, ValueError> {
    let wrong = || ValueError::Step(text.to_owned());
    let (kind, rest) = text.split_once(' ').unwrap_or((text, ""));
    match kind {
        "text" => Ok(Step::Data(rest.into())),
        "hex" => Ok(Step::Data(hex(rest).ok_or_else(wrong)?)),
        "raw" => Ok(Step::Raw(hex(rest).ok_or_else(wrong)?)),
        "record" => {
            let (number, bytes) = rest.split_once(' ').unwrap_or((rest, ""));
            let number = number.parse().map_err(|_| wrong())?;
            Ok(Step::Record(number, hex(bytes).ok_or_else(wrong)?))
        }
        _ => Err(wrong()),
    }
}

/// Bytes as hexadecimal digits, blanks between them ignored.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> = text
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .map(|letter| letter.to_digit(16))
        .collect::<Option<_>>()?;
    let pairs = digits.chunks_exact(2);
    pairs
        .remainder()
        .is_empty()
        .then(|| pairs.map(|pair| (pair[0] * 16 + pair[1]) as u8).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_text_or_bytes() {
        assert_eq!(step("text a b").unwrap(), Step::Data(b"a b".to_vec()));
        assert_eq!(step("hex 00 0aFF").unwrap(), Step::Data(vec![0, 10, 255]));
        assert_eq!(
            step("record 21 0100").unwrap(),
            Step::Record(21, vec![1, 0])
        );
        assert_eq!(step("record 23").unwrap(), Step::Record(23, vec![]));
        assert_eq!(step("raw 17").unwrap(), Step::Raw(vec![0x17]));
        for bad in ["", "hex 0", "hex xy", "record 256", "record x", "send a"] {
            assert!(step(bad).is_err(), "{bad:?}");
        }
    }
}
