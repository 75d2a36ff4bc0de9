//! What the supervisor tells the relay.

use ledger::{Connection, ConnectionId, Row};
use mio::Waker;
use mio::net::TcpStream;
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// A connection whose two ends are established.
pub(crate) struct Carriage {
    /// Our end towards the program.
    pub(crate) near: TcpStream,
    /// Our end towards the destination.
    pub(crate) far: TcpStream,
    /// What is known of it.
    pub(crate) about: Connection,
    /// The interval of TCP keep-alive probes that the program has asked for already, in seconds.
    pub(crate) probes: Option<u32>,
}

/// What the supervisor tells the relay.
pub(crate) enum Order {
    /// Carry this from now on.
    Carry(Box<Carriage>),
    /// The program asks for TCP keep-alive probes on a connection, at this interval in seconds.
    Probe(ConnectionId, u32),
    /// Record this.
    Record(Box<Row>),
    /// The program has ended: pass on what is left and end.
    Finish,
}

/// The way from the supervisor to the relay.
#[derive(Clone)]
pub(crate) struct Orders {
    sender: Sender<Order>,
    waker: Arc<Waker>,
}

impl Orders {
    pub(crate) fn new(sender: Sender<Order>, waker: Arc<Waker>) -> Orders {
        Orders { sender, waker }
    }

    /// Sends an order; a relay that has ended takes none.
    pub(crate) fn send(&self, order: Order) {
        if self.sender.send(order).is_ok() {
            let _ = self.waker.wake();
        }
    }
}
