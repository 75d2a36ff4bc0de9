//! How a connection began and ended, according to Zeek's `conn_state` and `history`.

use intact_ledger::{CloseKind, DialFailure, Failure, SetupPhase, Side};

/// Detail of a dial that the client reset.
const RESET_BY_CLIENT: &str = "the client reset it before it acknowledged the server's SYN";

/// How a TCP connection ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConnState {
    /// It was never established.
    Failed(DialFailure),
    /// The side that ended it first, and the kind of close, where the columns show them.
    Ended {
        by: Option<Side>,
        how: Option<CloseKind>,
    },
    /// Zeek stopped observing before the end.
    Open,
}

/// Reads both columns. Each letter of the history is an event, in order of time. Capital letters
/// are events of the client, small letters of the server.
pub(super) fn fate(state: &str, history: &str) -> ConnState {
    // if one direction is observed, the client reacts to answers that Zeek did not see
    let talks = history.contains(['D', 'A', 'F']);
    let failed = match state {
        "S0" if !talks => Some((Failure::ConnectTimeout, None)),
        "RSTOS0" if !talks => Some((Failure::ConnectTimeout, Some("the client gave up"))),
        "REJ" => Some((Failure::Refused, None)),
        // no acknowledgement of the server's SYN, and no data
        "RSTO" if history == "ShR" => Some((Failure::ClientClosed, Some(RESET_BY_CLIENT))),
        "RSTR" if history == "Shr" => Some((Failure::ConnectReset, None)),
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
    let closed_by = first.or(by_state);
    if closed_by.is_none() && matches!(state, "S0" | "S1" | "OTH") {
        return ConnState::Open;
    }
    ConnState::Ended {
        by: closed_by.map(|(by, _)| by),
        how: closed_by.map(|(_, how)| how),
    }
}

/// Whether Zeek did not see the start.
pub(super) fn is_late(state: &str, history: &str) -> bool {
    match history.is_empty() {
        true => matches!(state, "OTH" | "SHR" | "RSTRH"),
        // a ^ in front: Zeek has swapped the sides
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
    fn the_history_shows_who_closed_first() {
        let (client, server) = (Some(Side::Client), Some(Side::Server));
        assert_eq!(ended("SF", "ShADadFf"), (client, Some(CloseKind::Fin)));
        assert_eq!(ended("SF", "ShADadfF"), (server, Some(CloseKind::Fin)));
        assert_eq!(ended("RSTO", "ShADadfR"), (server, Some(CloseKind::Fin)));
        assert_eq!(ended("RSTR", "ShADadr"), (server, Some(CloseKind::Rst)));
        assert_eq!(ended("RSTO", ""), (client, Some(CloseKind::Rst)));
        assert_eq!(ended("SF", ""), (None, None));
    }

    #[test]
    fn a_connection_that_was_still_open_has_no_end() {
        for (state, history) in [("S1", "ShADad"), ("S1", ""), ("OTH", "DadA"), ("S0", "SAD")] {
            assert_eq!(fate(state, history), ConnState::Open, "{state} {history}");
        }
        assert_eq!(ended("OTH", "DadAf").0, Some(Side::Server));
    }

    #[test]
    fn a_connection_that_was_never_established_is_a_failed_dial() {
        let kind = |state, history| match fate(state, history) {
            ConnState::Failed(failed) => Some(failed.kind),
            ConnState::Ended { .. } | ConnState::Open => None,
        };
        assert_eq!(kind("S0", "S"), Some(Failure::ConnectTimeout));
        assert_eq!(kind("RSTOS0", "SR"), Some(Failure::ConnectTimeout));
        assert_eq!(kind("REJ", "Sr"), Some(Failure::Refused));
        assert_eq!(kind("RSTO", "ShR"), Some(Failure::ClientClosed));
        assert_eq!(kind("RSTR", "Shr"), Some(Failure::ConnectReset));
        assert_eq!(kind("S0", "SADF"), None);
        assert_eq!(kind("RSTO", "ShAR"), None);
    }

    #[test]
    fn a_connection_that_zeek_joined_later_is_detected() {
        assert!(is_late("OTH", "DadA"));
        assert!(is_late("OTH", "^dA"));
        assert!(!is_late("SF", "ShADadFf"));
        assert!(!is_late("SF", ""));
    }
}
