//! What the supervisor tells the relay.

use ledger::{Connection, ConnectionId, Row};
use mio::Waker;
use mio::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

/// A connection whose two ends are established.
pub(crate) struct Carriage {
    /// Our end towards the program.
    pub(crate) near: TcpStream,
    /// Our end towards the destination.
    pub(crate) far: TcpStream,
    /// What is known of it.
    pub(crate) about: Connection,
}

/// What the supervisor tells the relay.
pub(crate) enum Order {
    /// Carry this from now on.
    Carry(Box<Carriage>),
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
    next_id: Arc<AtomicU64>,
}

impl Orders {
    pub(crate) fn new(sender: Sender<Order>, waker: Arc<Waker>) -> Orders {
        Orders {
            sender,
            waker,
            next_id: Arc::new(AtomicU64::new(1)),
        }
    }

    /// Sends an order; a relay that has ended takes none.
    pub(crate) fn send(&self, order: Order) {
        if self.sender.send(order).is_ok() {
            let _ = self.waker.wake();
        }
    }

    /// A number for a connection.
    pub(crate) fn number(&self) -> ConnectionId {
        ConnectionId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }
}
