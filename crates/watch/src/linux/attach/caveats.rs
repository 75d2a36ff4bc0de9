//! What limits the record of programs that run already.

use super::{Follower, PACE};
use crate::{Sides, Unwatched};
use intact_ledger::Caveat;
use std::collections::BTreeSet;
use std::io;

impl Follower {
    /// What limits the record.
    pub(super) fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        // packets show the ends, too
        let dropped = match &self.packets {
            Ok(_) => 0,
            Err(_) => self.outside.overruns(),
        };
        // a socket that is not in the trace was accepted, or is older than the run
        let (gone, lost) = match &self.trace {
            Ok(trace) => (0, trace.lost()),
            Err(_) if self.packets.is_ok() && !self.config.sides.has_client() => (0, 0),
            Err(_) => (self.others.unexplained(), 0),
        };
        if gone > 0 || dropped > 0 || lost > 0 {
            let more = if dropped > 0 || lost > 0 {
                ", and the kernel dropped reports of more"
            } else {
                ""
            };
            let without = match &self.trace {
                Ok(_) => String::new(),
                Err(error) => format!(
                    ". The kernel's trace of connects would show them: it needs root or CAP_PERFMON ({error})"
                ),
            };
            let words = format!(
                "sockets are looked up every {} ms (at most {} ms apart), so shorter connections can be missed{without}. Sockets of this machine that were closed before their owner was seen: {gone}{more}",
                PACE.as_millis(),
                self.looks.longest.max(PACE).as_millis()
            );
            caveats.push(Caveat::incomplete("unwatched-short", words));
        }
        if let Err(error) = &self.packets {
            caveats.extend(self.without_packets(error));
        }
        if self.trace.is_ok() && self.packets.is_err() {
            let words = "Observed by sock_diag and the kernel's trace of connects (sock:inet_sock_set_state): connections and bytes are counted, requests cannot be seen";
            caveats.push(Caveat::new("observed-by-trace", words));
        }
        if let Some(error) = &self.looks.error {
            let words = format!(
                "the kernel did not list its sockets ({error}): connections are missing from {} of the looks",
                self.looks.failed
            );
            caveats.push(Caveat::incomplete("unwatched-not-listed", words));
        }
        if let Some(process) = self.elsewhere.first() {
            let words = format!(
                "another network namespace hides the connections of {}: `nsenter --net --target {process} intact watch --pid {process}` sees them",
                named(&self.elsewhere)
            );
            let id = Unwatched::OtherNamespace.id();
            caveats.push(Caveat::incomplete(id, words));
        }
        let unreadable = self.unreadable.iter().filter(|(_, scans)| **scans > 1);
        let unreadable: BTreeSet<u32> = unreadable.map(|(process, _)| *process).collect();
        if !unreadable.is_empty() {
            let words = format!(
                "{} cannot be inspected (another user's, setuid, not dumpable): run intact as root to see its connections",
                named(&unreadable)
            );
            let id = Unwatched::Unreadable.id();
            caveats.push(Caveat::incomplete(id, words));
        }
        let unseen = match &self.packets {
            Ok(packets) => packets.table.selection.accepted_unseen,
            Err(_) => 0,
        };
        if unseen > 0 {
            let words = format!(
                "connections at a port where processes accept that are not followed, too, which had ended before it was seen who accepted them: {unseen}. Follow all processes of the service: `--name`, or the process that started them"
            );
            caveats.push(Caveat::incomplete("accepted-unseen", words));
        }
        if self.earlier > 0 && self.packets.is_err() {
            let words = format!(
                "connections that were open before we looked, so that it is unknown when they were opened: {}",
                self.earlier
            );
            caveats.push(Caveat::new("opened-earlier", words));
        }
        caveats
    }
}

impl Follower {
    /// Why no packets are read, and how they can be; `None` where that is as it was asked for.
    fn without_packets(&self, error: &io::Error) -> Option<Caveat> {
        if error.kind() == io::ErrorKind::Unsupported {
            return None;
        }
        let process = self.config.subjects.roots().first().copied().unwrap_or(0);
        let words = format!(
            "requests cannot be seen, because packets cannot be read ({error}). Any of these shows them: `sudo intact watch --pid {process}`; `sudo setcap cap_net_raw,cap_perfmon,cap_sys_ptrace,cap_sys_admin+ep $(command -v intact)`; in Kubernetes `kubectl debug -it POD --image=IMAGE --target=CONTAINER --profile=sysadmin -- intact watch --pid 1`; `tcpdump -i any -s 0 -w service.pcap` and `intact audit service.pcap`"
        );
        let id = "requests-need-packets";
        Some(match self.config.sides {
            Sides::Client => Caveat::incomplete_requests(id, words),
            // without packets, no connection that was accepted is recorded
            Sides::Server | Sides::Both => Caveat::incomplete(id, words),
        })
    }
}

/// The first of some processes, and how many more there are.
fn named(processes: &BTreeSet<u32>) -> String {
    let first = processes.first().copied().unwrap_or_default();
    match processes.len() {
        0 | 1 => format!("process {first}"),
        2 => format!("process {first} and one other"),
        more => format!("process {first} and {} others", more - 1),
    }
}
