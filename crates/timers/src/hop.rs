//! One hop: its idle limits on both sides, and its notation (`nginx=75s`,
//! `nginx=/etc/nginx/nginx.conf`).

use crate::NotRead;
use crate::product::{Product, Version};
use intact_units::duration;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// How long a side keeps an idle connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It closes the connection after this time.
    After(Duration),
    /// It has no limit of its own.
    Unlimited,
    /// It closes each connection after its response, or opens one per request.
    NotKept,
    /// It cannot be known from what was given; the reason.
    Unknown(&'static str),
}

/// Where a limit comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The user wrote it.
    Given,
    /// The product's default, and the document that states it.
    Default(&'static str),
    /// A directive of a configuration file.
    Directive {
        /// The directive as it is written.
        words: String,
        /// The file, as the configuration names it.
        file: String,
        /// The line, from 1.
        line: u32,
    },
}

/// An idle limit with its scope and its origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The limit.
    pub idle: Idle,
    /// The part of the configuration that the limit applies to, such as `upstream app`; empty for
    /// all parts.
    pub scope: String,
    /// Where it comes from.
    pub place: Place,
}

/// One hop with everything that is known of its idle limits.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hop {
    /// Its name in the chain.
    pub name: String,
    /// Limits of the connections that it accepts, one per scope.
    pub accepts: Vec<Timer>,
    /// Limits of the connections that it opens and keeps, one per scope.
    pub keeps: Vec<Timer>,
    /// Whether one setting rules both sides.
    pub is_coupled: bool,
    /// The product, where its defaults or its configuration were read.
    pub product: Option<Product>,
    /// Files that the configuration names and that were not read.
    pub not_read: Vec<NotRead>,
}

impl Timer {
    /// A limit for all parts of a configuration.
    pub(crate) fn new(idle: Idle, place: Place) -> Timer {
        Timer {
            idle,
            scope: String::new(),
            place,
        }
    }

    /// The same limit for one part.
    pub(crate) fn of(self, scope: String) -> Timer {
        Timer { scope, ..self }
    }
}

/// Where the limits of a hop are to be taken from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HopSource {
    /// Both limits, as written.
    Limits {
        /// Of connections that it accepts.
        accepts: Idle,
        /// Of connections that it opens.
        keeps: Idle,
        /// Whether one value was written for both.
        is_coupled: bool,
    },
    /// The defaults of a product.
    Defaults(Product),
    /// A configuration file, of a version if it was given.
    File(Product, Option<Version>, PathBuf),
}

/// A hop as the user writes it: `client=60s`, `nginx=75s/60s`, `alb`,
/// `edge=nginx:/etc/nginx/nginx.conf`, `nginx@1.22=/etc/nginx/nginx.conf`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HopSpec {
    /// Its name in the chain.
    pub name: String,
    /// Where its limits come from.
    pub source: HopSource,
}

/// Why a text is no hop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HopError {
    /// No name before the `=`.
    #[error("{0:?} has no name: write NAME=LIMIT, such as app=5s")]
    NoName(String),
    /// A name alone that is no product.
    #[error("{0:?} has no known defaults (known: {known}); write {0}=LIMIT, such as {0}=60s", known = Product::names())]
    NoDefaults(String),
    /// Neither a limit nor a file of a known product.
    #[error(
        "{value:?} of {name} is not a limit (60s, none, off, 75s/60s) and not a file of a known product; for a file, write {name}=nginx:{value} (nginx, haproxy, apache or caddy)"
    )]
    Value {
        /// The name of the hop.
        name: String,
        /// What was written.
        value: String,
    },
}

impl FromStr for HopSpec {
    type Err = HopError;

    fn from_str(text: &str) -> Result<HopSpec, HopError> {
        let Some((name, value)) = text.split_once('=') else {
            let product = Product::named(text);
            let product = product.ok_or_else(|| HopError::NoDefaults(text.to_owned()))?;
            return Ok(HopSpec {
                name: text.to_owned(),
                source: HopSource::Defaults(product),
            });
        };
        if name.is_empty() {
            return Err(HopError::NoName(text.to_owned()));
        }
        let (name, version) = versioned(name);
        let source = limits(value).or_else(|| file(name, version, value));
        let source = source.ok_or_else(|| HopError::Value {
            name: name.to_owned(),
            value: value.to_owned(),
        })?;
        Ok(HopSpec {
            name: name.to_owned(),
            source,
        })
    }
}

fn limits(value: &str) -> Option<HopSource> {
    let (accepts, keeps) = value.split_once('/').unwrap_or((value, value));
    Some(HopSource::Limits {
        accepts: limit(accepts)?,
        keeps: limit(keeps)?,
        is_coupled: !value.contains('/'),
    })
}

fn limit(word: &str) -> Option<Idle> {
    match word {
        "none" => Some(Idle::Unlimited),
        "off" | "0" => Some(Idle::NotKept),
        "unknown" => Some(Idle::Unknown("it was not given")),
        word => Some(after(duration::with_unit(word).ok()?)),
    }
}

/// A limit of no time keeps nothing.
pub(crate) fn after(time: Duration) -> Idle {
    if time.is_zero() {
        Idle::NotKept
    } else {
        Idle::After(time)
    }
}

/// A name, and the version after its `@`.
fn versioned(name: &str) -> (&str, Option<Version>) {
    let split = name.split_once('@');
    let read = split.and_then(|(name, version)| Some((name, Some(version.parse().ok()?))));
    read.unwrap_or((name, None))
}

fn file(name: &str, version: Option<Version>, value: &str) -> Option<HopSource> {
    // one letter is a drive of Windows
    let named = value
        .split_once(':')
        .filter(|(product, _)| product.len() > 1);
    if let Some((product, path)) = named {
        let (product, own) = versioned(product);
        let product = Product::named(product).filter(|product| product.has_files())?;
        let version = own.or(version);
        return (!path.is_empty()).then(|| HopSource::File(product, version, path.into()));
    }
    let path = PathBuf::from(value);
    let by_file = path.file_name()?.to_str().and_then(Product::of_file);
    let product = by_file.or_else(|| Product::named(name).filter(|product| product.has_files()))?;
    Some(HopSource::File(product, version, path))
}

impl Hop {
    /// A hop whose limits were written down.
    pub fn given(name: &str, accepts: Idle, keeps: Idle, is_coupled: bool) -> Hop {
        Hop {
            name: name.to_owned(),
            accepts: vec![Timer::new(accepts, Place::Given)],
            keeps: vec![Timer::new(keeps, Place::Given)],
            is_coupled,
            product: None,
            not_read: Vec::new(),
        }
    }

    /// A hop with the defaults of a product.
    pub fn of_product(name: &str, product: Product) -> Hop {
        Hop {
            name: name.to_owned(),
            accepts: vec![product.default_accepts()],
            keeps: vec![product.default_keeps()],
            is_coupled: product.has_one_limit(),
            product: Some(product),
            not_read: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const S: fn(u64) -> Idle = |seconds| Idle::After(Duration::from_secs(seconds));

    fn read(text: &str) -> HopSource {
        text.parse::<HopSpec>().unwrap().source
    }

    #[test]
    fn a_hop_is_a_limit_a_product_or_a_file() {
        let limits = |accepts, keeps, is_coupled| HopSource::Limits {
            accepts,
            keeps,
            is_coupled,
        };
        assert_eq!(read("client=60s"), limits(S(60), S(60), true));
        assert_eq!(read("nginx=75s/1m"), limits(S(75), S(60), false));
        assert_eq!(
            read("app=off/none"),
            limits(Idle::NotKept, Idle::Unlimited, false)
        );
        assert_eq!(read("alb"), HopSource::Defaults(Product::Alb));
        for text in [
            "nginx=/etc/nginx/nginx.conf",
            "edge=nginx.conf",
            "edge=nginx:/etc/nginx/nginx.conf",
        ] {
            assert!(
                matches!(read(text), HopSource::File(Product::Nginx, None, _)),
                "{text}"
            );
        }
        for text in ["nginx@1.22=/etc/nginx/nginx.conf", "edge=nginx@1.22:x"] {
            let spec: HopSpec = text.parse().unwrap();
            assert!(!spec.name.contains('@'), "{spec:?}");
            let source = spec.source;
            assert!(
                matches!(source, HopSource::File(_, Some(_), _)),
                "{source:?}"
            );
        }
        assert!(matches!(
            read("proxy=haproxy.cfg"),
            HopSource::File(Product::Haproxy, None, _)
        ));
        assert!(matches!(
            read("proxy=/etc/caddy/Caddyfile"),
            HopSource::File(Product::Caddy, None, _)
        ));
        assert!(matches!(
            read("apache2=conf/site"),
            HopSource::File(Product::Apache, None, _)
        ));
    }

    #[test]
    fn the_error_says_what_to_write() {
        let error = |text: &str| text.parse::<HopSpec>().unwrap_err().to_string();
        assert!(error("=60s").contains("NAME=LIMIT"));
        assert!(error("gateway").contains("write gateway=LIMIT"));
        assert!(error("app=60").contains("app=nginx:60"));
        assert!(error("app=alb:/x").contains("not a limit"));
        assert!(error("app=c:/x").contains("app=nginx:c:/x"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_hop_or_an_error(text in "\\PC{0,30}") {
            if let Ok(spec) = text.parse::<HopSpec>() {
                prop_assert!(!spec.name.is_empty());
            }
        }
    }
}
