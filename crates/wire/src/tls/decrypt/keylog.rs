//! Key log files in the NSS format (RFC 9850), as `SSLKEYLOGFILE` names them.
//!
//! Lines may arrive late, in any order, and for connections that are never observed. Secrets are
//! never printed.

use crate::Side;
use std::collections::HashMap;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::num::NonZeroU32;

/// The secrets of many connections, by client random. A log may have millions of lines, so they are
/// kept in a row, each behind [`HEAD`] bytes.
#[derive(Default)]
pub struct KeyLog {
    /// Where the last secret of each connection begins, counted from 1.
    connections: HashMap<[u8; 32], NonZeroU32>,
    secrets: Vec<u8>,
}

/// Where the previous secret of the same connection begins, or 0; the place of the label in
/// [`LABELS`]; the length of the secret.
const HEAD: usize = 4 + 1 + 1;

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
/// The longest line that can have a secret, with room for blanks, in bytes.
const LONGEST_LINE: u64 = 1024;

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
        self.add(random, place, &secret);
        Ok(())
    }

    /// Secrets beyond 4 GiB are not kept.
    fn add(&mut self, random: [u8; 32], place: usize, secret: &[u8]) {
        let last = (self.lines_of(&random).take(LABELS.len())).find(|line| line.0 == place);
        if last == Some((place, secret)) {
            return;
        }
        let begin = u32::try_from(self.secrets.len() + 1).ok();
        let Some(begin) = begin.and_then(NonZeroU32::new) else {
            return;
        };
        let before = self.connections.insert(random, begin);
        let before = before.map_or(0, NonZeroU32::get);
        self.secrets.extend_from_slice(&before.to_ne_bytes());
        self.secrets.extend([place as u8, secret.len() as u8]);
        self.secrets.extend_from_slice(secret);
    }

    /// Reads every line of a text. Returns the number of malformed lines.
    pub fn add_text(&mut self, text: &str) -> usize {
        text.lines()
            .filter(|line| self.add_line(line).is_err())
            .count()
    }

    /// Reads every line, one at a time. Returns the number of malformed lines.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn add_lines(&mut self, mut from: impl BufRead) -> io::Result<u64> {
        let mut malformed = 0;
        let (mut line, mut is_rest) = (Vec::new(), false);
        loop {
            line.clear();
            let read = (&mut from)
                .take(LONGEST_LINE)
                .read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(malformed);
            }
            let is_bad = self.add_line(&String::from_utf8_lossy(&line)).is_err();
            malformed += u64::from(is_bad && !is_rest);
            // what follows of a longer line is no line
            is_rest = !line.ends_with(b"\n");
        }
    }

    /// Copies the secrets of one connection from another log. Returns whether any of them is new.
    pub fn copy_from(&mut self, other: &KeyLog, client_random: &[u8; 32]) -> bool {
        let theirs = other.find(client_random);
        let Some(theirs) =
            theirs.filter(|theirs| self.find(client_random).as_ref() != Some(theirs))
        else {
            return false;
        };
        for (place, secret) in theirs.0.iter().enumerate() {
            if let Some(secret) = secret {
                self.add(*client_random, place, secret);
            }
        }
        true
    }

    /// Whether there are no secrets.
    pub fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    pub(super) fn find(&self, client_random: &[u8; 32]) -> Option<Secrets> {
        let mut found = Secrets::default();
        // the last line of a label counts
        for (place, secret) in self.lines_of(client_random) {
            found.0[place].get_or_insert_with(|| secret.to_vec());
        }
        self.connections
            .contains_key(client_random)
            .then_some(found)
    }

    /// The labels and secrets of a connection, the last line first.
    fn lines_of(&self, client_random: &[u8; 32]) -> impl Iterator<Item = (usize, &[u8])> {
        let last = self.connections.get(client_random);
        let mut begin = last.map_or(0, |last| last.get() as usize);
        std::iter::from_fn(move || {
            let line = self.secrets.get(begin.checked_sub(1)?..)?;
            let (&[a, b, c, d, place, len], rest) = line.split_first_chunk::<HEAD>()?;
            begin = u32::from_ne_bytes([a, b, c, d]) as usize;
            Some((place.into(), rest.get(..len.into())?))
        })
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
        let long = format!("{}\n{text}", "x".repeat(5000));
        let mut log = KeyLog::default();
        assert_eq!(log.add_lines(long.as_bytes()).unwrap(), 6);
        assert!(log.find(&[0; 32]).is_some());
    }

    #[test]
    fn the_last_line_of_a_label_counts_and_logs_are_copied() {
        let random = "ab".repeat(32);
        let text = format!(
            "CLIENT_RANDOM {random} 01\nCLIENT_RANDOM {random} 0203\nCLIENT_RANDOM {} 04\nSERVER_TRAFFIC_SECRET_0 {random} 05\n",
            "cd".repeat(32)
        );
        let mut log = KeyLog::default();
        assert_eq!(log.add_text(&text), 0);
        let mut copy = KeyLog::default();
        assert!(copy.copy_from(&log, &[0xab; 32]) && !copy.copy_from(&log, &[0xab; 32]));
        for log in [&log, &copy] {
            let secrets = log.find(&[0xab; 32]).unwrap();
            assert_eq!(secrets.tls12(), [Some(vec![2, 3])]);
            assert_eq!(secrets.tls13(Side::Server)[1], Some(vec![5]));
        }
        assert!(copy.find(&[0xcd; 32]).is_none());
        let len = log.secrets.len();
        assert_eq!(log.add_text(&text.replace("01\n", "0203\n")), 0);
        assert_eq!(log.secrets.len(), len, "what is known takes no memory");
    }

    #[test]
    fn secrets_never_show_in_debug_output() {
        let mut log = KeyLog::default();
        log.add_line(&format!("CLIENT_RANDOM {} c0ffee", "00".repeat(32)))
            .unwrap();
        assert_eq!(format!("{log:?}"), "KeyLog { connections: 1, .. }");
    }
}
