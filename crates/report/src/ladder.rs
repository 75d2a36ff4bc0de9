//! The packets of one connection: facts for a page of their own.

/// The packets of one connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LadderFacts {
    /// Which one it is, such as `connection 3`.
    pub what: String,
    /// The client's address and port.
    pub client: String,
    /// The server's address and port.
    pub server: String,
    /// The packets in the order in which they were captured.
    pub steps: Vec<StepFacts>,
    /// How many more there were.
    pub left_out: u64,
}

/// One packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFacts {
    /// Nanoseconds on any clock.
    pub at: u64,
    /// Whether the client sent it.
    pub by_client: bool,
    /// What is in it, in words.
    pub words: String,
    /// All of it had been sent before.
    pub again: bool,
}
