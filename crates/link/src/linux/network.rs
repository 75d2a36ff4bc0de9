//! The three networks of a link: client, server, and the middle, where only the forwarder's packet
//! sockets listen.

use super::devices::Devices;
use super::step_error::{During, StepError};
use crate::addresses::{CLIENT_V4, CLIENT_V6, SERVER_V4, SERVER_V6};
use crate::spec::{Congestion, Spec};
use crate::step::LinkStep;
use intact_sys::namespaces;
use intact_sys::packet::PacketRing;
use rustix::fd::{AsFd, OwnedFd};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::{Duration, Instant};

/// The outer devices, client's and server's.
const ENDS: [&str; 2] = ["client0", "server0"];
/// Their other ends, in the middle.
const MIDDLES: [&str; 2] = ["middle0", "middle1"];
/// What the addresses are routed by: 198.18.0.0/15 and 2001:2::/48.
const PREFIX_V4: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 0, 0), 15);
const PREFIX_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2001, 2, 0, 0, 0, 0, 0, 0), 48);
/// The longest that devices may take to become ready.
const READY: Duration = Duration::from_secs(5);

/// Networks that are ready.
pub(super) struct Network {
    /// Doors to the client's and the server's namespace.
    pub(super) doors: [OwnedFd; 2],
    sockets: [Devices; 2],
    /// The middle's ends, client's and server's.
    pub(super) rings: Option<[PacketRing; 2]>,
    /// Whether there is IPv6.
    pub(super) v6: bool,
    /// The congestion control in use.
    pub(super) congestion: String,
    pub(super) caveats: Vec<String>,
    single_segments: bool,
}

impl Network {
    /// Makes them. The calling thread ends up in the middle.
    pub(super) fn make(spec: &Spec) -> Result<Network, StepError> {
        // real links lose and delay packets, not bursts of 64 kB
        let single_segments = spec.loss_ppm > 0 || spec.rate.is_some();
        let mut caveats = Vec::new();
        let (client_door, client) = side(&mut caveats)?;
        let (server_door, server) = side(&mut caveats)?;
        caveats.dedup();
        namespaces::new_network().during(LinkStep::NetworkNamespace)?;
        let mut middle = Devices::open().during(LinkStep::Devices)?;
        let doors = [client_door, server_door];
        for ((end, inner), door) in ENDS.iter().zip(MIDDLES).zip(&doors) {
            middle
                .make_pair(end, door.as_fd(), inner, single_segments)
                .and_then(|()| middle.up(inner))
                .during(LinkStep::Devices)?;
        }
        let mut network = Network {
            doors,
            sockets: [client, server],
            rings: None,
            v6: true,
            congestion: String::new(),
            caveats,
            single_segments,
        };
        network.address(spec)?;
        network
            .wait_until_ready(&mut middle)
            .during(LinkStep::Devices)?;
        let mut ring = |device| {
            let device = middle.device(device).during(LinkStep::Devices)?;
            PacketRing::open(device.index, single_segments).during(LinkStep::PacketSocket)
        };
        network.rings = Some([ring(MIDDLES[0])?, ring(MIDDLES[1])?]);
        Ok(network)
    }

    /// Packets that the kernel has dropped between each end and the middle: on a busy machine its
    /// backlog overflows.
    pub(super) fn dropped(&mut self) -> io::Result<[u64; 2]> {
        let mut dropped = [0; 2];
        for ((socket, end), dropped) in self.sockets.iter_mut().zip(ENDS).zip(&mut dropped) {
            *dropped = socket.device(end)?.dropped;
        }
        Ok(dropped)
    }

    /// Lets both ends send packets of one segment only.
    pub(super) fn single_segments(&mut self) -> io::Result<()> {
        if !self.single_segments {
            for (socket, end) in self.sockets.iter_mut().zip(ENDS) {
                socket.single_segments(end)?;
            }
            self.single_segments = true;
        }
        Ok(())
    }

    /// Addresses and routes. The congestion control is a metric of the route, because the sysctl
    /// needs the host's permission. Without a default route, connects to other addresses fail
    /// immediately.
    fn address(&mut self, spec: &Spec) -> Result<(), StepError> {
        let host = fs::read_to_string("/proc/sys/net/ipv4/tcp_congestion_control");
        let host = host.map_or_else(|_| "unknown".to_owned(), |name| name.trim().to_owned());
        let mut wanted = match &spec.congestion {
            Congestion::Cubic => Some("cubic"),
            Congestion::Named(name) => Some(name.as_str()),
            Congestion::Host => None,
        };
        let addresses = [(CLIENT_V4, CLIENT_V6), (SERVER_V4, SERVER_V6)];
        for ((socket, end), (v4, v6)) in self.sockets.iter_mut().zip(ENDS).zip(addresses) {
            socket.up(end).during(LinkStep::Devices)?;
            let device = socket.device(end).during(LinkStep::Devices)?;
            socket
                .add_address(device, v4.into())
                .during(LinkStep::Addresses)?;
            let (prefix, bits) = (IpAddr::from(PREFIX_V4.0), PREFIX_V4.1);
            let mut routed = socket.add_route(device, prefix, bits, wanted);
            if routed.is_err() && spec.congestion == Congestion::Cubic {
                wanted = None;
                self.caveats.push(format!(
                    "this kernel has no cubic: the link's ends use {host}"
                ));
                routed = socket.add_route(device, prefix, bits, None);
            }
            let step = if wanted.is_some() {
                LinkStep::Congestion
            } else {
                LinkStep::Addresses
            };
            routed.during(step)?;
            self.v6 &= socket.add_address(device, v6.into()).is_ok()
                && socket
                    .add_route(device, PREFIX_V6.0.into(), PREFIX_V6.1, wanted)
                    .is_ok();
        }
        self.congestion = wanted.map_or(host, str::to_owned);
        Ok(())
    }

    /// Waits until the devices have a carrier: they drop packets before.
    fn wait_until_ready(&mut self, middle: &mut Devices) -> io::Result<()> {
        let give_up = Instant::now() + READY;
        loop {
            let mut ready = true;
            for (socket, end) in self.sockets.iter_mut().zip(ENDS) {
                ready &= socket.device(end)?.ready;
            }
            for inner in MIDDLES {
                ready &= middle.device(inner)?.ready;
            }
            if ready {
                return Ok(());
            }
            if Instant::now() > give_up {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(Duration::from_micros(500));
        }
    }
}

/// A side's network: the calling thread moves into it.
fn side(caveats: &mut Vec<String>) -> Result<(OwnedFd, Devices), StepError> {
    let door = namespaces::new_network().during(LinkStep::NetworkNamespace)?;
    let settings = [
        // servers on 80 and 443 without being root
        ("ip_unprivileged_port_start", "0"),
        // otherwise a new connection starts with the round trip and losses of earlier ones
        ("tcp_no_metrics_save", "1"),
        ("ping_group_range", "0 2147483647"),
        // for programs that ask for TCP Fast Open; others are not affected
        ("tcp_fastopen", "3"),
    ];
    for (name, value) in settings {
        if fs::write(format!("/proc/sys/net/ipv4/{name}"), value).is_err()
            && !matches!(name, "ping_group_range" | "tcp_fastopen")
        {
            caveats.push(format!("net.ipv4.{name} could not be set to {value} on the link (/proc/sys is read-only here)"));
        }
    }
    let mut socket = Devices::open().during(LinkStep::Devices)?;
    socket.loopback_up().during(LinkStep::Devices)?;
    Ok((door, socket))
}
