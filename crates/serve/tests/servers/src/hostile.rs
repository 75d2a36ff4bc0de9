//! Behaviours that clients have to survive, as files: what the server does, and how a careful
//! client's requests end.
//!
//! The files are in `fixtures/hostile/`; the tests run every client of this tree against each of
//! them. In `[serve]` the keys are the options of `intact serve`. In `[expect]` every request ends
//! in one of the outcomes listed: `ok`, or the id of a [`Failure`].

use intact_ledger::{Failure, Outcome, TlsVersion, UnknownKind};
use intact_serve::{
    AnnounceError, AuthorityError, CertificateAuthority, Config, FaultError, ScriptError, TlsConfig,
};
use intact_units::duration::{DurationError, or_seconds};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// How many peers are tried at a time.
const WORKERS: usize = 16;

/// One hostile server.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// The name of its file without the ending.
    pub name: String,
    /// What it does, in a sentence.
    pub about: String,
    /// What it does; on free ports of 127.0.0.1, plain and TLS.
    pub config: Config,
    /// What a careful client counts.
    pub expect: Expect,
}

/// How requests may end, by what is spoken. With one outcome, all of them end so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    /// HTTP/1.1 without TLS.
    pub http1: Vec<Outcome>,
    /// HTTP/2 without TLS.
    pub http2: Vec<Outcome>,
    /// HTTP/1.1 over TLS.
    pub tls_http1: Vec<Outcome>,
    /// HTTP/2 over TLS.
    pub tls_http2: Vec<Outcome>,
}

/// Why a file could not be used.
#[derive(Debug, thiserror::Error)]
pub enum HostileError {
    /// It cannot be read.
    #[error("cannot read {path}")]
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// It is no TOML, or has keys that it must not have.
    #[error("{path} is not written as a hostile server is")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where, and what was expected.
        source: Box<toml::de::Error>,
    },
    /// A value cannot be.
    #[error("{path} asks for what cannot be")]
    Value {
        /// The file.
        path: PathBuf,
        /// Which, and why.
        source: ValueError,
    },
    /// The server's certificate could not be made.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

/// A value that cannot be.
#[derive(Debug, thiserror::Error)]
pub enum ValueError {
    /// `accept`, `close` or `cert-kind`.
    #[error(transparent)]
    Choice(#[from] UnknownKind),
    /// `fault`.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// `script`.
    #[error(transparent)]
    Script(#[from] ScriptError),
    /// A time.
    #[error(transparent)]
    Time(#[from] DurationError),
    /// `announce`.
    #[error(transparent)]
    Announce(#[from] AnnounceError),
    /// A step of a script.
    #[error("{0:?} is no step: write 'text ...', 'hex 00 ff', 'record 23 00 ff' or 'raw 00 ff'")]
    Step(String),
    /// An outcome.
    #[error(
        "there is no outcome {0:?}: write ok, or the id of a failure (docs/reference/ledger.md lists them)"
    )]
    Outcome(String),
}

/// A file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    #[serde(default)]
    serve: Options,
    expect: Expected,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
struct Options {
    accept: Option<String>,
    close: Option<String>,
    cert_kind: Option<String>,
    fault: Option<String>,
    script: Option<String>,
    seed: u64,
    idle_timeout: Option<String>,
    max_age: Option<String>,
    max_requests: Option<u64>,
    announce: Option<String>,
    delay: Option<String>,
    body: Option<u64>,
    status: Option<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Expected {
    http1: Vec<String>,
    http2: Vec<String>,
    tls_http1: Option<Vec<String>>,
    tls_http2: Option<Vec<String>>,
}

impl Hostile {
    /// Reads one file.
    pub fn read(path: &Path) -> Result<Hostile, HostileError> {
        let file: File = parse(path)?;
        let wrong = |source| HostileError::Value {
            path: path.to_owned(),
            source,
        };
        let kind =
            or_default(&file.serve.cert_kind).map_err(|error| wrong(ValueError::from(error)))?;
        let authority = Arc::new(CertificateAuthority::issue(&[], kind)?);
        let tls = TlsConfig::new(authority, vec![TlsVersion::Tls12, TlsVersion::Tls13]);
        let mut config = file.serve.config().map_err(wrong)?;
        config.tls = Some((SocketAddr::from(([127, 0, 0, 1], 0)), tls));
        Ok(Hostile {
            name: name_of(path),
            about: file.about,
            config,
            expect: file.expect.outcomes().map_err(wrong)?,
        })
    }

    /// Reads every `.toml` of a folder, in the order of their names.
    pub fn read_all(folder: &Path) -> Result<Vec<Hostile>, HostileError> {
        let files = toml_files(folder)?;
        files.iter().map(|path| Hostile::read(path)).collect()
    }
}

/// Tries all of them, 16 at a time, because most wait for timeouts. Returns what was wrong.
pub fn in_parallel<T: Send>(
    trials: Vec<T>,
    run: impl Fn(&T) -> Option<String> + Sync,
) -> Vec<String> {
    let wrong = Mutex::new(Vec::new());
    let queue = Mutex::new(trials.into_iter());
    let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).next();
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                for found in std::iter::from_fn(next).filter_map(|trial| run(&trial)) {
                    let mut wrong = wrong.lock().unwrap_or_else(PoisonError::into_inner);
                    wrong.push(found);
                }
            });
        }
    });
    wrong.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Reads a file of this layout.
pub(crate) fn parse<T: DeserializeOwned>(path: &Path) -> Result<T, HostileError> {
    let text = std::fs::read_to_string(path).map_err(|source| HostileError::Read {
        path: path.to_owned(),
        source,
    })?;
    toml::from_str(&text).map_err(|source| HostileError::Syntax {
        path: path.to_owned(),
        source: Box::new(source),
    })
}

/// The name of a file without the ending.
pub(crate) fn name_of(path: &Path) -> String {
    let stem = path.file_stem();
    stem.map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default()
}

/// Every `.toml` of a folder, in the order of their names.
pub(crate) fn toml_files(folder: &Path) -> Result<Vec<PathBuf>, HostileError> {
    let unreadable = |source| HostileError::Read {
        path: folder.to_owned(),
        source,
    };
    let entries = std::fs::read_dir(folder).map_err(unreadable)?;
    let paths = entries.map(|entry| Ok(entry?.path()));
    let mut paths: Vec<PathBuf> = paths.collect::<Result<_, _>>().map_err(unreadable)?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "toml"));
    paths.sort();
    Ok(paths)
}

/// The value of an option, or its default.
fn or_default<T: Default + FromStr>(text: &Option<String>) -> Result<T, T::Err> {
    text.as_deref().map_or_else(|| Ok(T::default()), str::parse)
}

impl Options {
    fn config(&self) -> Result<Config, ValueError> {
        let usual = Config::default();
        let limit = |text: &Option<String>| text.as_deref().map(or_seconds).transpose();
        Ok(Config {
            accept: or_default(&self.accept)?,
            close: or_default(&self.close)?,
            faults: or_default(&self.fault)?,
            script: or_default(&self.script)?,
            seed: self.seed,
            idle_timeout: limit(&self.idle_timeout)?,
            max_age: limit(&self.max_age)?,
            max_requests: self.max_requests,
            announce: or_default(&self.announce)?,
            delay: or_default(&self.delay)?,
            body: self.body.unwrap_or(usual.body),
            status: self.status.unwrap_or(usual.status),
            ..usual
        })
    }
}

impl Expected {
    fn outcomes(&self) -> Result<Expect, ValueError> {
        let tls_http1 = self.tls_http1.as_ref().unwrap_or(&self.http1);
        let tls_http2 = self.tls_http2.as_ref().unwrap_or(&self.http2);
        Ok(Expect {
            http1: outcomes(&self.http1)?,
            http2: outcomes(&self.http2)?,
            tls_http1: outcomes(tls_http1)?,
            tls_http2: outcomes(tls_http2)?,
        })
    }
}

pub(crate) fn outcomes(ids: &[String]) -> Result<Vec<Outcome>, ValueError> {
    let outcome = |id: &String| {
        if id == "ok" {
            return Ok(Outcome::Ok);
        }
        let kind = Failure::ALL.iter().find(|kind| kind.id() == id);
        kind.map(|&kind| Outcome::Failed(kind))
            .ok_or_else(|| ValueError::Outcome(id.clone()))
    };
    ids.iter().map(outcome).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_serve::{Announce, Close};
    use std::error::Error;

    fn read(text: &str) -> Result<Hostile, HostileError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("some-name.toml");
        std::fs::write(&path, text).unwrap();
        Hostile::read(&path)
    }

    #[test]
    fn a_file_is_what_the_server_does_and_what_a_client_counts() {
        let hostile = read(
            "about = 'words'
             serve = { close = 'rst', max-requests = 3, idle-timeout = '20ms', announce = 'timeout=60' }
             expect = { http1 = ['ok'], http2 = ['ok', 'stale'], tls-http1 = ['tls'] }",
        )
        .unwrap();
        assert_eq!((&*hostile.name, &*hostile.about), ("some-name", "words"));
        assert_eq!(hostile.config.close, Close::Rst);
        assert_eq!(hostile.config.max_requests, Some(3));
        assert_eq!(hostile.config.announce, Announce::Lie("timeout=60".into()));
        assert_eq!(hostile.expect.http1, [Outcome::Ok]);
        assert_eq!(hostile.expect.tls_http1, [Outcome::Failed(Failure::Tls)]);
        // without a difference for TLS, it is the same
        assert_eq!(hostile.expect.tls_http2, hostile.expect.http2);
    }

    /// The message that a person reads.
    fn message(text: &str) -> String {
        let error = read(text).unwrap_err();
        let causes = std::iter::successors(Some(&error as &dyn Error), |&error| error.source());
        causes.map(|cause| format!("{cause}\n")).collect()
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_remedy() {
        let expect = "expect = { http1 = ['ok'], http2 = ['ok'] }";
        for (serve, words) in [
            ("{ fualt = 'stall' }", "unknown field `fualt`"),
            (
                "{ fault = 'stal' }",
                "there is no fault \"stal\"; there are stall,",
            ),
            ("{ close = 'softly' }", "one of goaway, fin,"),
            ("{ idle-timeout = 'soon' }", "is no time"),
            ("{ announce = \"a\\nb\" }", "one line"),
        ] {
            let text = message(&format!("about = ''\nserve = {serve}\n{expect}"));
            assert!(text.contains(words), "{text}");
        }
        let text = message("about = ''\nexpect = { http1 = ['fine'], http2 = [] }");
        assert!(text.contains("there is no outcome \"fine\""), "{text}");
    }
}
