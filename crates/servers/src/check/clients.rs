//! Client options that keep a client's idle limit below the server's, with the value to set.

use intact_advice::clients;
use serde::Serialize;

/// One client's option, ready to be copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Setting {
    /// The client library.
    pub client: &'static str,
    /// The option with its value.
    pub option: String,
}

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
    let settings = clients().iter().filter_map(|client| {
        Some(Setting {
            client: &client.name,
            option: client.idle_setting.as_ref()?.with(kept)?,
        })
    });
    settings.collect()
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
