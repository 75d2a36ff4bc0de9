//! Entry of a fuzz target into the Runtime API: one connection in memory, an event whenever the
//! last was delivered.

use super::api;
use super::mailbox::{Delivery, Mailbox, State};
use std::io::{self, Read, Write};
use std::time::Instant;

/// What a connection came to.
#[derive(Debug)]
pub struct Conversation {
    /// Every byte that was sent to the client.
    pub output: Vec<u8>,
    /// Events that were delivered.
    pub events: usize,
    /// Results and errors of invocations that were accepted.
    pub results: usize,
}

/// Sends bytes to the Runtime API, at most `piece` of them at once, and returns the outcome.
pub fn converse(requests: &[u8], piece: usize) -> Conversation {
    let room = Mailbox::default();
    let mut client = Client {
        requests,
        piece,
        room: &room,
        came: Conversation {
            output: Vec::new(),
            events: 0,
            results: 0,
        },
    };
    client.offer();
    // an error is the client's end
    let _ = api::converse(&mut client, &room);
    client.came
}

struct Client<'a> {
    requests: &'a [u8],
    piece: usize,
    room: &'a Mailbox,
    came: Conversation,
}

impl Client<'_> {
    /// The next event waits, so that no request for one does.
    fn offer(&self) {
        self.room.offer(Delivery {
            id: self.came.events.to_string(),
            body: b"{}".to_vec(),
            deadline_ms: 0,
        });
    }
}

impl Read for Client<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = self.piece.min(buffer.len()).min(self.requests.len());
        let (now, later) = self.requests.split_at(most);
        buffer[..most].copy_from_slice(now);
        self.requests = later;
        Ok(most)
    }
}

impl Write for Client<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.came.output.extend_from_slice(bytes);
        if bytes.starts_with(b"HTTP/1.1 200") {
            self.came.events += 1;
            self.offer();
        }
        if bytes.starts_with(b"HTTP/1.1 202") {
            let init_error = |state: &mut State| state.init_error.take();
            let is_result = self.room.wait(Instant::now(), init_error).is_none();
            self.came.results += usize::from(is_result);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
