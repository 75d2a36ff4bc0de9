//! Options of TCP sockets that a caller chooses per dial, and whether this machine has them.

use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The options of a connection's TCP socket. The default changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketSettings {
    /// Send the first data with the SYN if the server gave a cookie earlier (RFC 7413).
    pub fast_open: bool,
    /// Congestion control by the kernel's name.
    pub congestion: Option<Arc<str>>,
    /// Idle time after which the kernel probes the peer, and the time between its probes.
    pub keepalive: Option<Duration>,
}

impl SocketSettings {
    /// Starts a non-blocking connect.
    pub(crate) fn connect(&self, address: SocketAddr) -> io::Result<mio::net::TcpStream> {
        if !self.fast_open {
            return mio::net::TcpStream::connect(address);
        }
        connect_with_syn(address)
    }

    /// Applies what takes effect on a connected socket. The route of a link would replace a
    /// congestion control that is set before.
    pub(crate) fn apply(&self, stream: &mio::net::TcpStream) -> io::Result<()> {
        let socket = SockRef::from(stream);
        if let Some(name) = &self.congestion {
            set_congestion(&socket, name)?;
        }
        if let Some(time) = self.keepalive {
            let probes = TcpKeepalive::new().with_time(time).with_interval(time);
            socket.set_tcp_keepalive(&probes)?;
        }
        Ok(())
    }
}

/// Why a socket option cannot be used here. Each message names the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SocketOptionError {
    /// This system has no such option.
    #[error("{what} needs Linux: run intact in a Linux container")]
    LinuxOnly {
        /// What was to be set.
        what: &'static str,
    },
    /// The kernel has no such congestion control, or did not load it.
    #[error(
        "this kernel has no congestion control {name:?}, only {available}; try `modprobe tcp_{name}`"
    )]
    Congestion {
        /// Its name.
        name: String,
        /// Those that the kernel has.
        available: String,
    },
    /// Only root may use it.
    #[error(
        "congestion control {name:?} needs root here; allowed: {allowed}. To allow it: `sysctl -w net.ipv4.tcp_allowed_congestion_control=\"{allowed} {name}\"`"
    )]
    CongestionForbidden {
        /// Its name.
        name: String,
        /// Those that every user may choose.
        allowed: String,
    },
    /// The sysctl switches TCP Fast Open off at this end.
    #[error(
        "net.ipv4.tcp_fastopen is {value} here, but a {side} needs bit {bit}: run `sysctl -w net.ipv4.tcp_fastopen=3`, or use --link, whose namespaces set it"
    )]
    FastOpen {
        /// The sysctl.
        value: String,
        /// `1` for a client, `2` for a server.
        bit: u32,
        /// `client` or `server`.
        side: &'static str,
    },
}

/// The end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TcpEnd {
    /// The one that connects.
    Client,
    /// The one that listens.
    Server,
}

/// Whether sockets may use this congestion control.
///
/// # Errors
/// If not; the message lists what the kernel has.
pub fn check_congestion(name: &str) -> Result<(), SocketOptionError> {
    only_on_linux("a choice of the congestion control")?;
    let list = |which: &str| {
        let listed = std::fs::read_to_string(format!("/proc/sys/net/ipv4/tcp_{which}"));
        let listed = listed.unwrap_or_default().trim().replace(' ', ", ");
        match listed.is_empty() {
            true => "none that can be chosen".to_owned(),
            false => listed,
        }
    };
    let tried = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))
        .and_then(|socket| set_congestion(&socket, name));
    let name = name.to_owned();
    match tried {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            let allowed = list("allowed_congestion_control");
            Err(SocketOptionError::CongestionForbidden { name, allowed })
        }
        Err(_) => {
            let available = list("available_congestion_control");
            Err(SocketOptionError::Congestion { name, available })
        }
    }
}

/// Whether the sysctl of this network namespace allows TCP Fast Open (RFC 7413) at this end.
///
/// # Errors
/// If not.
pub fn check_fast_open(end: TcpEnd) -> Result<(), SocketOptionError> {
    only_on_linux("TCP Fast Open")?;
    let value = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_fastopen");
    let value = value.map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned());
    fast_open_allows(&value, end)
}

/// Sysctls and kernel modules are no remedy elsewhere.
fn only_on_linux(what: &'static str) -> Result<(), SocketOptionError> {
    match cfg!(target_os = "linux") {
        true => Ok(()),
        false => Err(SocketOptionError::LinuxOnly { what }),
    }
}

fn fast_open_allows(value: &str, end: TcpEnd) -> Result<(), SocketOptionError> {
    let (bit, side) = match end {
        TcpEnd::Client => (1, "client"),
        TcpEnd::Server => (2, "server"),
    };
    match value.parse::<u32>() {
        Ok(bits) if bits & bit != 0 => Ok(()),
        _ => {
            let value = value.to_owned();
            Err(SocketOptionError::FastOpen { value, bit, side })
        }
    }
}

/// Lets a listener take data with the SYN, for at most `pending` connections that are not accepted.
///
/// # Errors
/// Those of setsockopt(2), and on systems without the option.
#[cfg(target_os = "linux")]
pub fn accept_fast_open(listener: &std::net::TcpListener, pending: i32) -> io::Result<()> {
    intact_sys::socket::accept_fast_open(listener, pending)
}

/// Lets a listener take data with the SYN; an error, because this system has no such option.
///
/// # Errors
/// Always.
#[cfg(not(target_os = "linux"))]
pub fn accept_fast_open(_: &std::net::TcpListener, _: i32) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Starts a non-blocking connect whose SYN waits for the first data.
#[cfg(target_os = "linux")]
fn connect_with_syn(address: SocketAddr) -> io::Result<mio::net::TcpStream> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = Socket::new(Domain::for_address(address), kind, Some(Protocol::TCP))?;
    intact_sys::socket::defer_connect(&socket)?;
    match socket.connect(&address.into()) {
        Ok(()) => {}
        Err(error) if error.raw_os_error() == Some(intact_sys::socket::IN_PROGRESS) => {}
        Err(error) => return Err(error),
    }
    Ok(mio::net::TcpStream::from_std(socket.into()))
}

#[cfg(not(target_os = "linux"))]
fn connect_with_syn(_: SocketAddr) -> io::Result<mio::net::TcpStream> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(target_os = "linux")]
fn set_congestion(socket: &Socket, name: &str) -> io::Result<()> {
    socket.set_tcp_congestion(name.as_bytes())
}

#[cfg(not(target_os = "linux"))]
fn set_congestion(_: &Socket, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sysctl_of_fast_open_has_a_bit_for_each_end() {
        assert_eq!(fast_open_allows("1", TcpEnd::Client), Ok(()));
        assert_eq!(fast_open_allows("1027", TcpEnd::Server), Ok(()));
        let error = fast_open_allows("1", TcpEnd::Server).unwrap_err();
        assert_eq!(
            error.to_string(),
            "net.ipv4.tcp_fastopen is 1 here, but a server needs bit 2: run `sysctl -w net.ipv4.tcp_fastopen=3`, or use --link, whose namespaces set it"
        );
        assert!(fast_open_allows("unknown", TcpEnd::Client).is_err());
    }

    #[test]
    #[cfg(not(target_os = "linux"))]
    fn options_of_linux_have_a_container_as_their_remedy() {
        let ends = [TcpEnd::Client, TcpEnd::Server].map(check_fast_open);
        for refused in ends.into_iter().chain([check_congestion("reno")]) {
            let words = refused.unwrap_err().to_string();
            assert!(
                words.ends_with("needs Linux: run intact in a Linux container"),
                "{words}"
            );
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn an_unknown_congestion_control_is_an_error_that_lists_the_known_ones() {
        let error = check_congestion("nonesuch").unwrap_err();
        let SocketOptionError::Congestion { available, .. } = error else {
            panic!("{error}");
        };
        for name in available.split(", ") {
            assert_ne!(name, "nonesuch");
        }
        // every kernel has it, and every user may choose it
        assert_eq!(check_congestion("reno"), Ok(()));
    }
}
