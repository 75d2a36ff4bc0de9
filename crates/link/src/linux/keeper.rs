//! The keeper process: makes the networks, starts the forwarder, measures the round trip, and then
//! serves the requests of the link's owner. It ends when the owner ends, and ends everything else
//! first.

use super::channel::Channel;
use super::forwarder::Forwarder;
use super::hosts_file;
use super::message::{
    ForwarderCommand, ForwarderReady, LinkReady, Refusal, Request, Setup, SetupReply,
};
use super::network::Network;
use super::resolver::enter_user_namespace;
use super::step_error::{During, StepError};
use crate::addresses::SERVER_V4;
use crate::emulator::Emulator;
use crate::spec::{LinkChange, Spec};
use crate::stats::{LinkFacts, LinkStats, RoundTrip};
use crate::step::LinkStep;
use intact_sys::namespaces::{self, NamespaceKind};
use intact_sys::process::{self, Forked};
use intact_sys::{guard, privilege, signals};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, WaitOptions, waitpid};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A closed port of the server side (`discard`).
const CLOSED_PORT: u16 = 9;
/// Total time of all probes, and their smallest and largest number.
const PROBING: Duration = Duration::from_millis(700);
const PROBES: (u128, u128) = (5, 21);
/// Limit of a probe or a connect, in addition to the round trip.
const PATIENCE: Duration = Duration::from_secs(2);

/// Keeps a link for the process at the other end of `owner`. The calling process must have a single
/// thread.
pub(super) fn keep(owner: Channel) -> io::Result<()> {
    if !process::is_single_threaded()? {
        return Err(io::Error::other(
            "the keeper of a link must have a single thread",
        ));
    }
    // a session of our own: Ctrl-C is for the command on the link, and the scheduler weighs
    // sessions
    let _ = rustix::process::setsid();
    let Some((setup, _)) = owner.receive::<Setup>()? else {
        return Ok(());
    };
    match start(&setup) {
        Ok(Role::Keeper(mut keeper, up, doors)) => {
            let borrowed: Vec<_> = doors.iter().map(AsFd::as_fd).collect();
            owner.send(&SetupReply::Ok(up), &borrowed)?;
            drop(doors);
            keeper.serve(&owner)?;
            keeper.end()
        }
        Ok(Role::Forwarder(forwarder, certificate)) => {
            drop(owner);
            let done = forwarder.run();
            drop(certificate);
            done
        }
        Err(failed) => owner.send(&SetupReply::Err(failed.into()), &[]),
    }
}

/// Which of the two processes this is.
enum Role {
    Keeper(Box<NamespaceOwner>, Box<LinkReady>, Vec<OwnedFd>),
    /// Commands find the certificate among the forwarder's open files.
    Forwarder(Box<Forwarder>, OwnedFd),
}

fn start(setup: &Setup) -> Result<Role, StepError> {
    let needs_user = enter_user_namespace()?;
    let mut network = Network::make(&setup.spec)?;
    if setup.isolation.processes {
        namespaces::new_processes_for_children().during(LinkStep::ProcessNamespace)?;
    }
    let certificate = memfd_create("intact-ca.pem", MemfdFlags::CLOEXEC).during(LinkStep::Fork)?;
    let (keeper, forwarder) = Channel::pair().during(LinkStep::Fork)?;
    let child = match process::fork().during(LinkStep::Fork)? {
        Forked::Child => {
            drop(keeper);
            let forwarder = become_forwarder(setup, network, forwarder, needs_user)?;
            return Ok(Role::Forwarder(forwarder, certificate));
        }
        Forked::Parent { child } => child,
    };
    drop(forwarder);
    network.rings = None;
    let mut keeper = NamespaceOwner {
        network,
        forwarder: keeper,
        process: child,
        dropped_before: [0; 2],
    };
    let (forwarder, inner_doors) = keeper.await_forwarder()?;
    keeper.network.caveats.extend(forwarder.caveats);
    let round_trip = keeper.probe(&setup.spec).during(LinkStep::Probe)?;
    let begin = ForwarderCommand::Begin(setup.spec.clone());
    keeper.forwarder.ask::<()>(&begin).during(LinkStep::Fork)?;
    keeper.dropped_before = keeper.network.dropped().during(LinkStep::Devices)?;
    let mut doors = Vec::new();
    let again = |door: &OwnedFd| door.try_clone().during(LinkStep::Fork);
    for door in &keeper.network.doors {
        doors.push(again(door)?);
    }
    let holder = if setup.isolation.processes {
        // the forwarder is the first process of its namespace
        1
    } else {
        keeper.process.as_raw_pid()
    };
    let path = PathBuf::from(format!("/proc/{holder}/fd/{}", certificate.as_raw_fd()));
    doors.push(certificate);
    doors.extend(inner_doors);
    if needs_user {
        doors.push(namespaces::handle(NamespaceKind::User).during(LinkStep::UserNamespace)?);
    }
    let up = LinkReady {
        facts: LinkFacts {
            round_trip,
            congestion: keeper.network.congestion.clone(),
            real_time: forwarder.real_time,
            v6: keeper.network.v6,
            caveats: std::mem::take(&mut keeper.network.caveats),
        },
        user: needs_user,
        certificate: path,
    };
    Ok(Role::Keeper(Box::new(keeper), Box::new(up), doors))
}

/// In the child: gets ready, and reports to the keeper.
fn become_forwarder(
    setup: &Setup,
    network: Network,
    keeper: Channel,
    has_user_namespace: bool,
) -> Result<Box<Forwarder>, StepError> {
    let ready = (|| -> Result<_, StepError> {
        guard::end_with_parent().during(LinkStep::Fork)?;
        signals::ignore_children();
        let mut caveats = Vec::new();
        let mut doors = Vec::new();
        if setup.isolation.names {
            caveats = hosts_file::prepare(setup.isolation.processes, setup.resolver)?;
            doors.push(namespaces::handle(NamespaceKind::Mount).during(LinkStep::Names)?);
        }
        if setup.isolation.processes {
            doors.push(
                namespaces::handle(NamespaceKind::Process).during(LinkStep::ProcessNamespace)?,
            );
        }
        let real_time = privilege::be_punctual();
        if has_user_namespace {
            privilege::drop_capabilities().during(LinkStep::Fork)?;
        }
        Ok((ForwarderReady { real_time, caveats }, doors))
    })();
    let (report, doors) = match ready {
        Ok((ready, doors)) => (Ok(ready), doors),
        Err(failed) => (Err(Refusal::from(failed)), Vec::new()),
    };
    let doors: Vec<_> = doors.iter().map(AsFd::as_fd).collect();
    keeper.send(&report, &doors).during(LinkStep::Fork)?;
    let Some([client, server]) = network.rings else {
        return Err(StepError(
            LinkStep::Fork,
            io::ErrorKind::InvalidInput.into(),
        ));
    };
    // probes see the delays alone: jitter, loss and the rest of the spec start after them
    let plain = Spec {
        up: setup.spec.up,
        down: setup.spec.down,
        ..Spec::default()
    };
    let middle = Emulator::new(plain, setup.seed);
    Ok(Box::new(Forwarder::new(client, server, middle, keeper)))
}

/// Keeps the namespaces alive and controls the forwarder.
struct NamespaceOwner {
    network: Network,
    forwarder: Channel,
    process: Pid,
    /// Packets that the kernel had dropped before the link began: devices drop packets until they
    /// are ready.
    dropped_before: [u64; 2],
}

impl NamespaceOwner {
    fn await_forwarder(&self) -> Result<(ForwarderReady, Vec<OwnedFd>), StepError> {
        let report = self.forwarder.receive().during(LinkStep::Fork)?;
        let gone = || StepError(LinkStep::Fork, io::ErrorKind::BrokenPipe.into());
        let (ready, doors): (Result<_, Refusal>, _) = report.ok_or_else(gone)?;
        let refused =
            |refusal: Refusal| StepError(refusal.step, io::Error::from_raw_os_error(refusal.errno));
        Ok((ready.map_err(refused)?, doors))
    }

    /// Measures round trips by SYNs to a closed port: the kernel replies with RST, so no server is
    /// needed.
    fn probe(&self, spec: &Spec) -> io::Result<RoundTrip> {
        namespaces::enter_network(&self.network.doors[0])?;
        let whole = spec.round_trip();
        let closed = SocketAddr::from((SERVER_V4, CLOSED_PORT));
        let one = || -> io::Result<f64> {
            let start = Instant::now();
            match TcpStream::connect_timeout(&closed, whole * 2 + PATIENCE) {
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                    Ok(start.elapsed().as_secs_f64() * 1e3)
                }
                Err(error) => Err(error),
                Ok(_) => Err(io::ErrorKind::AddrInUse.into()),
            }
        };
        // discards the first probe, which also fills caches
        one()?;
        let fit = PROBING.as_micros() / whole.as_micros().max(1);
        let count = fit.clamp(PROBES.0, PROBES.1);
        let mut times = (0..count)
            .map(|_| one())
            .collect::<io::Result<Vec<f64>>>()?;
        times.sort_by(f64::total_cmp);
        Ok(RoundTrip {
            count: times.len(),
            min_ms: times[0],
            p50_ms: times[times.len() / 2],
            max_ms: times[times.len() - 1],
        })
    }

    /// Serves the owner's requests until the owner or the forwarder ends.
    fn serve(&mut self, owner: &Channel) -> io::Result<()> {
        loop {
            let mut watched = [
                PollFd::from_borrowed_fd(owner.as_fd(), PollFlags::IN),
                PollFd::from_borrowed_fd(self.forwarder.as_fd(), PollFlags::IN),
            ];
            match poll(&mut watched, None) {
                Err(rustix::io::Errno::INTR) => continue,
                polled => polled?,
            };
            // the forwarder sends only replies, so an event here means that it has ended
            if !watched[1].revents().is_empty() {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            let Some((request, _)) = owner.receive::<Request>()? else {
                return Ok(());
            };
            match request {
                Request::Change(change) => owner.send(&self.change(change)?, &[])?,
                Request::Listening(port) => owner.send(&self.is_listening(port)?, &[])?,
                Request::Account => owner.send(&self.account()?, &[])?,
            }
        }
    }

    /// The forwarder counts the packets that reach it. Packets that the kernel dropped before are
    /// counted by the devices only.
    fn account(&mut self) -> io::Result<LinkStats> {
        let mut account: LinkStats = self.forwarder.ask(&ForwarderCommand::Account)?;
        let dropped = self.network.dropped()?;
        account.up.failed += dropped[0].saturating_sub(self.dropped_before[0]);
        account.down.failed += dropped[1].saturating_sub(self.dropped_before[1]);
        Ok(account)
    }

    fn change(&mut self, change: LinkChange) -> io::Result<()> {
        if change.loss_ppm.is_some_and(|loss| loss > 0) {
            self.network.single_segments()?;
        }
        self.forwarder.ask(&ForwarderCommand::Change(change))
    }

    /// Connects from the server's side, which takes no round trip of the link.
    fn is_listening(&self, port: u16) -> io::Result<bool> {
        namespaces::enter_network(&self.network.doors[1])?;
        let address = SocketAddr::from((SERVER_V4, port));
        Ok(TcpStream::connect_timeout(&address, PATIENCE).is_ok())
    }

    /// Waits until the forwarder has ended, and with it everything in its process namespace.
    fn end(self) -> io::Result<()> {
        drop(self.forwarder);
        waitpid(Some(self.process), WaitOptions::empty())?;
        Ok(())
    }
}
