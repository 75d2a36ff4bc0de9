//! Why a connection was opened although one had been opened before: how its predecessor ended. The
//! rules claim avoidable setups by it. Must not decide whether that is worth a finding.

use super::open_connection::{Last, OpenConnection};
use intact_advice::Client;
use intact_ledger::{Close, CloseKind, ClosePoint, Failure, Protocol, Side};

/// Openings for one reason from which on it counts: those without one have the same, and a claim of
/// them is more than a note.
pub(crate) const SEVERAL: u64 = 3;

/// A close so soon after an exchange, in nanoseconds, is not the end of an idle time; used where
/// the producer does not say.
pub(super) const AT_ONCE: u64 = 100_000_000;
/// Servers of data bases keep a silent connection for longer, in nanoseconds.
const SERVER_WAITS: u64 = 1_000_000_000;

/// Bytes of a body that clients read together with the header section.
const READ_AT_ONCE: u64 = 1024;

/// Exchanges on a connection from which on a client that closes it renews it, rather than not to
/// keep it.
pub(super) const MANY: u64 = 10;

macro_rules! whys {
    ($($variant:ident $words:literal,)*) => {
        /// What led to the opening of a connection.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum OpenReason {
            $(#[doc = concat!("It was opened ", $words, ".")] $variant,)*
        }

        impl OpenReason {
            /// For a sentence that begins with "opened".
            pub fn words(self) -> &'static str {
                match self { $(OpenReason::$variant => $words,)* }
            }
        }
    };
}

whys! {
    Unseen "for an unknown reason: the ends of connections were not recorded",
    Growth "because there was none, or all were busy",
    IdleExisted "though the same client had an idle one",
    StreamsFree "though a connection of the same client had free streams",
    InParallel "while another one of the same client was being set up",
    Unused "and closed without a request",
    OtherProcess "though another process had an idle one",
    NewProcess "by a new process, after others had closed theirs",
    ClientAnnounced "after the client had announced the end of the last one",
    ServerAnnouncedAtOnce "after the server had announced the end of the last one with its first response",
    AfterError "after the server had announced the end of the last one with an error response",
    Upgraded "after the last one had changed to another protocol",
    ServerHidden "after the server had closed the last one, whose content could not be read",
    ServerLimit "after the server had announced the end of the last one, which had carried several requests",
    Undrained "because the client had not read the last response to its end",
    PoolFull "after the client had closed one that its pool had no room for",
    NotKept "after the server had closed the last one without an announcement, right after a response",
    ServerIdle "after the server had closed the last one while it was idle",
    Rejected "after the server had closed the last one as soon as it was open",
    Stale "after a request was sent on a connection that the server had closed",
    ExcessBytes "after the client had closed the last one, because the server had sent bytes after the response that belong to no response",
    ClientAtOnce "after the client had closed the last one right after a response",
    ClientRenewed "after the client had closed the last one right after a response, when it had carried many requests",
    ClientIdle "after the client had closed the last one while it was idle",
    PauseTooLong "after a pause for which the server keeps no connection",
    PerCall "after the client had closed the last one just before",
    Evicted "after the client had closed the last one while it was idle, when it opened one to another destination",
    GaveUp "after the client had closed the last one before its response was complete",
    Broken "after the last one had broken",
}

impl OpenReason {
    /// What the end of a connection means for the one that is opened in its place.
    pub(super) fn end_of(live: &OpenConnection, close: &Close) -> OpenReason {
        if close.moment == Some(ClosePoint::Gap) {
            return OpenReason::Unseen;
        }
        let last = live.last.as_ref();
        let announced = close
            .announced_by
            .or(last.and_then(|last| last.close_sent_by));
        // a client's GOAWAY says no more than the close that follows it (RFC 9113 section 6.8),
        // which may be the server's
        let is_asked = announced == Some(Side::Client) && live.multiplexes();
        let announced = announced.filter(|_| !is_asked);
        let by = match is_asked {
            true => Some(Side::Client),
            false => close.by,
        };
        let is_stale = close.moment == Some(ClosePoint::Stale);
        if (is_stale && announced.is_none()) || last.is_some_and(|last| last.stale) {
            return OpenReason::Stale;
        }
        let opened = live.connection.setup.ready();
        let opened = opened.unwrap_or(live.connection.at);
        let idle = last.map_or(0, |last| close.at.since(last.end));
        let at_once = match close.moment {
            Some(ClosePoint::AfterExchange) => true,
            Some(ClosePoint::Idle) => false,
            _ => idle < AT_ONCE,
        };
        let carried = close.exchanges.unwrap_or(live.exchanges);
        // so after a FIN the client had read what had come, and waited for the rest
        let waited = close.how == Some(CloseKind::Fin)
            && last
                .and_then(|last| last.answered)
                .is_some_and(|answered| close.at.since(answered) >= AT_ONCE);
        let undrained =
            last.is_some_and(|last| last.undrained) && !waited || leaves_rest(live, close);
        // what announced the end, and since when it was idle, is inside TLS
        let is_hidden = live.connection.tls.is_some()
            && match last {
                Some(last) => !last.is_read && at_once,
                None => close.exchanges.is_none(),
            };
        let is_cut =
            close.moment == Some(ClosePoint::MidExchange) || last.is_some_and(|last| !last.is_ok());
        match (by, announced) {
            _ if last.is_some_and(Last::is_upgrade) => OpenReason::Upgraded,
            _ if close.moment == Some(ClosePoint::AfterExcess) => OpenReason::ExcessBytes,
            _ if last.is_some_and(|last| last.is_garbled()) => OpenReason::Broken,
            (Some(Side::Client), None | Some(Side::Client)) if undrained => OpenReason::Undrained,
            (_, Some(side)) => live.announced(side, carried, idle),
            (Some(Side::Client), _) if is_cut => OpenReason::GaveUp,
            (None, _) if last.and_then(|last| last.failure) == Some(Failure::ClientClosed) => {
                OpenReason::GaveUp
            }
            // a side that is missing from the recording may have closed in good order
            _ if is_cut && (by.is_some() || last.is_some_and(|last| !last.is_ok())) => {
                OpenReason::Broken
            }
            (Some(Side::Server), _) if close.how == Some(CloseKind::Rst) && at_once => {
                OpenReason::Broken
            }
            // without keep-alive in HTTP/1.0 the close is what was agreed (RFC 9112 section 9.3)
            (Some(Side::Server), _) if at_once && is_old(live) => OpenReason::ServerAnnouncedAtOnce,
            (Some(Side::Server), _) if is_hidden => OpenReason::ServerHidden,
            (Some(Side::Server), _) if at_once && carried > 0 => OpenReason::NotKept,
            // its client asked the server for the end (`QUIT`)
            (Some(Side::Server), _)
                if live.connection.protocol.is_some_and(Protocol::is_for_data)
                    && close.bytes.sent > 0
                    && close.at.since(opened) < SERVER_WAITS =>
            {
                OpenReason::ClientAtOnce
            }
            (Some(Side::Server), _) if last.is_none() && close.at.since(opened) < AT_ONCE => {
                OpenReason::Rejected
            }
            (Some(Side::Server), _) => OpenReason::ServerIdle,
            (Some(Side::Client), _) if at_once && carried >= MANY => OpenReason::ClientRenewed,
            (Some(Side::Client), _) if at_once => OpenReason::ClientAtOnce,
            (Some(Side::Client), _) => OpenReason::ClientIdle,
            // a RST may follow a FIN that was not recorded
            (None, _)
                if close.how == Some(CloseKind::Fin)
                    || close.moment != Some(ClosePoint::MidExchange) =>
            {
                OpenReason::Unseen
            }
            (None, _) => OpenReason::Broken,
        }
    }

    /// Whether any client would have opened one: the server, or the path to it, had ended the last
    /// one, or would have.
    pub(super) fn is_of_server(self) -> bool {
        use OpenReason::{
            AfterError, Broken, ExcessBytes, NotKept, PauseTooLong, Rejected,
            ServerAnnouncedAtOnce, ServerHidden, ServerIdle, ServerLimit, Stale,
        };
        matches!(
            self,
            AfterError
                | Broken
                | ExcessBytes
                | NotKept
                | PauseTooLong
                | Rejected
                | ServerAnnouncedAtOnce
                | ServerHidden
                | ServerIdle
                | ServerLimit
                | Stale
        )
    }

    /// Whether the connection was never idle in the sense that something else could have used it.
    pub(super) fn is_at_once(self) -> bool {
        use OpenReason::{
            AfterError, Broken, ClientAnnounced, ClientAtOnce, ClientRenewed, ExcessBytes, GaveUp,
            NotKept, PerCall, PoolFull, ServerAnnouncedAtOnce, Undrained, Upgraded,
        };
        matches!(
            self,
            Undrained
                | ExcessBytes
                | ClientAtOnce
                | ClientRenewed
                | ClientAnnounced
                | ServerAnnouncedAtOnce
                | AfterError
                | Upgraded
                | NotKept
                | GaveUp
                | PerCall
                | PoolFull
                | Broken
        )
    }
}

/// Whether a part of a response was in the client's socket, unread, when the client closed it. A
/// connection that multiplexes takes further requests meanwhile.
pub(super) fn has_rest(live: &OpenConnection, close: &Close) -> bool {
    let is_upgraded = live.last.as_ref().is_some_and(Last::is_upgrade);
    close.bytes.unread.is_some() && !live.multiplexes() && !is_upgraded
}

/// Whether the client closed a connection with a part of a response unread, as its socket or a RST
/// shows: a close with unread bytes sends one (RFC 2525 section 2.17). A short body is read with
/// the header section, so such a RST was meant. Of TLS, other records than those of a response may
/// be left when the connection has been idle.
pub(super) fn leaves_rest(live: &OpenConnection, close: &Close) -> bool {
    has_rest(live, close) || is_reset_with_rest(live, close)
}

fn is_reset_with_rest(live: &OpenConnection, close: &Close) -> bool {
    let is_reset = close.by == Some(Side::Client) && close.how == Some(CloseKind::Rst);
    let Some(last) = live.last.as_ref().filter(|_| is_reset) else {
        return false;
    };
    let connection = &live.connection;
    let since = close.at.since(last.end);
    let is_readable = connection.tls.is_none() || since < AT_ONCE;
    let is_whole = last.is_ok() && last.body > READ_AT_ONCE && is_readable;
    // one that the client read has no such pause before its close
    let is_part = last.undrained && since >= AT_ONCE;
    let is_one_at_a_time = !live.multiplexes() && !last.is_upgrade();
    let command = connection.owner.as_ref().map(|owner| &*owner.command);
    let client = || Client::recognise(command, connection.agent.as_deref(), None);
    (is_whole || is_part) && is_one_at_a_time && !client().is_some_and(|client| client.resets)
}

fn is_old(live: &OpenConnection) -> bool {
    matches!(
        live.connection.protocol,
        Some(Protocol::Http09 | Protocol::Http10)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::open_connection::PoolOwner;
    use intact_ledger::{
        Connection, ConnectionBytes, ConnectionId, Exchange, Failure, Nanos, Outcome, Probes, Span,
        Tls,
    };

    fn live(last: Option<Exchange>, is_tls: bool) -> OpenConnection {
        let mut connection = Connection::new(ConnectionId(1), Nanos(0));
        connection.tls = is_tls.then(Tls::default);
        let mut live = OpenConnection {
            connection,
            destination: 0,
            owner: PoolOwner::Unknown,
            exchanges: 0,
            carried_response: false,
            last: None,
            busy: None,
        };
        if let Some(last) = last {
            live.carry(&last);
        }
        live
    }

    fn close(by: Option<Side>, how: Option<CloseKind>, moment: Option<ClosePoint>) -> Close {
        Close {
            at: Nanos(7),
            by,
            how,
            other_end: None,
            announced_by: None,
            moment,
            exchanges: None,
            bytes: ConnectionBytes::default(),
            probes: Probes::default(),
        }
    }

    fn response(status: Option<u16>, close_sent_by: Option<Side>) -> Option<Exchange> {
        let mut one = Exchange::new(1, Nanos(0));
        one.status = status;
        one.close_sent_by = close_sent_by;
        Some(one)
    }

    #[test]
    fn why_a_server_closed_depends_on_what_could_be_read() {
        let server = Some(Side::Server);
        let at_once = close(
            server,
            Some(CloseKind::Fin),
            Some(ClosePoint::AfterExchange),
        );
        let cases = [
            (response(Some(200), None), OpenReason::NotKept),
            (response(None, None), OpenReason::ServerHidden),
            (response(Some(500), server), OpenReason::AfterError),
            (
                response(Some(200), server),
                OpenReason::ServerAnnouncedAtOnce,
            ),
            (response(Some(101), None), OpenReason::Upgraded),
            (None, OpenReason::ServerHidden),
        ];
        for (last, expected) in cases {
            let words = format!("{last:?}");
            let why = OpenReason::end_of(&live(last, true), &at_once);
            assert_eq!(why, expected, "{words}");
        }
        // without TLS nothing is hidden
        let why = OpenReason::end_of(&live(response(None, None), false), &at_once);
        assert_eq!(why, OpenReason::NotKept);
        // an idle time is seen from outside
        let idle = close(server, Some(CloseKind::Fin), Some(ClosePoint::Idle));
        let why = OpenReason::end_of(&live(response(None, None), true), &idle);
        assert_eq!(why, OpenReason::ServerIdle);
    }

    #[test]
    fn a_server_of_data_that_closes_soon_was_asked_to() {
        let mut live = live(None, false);
        live.connection.protocol = Some(Protocol::Mysql);
        let mut close = close(Some(Side::Server), Some(CloseKind::Fin), None);
        close.at = Nanos(3_000_000);
        // it refused, before its client sent anything
        assert_eq!(OpenReason::end_of(&live, &close), OpenReason::Rejected);
        close.bytes.sent = 200;
        assert_eq!(OpenReason::end_of(&live, &close), OpenReason::ClientAtOnce);
        close.at = Nanos(5_000_000_000);
        assert_eq!(OpenReason::end_of(&live, &close), OpenReason::ServerIdle);
    }

    #[test]
    fn an_end_of_which_nothing_was_seen_is_not_called_broken() {
        let live = live(None, false);
        let why = |how, moment| OpenReason::end_of(&live, &close(None, how, moment));
        assert_eq!(why(None, None), OpenReason::Unseen);
        assert_eq!(why(None, Some(ClosePoint::Unused)), OpenReason::Unseen);
        assert_eq!(why(Some(CloseKind::Rst), None), OpenReason::Unseen);
        assert_eq!(why(None, Some(ClosePoint::MidExchange)), OpenReason::Broken);
    }

    #[test]
    fn a_request_that_the_client_gives_up_breaks_nothing() {
        let mut late = Exchange::new(1, Nanos(0));
        late.outcome = Outcome::Failed(Failure::ClientClosed);
        let live = live(Some(late), false);
        let why = |by| OpenReason::end_of(&live, &close(by, Some(CloseKind::Fin), None));
        assert_eq!(why(Some(Side::Client)), OpenReason::GaveUp);
        assert_eq!(why(None), OpenReason::GaveUp);
        assert_eq!(why(Some(Side::Server)), OpenReason::Broken);
    }

    #[test]
    fn bytes_in_place_of_a_response_break_a_connection() {
        let mut garbage = Exchange::new(1, Nanos(0));
        garbage.outcome = Outcome::Failed(Failure::Malformed);
        let live = live(Some(garbage), false);
        for by in [Some(Side::Client), Some(Side::Server), None] {
            let close = close(by, Some(CloseKind::Fin), Some(ClosePoint::MidExchange));
            assert_eq!(OpenReason::end_of(&live, &close), OpenReason::Broken);
        }
    }

    #[test]
    fn a_response_without_a_request_announces_the_end_of_an_idle_time() {
        let live = live(response(Some(200), None), false);
        let why = |at: u64, carried: u64| {
            let mut close = close(
                Some(Side::Server),
                Some(CloseKind::Fin),
                Some(ClosePoint::Idle),
            );
            close.at = Nanos(at);
            close.announced_by = Some(Side::Server);
            close.exchanges = Some(carried);
            OpenReason::end_of(&live, &close)
        };
        assert_eq!(why(5 * AT_ONCE, 1), OpenReason::ServerIdle);
        assert_eq!(why(AT_ONCE / 2, 1), OpenReason::ServerAnnouncedAtOnce);
        assert_eq!(why(AT_ONCE / 2, 3), OpenReason::ServerLimit);
        assert_eq!(why(5 * AT_ONCE, 3), OpenReason::ServerIdle);
    }

    #[test]
    fn a_rest_in_the_socket_is_an_unread_response_however_late_the_close() {
        let live = live(response(Some(200), None), false);
        let mut close = close(Some(Side::Client), Some(CloseKind::Rst), None);
        close.at = Nanos(5_000_000_000);
        close.moment = Some(ClosePoint::Idle);
        assert_eq!(OpenReason::end_of(&live, &close), OpenReason::ClientIdle);
        close.bytes.unread = Some(20);
        assert_eq!(OpenReason::end_of(&live, &close), OpenReason::Undrained);
    }

    #[test]
    fn a_client_that_waits_for_the_rest_of_a_body_does_not_leave_it_unread() {
        let mut cut = Exchange::new(1, Nanos(0));
        cut.status = Some(200);
        cut.body.announced = Some(1_000);
        cut.body.read = Some(500);
        cut.outcome = Outcome::Failed(Failure::ClientClosed);
        cut.spans.wait = Some(Span::new(Nanos(0), Nanos(1_000_000)));
        let why = |how, after: u64| {
            let mut cut = cut.clone();
            cut.end = Nanos(1_000_000 + after);
            let mut close = close(Some(Side::Client), how, Some(ClosePoint::MidExchange));
            close.at = cut.end;
            OpenReason::end_of(&live(Some(cut), false), &close)
        };
        assert_eq!(why(Some(CloseKind::Fin), AT_ONCE), OpenReason::GaveUp);
        assert_eq!(why(Some(CloseKind::Fin), 1_000_000), OpenReason::Undrained);
        // of a stream, the time since its last bytes counts
        let (answer, stream_end) = (1_000_000, 500_000_000);
        let mut stream = cut.clone();
        stream.body.announced = None;
        stream.bytes.body = 500;
        stream.body.left_after = Some(Nanos(stream_end));
        let left = |end: u64, stream: &Exchange| {
            let mut stream = stream.clone();
            stream.end = Nanos(end);
            let mut close = close(Some(Side::Client), Some(CloseKind::Fin), None);
            close.at = stream.end;
            OpenReason::end_of(&live(Some(stream), false), &close)
        };
        assert_eq!(left(stream_end + answer, &stream), OpenReason::Undrained);
        assert_eq!(left(stream_end + AT_ONCE, &stream), OpenReason::GaveUp);
        // unread bytes were in the socket
        assert_eq!(why(Some(CloseKind::Rst), AT_ONCE), OpenReason::Undrained);
        assert_eq!(why(None, AT_ONCE), OpenReason::Undrained);
    }
}
