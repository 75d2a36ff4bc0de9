//! Calls to another service, which a response waits for: what a service with outgoing calls does.
//!
//! All threads of the server share one thread that makes the calls. Calls and connections are
//! counted, and have no rows: the ledger of the server is about its own clients.

mod config;
mod connections;

pub(crate) use config::{DEEPEST, DEPTH};
pub use config::{UpstreamConfig, UpstreamError};

use crate::server_tally::ServerTally;
use connections::Connections;
use intact_ledger::{Failure, Outcome};
use mio::Waker;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long a call may take, its connection included.
const PATIENCE: Duration = Duration::from_secs(30);

/// The outgoing calls of a server. Dropped, it ends the thread that makes them.
pub(crate) struct Upstream {
    calls: u32,
    tally: Arc<ServerTally>,
    /// Absent once it is dropped.
    orders: Option<Sender<Order>>,
    waker: Arc<Waker>,
}

/// What the thread is to do.
enum Order {
    /// Make a call.
    Call(Waiter),
    /// End the connections of calls that were given up.
    GiveUp,
}

/// Who waits for a call.
struct Waiter {
    outcome_to: oneshot::Sender<Outcome>,
    /// Calls of servers like this one that led here.
    depth: usize,
}

/// A call under way. Dropped before its end, it is given up.
struct Call<'a> {
    upstream: &'a Upstream,
    outcome: oneshot::Receiver<Outcome>,
    is_over: bool,
}

impl Upstream {
    /// Starts the thread.
    pub(crate) fn start(config: &UpstreamConfig, tally: &Arc<ServerTally>) -> io::Result<Upstream> {
        let connections = Connections::new(config.clone(), tally.clone())?;
        let waker = connections.waker();
        let (orders, receiver) = channel();
        thread::Builder::new()
            .name("upstream".to_owned())
            .spawn(move || work(connections, &receiver))?;
        Ok(Upstream {
            calls: config.calls,
            tally: tally.clone(),
            orders: Some(orders),
            waker,
        })
    }

    /// Makes the calls of one response, one after the other. Returns how many there were, and how
    /// many failed.
    /// `depth` calls of servers like this one led here.
    pub(crate) async fn call(&self, depth: usize) -> (u32, u32) {
        let mut failed = 0;
        for _ in 0..self.calls {
            let outcome = self.begin(depth).outcome().await;
            failed += u32::from(!outcome.is_ok());
            self.tally.called(outcome);
        }
        (self.calls, failed)
    }

    fn begin(&self, depth: usize) -> Call<'_> {
        let (outcome_to, outcome) = oneshot::channel();
        self.order(Order::Call(Waiter { outcome_to, depth }));
        Call {
            upstream: self,
            outcome,
            is_over: false,
        }
    }

    /// A thread that is gone has dropped the waiter, which the call sees.
    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            let _ = orders.send(order);
            let _ = self.waker.wake();
        }
    }
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.orders = None;
        let _ = self.waker.wake();
    }
}

impl Call<'_> {
    async fn outcome(mut self) -> Outcome {
        let outcome = timeout(PATIENCE, &mut self.outcome).await;
        self.is_over = outcome.is_ok();
        match outcome {
            Ok(outcome) => outcome.unwrap_or(Outcome::Failed(Failure::Aborted)),
            Err(_) => Outcome::Failed(Failure::Timeout),
        }
    }
}

impl Drop for Call<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.outcome.close();
            self.upstream.order(Order::GiveUp);
        }
    }
}

/// Makes calls until the server ends.
fn work(mut connections: Connections, orders: &Receiver<Order>) {
    while connections.wait().is_ok() {
        loop {
            match orders.try_recv() {
                Ok(Order::Call(waiter)) => connections.call(waiter),
                Ok(Order::GiveUp) => connections.give_up(),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        connections.advance();
    }
}
