//! Detects `close_notify`, and HTTP/2 frames that are no requests, by the size of encrypted
//! records.
//!
//! Sizes cannot show an HTTP version that TLS hides. They only exclude records that are too small
//! for a request.

use intact_wire::Side;
use intact_wire::tls::{OVERHEAD_13, TLS13, TlsFacts, finished_len, suite_name};

/// Bytes that an AEAD cipher of TLS 1.2 adds to each record. They are an explicit nonce and a tag
/// (RFC 5288, 6655), or a tag alone (RFC 7905).
const OVERHEAD_12: [(&str, u64); 4] = [
    ("_GCM_", 24),
    ("_CHACHA20_POLY1305_", 16),
    ("_CCM_8", 16),
    ("_CCM", 24),
];
/// Padding that the JDK adds to each record of TLS 1.3, in bytes.
const PADDING: u64 = 16;
/// An alert.
const ALERT: u64 = 2;

/// Sizes of HTTP/2 frames (RFC 9113): a frame header, which is also an empty SETTINGS; a
/// WINDOW_UPDATE; a PING or a GOAWAY.
const SETTINGS_ACK: u64 = 9;
const WINDOW_UPDATE: u64 = 13;
const PING: u64 = 17;
/// Largest number of WINDOW_UPDATEs that can be the whole content of a record.
const MAX_UPDATES: u64 = 3;
/// The preface of a client, before its SETTINGS; and one setting.
const PREFACE: u64 = 24;
const SETTING: u64 = 6;
const MAX_SETTINGS: u64 = 8;
/// With at most this number of settings, the next frame is taken as a GOAWAY, because the fields of
/// a first request are longer.
const FEW_SETTINGS: u64 = 4;

/// The class of a burst, by its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordSizes {
    /// One or more alerts, perhaps after a GOAWAY.
    Close,
    /// HTTP/2 without a request and a response.
    Control,
    /// Several WINDOW_UPDATEs of a client with HTTP/2; short requests may have the same size.
    Updates,
    /// A PING, or a request with indexed fields only.
    Doubtful,
    /// Anything else.
    Data,
}

/// Consecutive records of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RecordBurst {
    pub(crate) from: Side,
    pub(crate) records: u64,
    /// Their encrypted payload in bytes, and that of the last record.
    pub(crate) bytes: u64,
    pub(crate) last: u64,
}

/// The position of a side's burst after the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakePosition {
    /// Among its first bursts.
    Opening,
    /// After a client's preface of HTTP/2 that was a burst of its own.
    AfterPreface,
    /// Any later position.
    Later,
}

/// The facts about a connection that the classes depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sizes {
    /// Bytes that encryption adds to a record.
    overhead: u64,
    may_be_http2: bool,
    /// TLS 1.3 hides which records are alerts, and the chosen protocol.
    is_tls13: bool,
}

impl Sizes {
    /// `None` for ciphers that pad records to blocks, because a size then stands for several
    /// lengths.
    pub(crate) fn of(facts: &TlsFacts) -> Option<Sizes> {
        let server = facts.server_hello.as_ref()?;
        if server.version() != TLS13 {
            let suite = suite_name(server.cipher_suite);
            let known = OVERHEAD_12.iter().find(|(name, _)| suite.contains(name));
            return known.map(|&(_, overhead)| Sizes {
                overhead,
                may_be_http2: server.alpn.as_deref() == Some(b"h2"),
                is_tls13: false,
            });
        }
        let finished = facts.client_handshake.last_len;
        let pads = finished == Some(finished_len(server) + PADDING);
        let offered = facts.client_hello.as_ref().map(|hello| &hello.alpn);
        Some(Sizes {
            overhead: OVERHEAD_13 + if pads { PADDING } else { 0 },
            may_be_http2: offered.is_some_and(|names| names.iter().any(|name| *name == *b"h2")),
            is_tls13: true,
        })
    }

    /// Whether the connection carries HTTP/2: as the server states in TLS 1.2, or by the size of
    /// the client's first record of data. That record is the preface, also if a request follows in
    /// the same burst.
    pub(crate) fn shows_http2(self, facts: &TlsFacts) -> bool {
        let is_preface = |len: u64| len.checked_sub(self.overhead).is_some_and(is_preface);
        self.may_be_http2 && (!self.is_tls13 || facts.client_first_len.is_some_and(is_preface))
    }

    /// Whether a client's burst is only its preface.
    pub(crate) fn is_preface_alone(self, burst: RecordBurst) -> bool {
        self.may_be_http2 && burst.bytes == burst.records * self.overhead + PREFACE
    }

    /// The class of the burst.
    pub(crate) fn shape(self, burst: RecordBurst, place: HandshakePosition) -> RecordSizes {
        let RecordBurst { from, records, .. } = burst;
        let Some(plain) = burst.bytes.checked_sub(records * self.overhead) else {
            return RecordSizes::Data;
        };
        match (from, records, plain) {
            // the JDK sends two
            (_, 1 | 2, _) if self.is_tls13 && plain == records * ALERT => RecordSizes::Close,
            _ if !self.may_be_http2 => RecordSizes::Data,
            (_, 2, _)
                if self.is_tls13
                    && [SETTINGS_ACK, PING].contains(&(plain.saturating_sub(ALERT))) =>
            {
                RecordSizes::Close
            }
            (_, 1, SETTINGS_ACK | WINDOW_UPDATE) | (Side::Server, 1, PING) => RecordSizes::Control,
            (Side::Client, 1, PING) => RecordSizes::Doubtful,
            // at the beginning several records are SETTINGS and the frames after them
            (Side::Client, _, _)
                if (records == 1 || place == HandshakePosition::Later)
                    && is_updates(plain, records) =>
            {
                RecordSizes::Updates
            }
            // opens and closes: another connection was faster
            (Side::Client, 2.., _)
                if place != HandshakePosition::Later && burst.last == self.overhead + ALERT =>
            {
                RecordSizes::Control
            }
            (Side::Client, _, _) if place == HandshakePosition::Opening && is_preface(plain) => {
                RecordSizes::Control
            }
            (Side::Client, _, _)
                if place == HandshakePosition::AfterPreface && is_beginning(plain) =>
            {
                RecordSizes::Control
            }
            (Side::Server, 1, _)
                if place == HandshakePosition::Opening && is_settings(plain, MAX_SETTINGS) =>
            {
                RecordSizes::Control
            }
            _ => RecordSizes::Data,
        }
    }
}

/// Whether this number of records of this size can be WINDOW_UPDATEs of the connection and of
/// streams. A client that downloads fast sends many at a time, and the first may follow the record
/// that acknowledges the server's SETTINGS.
fn is_updates(plain: u64, records: u64) -> bool {
    let is_all = |plain: u64, records: u64| {
        let updates = plain / WINDOW_UPDATE;
        plain.is_multiple_of(WINDOW_UPDATE) && (records..=records * MAX_UPDATES).contains(&updates)
    };
    let after_ack = plain.checked_sub(SETTINGS_ACK);
    is_all(plain, records) || records > 1 && after_ack.is_some_and(|rest| is_all(rest, records - 1))
}

/// Whether a client's first burst is only its preface, with SETTINGS and with or without a
/// WINDOW_UPDATE.
fn is_preface(plain: u64) -> bool {
    plain == PREFACE || plain.checked_sub(PREFACE).is_some_and(is_beginning)
}

/// Whether a client's burst after its preface is SETTINGS, or a few of them and a GOAWAY.
fn is_beginning(plain: u64) -> bool {
    let leaves = |before| is_settings(before, FEW_SETTINGS);
    is_settings(plain, MAX_SETTINGS) || plain.checked_sub(PING).is_some_and(leaves)
}

/// SETTINGS, at most `most`, with or without a WINDOW_UPDATE.
fn is_settings(plain: u64, most: u64) -> bool {
    let is_list = |len: u64| len.is_multiple_of(SETTING) && len / SETTING <= most;
    let heads = [SETTINGS_ACK, SETTINGS_ACK + WINDOW_UPDATE];
    let rest = heads.map(|head| plain.checked_sub(head));
    rest.into_iter().flatten().any(is_list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use HandshakePosition::{AfterPreface, Later, Opening};
    use RecordSizes::{Close, Control, Data, Doubtful, Updates};
    use Side::{Client, Server};
    use intact_wire::tls::ServerHello;

    const SIZES: Sizes = Sizes {
        overhead: 17,
        may_be_http2: true,
        is_tls13: true,
    };

    fn burst(from: Side, records: u64, bytes: u64) -> RecordBurst {
        RecordBurst {
            from,
            records,
            bytes,
            last: bytes,
        }
    }

    fn sizes_of(
        sizes: Sizes,
        from: Side,
        records: u64,
        bytes: u64,
        place: HandshakePosition,
    ) -> RecordSizes {
        sizes.shape(burst(from, records, bytes), place)
    }

    // observed sizes
    #[test]
    fn go_over_http_2() {
        assert_eq!(sizes_of(SIZES, Client, 1, 87, Opening), Control);
        assert_eq!(sizes_of(SIZES, Server, 1, 51, Opening), Control);
        assert_eq!(sizes_of(SIZES, Server, 1, 26, Later), Control);
        assert_eq!(sizes_of(SIZES, Client, 1, 26, Later), Control);
        // the connection's WINDOW_UPDATE and a stream's, while a body comes
        assert_eq!(sizes_of(SIZES, Client, 1, 43, Later), Updates);
        // three records with five updates, in one read; and two requests
        let burst_of = |records: u64, plain: u64| {
            sizes_of(SIZES, Client, records, records * 17 + plain, Later)
        };
        assert_eq!(burst_of(3, 5 * 13), Updates);
        assert_eq!(burst_of(3, 10 * 13), Data);
        // after the acknowledgement of the server's SETTINGS, which has its own record
        assert_eq!(burst_of(9, 9 + 16 * 13), Updates);
        assert_eq!(burst_of(1, 9 + 13), Data);
        assert_eq!(burst_of(2, 80), Data);
        // the tenth request of ten
        assert_eq!(sizes_of(SIZES, Client, 1, 32, Later), Data);
        assert_eq!(sizes_of(SIZES, Client, 2, 45, Later), Close);
    }

    #[test]
    fn hyper_over_http_2() {
        assert_eq!(sizes_of(SIZES, Client, 1, 41, Opening), Control);
        let preface = burst(Client, 1, 41);
        assert!(SIZES.is_preface_alone(preface));
        // settings, GOAWAY, the alert: another connection was faster
        let leaves = RecordBurst {
            last: 19,
            ..burst(Client, 2, 86)
        };
        assert_eq!(SIZES.shape(leaves, AfterPreface), Control);
        // the same without the alert, which arrives later
        let goes = burst(Client, 1, 67);
        assert_eq!(SIZES.shape(goes, AfterPreface), Control);
        let asks = burst(Client, 2, 293);
        assert_eq!(SIZES.shape(asks, AfterPreface), Data);
        assert_eq!(sizes_of(SIZES, Client, 1, 39, Later), Data);
        assert_eq!(sizes_of(SIZES, Client, 1, 34, Later), Doubtful);
        assert_eq!(sizes_of(SIZES, Client, 2, 53, Later), Close);
    }

    #[test]
    fn the_jdk_pads() {
        let padded = Sizes {
            overhead: 33,
            may_be_http2: false,
            is_tls13: true,
        };
        assert_eq!(sizes_of(padded, Client, 2, 70, Later), Close);
        assert_eq!(sizes_of(padded, Client, 1, 42, Later), Data);
        let http2 = Sizes {
            may_be_http2: true,
            ..padded
        };
        assert_eq!(sizes_of(http2, Client, 1, 42, Later), Control);
    }

    #[test]
    fn tls_1_2_adds_a_nonce_and_shows_its_alerts() {
        let facts = |cipher_suite: u16, alpn: &[u8]| TlsFacts {
            server_hello: Some(ServerHello {
                legacy_version: 0x0303,
                cipher_suite,
                alpn: Some(alpn.to_vec()),
                ..ServerHello::default()
            }),
            ..TlsFacts::default()
        };
        // TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
        let gcm = Sizes::of(&facts(0xc02f, b"h2")).unwrap();
        assert!(gcm.shows_http2(&facts(0xc02f, b"h2")));
        assert_eq!(sizes_of(gcm, Client, 1, 24 + 13, Later), Control);
        assert_eq!(sizes_of(gcm, Client, 2, 2 * 24 + 3 * 13, Later), Updates);
        assert_eq!(sizes_of(gcm, Client, 1, 24 + 2, Later), Data);
        // TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256
        let chacha = Sizes::of(&facts(0xcca8, b"h2")).unwrap();
        assert_eq!(sizes_of(chacha, Client, 1, 16 + 13, Later), Control);
        let http1 = Sizes::of(&facts(0xc02f, b"http/1.1")).unwrap();
        assert_eq!(sizes_of(http1, Client, 1, 24 + 13, Later), Data);
        // TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA
        assert_eq!(Sizes::of(&facts(0xc013, b"h2")), None);
    }

    #[test]
    fn a_preface_in_one_burst_with_a_request_shows_http_2() {
        let facts = |first_len: u64| TlsFacts {
            client_first_len: Some(first_len),
            ..TlsFacts::default()
        };
        // of Go, of hyper
        assert!(SIZES.shows_http2(&facts(87)));
        assert!(SIZES.shows_http2(&facts(41)));
        assert!(!SIZES.shows_http2(&facts(150)));
        let http1 = Sizes {
            may_be_http2: false,
            ..SIZES
        };
        assert!(!http1.shows_http2(&facts(87)));
        assert!(!SIZES.shows_http2(&TlsFacts::default()));
    }

    #[test]
    fn requests_of_http_1_are_data() {
        for plain in 18..2000 {
            let updates = [26, 39].contains(&plain);
            let expected = if updates { Updates } else { Data };
            assert_eq!(sizes_of(SIZES, Client, 1, plain + 17, Later), expected);
        }
    }
}
