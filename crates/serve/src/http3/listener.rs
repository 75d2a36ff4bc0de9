//! The UDP port, with the number of the TLS port.

use crate::config::Config;
use crate::server::{ServeError, TLS_LISTEN, listen};
use crate::tls;
use intact_client::quic::QuicServerTls;
use intact_wire::h3::ErrorCode;
use quinn::udp::UdpSocketState;
use quinn::{Endpoint, EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, VarInt};
use socket2::{Domain, Socket, Type};
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// Ports that are tried for one that both TCP and UDP have free.
const ATTEMPTS: usize = 16;
/// Requests at once on a connection.
const STREAMS: u32 = 1000;
/// Bytes that wait in the kernel on the way in and out; with the usual few, a burst is lost.
const SOCKET_BUFFER: usize = 4 << 20;
/// How long a client may be silent in milliseconds. QUIC has no other way to find out that it is
/// gone.
const SILENCE: u32 = 600_000;
/// How long the last packets may take to leave.
const LAST: Duration = Duration::from_millis(50);

/// A port that is bound, before the event loop runs.
pub(crate) struct QuicListener {
    socket: UdpSocket,
    config: ServerConfig,
}

impl QuicListener {
    /// Binds the UDP port with the number of `tcp`, which is bound again where it was free to
    /// choose.
    pub(crate) fn bind_with(
        tcp: Option<TcpListener>,
        config: &Config,
    ) -> Result<(TcpListener, QuicListener), ServeError> {
        let (Some(mut tcp), Some((wanted, settings))) = (tcp, &config.tls) else {
            return Err(ServeError::Http3("it needs TLS"));
        };
        let settings = tls::quic_config(settings)?;
        let crypto = QuicServerTls::new(Arc::new(settings))
            .ok_or(ServeError::Http3("QUIC cannot use these settings of TLS"))?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        config.transport_config(Arc::new(transport()));
        for attempt in 1.. {
            let address = tcp.local_addr().unwrap_or(*wanted);
            match bind(address) {
                Ok(socket) => return Ok((tcp, QuicListener { socket, config })),
                Err(error)
                    if error.kind() == io::ErrorKind::AddrInUse
                        && wanted.port() == 0
                        && attempt < ATTEMPTS =>
                {
                    tcp = listen(TLS_LISTEN, *wanted)?;
                }
                Err(source) => {
                    return Err(ServeError::Listen {
                        option: TLS_LISTEN,
                        address,
                        source,
                    });
                }
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Listens, on the event loop that runs.
    pub(crate) fn start(self) -> io::Result<Endpoint> {
        let runtime = Arc::new(quinn::TokioRuntime);
        Endpoint::new(
            EndpointConfig::default(),
            Some(self.config),
            self.socket,
            runtime,
        )
    }
}

fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, None)?;
    socket.set_nonblocking(true)?;
    // as much as the kernel allows
    let _ = socket.set_recv_buffer_size(SOCKET_BUFFER);
    let _ = socket.set_send_buffer_size(SOCKET_BUFFER);
    socket.bind(&address.into())?;
    // what the event loop will ask of the system is refused here, before the port is announced
    UdpSocketState::new((&socket).into())?;
    Ok(socket.into())
}

fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(STREAMS.into())
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(SILENCE))))
        .datagram_receive_buffer_size(None)
        .send_fairness(false);
    transport
}

/// Ends the connections that are still open, and lets their last packets leave.
pub(crate) async fn end(endpoint: Endpoint) {
    endpoint.close(super::code(ErrorCode::H3_NO_ERROR), b"");
    let _ = tokio::time::timeout(LAST, endpoint.wait_idle()).await;
}
