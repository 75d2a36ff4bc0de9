//! HTTP/2: header blocks compared with the vectors of RFC 7541, frames with their own writer, both
//! with hostile bytes.

mod frames;
mod hpack;
mod rfc7541;
