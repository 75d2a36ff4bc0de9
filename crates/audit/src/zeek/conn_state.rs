//! What Zeek's `conn_state` and `history` say of how a connection began and ended.

use intact_ledger::{CloseKind, DialFailure, Failure, SetupPhase, Side};

/// How a TCP connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConnState {
    /// It was never established.
    Failed(DialFailure),
    /// Who ended it first and with what, as far as that is told.
    Ended {
        by: Option<Side>,
        how: Option<CloseKind>,
    },
    /// Its end was not seen: Zeek stopped looking.
    Open,
}

/// Reads both columns. In a history each letter is what was seen first or again, in time: capital of the client, small of the server.
pub(super) fn fate(state: &str, history: &str) -> ConnState {
    // with one direction in sight the client goes on talking to answers that are not
    let talks = history.contains(['D', 'A', 'F']);
    let failed = match state {
        "S0" if !talks => Some((Failure::ConnectTimeout, None)),
        "RSTOS0" if !talks => Some((Failure::ConnectTimeout, Some("the client gave up"))),
        "REJ" => Some((Failure::Refused, None)),
        _ => None,
    };
    if let Some((kind, detail)) = failed {
        return ConnState::Failed(DialFailure {
            phase: SetupPhase::Connect,
            kind,
            detail: detail.map(Into::into),
        });
    }
    let first = history.chars().find_map(|letter| {
        Some(match letter {
            'F' => (Side::Client, CloseKind::Fin),
            'f' => (Side::Server, CloseKind::Fin),
            'R' => (Side::Client, CloseKind::Rst),
            'r' => (Side::Server, CloseKind::Rst),
            _ => return None,
        })
    });
    let by_state = match state {
        "S2" | "SH" => Some((Side::Client, CloseKind::Fin)),
        "S3" | "SHR" => Some((Side::Server, CloseKind::Fin)),
        "RSTO" | "RSTOS0" => Some((Side::Client, CloseKind::Rst)),
        "RSTR" | "RSTRH" => Some((Side::Server, CloseKind::Rst)),
        _ => None,
    };
    let told = first.or(by_state);
    if told.is_none() && matches!(state, "S0" | "S1" | "OTH") {
        return ConnState::Open;
    }
    ConnState::Ended {
        by: told.map(|(by, _)| by),
        how: told.map(|(_, how)| how),
    }
}

/// Whether its start was not in sight.
pub(super) fn is_late(state: &str, history: &str) -> bool {
    match history.is_empty() {
        true => matches!(state, "OTH" | "SHR" | "RSTRH"),
        // a ^ in front says that Zeek has swapped the sides
        false => !history.contains(['S', 'H', 's', 'h']),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(state: &str, history: &str) -> (Option<Side>, Option<CloseKind>) {
        match fate(state, history) {
            ConnState::Ended { by, how } => (by, how),
            other => panic!("{state} {history}: {other:?}"),
        }
    }

    #[test]
    fn who_closed_first_is_in_the_order_of_the_history() {
        let (client, server) = (Some(Side::Client), Some(Side::Server));
        assert_eq!(ended("SF", "ShADadFf"), (client, Some(CloseKind::Fin)));
        assert_eq!(ended("SF", "ShADadfF"), (server, Some(CloseKind::Fin)));
        assert_eq!(ended("RSTO", "ShADadfR"), (server, Some(CloseKind::Fin)));
        assert_eq!(ended("RSTR", "ShADadr"), (server, Some(CloseKind::Rst)));
        assert_eq!(ended("RSTO", ""), (client, Some(CloseKind::Rst)));
        assert_eq!(ended("SF", ""), (None, None));
    }

    #[test]
    fn what_was_still_open_has_no_end() {
        for (state, history) in [("S1", "ShADad"), ("S1", ""), ("OTH", "DadA"), ("S0", "SAD")] {
            assert_eq!(fate(state, history), ConnState::Open, "{state} {history}");
        }
        assert_eq!(ended("OTH", "DadAf").0, Some(Side::Server));
    }

    #[test]
    fn what_was_never_established_is_a_failed_dial() {
        let kind = |state, history| match fate(state, history) {
            ConnState::Failed(failed) => Some(failed.kind),
            ConnState::Ended { .. } | ConnState::Open => None,
        };
        assert_eq!(kind("S0", "S"), Some(Failure::ConnectTimeout));
        assert_eq!(kind("RSTOS0", "SR"), Some(Failure::ConnectTimeout));
        assert_eq!(kind("REJ", "Sr"), Some(Failure::Refused));
        assert_eq!(kind("S0", "SADF"), None);
    }

    #[test]
    fn a_connection_joined_later_is_told() {
        assert!(is_late("OTH", "DadA"));
        assert!(is_late("OTH", "^dA"));
        assert!(!is_late("SF", "ShADadFf"));
        assert!(!is_late("SF", ""));
    }
}
