//! Runs an audit over bytes or files, and finds events in its outcome.

use intact_audit::{
    Audit, AuditError, Input, InputOptions, InputSummary, KeyLog, Ladder, LadderSelection, Options,
};
use intact_ledger::{Caveat, Closed, Connection, ConnectionId, Exchange, Row};
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

/// The events and summaries of an audit.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) rows: Vec<Row>,
    pub(crate) accounts: Vec<InputSummary>,
    pub(crate) ladder: Option<Ladder>,
}

/// A file among the fixtures.
pub(crate) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
}

/// The content of a fixture, decompressed if it is compressed.
pub(crate) fn unpacked(name: &str) -> Vec<u8> {
    let bytes = std::fs::read(fixture(name)).unwrap();
    if !name.ends_with(".gz") {
        return bytes;
    }
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(&bytes[..])
        .read_to_end(&mut plain)
        .unwrap();
    plain
}

/// The secrets in the key log of a capture.
pub(crate) fn keys(name: &str) -> KeyLog {
    let mut keys = KeyLog::default();
    let text = std::fs::read_to_string(fixture(name)).unwrap();
    assert_eq!(keys.add_text(&text), 0);
    keys
}

/// Audits bytes.
pub(crate) fn bytes(content: &[u8], keys: KeyLog) -> Result<Outcome, AuditError> {
    let reader = Box::new(Cursor::new(content.to_vec()));
    inputs(
        vec![Input::from_reader(
            Path::new("input"),
            reader,
            None,
            &InputOptions::default(),
        )?],
        keys,
    )
}

/// Audits a file.
pub(crate) fn file(name: &str, keys: KeyLog) -> Outcome {
    inputs(
        vec![Input::open(&fixture(name), &InputOptions::default()).unwrap()],
        keys,
    )
    .unwrap()
}

/// Audits inputs as the binary does.
pub(crate) fn inputs(mut inputs: Vec<Input>, keys: KeyLog) -> Result<Outcome, AuditError> {
    inputs.sort_by_key(Input::turn);
    let base = inputs.iter().filter_map(Input::begins_at).min();
    let mut audit = Audit::new(Options {
        keys,
        ladder: Some(LadderSelection::First),
        random: [7; 32],
        base: base.unwrap_or(0),
    });
    let mut outcome = Outcome::default();
    for input in inputs {
        let account = audit.read(input, &mut outcome.rows, &mut || true)?;
        outcome.accounts.push(account);
    }
    audit.finish(&mut outcome.rows);
    outcome.ladder = audit.ladder();
    Ok(outcome)
}

impl Outcome {
    /// Every connection in its last version, ordered by number.
    pub(crate) fn connections(&self) -> Vec<&Connection> {
        let mut last: Vec<&Connection> = Vec::new();
        for row in &self.rows {
            match row {
                Row::Opened(connection) => {
                    assert!(last.iter().all(|other| other.id != connection.id));
                    last.push(connection);
                }
                Row::Revised(connection) => {
                    let known = last.iter_mut().find(|other| other.id == connection.id);
                    *known.expect("only a recorded connection can be revised") = connection;
                }
                _ => {}
            }
        }
        last.sort_by_key(|connection| connection.id);
        last
    }

    /// All exchanges.
    pub(crate) fn exchanges(&self) -> impl Iterator<Item = &Exchange> {
        self.rows.iter().filter_map(|row| match row {
            Row::Exchange(exchange) => Some(&**exchange),
            _ => None,
        })
    }

    /// The exchanges of one connection.
    pub(crate) fn exchanges_on(&self, connection: ConnectionId) -> Vec<&Exchange> {
        self.exchanges()
            .filter(|exchange| exchange.connection == Some(connection))
            .collect()
    }

    /// The end of one connection.
    pub(crate) fn end_of(&self, connection: ConnectionId) -> Option<&Closed> {
        self.rows.iter().find_map(|row| match row {
            Row::Closed(closed) if closed.connection == connection => Some(closed),
            _ => None,
        })
    }

    /// All caveats.
    pub(crate) fn caveats(&self) -> Vec<&Caveat> {
        let caveats = self.rows.iter().filter_map(|row| match row {
            Row::Caveat(caveat) => Some(caveat),
            _ => None,
        });
        caveats.collect()
    }

    /// The caveat of this id.
    pub(crate) fn caveat(&self, id: &str) -> Option<&Caveat> {
        self.caveats().into_iter().find(|caveat| caveat.id == id)
    }
}
