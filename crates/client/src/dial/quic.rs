//! The dial of a QUIC connection: transport and TLS are set up together, in one round trip.

use super::{Dial, DialStage, Established, Progress, Transport};
use crate::clock::Clock;
use crate::plan::{Endpoint, Proxy};
use crate::quic::{LostConnection, QuicConnection, QuicEvent};
use intact_ledger::{Failure, Nanos, SetupPhase, Span, Transport as LedgerTransport};
use mio::Registry;
use std::io;

/// Room for the largest read of a UDP socket.
const BUFFER: usize = 64 * 1024;
/// Reads in one turn of the caller's loop; a handshake takes fewer.
const MOST_READS: u32 = 64;

/// A QUIC connection that is being set up.
#[derive(Debug)]
pub(super) struct QuicDial {
    connection: Box<QuicConnection>,
    buffer: Vec<u8>,
    /// Our bytes before the server's first ones.
    first_flight: Option<u64>,
}

impl QuicDial {
    pub(super) fn timer(&mut self) -> Option<Nanos> {
        self.connection.timer()
    }
}

impl Dial {
    /// Sends the first packet to the next address.
    pub(super) fn connect_quic(&mut self, registry: Option<&Registry>, since: Nanos) -> Progress {
        self.connection.transport = LedgerTransport::Quic;
        self.stage = DialStage::Connecting { since };
        let plan = self.plan.clone();
        let way = (&plan.tls, &plan.endpoint, &plan.proxy);
        let (Some(tls), Endpoint::Addresses(_) | Endpoint::Name { .. }, Proxy::Transparent) = way
        else {
            let words = "HTTP/3 needs TLS and UDP to the server itself".to_owned();
            return self.fail(SetupPhase::Connect, Failure::Unreachable, words);
        };
        let Some(&address) = self.addresses.get(self.next_address) else {
            let words = "no address to connect to".to_owned();
            return self.fail(SetupPhase::Connect, Failure::Unreachable, words);
        };
        self.connection.peer = Some(address);
        let Some(listed) = registry else {
            let words = "QUIC needs a poll: its caller has none".to_owned();
            return self.fail(SetupPhase::Connect, Failure::Unreachable, words);
        };
        let quic =
            QuicConnection::connect(tls, address, plan.stamps, listed, self.token, &self.clock);
        match quic {
            Ok(connection) => {
                let is_early = connection.may_send_early();
                self.quic = Some(QuicDial {
                    connection: Box::new(connection),
                    buffer: vec![0; BUFFER],
                    first_flight: None,
                });
                match is_early {
                    // the first request goes with the first packet
                    true => self.establish_quic(since),
                    false => self.drive_quic(since, registry),
                }
            }
            Err(error) => self.next_or_fail(&error, since, registry),
        }
    }

    /// Reads, lets the handshake progress, and sends.
    pub(super) fn drive_quic(&mut self, since: Nanos, registry: Option<&Registry>) -> Progress {
        let Some(dial) = &mut self.quic else {
            return Progress::Pending;
        };
        let driven = dial.drive(&mut self.handshake.first_at, &self.clock);
        let bytes = dial.connection.bytes();
        self.handshake.received = bytes.received;
        self.handshake.sent = bytes.sent;
        match driven {
            Ok(None) => Progress::Pending,
            Ok(Some(Ok(()))) => self.establish_quic(since),
            Ok(Some(Err(lost))) => {
                let (phase, kind) = lost.setup;
                self.connection.setup.connect = Some(Span::new(since, self.clock.now()));
                self.fail(phase, kind, lost.words)
            }
            Err(error) => self.next_or_fail(&error, since, registry),
        }
    }

    fn establish_quic(&mut self, since: Nanos) -> Progress {
        let Some(QuicDial {
            connection,
            first_flight,
            ..
        }) = self.quic.take()
        else {
            return Progress::Pending;
        };
        self.stage = DialStage::Over;
        self.connection.setup.connect = Some(Span::new(since, self.clock.now()));
        if connection.is_connected() {
            self.connection.tls = Some(connection.describe(false));
            self.handshake.round_trips = first_flight.map(|sent| connection.round_trips(sent));
        }
        if self.plan.local_address {
            self.connection.local = connection.local_addr();
        }
        Progress::Established(Box::new(Established {
            stamped: connection.is_stamped(),
            transport: Transport::Quic(connection),
            connection: self.connection.clone(),
            handshake: self.handshake,
            is_tunnel: false,
            header_table: None,
            early: None,
        }))
    }
}

impl QuicDial {
    /// Reads what has arrived, and sends what the handshake needs. Returns whether it succeeded or
    /// failed, once it has.
    fn drive(
        &mut self,
        first_at: &mut Option<Nanos>,
        clock: &Clock,
    ) -> io::Result<Option<Result<(), LostConnection>>> {
        let QuicDial {
            connection,
            buffer,
            first_flight,
        } = self;
        connection.keep_time();
        for _ in 0..MOST_READS {
            if connection.receive(buffer)?.is_none() {
                break;
            }
            first_at.get_or_insert_with(|| clock.now());
            first_flight.get_or_insert(connection.bytes().sent);
        }
        let mut outcome = None;
        while let Some(event) = connection.event() {
            match event {
                // what else there is belongs to the first exchange
                QuicEvent::Connected => {
                    outcome = Some(Ok(()));
                    break;
                }
                QuicEvent::Lost(lost) => {
                    outcome = Some(Err(lost));
                    break;
                }
                _ => {}
            }
        }
        // after success the first request shares the packets
        if !matches!(outcome, Some(Ok(()))) {
            connection.transmit()?;
        }
        Ok(outcome)
    }
}
