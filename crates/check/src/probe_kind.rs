//! The stages of a check, in their order. Must not know what one does.

use intact_ledger::kinds;

kinds! {
    /// A stage of a check.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ProbeKind, name {
        /// The lookup of the name.
        Names = "names",
        /// The first request.
        Contact = "first request",
        /// HTTP and TLS versions.
        Versions = "versions",
        /// Fresh and reused connections compared.
        Waterfall = "fresh against reused",
        /// Handshake, tickets, resumption, early data.
        Tls = "TLS",
        /// Other methods.
        Methods = "methods",
        /// The packets of one exchange per version.
        Packets = "packets",
        /// Requests on one connection.
        Requests = "requests per connection",
        /// Idle timeouts.
        Idle = "idle limits",
        /// Requests shortly before and after the idle timeout.
        Race = "race at the idle limit",
        /// The idle timeout while other connections idle.
        Held = "idle limit next to others",
        /// The maximum age of a connection.
        Age = "maximum age",
        /// The end of the server's process.
        Drain = "drain",
    }
}
