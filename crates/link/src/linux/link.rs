//! The owner's side: starting a link, putting commands on its sides, switching it.

use super::channel::Channel;
use super::keeper;
use super::message::{Isolation, LinkReady, Refusal, Request, Setup, SetupReply};
use crate::error::LinkError;
use crate::spec::{LinkChange, Spec};
use crate::stats::{LinkFacts, LinkStats};
use crate::step::LinkStep;
use crate::{LinkEnd, remedy};
use intact_sys::namespaces::NamespaceHandles;
use intact_sys::process;
use rustix::fd::OwnedFd;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// An emulated link. It exists as long as this value, and ends with the process that has it,
/// however that ends.
#[derive(Debug)]
pub struct Link {
    spec: Spec,
    up: LinkReady,
    doors: Arc<NamespaceHandles>,
    certificate: File,
    owned: Mutex<Owned>,
}

/// What talks to the keeper.
#[derive(Debug)]
struct Owned {
    channel: Option<Channel>,
    keeper: Child,
}

/// How often orphans are collected while the link ends.
const ORPHANS: Duration = Duration::from_millis(2);

impl Link {
    /// Makes a link and measures its round trip. `helper` is a command that calls [`keep`] first
    /// thing.
    ///
    /// Commands on the link look names up at port 53 of `resolver`. Without a resolver they find
    /// only the server's name.
    ///
    /// If a container forbids process or mount namespaces, the link works without them and has a
    /// caveat. The calling process becomes the parent of orphans (`PR_SET_CHILD_SUBREAPER`).
    pub fn start(
        spec: &Spec,
        resolver: Option<IpAddr>,
        helper: impl Fn() -> Command,
    ) -> Result<Link, LinkError> {
        process::adopt_orphans().map_err(LinkError::Helper)?;
        let mut isolation = Isolation {
            processes: true,
            names: true,
        };
        let mut caveats = Vec::new();
        loop {
            let setup = Setup {
                spec: spec.clone(),
                seed: RandomState::new().build_hasher().finish(),
                isolation,
                resolver,
            };
            let refusal = match attempt(setup, helper())? {
                Ok(mut link) => {
                    link.up.facts.caveats.extend(caveats);
                    return Ok(link);
                }
                Err(refusal) => refusal,
            };
            match refusal.step {
                LinkStep::ProcessNamespace | LinkStep::ProcessMount if isolation.processes => {
                    isolation.processes = false;
                    caveats.push("no process namespace here: what a command leaves running in the background outlives a kill -9".to_owned());
                }
                LinkStep::Names if isolation.names && resolver.is_none() => {
                    isolation.names = false;
                    caveats.push(
                        "no mount namespace here: the server has no name, only its address"
                            .to_owned(),
                    );
                }
                step => return Err(remedy::forbidden(step, refusal.errno)),
            }
        }
    }

    /// What was asked for.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// What was measured and found at its start.
    pub fn facts(&self) -> &LinkFacts {
        &self.up.facts
    }

    /// Whether the server's name can be looked up.
    pub fn has_names(&self) -> bool {
        self.doors.mounts.is_some()
    }

    /// Prepares `command` to start on a side: in its network, with the link's names. It ends with
    /// the link.
    ///
    /// The child is a proxy of the command: it forwards signals and ends with the command's status.
    /// If the proxy is killed, the command ends, too. If the link has no process namespace (a
    /// caveat reports this), the child also ends with the thread that started it.
    pub fn enter(&self, side: LinkEnd, command: &mut Command) {
        self.doors.start_within(command, side as usize);
    }

    /// Puts a certificate (PEM) where commands on the link find it; nothing is written to disk.
    pub fn share_certificate(&self, pem: &str) -> io::Result<&Path> {
        self.certificate.set_len(0)?;
        self.certificate.write_all_at(pem.as_bytes(), 0)?;
        Ok(&self.up.certificate)
    }

    /// Whether something listens on this port of the server's IPv4 address: connects once, from the
    /// server's own side.
    pub fn is_listening(&self, port: u16) -> Result<bool, LinkError> {
        self.ask(&Request::Listening(port))
    }

    /// Switches a running link. Takes effect on packets that arrive after this has returned.
    pub fn change(&self, change: &LinkChange) -> Result<(), LinkError> {
        self.ask(&Request::Change(change.clone()))
    }

    /// The packets so far by their outcome, and how late they were.
    pub fn account(&self) -> Result<LinkStats, LinkError> {
        self.ask(&Request::Account)
    }

    fn ask<M: DeserializeOwned>(&self, request: &Request) -> Result<M, LinkError> {
        let owned = self.owned.lock().unwrap_or_else(PoisonError::into_inner);
        let channel = owned.channel.as_ref().ok_or(LinkError::Ended)?;
        channel.ask(request).map_err(|_| LinkError::Ended)
    }
}

/// Starts a keeper. Returns the link, or the step that failed.
fn attempt(setup: Setup, mut helper: Command) -> Result<Result<Link, Refusal>, LinkError> {
    let (channel, keepers) = Channel::pair().map_err(LinkError::Helper)?;
    let mut keeper = helper
        .stdin(Stdio::from(OwnedFd::from(keepers)))
        .stdout(Stdio::null())
        .spawn()
        .map_err(LinkError::Helper)?;
    // `helper` still has a copy of the keeper's socket; while it is open, the end of the keeper is
    // not visible
    drop(helper);
    let answer = channel.send(&setup, &[]).and_then(|()| channel.receive());
    let Ok(Some((reply, descriptors))): io::Result<Option<(SetupReply, _)>> = answer else {
        drop(channel);
        let _ = keeper.wait();
        return Err(LinkError::Ended);
    };
    match reply {
        Ok(up) => {
            let (doors, certificate) =
                unpack(descriptors, setup.isolation, up.user).ok_or(LinkError::Ended)?;
            Ok(Ok(Link {
                spec: setup.spec,
                up: *up,
                doors: Arc::new(doors),
                certificate: certificate.into(),
                owned: Mutex::new(Owned {
                    channel: Some(channel),
                    keeper,
                }),
            }))
        }
        Err(refusal) => {
            drop(channel);
            let _ = keeper.wait();
            Ok(Err(refusal))
        }
    }
}

/// Descriptors in the order in which the keeper sends them: networks, certificate, mounts,
/// processes, user.
fn unpack(
    descriptors: Vec<OwnedFd>,
    isolation: Isolation,
    user: bool,
) -> Option<(NamespaceHandles, OwnedFd)> {
    let mut rest = descriptors.into_iter();
    let networks = [rest.next()?, rest.next()?];
    let certificate = rest.next()?;
    let mut next_if = |there: bool| {
        if there {
            rest.next().map(Some)
        } else {
            Some(None)
        }
    };
    let doors = NamespaceHandles {
        networks,
        mounts: next_if(isolation.names)?,
        processes: next_if(isolation.processes)?,
        user: next_if(user)?,
    };
    Some((doors, certificate))
}

impl Drop for Owned {
    fn drop(&mut self) {
        // closing the channel ends the keeper, which waits for all that is on the link
        drop(self.channel.take());
        // collects commands whose proxy was killed: they are children of this process now, and end
        // before the link
        while let Ok(None) = self.keeper.try_wait() {
            process::reap_from_inner_namespaces();
            std::thread::sleep(ORPHANS);
        }
    }
}

/// Runs a helper process as the keeper of a link. Its parent sends requests over the helper's
/// standard input. Returns when the parent closes it. The process must have a single thread.
pub fn keep() -> io::Result<()> {
    let channel = io::stdin().as_fd().try_clone_to_owned()?;
    // closes the other descriptor, so that the owner sees when the channel closes
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    keeper::keep(Channel::from(channel))
}
