//! The server on the wire: raw sockets and rustls see each option, and the server's own record
//! agrees.

mod admin;
mod attacks;
mod caching;
mod closing;
mod drain;
mod faults;
mod http1;
mod http2;
mod http3;
mod limits;
mod name_server;
mod rig;
mod script;
mod tls;
mod upstream;
