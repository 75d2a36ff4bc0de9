//! Looks which processes use a socket of the program, where its connection looks as if several do.
//!
//! Every process that was forked has the sockets of its parent, and most never use them. So the
//! processes alone show nothing, and nothing is looked for without a sign in the data. Where
//! requests overlap, one process may have sent them: another one counts only if it has run between
//! two looks. The second look needs no second sign: two processes that mixed up responses once take
//! turns from then on.

use intact_observe::{ObservedConnection, SharingSign};
use intact_sys::address::unmapped;
use intact_sys::{process, sock_diag};
use mio::net::TcpStream;
use std::collections::BTreeMap;
use std::time::Instant;

/// Looks after which they take at most one part in the second number of the time.
const EAGER: u32 = 16;
const SHARE: u32 = 10;

/// Looks at one connection that several processes have open, until one sign has been followed.
const LOOKS: u32 = 16;

/// The processes that have a socket open.
#[derive(Default)]
pub(super) struct Holders {
    /// How often each had run when it was first seen there.
    runs: BTreeMap<u32, u64>,
    looks: u32,
}

/// The looks at processes.
#[derive(Default)]
pub(super) struct SharedSockets {
    count: u32,
    /// When the next look may begin.
    due: Option<Instant>,
}

impl SharedSockets {
    /// Counts the processes that use the program's end of a connection, if its data shows that
    /// several may. `known`: what earlier looks at it have found.
    pub(super) fn look(
        &mut self,
        near: &TcpStream,
        known: &mut Holders,
        observed: &mut Option<ObservedConnection>,
    ) {
        let Some(seen) = observed else { return };
        let Some(sign) = seen.sharing_sign() else {
            return;
        };
        let began = Instant::now();
        if self.due.is_some_and(|due| began < due) {
            return;
        }
        let holders = holders(near).unwrap_or_default();
        known.looks += 1;
        let may_share = holders.len() > 1 && known.looks < LOOKS;
        let mut users = 0;
        for (process, runs) in holders {
            let first = *known.runs.entry(process).or_insert(runs);
            users += u32::from(sign == SharingSign::ForeignRecord || first != runs);
        }
        if users > 1 || !may_share {
            seen.note_processes(users);
        }
        self.count = self.count.saturating_add(1);
        if self.count > EAGER {
            let now = Instant::now();
            self.due = Some(now + (now - began) * SHARE);
        }
    }
}

/// Our descendants that have the other end of this socket open; `None` where the system does not
/// show it.
fn holders(near: &TcpStream) -> Option<Vec<(u32, u64)>> {
    let program = unmapped(near.peer_addr().ok()?);
    let here = unmapped(near.local_addr().ok()?);
    let mut inode = None;
    sock_diag::list(|report| {
        if unmapped(report.local) == program && unmapped(report.peer) == here {
            inode = Some(report.inode);
        }
    })
    .ok()?;
    let inode = inode.filter(|inode| *inode > 0)?;
    let has = |process: &u32| {
        let mut is_there = false;
        let read = process::each_socket(*process, |one| is_there |= one == inode);
        read.is_ok() && is_there
    };
    // we may keep a copy of a socket of the program
    let own = std::process::id();
    let is_ours = |process: &u32| {
        *process != own && process::descends_from(*process, own).unwrap_or_default()
    };
    let processes = process::all().into_iter().filter(is_ours).filter(has);
    Some(
        processes
            .map(|process| (process, process::times_run(process)))
            .collect(),
    )
}
