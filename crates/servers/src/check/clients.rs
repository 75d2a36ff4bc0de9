//! Client options that keep a client's idle limit below the server's, with the value to set.

use serde::Serialize;

/// One client's option, ready to be copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Setting {
    /// The client library.
    pub client: &'static str,
    /// The option with its value.
    pub option: String,
}

/// The unit that an option takes.
#[derive(Clone, Copy)]
enum Unit {
    Millis,
    WholeSeconds,
    /// With a fraction, if there is one.
    Seconds,
    /// `7 * time.Second`, or milliseconds where it is no whole second.
    Go,
}

/// Client, what stands before the value, its unit, what stands after it.
#[rustfmt::skip] // a table is read by its rows
const CLIENTS: &[(&str, &str, Unit, &str)] = &[
    ("Node agentkeepalive", "freeSocketTimeout: ", Unit::Millis, ""),
    ("Node undici", "keepAliveTimeout: ", Unit::Millis, ""),
    ("Go net/http", "IdleConnTimeout: ", Unit::Go, ""),
    ("Python aiohttp", "TCPConnector(keepalive_timeout=", Unit::WholeSeconds, ")"),
    ("Python httpx", "Limits(keepalive_expiry=", Unit::WholeSeconds, ")"),
    ("Java java.net.http", "-Djdk.httpclient.keepalive.timeout=", Unit::WholeSeconds, ""),
    ("Apache HttpClient 5", "evictIdleConnections(TimeValue.ofMilliseconds(", Unit::Millis, "))"),
    ("OkHttp", "ConnectionPool(5, ", Unit::Millis, ", TimeUnit.MILLISECONDS)"),
    (".NET HttpClient", "PooledConnectionIdleTimeout = TimeSpan.FromSeconds(", Unit::Seconds, ")"),
    ("Rust reqwest", "pool_idle_timeout(Duration::from_millis(", Unit::Millis, "))"),
    ("nginx upstream", "keepalive_timeout ", Unit::WholeSeconds, "s;"),
];

/// How long a client may keep a connection idle that the server ends after so long: a margin below
/// it, in milliseconds.
pub(crate) fn below(server_s: f64) -> u64 {
    let server = server_s * 1e3;
    let margin = match server {
        server if server < 2_000.0 => server / 2.0,
        server if server < 10_000.0 => 1_000.0,
        server => server / 10.0,
    };
    let kept = server - margin;
    if kept >= 1_000.0 {
        // whole seconds, because that is what most options take
        ((kept + 1e-6) / 1e3).floor() as u64 * 1_000
    } else {
        kept as u64
    }
}

/// The options for a server that keeps idle connections for so long, in seconds.
pub(super) fn settings(server_s: f64) -> Vec<Setting> {
    let kept = below(server_s);
    if kept == 0 {
        // 0 means no limit to some clients, and others refuse it
        return Vec::new();
    }
    CLIENTS
        .iter()
        .filter_map(|&(client, before, unit, after)| {
            let value = match unit {
                Unit::Millis => kept.to_string(),
                Unit::WholeSeconds if kept < 1_000 => return None,
                Unit::WholeSeconds => (kept / 1_000).to_string(),
                Unit::Seconds => (kept as f64 / 1e3).to_string(),
                Unit::Go if kept.is_multiple_of(1_000) => format!("{} * time.Second", kept / 1_000),
                Unit::Go => format!("{kept} * time.Millisecond"),
            };
            Some(Setting {
                client,
                option: format!("{before}{value}{after}"),
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_take_whole_seconds_are_left_out_below_one() {
        let clients = |server_s| -> Vec<String> {
            let settings = settings(server_s);
            settings.into_iter().map(|setting| setting.option).collect()
        };
        assert!(clients(6.0).contains(&"IdleConnTimeout: 5 * time.Second".to_owned()));
        assert!(clients(6.0).contains(&"TCPConnector(keepalive_timeout=5)".to_owned()));
        let short = clients(1.0);
        assert!(short.contains(&"IdleConnTimeout: 500 * time.Millisecond".to_owned()));
        assert!(!short.iter().any(|option| option.contains("TCPConnector")));
    }

    #[test]
    fn a_setting_of_0_is_never_advised() {
        for server_s in [0.0, 0.000_37, 0.001_9] {
            assert_eq!(settings(server_s), [], "{server_s}");
        }
        assert!(!settings(0.002).is_empty());
    }

    #[test]
    fn the_client_gives_up_before_the_server_does() {
        for (server_s, kept) in [
            (0.5, 250),
            (1.0, 500),
            (5.0, 4_000),
            (6.0, 5_000),
            (75.0, 67_000),
        ] {
            assert_eq!(below(server_s), kept, "{server_s}");
        }
    }
}
