//! What is above TCP on a connection: TLS or none, and what is spoken inside.

use super::app_protocol::Speech;
use super::detect_protocol::{Guess, guess_client, guess_server, is_tls_record};
use super::record::{Record, side};
use super::tls::{Piece, TlsLayer};
use crate::event_writer::EventWriter;
use intact_ledger::Span;
use intact_wire::Side;
use intact_wire::tls::decrypt::KeyLog;

/// What is above TCP.
pub(super) struct ProtocolStack {
    pub(super) tls: Option<Box<TlsLayer>>,
    speech: Speech,
    /// The start was not seen.
    late: bool,
    pieces: Vec<Piece>,
}

impl ProtocolStack {
    /// Nothing has been heard yet. `late`: the start was not seen.
    pub(super) fn new(late: bool) -> ProtocolStack {
        ProtocolStack {
            tls: None,
            speech: Speech::Undecided(Vec::new()),
            late,
            pieces: Vec::new(),
        }
    }

    /// Takes the next bytes of one side.
    pub(super) fn read(
        &mut self,
        from: Side,
        bytes: &[u8],
        at: u64,
        keys: &KeyLog,
        record: &mut Record,
        scope: &mut EventWriter<'_>,
    ) {
        if self.tls.is_none() && matches!(self.speech, Speech::Undecided(_)) {
            self.look_for_tls(from, bytes, record);
        }
        let Some(tls) = &mut self.tls else {
            record.client_speaks |= from == Side::Client;
            self.speech.read(from, bytes, at, self.late, record, scope);
            return;
        };
        let mut pieces = std::mem::take(&mut self.pieces);
        // what was kept while it was not known to be TLS
        if let Speech::Undecided(held) = &mut self.speech
            && !record.readable
        {
            for (side, at, bytes) in std::mem::take(held) {
                if let Some(climb) = &mut record.climb {
                    climb.read_tls(side, &bytes, at);
                }
                tls.read(keys, side, &bytes, at, &mut pieces);
            }
        }
        if let Some(climb) = &mut record.climb {
            climb.read_tls(from, bytes, at);
        }
        tls.read(keys, from, bytes, at, &mut pieces);
        describe_tls(tls, record, scope);
        for &piece in &pieces {
            record.readable = true;
            record.client_speaks |= piece.from == Side::Client;
            let text = tls.text(piece);
            self.speech
                .read(piece.from, text, piece.at, self.late, record, scope);
        }
        pieces.clear();
        self.pieces = pieces;
    }

    fn look_for_tls(&mut self, from: Side, bytes: &[u8], record: &mut Record) {
        let guess = match from {
            Side::Client => guess_client(bytes),
            Side::Server => guess_server(bytes),
        };
        if guess == Guess::Tls || (self.late && is_tls_record(bytes)) {
            self.tls = Some(Box::new(TlsLayer::new()));
            record.connection.tls = Some(intact_ledger::Tls::default());
        }
    }

    /// Takes note of bytes that were not captured.
    pub(super) fn lose(
        &mut self,
        from: Side,
        len: u64,
        record: &mut Record,
        scope: &mut EventWriter<'_>,
    ) {
        if from == Side::Client {
            record.lose_requests();
        }
        match &mut self.tls {
            // how much plain text that was is not known
            Some(tls) => {
                tls.lose(from);
                self.speech.lose(from, u64::MAX, record, scope);
            }
            None => {
                if matches!(self.speech, Speech::Undecided(_)) {
                    self.late = true;
                }
                self.speech.lose(from, len, record, scope);
            }
        }
    }

    /// Nothing will come any more. `closed`: because the connection ended, not the capture.
    pub(super) fn end(
        &mut self,
        closed: bool,
        at: u64,
        record: &mut Record,
        scope: &mut EventWriter<'_>,
    ) {
        self.speech.end(closed, at, self.late, record, scope);
        if let Speech::Http2(observer) = &self.speech {
            let facts = observer.facts();
            record.pings = Some(u32::try_from(facts.pings).unwrap_or(u32::MAX));
            if let Some(bye) = facts.go_away {
                record.announce(side(bye.by));
            }
            if let Some((settings, _)) = facts.server_settings {
                record.connection.terms.max_streams = settings.max_concurrent_streams;
            }
        }
    }

    pub(super) fn went_away(&self, by: Side) -> bool {
        match &self.speech {
            Speech::Http2(observer) => observer.facts().go_away.is_some_and(|bye| bye.by == by),
            _ => false,
        }
    }
}

/// Brings what is known of the TLS layer into the record.
fn describe_tls(tls: &TlsLayer, record: &mut Record, scope: &EventWriter<'_>) {
    if record.connection.setup.ssl.is_some() && !tls.is_readable() {
        return;
    }
    record.connection.tls = Some(tls.describe());
    if let Some(name) = tls.server_name() {
        record.note_origin(Some(name.as_bytes()));
    }
    if let (Some(started), Some(finished)) = (tls.started_at(), tls.finished()) {
        let from = record
            .connection
            .setup
            .connect
            .map_or(scope.nanos(started), |connect| connect.end);
        record.connection.setup.ssl = Some(Span::new(from, scope.nanos(finished.at)));
        record.note_origin(None);
    }
}
