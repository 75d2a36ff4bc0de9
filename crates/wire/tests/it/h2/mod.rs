//! HTTP/2: header blocks against the vectors of RFC 7541, frames against their own writer, both against hostile bytes.

mod frames;
mod hpack;
mod rfc7541;
