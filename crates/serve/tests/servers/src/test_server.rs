//! A server on a thread of its own, for tests of clients.

use intact_ledger::{Producer, Run, Vantage};
use intact_serve::{Addresses, Config, ServeError, Server, Totals};
use jiff::Timestamp;
use std::thread::{self, JoinHandle};
use tokio::sync::oneshot;

/// A server that serves until it is ended; dropped, it ends by itself.
pub struct TestServer {
    addresses: Addresses,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<Result<Totals, ServeError>>,
}

impl TestServer {
    /// Binds its ports and starts it.
    pub fn start(config: Config) -> Result<TestServer, ServeError> {
        let server = Server::bind(config)?;
        let addresses = server.addresses();
        let (stop, stopped) = oneshot::channel();
        let serve = move || {
            let version = env!("CARGO_PKG_VERSION");
            let now = Timestamp::now();
            // not for storing, so any id will do
            let run = Run::new(Producer::Serve, version, Vantage::Server, now, 0, &[]);
            server.run(run, None, async {
                // also when the other end is gone
                let _ = stopped.await;
            })
        };
        let thread = thread::Builder::new().name("serve-0".into());
        Ok(TestServer {
            addresses,
            stop,
            thread: thread.spawn(serve).map_err(ServeError::Runtime)?,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> Addresses {
        self.addresses
    }

    /// Ends it; what it has recorded.
    pub fn end(self) -> Result<Totals, ServeError> {
        let _ = self.stop.send(());
        match self.thread.join() {
            Ok(totals) => totals,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}
