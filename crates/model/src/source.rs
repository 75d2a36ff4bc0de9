//! Parses the TOML file of a chain, and checks it as a whole.

use crate::chain::{Call, Chain, Http, Service, Tls};
use intact_units::{duration, size, suggest};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Limit of the depth of a chain.
const DEEPEST: usize = 64;
/// Limit of the calls of one kind per request.
const MOST_TIMES: u64 = 1_000_000;
/// Limit of a time in a file.
const LONGEST: Duration = Duration::from_secs(86_400);

/// Why a file is invalid, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChainError {
    /// The file is not TOML, or has an unknown key.
    #[error("line {line}: {message}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// The problem.
        message: String,
    },
    /// A value is invalid.
    #[error("{place}: {reason}")]
    Value {
        /// The key.
        place: String,
        /// The problem.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Source {
    #[serde(default)]
    name: String,
    #[serde(default)]
    defaults: Defaults,
    client: Client,
    #[serde(default)]
    service: BTreeMap<String, SourceService>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Client {
    name: Option<String>,
    calls: Vec<SourceCall>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SourceService {
    work: Option<String>,
    #[serde(default)]
    calls: Vec<SourceCall>,
}

/// The settings of a call's connection. `[defaults]` replaces missing ones.
#[derive(Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Defaults {
    rtt: Option<String>,
    dns: Option<String>,
    crypto: Option<String>,
    tls: Option<String>,
    http: Option<String>,
    reuse: Option<Share>,
    answer: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SourceCall {
    to: String,
    rtt: Option<String>,
    dns: Option<String>,
    crypto: Option<String>,
    tls: Option<String>,
    http: Option<String>,
    reuse: Option<Share>,
    answer: Option<String>,
    times: Option<u64>,
    #[serde(default)]
    at_once: bool,
    group: Option<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(untagged)]
enum Share {
    Whether(bool),
    Number(f64),
}

/// Parses a chain.
pub fn parse(text: &str) -> Result<Chain, ChainError> {
    let source: Source = toml::from_str(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start.min(text.len()));
        ChainError::Syntax {
            line: text.bytes().take(at).filter(|b| *b == b'\n').count() + 1,
            message: suggest::of_unknown_field(error.message()),
        }
    })?;
    let mut services = BTreeMap::new();
    let names: BTreeSet<&str> = source.service.keys().map(String::as_str).collect();
    let calls_of = |of: &str, calls: &[SourceCall]| -> Result<Vec<Call>, ChainError> {
        let calls = calls.iter().enumerate();
        calls
            .map(|(nth, call)| {
                let place = format!("call {} of {of}", nth + 1);
                one_call(call, &source.defaults, &names, &place)
            })
            .collect()
    };
    for (name, service) in &source.service {
        let work = service.work.as_deref();
        let place = format!("[service.{name}] work");
        let one = Service {
            work_ms: work.map_or(Ok(0.0), |text| time(text, &place))?,
            calls: calls_of(name, &service.calls)?,
        };
        services.insert(name.clone(), one);
    }
    let client = source.client.name.as_deref().unwrap_or("client");
    let calls = calls_of("the client", &source.client.calls)?;
    if calls.is_empty() {
        return Err(ChainError::Value {
            place: "[client] calls".to_owned(),
            reason: "none, so there is nothing to predict".to_owned(),
        });
    }
    if services.contains_key(client) {
        return Err(ChainError::Value {
            place: "[client] name".to_owned(),
            reason: format!("{client:?} is a service too"),
        });
    }
    let chain = Chain {
        name: source.name,
        client: client.to_owned(),
        calls,
        services,
    };
    no_way_back(&chain)?;
    Ok(chain)
}

fn one_call(
    call: &SourceCall,
    defaults: &Defaults,
    names: &BTreeSet<&str>,
    place: &str,
) -> Result<Call, ChainError> {
    let wrong = |key: &str, reason: String| ChainError::Value {
        place: format!("{place}, {key}"),
        reason,
    };
    if !names.contains(call.to.as_str()) {
        let nearest = suggest::nearest(&call.to, names.iter().copied());
        let meant = nearest.map_or_else(String::new, |name| format!(", or is it {name:?}?"));
        let reason = format!(
            "{:?} is no service: add [service.{}]{meant}",
            call.to, call.to
        );
        return Err(wrong("to", reason));
    }
    let times_of = |key: &str, own: &Option<String>, general: &Option<String>, default: f64| {
        let text = own.as_ref().or(general.as_ref());
        text.map_or(Ok(default), |text| time(text, &format!("{place}, {key}")))
    };
    let (tls, http) = protocols(call, defaults, &wrong)?;
    let reuse = reuse_of(call, defaults, &wrong)?;
    let times = call.times.unwrap_or(1);
    if !(1..=MOST_TIMES).contains(&times) {
        return Err(wrong("times", format!("{times}: from 1 to {MOST_TIMES}")));
    }
    let answer = call.answer.as_ref().or(defaults.answer.as_ref());
    let answer_bytes = answer.map_or(Ok(0), |text| {
        size::read(text).ok_or_else(|| {
            wrong(
                "answer",
                format!("{text:?}: a size such as 512B, 20kB or 3MB"),
            )
        })
    })?;
    let rtt = call.rtt.as_ref().or(defaults.rtt.as_ref());
    if rtt.is_none() {
        return Err(wrong(
            "rtt",
            "missing: set the round-trip time, such as \"30ms\"".to_owned(),
        ));
    }
    Ok(Call {
        to: call.to.clone(),
        rtt_ms: times_of("rtt", &call.rtt, &defaults.rtt, 0.0)?,
        dns_ms: times_of("dns", &call.dns, &defaults.dns, 0.0)?,
        crypto_ms: times_of("crypto", &call.crypto, &defaults.crypto, 0.0)?,
        tls,
        http,
        reuse,
        times,
        at_once: call.at_once,
        group: call.group.clone(),
        answer_bytes,
    })
}

/// The TLS version and the transport of a call.
fn protocols(
    call: &SourceCall,
    defaults: &Defaults,
    wrong: &dyn Fn(&str, String) -> ChainError,
) -> Result<(Tls, Http), ChainError> {
    let tls = call.tls.as_deref().or(defaults.tls.as_deref());
    let tls = tls.unwrap_or("1.3");
    let known = tls.parse();
    let tls = known.map_err(|unknown| wrong("tls", format!("{tls:?}: {unknown}")))?;
    let http = match call.http.as_deref().or(defaults.http.as_deref()) {
        None | Some("1.0" | "1.1" | "2") => Http::Tcp,
        Some("3") if matches!(tls, Tls::Tls13 | Tls::Tls13EarlyData) => Http::Quic,
        Some("3") => return Err(wrong("http", "HTTP/3 has TLS 1.3 inside".to_owned())),
        Some(other) => return Err(wrong("http", format!("{other:?}: one of 1.0, 1.1, 2, 3"))),
    };
    Ok((tls, http))
}

/// The share of a call's requests that reuse a connection.
fn reuse_of(
    call: &SourceCall,
    defaults: &Defaults,
    wrong: &dyn Fn(&str, String) -> ChainError,
) -> Result<f64, ChainError> {
    match call.reuse.or(defaults.reuse) {
        None | Some(Share::Whether(true)) => Ok(1.0),
        Some(Share::Whether(false)) => Ok(0.0),
        Some(Share::Number(share)) if (0.0..=1.0).contains(&share) => Ok(share),
        Some(Share::Number(share)) => Err(wrong(
            "reuse",
            format!("{share}: true, false, or a share from 0 to 1"),
        )),
    }
}

/// Refuses a chain with a cycle.
fn no_way_back(chain: &Chain) -> Result<(), ChainError> {
    fn visit<'a>(
        chain: &'a Chain,
        name: &'a str,
        path: &mut Vec<&'a str>,
        fine: &mut BTreeSet<&'a str>,
    ) -> Result<(), ChainError> {
        if fine.contains(name) {
            return Ok(());
        }
        let wrong = |reason: String| ChainError::Value {
            place: format!("[service.{name}]"),
            reason,
        };
        if path.contains(&name) {
            return Err(wrong(format!(
                "calls itself: {} -> {name}",
                path.join(" -> ")
            )));
        }
        if path.len() >= DEEPEST {
            return Err(wrong(format!("more than {DEEPEST} services in a row")));
        }
        path.push(name);
        for call in chain
            .services
            .get(name)
            .into_iter()
            .flat_map(|one| &one.calls)
        {
            visit(chain, &call.to, path, fine)?;
        }
        path.pop();
        fine.insert(name);
        Ok(())
    }
    let mut fine = BTreeSet::new();
    for name in chain.services.keys() {
        visit(chain, name, &mut Vec::new(), &mut fine)?;
    }
    Ok(())
}

/// Parses a time to milliseconds.
fn time(text: &str, place: &str) -> Result<f64, ChainError> {
    let wrong = |reason| ChainError::Value {
        place: place.to_owned(),
        reason,
    };
    let time = duration::with_unit(text).map_err(|error| wrong(error.to_string()))?;
    if time > LONGEST {
        return Err(wrong(format!("{text:?} is more than a day")));
    }
    Ok(time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn wrong(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn an_error_names_the_place_and_the_remedy() {
        let cases = [
            "[client]\ncalls = [{ to = \"a\", rtt = \"1ms\", tsl = \"1.2\" }]",
            "[client]\ncalls = [{ to = \"stok\", rtt = \"1ms\" }]\n[service.stock]",
            "[client]\ncalls = [{ to = \"a\" }]\n[service.a]",
            "[client]\ncalls = [{ to = \"a\", rtt = \"30\" }]\n[service.a]",
            "[client]\ncalls = [{ to = \"a\", rtt = \"1ms\", http = \"3\", tls = \"1.2\" }]\n[service.a]",
            "[client]\ncalls = [{ to = \"a\", rtt = \"1ms\" }]\n[service.a]\ncalls = [{ to = \"a\", rtt = \"1ms\" }]",
            "[client]\ncalls = []",
        ]
        .map(wrong);
        assert_eq!(
            cases,
            [
                "line 2: unknown key `tsl`: did you mean `tls`?",
                "call 1 of the client, to: \"stok\" is no service: add [service.stok], or is it \"stock\"?",
                "call 1 of the client, rtt: missing: set the round-trip time, such as \"30ms\"",
                "call 1 of the client, rtt: 30 of what? write 30s or 30ms",
                "call 1 of the client, http: HTTP/3 has TLS 1.3 inside",
                "[service.a]: calls itself: a -> a",
                "[client] calls: none, so there is nothing to predict",
            ]
        );
    }

    #[test]
    fn a_deep_lattice_is_checked_in_bounded_time() {
        let mut text =
            "[defaults]\nrtt = \"1ms\"\n[client]\ncalls = [{ to = \"s0\" }]\n".to_owned();
        for depth in 0..50 {
            let next = depth + 1;
            text += &format!(
                "[service.s{depth}]\ncalls = [{{ to = \"s{next}\" }}, {{ to = \"s{next}\" }}]\n"
            );
        }
        text += "[service.s50]\n";
        let chain = parse(&text).unwrap();
        let one = crate::predict(&chain, crate::Counting::Tcp, crate::Reuse::Always);
        assert_eq!(one.exchanges, (2_f64).powi(51) - 1.0);
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,300}") {
            let _ = parse(&text);
        }

        #[test]
        fn no_value_panics(rtt in ".{0,12}", answer in ".{0,12}", times in any::<i64>(), reuse in any::<f64>()) {
            let call = format!("to = \"a\", rtt = {rtt:?}, answer = {answer:?}, times = {times}, reuse = {reuse:?}");
            if let Ok(chain) = parse(&format!("[client]\ncalls = [{{ {call} }}]\n[service.a]")) {
                let one = crate::predict(&chain, crate::Counting::Tcp, crate::Reuse::Configured);
                prop_assert!(one.total_ms.is_finite() && one.total_ms >= 0.0);
            }
        }
    }
}
