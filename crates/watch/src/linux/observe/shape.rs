//! What the size of encrypted records tells of what is in them: farewells, and the frames of HTTP/2 that are no requests.
//!
//! It cannot tell which version of HTTP is spoken where TLS hides that; it only knows what no request is as small as.

use wire::Side;
use wire::tls::{Facts, TLS13};

/// A type byte and a tag (RFC 8446 section 5.2).
const OVERHEAD_13: u64 = 17;
/// What the JDK adds to each record of TLS 1.3: as many zeroes.
const PADDING: u64 = 16;
/// A Finished: its head and a hash.
const FINISHED_HEAD: u64 = 4;
const AES_256_GCM_SHA384: u16 = 0x1302;
/// An alert.
const ALERT: u64 = 2;

/// Of HTTP/2 (RFC 9113): a frame's head, which is an empty SETTINGS as well; a WINDOW_UPDATE; a PING or a GOAWAY.
const SETTINGS_ACK: u64 = 9;
const WINDOW_UPDATE: u64 = 13;
const PING: u64 = 17;
/// What a client begins with, before its SETTINGS; and one of those.
const PREFACE: u64 = 24;
const SETTING: u64 = 6;
const MAX_SETTINGS: u64 = 8;

/// What passed, as far as its size tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// One or more alerts, with a GOAWAY before it maybe.
    Farewell,
    /// Of HTTP/2, but no request and no answer.
    Control,
    /// A PING, or a request whose fields were all sent before.
    Doubtful,
    /// Anything else.
    Data,
}

/// What has to be known of a connection before sizes tell anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sizes {
    /// What encryption adds to a record.
    overhead: u64,
    may_be_http2: bool,
}

impl Sizes {
    /// Only for TLS 1.3: before it records are of many sizes, and alerts have a type of their own.
    pub(super) fn of(facts: &Facts) -> Option<Sizes> {
        let server = facts.server_hello.as_ref()?;
        if server.version() != TLS13 {
            return None;
        }
        let hash = match server.cipher_suite {
            AES_256_GCM_SHA384 => 48,
            _ => 32,
        };
        let finished = OVERHEAD_13 + FINISHED_HEAD + hash;
        let pads = facts.client_data.first_len == Some(finished + PADDING);
        let offered = facts.client_hello.as_ref().map(|hello| &hello.alpn);
        Some(Sizes {
            overhead: OVERHEAD_13 + if pads { PADDING } else { 0 },
            may_be_http2: offered.is_some_and(|names| names.iter().any(|name| *name == *b"h2")),
        })
    }

    /// Whether a client has said its preface and nothing else yet.
    pub(super) fn is_preface_alone(self, records: u64, bytes: u64) -> bool {
        self.may_be_http2 && bytes == records * self.overhead + PREFACE
    }

    /// What passed one way at once; `opening`: it is among the first that this side says after the handshake.
    pub(super) fn shape(self, from: Side, records: u64, bytes: u64, opening: bool) -> Shape {
        let Some(plain) = bytes.checked_sub(records * self.overhead) else {
            return Shape::Data;
        };
        match (from, records, plain) {
            // the JDK sends two
            (_, 1 | 2, _) if plain == records * ALERT => Shape::Farewell,
            _ if !self.may_be_http2 => Shape::Data,
            (_, 2, _) if [SETTINGS_ACK, PING].contains(&(plain.saturating_sub(ALERT))) => {
                Shape::Farewell
            }
            (_, 1, SETTINGS_ACK | WINDOW_UPDATE) | (Side::Server, 1, PING) => Shape::Control,
            (Side::Client, 1, PING) => Shape::Doubtful,
            (Side::Client, _, _) if opening && is_beginning(plain, records) => Shape::Control,
            (Side::Server, 1, _) if opening && is_settings(plain) => Shape::Control,
            _ => Shape::Data,
        }
    }
}

/// Whether a client's first words are its preface, SETTINGS and a WINDOW_UPDATE, or some of them; and its last ones, where it
/// does not need the connection after all.
fn is_beginning(plain: u64, records: u64) -> bool {
    let ends: &[u64] = match records {
        1 => &[0],
        _ => &[0, PING, ALERT, PING + ALERT],
    };
    let begins = |plain: u64| {
        let settings = plain.checked_sub(PREFACE).is_some_and(is_settings);
        plain == PREFACE || settings || is_settings(plain)
    };
    ends.iter()
        .filter_map(|end| plain.checked_sub(*end))
        .any(begins)
}

/// SETTINGS, with a WINDOW_UPDATE or without.
fn is_settings(plain: u64) -> bool {
    let is_list = |len: u64| len.is_multiple_of(SETTING) && len / SETTING <= MAX_SETTINGS;
    let heads = [SETTINGS_ACK, SETTINGS_ACK + WINDOW_UPDATE];
    let rest = heads.map(|head| plain.checked_sub(head));
    rest.into_iter().flatten().any(is_list)
}

#[cfg(test)]
mod tests {
    use super::*;
    use Side::{Client, Server};

    const SIZES: Sizes = Sizes {
        overhead: 17,
        may_be_http2: true,
    };

    // as they were seen
    #[test]
    fn go_over_http_2() {
        assert_eq!(SIZES.shape(Client, 1, 87, true), Shape::Control);
        assert_eq!(SIZES.shape(Server, 1, 51, true), Shape::Control);
        assert_eq!(SIZES.shape(Server, 1, 26, false), Shape::Control);
        assert_eq!(SIZES.shape(Client, 1, 26, false), Shape::Control);
        // the tenth request of ten
        assert_eq!(SIZES.shape(Client, 1, 32, false), Shape::Data);
        assert_eq!(SIZES.shape(Client, 2, 45, false), Shape::Farewell);
    }

    #[test]
    fn hyper_over_http_2() {
        assert_eq!(SIZES.shape(Client, 1, 41, true), Shape::Control);
        assert!(SIZES.is_preface_alone(1, 41));
        // settings, GOAWAY, the alert: another connection was quicker
        assert_eq!(SIZES.shape(Client, 2, 86, true), Shape::Control);
        assert_eq!(SIZES.shape(Client, 2, 293, true), Shape::Data);
        assert_eq!(SIZES.shape(Client, 1, 39, false), Shape::Data);
        assert_eq!(SIZES.shape(Client, 1, 34, false), Shape::Doubtful);
        assert_eq!(SIZES.shape(Client, 2, 53, false), Shape::Farewell);
    }

    #[test]
    fn the_jdk_pads() {
        let padded = Sizes {
            overhead: 33,
            may_be_http2: false,
        };
        assert_eq!(padded.shape(Client, 2, 70, false), Shape::Farewell);
        assert_eq!(padded.shape(Client, 1, 42, false), Shape::Data);
        let http2 = Sizes {
            may_be_http2: true,
            ..padded
        };
        assert_eq!(http2.shape(Client, 1, 42, false), Shape::Control);
    }

    #[test]
    fn requests_of_http_1_are_data() {
        for plain in 18..2000 {
            assert_eq!(SIZES.shape(Client, 1, plain + 17, false), Shape::Data);
        }
    }
}
