//! Reading a [`Spec`] from its words, with errors that name the key and the nearest one.

use super::{Congestion, Forgotten, Nat, Spec};
use intact_units::{bit_rate, duration, share, suggest};
use std::str::FromStr;
use std::time::Duration;

/// The longest time that any key takes: a delay beyond this is a typing error, and an hour of
/// idling is not.
const LONGEST: Duration = Duration::from_secs(86_400);
/// The longest delay in one direction.
pub(super) const LONGEST_DELAY: Duration = Duration::from_secs(60);
const KEYS: [&str; 10] = [
    "rtt", "up", "down", "jitter", "reorder", "loss", "rate", "drop", "nat-idle", "cc",
];

// what a key takes
const TIME: &str = "a time such as 30ms (us, ms, s; at most 60s one way)";
pub(super) const SHARE: &str = "a share such as 0.1% (with the sign, 0% to 100%)";
const RATE: &str = "a rate such as 100mbit (bit, kbit, mbit, gbit a second; at least 1kbit)";
pub(super) const BLOCKED: &str = "up, down, both or none";
const NAT: &str =
    "an idle time and the reply to forgotten flows: 350s or 350s:rst (RST), or 350s:silent (none)";
const CONGESTION: &str = "cubic, host, or a congestion control's name";

/// Why a text is not a valid link.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// Nothing was said.
    #[error("a link needs at least a round trip: rtt=30ms")]
    Empty,
    /// A part is no `key=value`.
    #[error("{part:?} is no key=value, as in rtt=30ms,loss=0.1%")]
    NotAPair {
        /// The part.
        part: String,
    },
    /// A key that does not exist.
    #[error("there is no {key:?}{}; keys are {}", nearest(nearest_key), keys.join(", "))]
    UnknownKey {
        /// What was written.
        key: String,
        /// The key that was probably meant.
        nearest_key: Option<&'static str>,
        /// The keys that exist here.
        keys: &'static [&'static str],
    },
    /// A key given twice.
    #[error("{key} is given twice")]
    Twice {
        /// The key.
        key: &'static str,
    },
    /// A value that the key does not take.
    #[error("{key}={value}: {key} takes {wanted}")]
    Value {
        /// The key.
        key: &'static str,
        /// What was written.
        value: String,
        /// What it takes.
        wanted: &'static str,
    },
    /// Delays that contradict each other.
    #[error(
        "rtt must be up + down, each at most 60s: give two of them, or rtt alone for two equal halves"
    )]
    Delays,
    /// More jitter than delay.
    #[error(
        "jitter is more than a one-way delay ({delay}): packets cannot arrive before they are sent"
    )]
    Jitter {
        /// The shorter one-way delay.
        delay: String,
    },
}

fn nearest(key: &Option<&str>) -> String {
    key.map_or(String::new(), |key| format!(" (did you mean {key}?)"))
}

impl FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Spec, SpecError> {
        let mut spec = Spec::default();
        let mut delays = Delays::default();
        for pair in pairs(text, &KEYS)? {
            match pair.key {
                "rtt" => delays.round_trip = Some(pair.time(LONGEST_DELAY * 2)?),
                "up" => delays.up = Some(pair.time(LONGEST_DELAY)?),
                "down" => delays.down = Some(pair.time(LONGEST_DELAY)?),
                "jitter" => spec.jitter = pair.time(LONGEST_DELAY)?,
                "reorder" => spec.reorder = pair.read("yes or no", yes_or_no)?,
                "loss" => spec.loss_ppm = pair.read(SHARE, share::read)?,
                "rate" => spec.rate = Some(pair.read(RATE, bit_rate::read)?),
                "drop" => spec.drop = pair.read(BLOCKED, |text| text.parse().ok())?,
                "nat-idle" => spec.nat = Some(pair.read(NAT, nat)?),
                _ => spec.congestion = pair.read(CONGESTION, congestion)?,
            }
        }
        (spec.up, spec.down) = delays.resolve()?.unwrap_or_default();
        let shorter = spec.up.min(spec.down);
        if spec.jitter > shorter {
            let delay = duration::write(shorter);
            return Err(SpecError::Jitter { delay });
        }
        Ok(spec)
    }
}

/// What was said about delays.
#[derive(Default)]
pub(super) struct Delays {
    pub(super) round_trip: Option<Duration>,
    pub(super) up: Option<Duration>,
    pub(super) down: Option<Duration>,
}

impl Delays {
    /// Both ways; `None` when nothing was said.
    pub(super) fn resolve(&self) -> Result<Option<(Duration, Duration)>, SpecError> {
        let rest = |whole: Duration, part| {
            let rest = whole.checked_sub(part).ok_or(SpecError::Delays)?;
            // the other direction's delay is the rest of the round trip, and must be valid, too
            match rest <= LONGEST_DELAY {
                true => Ok(rest),
                false => Err(SpecError::Delays),
            }
        };
        Ok(Some(match (self.round_trip, self.up, self.down) {
            (None, None, None) => return Ok(None),
            (Some(whole), None, None) => (whole / 2, whole / 2),
            (Some(whole), Some(up), None) => (up, rest(whole, up)?),
            (Some(whole), None, Some(down)) => (rest(whole, down)?, down),
            (Some(whole), Some(up), Some(down)) if up + down == whole => (up, down),
            (Some(_), Some(_), Some(_)) => return Err(SpecError::Delays),
            (None, up, down) => (up.unwrap_or_default(), down.unwrap_or_default()),
        }))
    }
}

/// One part of a text.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) key: &'static str,
    value: &'a str,
}

impl Pair<'_> {
    /// Reads the value. The error says what is `wanted`.
    pub(super) fn read<T>(
        self,
        wanted: &'static str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T, SpecError> {
        read(self.value).ok_or_else(|| SpecError::Value {
            key: self.key,
            value: self.value.to_owned(),
            wanted,
        })
    }

    pub(super) fn time(self, longest: Duration) -> Result<Duration, SpecError> {
        self.read(TIME, |text| time(text).filter(|time| *time <= longest))
    }
}

/// Splits `key=value,key=value` and refuses keys that are unknown or there twice.
pub(super) fn pairs<'a>(
    text: &'a str,
    keys: &'static [&'static str],
) -> Result<Vec<Pair<'a>>, SpecError> {
    if text.trim().is_empty() {
        return Err(SpecError::Empty);
    }
    let mut pairs: Vec<Pair<'_>> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let (written, value) = part.split_once('=').ok_or_else(|| SpecError::NotAPair {
            part: part.to_owned(),
        })?;
        let known = keys.iter().find(|key| **key == written);
        let key = known.ok_or_else(|| SpecError::UnknownKey {
            key: written.to_owned(),
            nearest_key: nearest_of(written, keys),
            keys,
        })?;
        if pairs.iter().any(|pair| pair.key == *key) {
            return Err(SpecError::Twice { key });
        }
        pairs.push(Pair { key, value });
    }
    Ok(pairs)
}

/// The key that was probably meant: another word for it, or a slip.
fn nearest_of(written: &str, keys: &'static [&'static str]) -> Option<&'static str> {
    let known_words = [
        ("delay", "rtt"),
        ("latency", "rtt"),
        ("ping", "rtt"),
        ("bandwidth", "rate"),
        ("bw", "rate"),
        ("nat", "nat-idle"),
        ("congestion", "cc"),
        ("uplink", "up"),
        ("downlink", "down"),
    ];
    let meant = known_words
        .iter()
        .find(|(word, key)| *word == written && keys.contains(key));
    if let Some((_, key)) = meant {
        return Some(key);
    }
    suggest::nearest(written, keys.iter().copied())
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// `30ms`, `350s`, `1.5ms`; a zero needs no unit.
fn time(text: &str) -> Option<Duration> {
    let time = duration::with_unit(text).ok()?;
    (time <= LONGEST).then_some(time)
}

fn nat(text: &str) -> Option<Nat> {
    let (idle, then) = text.split_once(':').unwrap_or((text, "rst"));
    Some(Nat {
        idle: time(idle).filter(|idle| !idle.is_zero())?,
        forgotten: then.parse::<Forgotten>().ok()?,
    })
}

fn congestion(text: &str) -> Option<Congestion> {
    // TCP_CA_NAME_MAX is 16 with its terminator
    let is_name = text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    match text {
        "cubic" => Some(Congestion::Cubic),
        "host" => Some(Congestion::Host),
        _ if is_name && (1..16).contains(&text.len()) => Some(Congestion::Named(text.to_owned())),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Blocked;
    use super::*;
    use proptest::prelude::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn parse(text: &str) -> Result<Spec, SpecError> {
        text.parse()
    }

    #[test]
    fn a_round_trip_alone_has_two_equal_halves() {
        let spec = parse("rtt=30ms").unwrap();
        assert_eq!((spec.up, spec.down), (ms(15), ms(15)));
    }

    #[test]
    fn any_two_of_round_trip_up_and_down_give_the_third() {
        for text in [
            "rtt=30ms,up=10ms",
            "up=10ms,down=20ms",
            "down=20ms,rtt=30ms",
            "up=10ms,down=20ms,rtt=30ms",
        ] {
            let spec = parse(text).unwrap();
            assert_eq!((spec.up, spec.down), (ms(10), ms(20)), "{text}");
        }
        assert_eq!(parse("rtt=30ms,up=31ms"), Err(SpecError::Delays));
        // found by fuzzing: 87.2 s one way
        assert_eq!(parse("up=.8s,rtt=88s"), Err(SpecError::Delays));
        assert_eq!(parse("rtt=30ms,up=10ms,down=10ms"), Err(SpecError::Delays));
    }

    #[test]
    fn every_key_is_read() {
        let spec = parse("up=1ms,down=2ms,jitter=500us,reorder=yes,loss=0.1%,rate=100mbit,drop=both,nat-idle=350s:silent,cc=reno").unwrap();
        let wanted = Spec {
            up: ms(1),
            down: ms(2),
            jitter: Duration::from_micros(500),
            reorder: true,
            loss_ppm: 1_000,
            rate: Some(100_000_000),
            drop: Blocked::Both,
            nat: Some(Nat {
                idle: Duration::from_secs(350),
                forgotten: Forgotten::Silent,
            }),
            congestion: Congestion::Named("reno".to_owned()),
        };
        assert_eq!(spec, wanted);
    }

    #[test]
    fn errors_name_the_key_and_the_nearest_one() {
        for (text, words) in [
            ("", "rtt=30ms"),
            ("30ms", "no key=value"),
            ("rt=30ms", "did you mean rtt?"),
            ("delay=30ms", "did you mean rtt?"),
            ("lost=1%", "did you mean loss?"),
            ("nat_idle=5s", "did you mean nat-idle?"),
            ("banana=1", "keys are rtt, up"),
            ("rtt=30", "rtt=30: rtt takes a time"),
            ("rtt=-3ms", "rtt takes a time"),
            ("rtt=inf", "rtt takes a time"),
            ("rtt=1000h", "rtt takes a time"),
            ("loss=1", "with the sign"),
            ("loss=101%", "0% to 100%"),
            ("rate=100", "rate takes"),
            ("rate=1bit", "at least 1kbit"),
            ("drop=left", "up, down, both or none"),
            ("nat-idle=0s", "nat-idle takes"),
            ("nat-idle=5s:quiet", "350s:silent"),
            ("rtt=30ms,rtt=40ms", "rtt is given twice"),
            ("rtt=30ms,jitter=16ms", "15ms"),
            ("cc=a name", "cc takes"),
        ] {
            let error = parse(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn the_canonical_text_parses_to_the_same_spec(
            up in 0u64..60_000_000, down in 0u64..60_000_000, jitter in 0u64..1_000_000,
            reorder: bool, loss_ppm in 0u32..=1_000_000, rate in proptest::option::of(1_000u64..1_000_000_000_000),
            idle in proptest::option::of(1u64..86_400), silent: bool,
        ) {
            let us = Duration::from_micros;
            let spec = Spec {
                up: us(up), down: us(down), jitter: us(jitter.min(up).min(down)), reorder,
                loss_ppm, rate,
                nat: idle.map(|idle| Nat {
                    idle: Duration::from_secs(idle),
                    forgotten: if silent { Forgotten::Silent } else { Forgotten::Rst },
                }),
                ..Spec::default()
            };
            let text = spec.to_string();
            prop_assert_eq!(parse(&text), Ok(spec), "{}", text);
        }

        #[test]
        fn arbitrary_text_never_panics(text in ".{0,60}") {
            let _ = parse(&text);
            let _ = text.parse::<super::super::LinkChange>();
        }
    }
}
