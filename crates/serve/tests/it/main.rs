//! The server on the wire: raw sockets and rustls see each option, and the server's own record agrees.

mod admin;
mod attacks;
mod closing;
mod drain;
mod faults;
mod http1;
mod http2;
mod limits;
mod rig;
mod tls;
