//! Key log files in the NSS format (RFC 9850), as `SSLKEYLOGFILE` names them.
//!
//! Lines may arrive late, in any order, and for connections that are never observed. Secrets are
//! never printed.

use crate::Side;
use std::collections::HashMap;
use std::fmt;

/// The secrets of many connections, by client random.
#[derive(Default)]
pub struct KeyLog {
    connections: HashMap<[u8; 32], Secrets>,
}

/// The labels that are used, each side's in the order of its keys.
const LABELS: [&str; 6] = [
    "CLIENT_RANDOM",
    "CLIENT_EARLY_TRAFFIC_SECRET",
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_TRAFFIC_SECRET_0",
];

/// The known secrets of one connection, in the order of [`LABELS`].
#[derive(Default, Clone, PartialEq, Eq)]
pub(super) struct Secrets([Option<Secret>; LABELS.len()]);

impl Secrets {
    /// The master secret of TLS 1.2.
    pub(super) fn tls12(&self) -> &[Option<Secret>] {
        &self.0[..1]
    }

    /// The secrets of one side in TLS 1.3.
    pub(super) fn tls13(&self, side: Side) -> &[Option<Secret>] {
        side.pick(&self.0[1..4], &self.0[4..])
    }
}

/// A secret of at most 64 bytes.
pub(super) type Secret = Vec<u8>;

const MAX_SECRET: usize = 64;

/// A line that is neither a secret, nor a comment, nor empty.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("expected a key log line: LABEL, 64 hex digits of client random, a secret in hex")]
pub struct MalformedLine;

impl KeyLog {
    /// Reads one line. Labels that are not used here are skipped, as the format requires.
    pub fn add_line(&mut self, line: &str) -> Result<(), MalformedLine> {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            return Ok(());
        }
        let mut words = line.split_ascii_whitespace();
        let (Some(label), Some(random), Some(secret), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(MalformedLine);
        };
        let Some(place) = LABELS.iter().position(|used| *used == label) else {
            return Ok(());
        };
        let random = unhex(random)
            .and_then(|random| random.try_into().ok())
            .ok_or(MalformedLine)?;
        let secret = unhex(secret)
            .filter(|secret| (1..=MAX_SECRET).contains(&secret.len()))
            .ok_or(MalformedLine)?;
        self.connections.entry(random).or_default().0[place] = Some(secret);
        Ok(())
    }

    /// Reads every line of a text. Returns the number of malformed lines.
    pub fn add_text(&mut self, text: &str) -> usize {
        text.lines()
            .filter(|line| self.add_line(line).is_err())
            .count()
    }

    /// Copies the secrets of one connection from another log. Returns whether any of them is new.
    pub fn copy_from(&mut self, other: &KeyLog, client_random: &[u8; 32]) -> bool {
        let theirs = other.connections.get(client_random);
        let Some(theirs) = theirs.filter(|theirs| self.find(client_random) != Some(theirs)) else {
            return false;
        };
        self.connections.insert(*client_random, theirs.clone());
        true
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    pub(super) fn find(&self, client_random: &[u8; 32]) -> Option<&Secrets> {
        self.connections.get(client_random)
    }
}

impl fmt::Debug for KeyLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyLog")
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let (pairs, odd) = digits.as_bytes().as_chunks::<2>();
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
    let bytes = pairs
        .iter()
        .map(|&[high, low]| Some(nibble(high)? << 4 | nibble(low)?));
    if odd.is_empty() {
        bytes.collect()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_known_labels_and_skips_others() {
        let random = "ab".repeat(32);
        let text = format!(
            "# comment\n\nCLIENT_RANDOM {random} 0102\r\nSERVER_TRAFFIC_SECRET_0 {random} FF\nEXPORTER_SECRET {random} 00\n"
        );
        let mut log = KeyLog::default();
        assert_eq!(log.add_text(&text), 0);
        let secrets = log.find(&[0xab; 32]).unwrap();
        assert_eq!(
            (secrets.tls12(), secrets.tls13(Side::Server)),
            (&[Some(vec![1, 2])][..], &[None, Some(vec![255])][..])
        );
        assert_eq!(log.connections.len(), 1);
    }

    #[test]
    fn counts_malformed_lines_and_continues() {
        let random = "00".repeat(32);
        let text = format!(
            "nonsense\nCLIENT_RANDOM {random} 0\nCLIENT_RANDOM 00 00\nCLIENT_RANDOM {random} zz\nCLIENT_RANDOM {random} \nCLIENT_RANDOM {random} 00"
        );
        let mut log = KeyLog::default();
        assert_eq!(log.add_text(&text), 5);
        assert!(log.find(&[0; 32]).is_some());
    }

    #[test]
    fn secrets_never_show_in_debug_output() {
        let mut log = KeyLog::default();
        log.add_line(&format!("CLIENT_RANDOM {} c0ffee", "00".repeat(32)))
            .unwrap();
        assert_eq!(format!("{log:?}"), "KeyLog { connections: 1, .. }");
    }
}
