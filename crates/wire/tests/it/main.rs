//! Tests of `wire` through its public interface only.

mod differential;
mod h2;
mod http1;
mod observing;
mod pieces;
mod tcp;
mod tls;
