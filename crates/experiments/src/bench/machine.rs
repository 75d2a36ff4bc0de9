//! Whether the processors of the machine that measures were busy: other processes use them, or
//! client and server together use all of them. And whether that limited the run, because the client
//! or a server with work to do waited for them. Must not judge the client or the server.

use intact_document::figures::Latency;
use intact_ledger::MachineUse;
use intact_units::number::whole_percent;
use serde::Serialize;

/// The share of all processors from which they are busy to the full.
const FULL: f64 = 0.95;
/// The share of the time in which a task waits for a processor, from which the wait is no hiccup.
const WAITING: f64 = 0.5;
/// The processors that others than client and server use, from which a wait may be theirs.
const OTHERS: f64 = 0.1;
/// The share of all processors that a hypervisor takes, from which the machine is not ours.
const STEAL: f64 = 0.1;
/// The share of all processors that a server uses alone, from which the limit is its own although
/// nothing is left.
const SERVER_ALONE: f64 = 0.9;

/// The share of one processor from which a server has work that can wait for others.
const SERVER_WORKS: f64 = 0.1;
/// The share of a latency from which the client's lateness explains it.
const LATE: f64 = 0.25;

/// What is not known where the client was on time; [`MachineFacts::may_limit_server`] comes before.
pub(crate) const SERVER_UNKNOWN: &str = "requests started on time, so the client was not delayed, but the server may have waited for a processor (--server-pid shows whether it had work to do)";

/// Why the figures of a busy machine say little about the server.
pub(crate) const SHARED: &str = "client, server and other processes share its processors";

/// What all processes of the client's machine did with its processors. A share is of all
/// processors, unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct MachineFacts {
    /// Number of processors.
    pub cpus: u32,
    /// CPU time of all processes and the kernel; absent without /proc/stat.
    pub busy: Option<f64>,
    /// CPU time of neither the client nor the server, the kernel's work for them included; absent
    /// where the server's is not known.
    pub others: Option<f64>,
    /// CPU time that the hypervisor gave to other machines; absent where the kernel does not count
    /// it.
    pub steal: Option<f64>,
    /// Part of the time in which at least one task waited for a processor; absent without
    /// /proc/pressure/cpu.
    pub waiting: Option<f64>,
    /// CPU time of the server; absent where it is not known.
    #[serde(skip)]
    server: Option<f64>,
}

impl MachineFacts {
    /// The facts; `client` and `server` are CPU times of `nanos`, about the time of `all`.
    pub(crate) fn of(
        all: &MachineUse,
        (client, server): (Option<u64>, Option<u64>),
        nanos: u64,
    ) -> Option<MachineFacts> {
        if all.nanos == 0 || nanos == 0 {
            return None;
        }
        let time = all.nanos as f64;
        let whole = (all.cpus > 0).then(|| time * f64::from(all.cpus));
        // ticks of 10 ms can count a little more than the time
        let of_all = |cpu: Option<u64>| Some((cpu? as f64 / whole?).min(1.0));
        let scaled = |cpu: Option<u64>| Some(cpu? as f64 / nanos as f64 * time / whole?);
        let busy = of_all(all.busy);
        let server = scaled(server.filter(|&cpu| cpu > 0));
        let others = || Some((busy? - scaled(client)? - server?).max(0.0));
        Some(MachineFacts {
            cpus: all.cpus,
            busy,
            others: others(),
            steal: of_all(all.steal),
            waiting: all.waited.map(|waited| waited as f64 / time),
            server,
        })
    }

    /// Whether the processors were the limit, so that neither the client nor the server is: they
    /// were busy, and delayed the client, or a server that is known to have work to do.
    pub(crate) fn is_limit(&self, is_client_delayed: bool) -> bool {
        let server = self.server.map(|share| share * f64::from(self.cpus));
        let server_works = server.is_some_and(|one| one >= SERVER_WORKS);
        self.is_busy() && (is_client_delayed || server_works)
    }

    /// How busy the processors were, in words, where they may have been the limit of a server whose
    /// CPU time is not known.
    pub(crate) fn may_limit_server(&self) -> Option<String> {
        let busy = self
            .busy
            .filter(|_| self.server.is_none() && self.is_busy())?;
        let busy = whole_percent(busy);
        Some(format!("with {busy} of this machine's processors busy"))
    }

    /// Whether client, server and others used the processors up.
    fn is_busy(&self) -> bool {
        let steal = self.steal.unwrap_or(0.0);
        if steal > STEAL {
            return true;
        }
        if self.server.is_some_and(|server| server >= SERVER_ALONE) {
            return false;
        }
        if self.busy.is_some_and(|busy| busy + steal >= FULL) {
            return true;
        }
        let others = self.others.map(|share| share * f64::from(self.cpus));
        self.waiting.is_some_and(|share| share >= WAITING) && others.is_none_or(|one| one >= OTHERS)
    }

    /// What was not observed, in words; empty where everything was.
    pub(crate) fn unobserved(&self) -> Vec<&'static str> {
        let absent = [
            (
                self.busy.is_none(),
                "the CPU time of all processes (/proc/stat)",
            ),
            (
                self.waiting.is_none(),
                "waits for a processor (/proc/pressure/cpu)",
            ),
            (
                self.steal.is_none(),
                "what a hypervisor took (steal of /proc/stat)",
            ),
        ];
        let absent = absent.into_iter().filter(|(is_absent, _)| *is_absent);
        absent.map(|(_, words)| words).collect()
    }
}

/// Whether requests started so late that this explains their latency, at the highest percentile
/// that both have.
pub(crate) fn explains(late: &Latency, latency: &Latency) -> bool {
    let both = [(&late.p99, &latency.p99), (&late.p90, &latency.p90)];
    let mut both = both
        .into_iter()
        .filter_map(|(late, all)| late.value().zip(all.value()));
    both.next().is_some_and(|(late, all)| late > LATE * all)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two processors over a second; times in ms.
    fn facts(busy: u64, waited: Option<u64>, client: u64, server: Option<u64>) -> MachineFacts {
        let ms = |ms: u64| ms * 1_000_000;
        let all = MachineUse {
            nanos: ms(1_000),
            cpus: 2,
            busy: Some(ms(busy)),
            steal: Some(0),
            waited: waited.map(ms),
        };
        MachineFacts::of(&all, (Some(ms(client)), server.map(ms)), ms(1_000)).unwrap()
    }

    #[test]
    fn a_server_with_a_processor_of_its_own_is_not_a_busy_machine() {
        // the other processor has room, whether or not the server's time is known
        assert!(!facts(1_300, Some(200), 250, Some(1_000)).is_busy());
        assert!(!facts(1_300, Some(200), 250, None).is_busy());
        // its own threads wait for its processor, and no other process is there
        let pinned = facts(1_300, Some(990), 250, Some(1_000));
        assert_eq!(pinned.others.map(|one| (one * 1e3).round()), Some(25.0));
        assert!(!pinned.is_busy());
        // a server that takes the whole machine is its own limit
        assert!(!facts(1_990, Some(990), 50, Some(1_900)).is_busy());
    }

    #[test]
    fn processors_that_others_use_are_busy() {
        assert!(facts(2_000, Some(1_000), 100, Some(300)).is_busy());
        assert!(facts(2_000, None, 100, None).is_busy(), "without PSI");
        // on the server's processor only
        assert!(facts(1_300, Some(900), 100, Some(500)).is_busy());
        // the wait may be of the server's own threads, but its time is not known: it is not blamed
        assert!(facts(1_300, Some(900), 100, None).is_busy());
        // client and server fill the machine together
        assert!(facts(1_980, Some(300), 800, Some(1_100)).is_busy());
    }

    #[test]
    fn a_hypervisor_that_takes_the_processors_keeps_them_busy() {
        let mut facts = facts(1_000, Some(100), 100, Some(800));
        facts.steal = Some(0.2);
        assert!(facts.is_busy());
    }

    #[test]
    fn a_busy_machine_is_the_limit_only_of_who_waits_for_it() {
        let full = |server| facts(2_000, Some(1_000), 10, server);
        // a server that sleeps, and one whose work is not known
        assert!(!full(Some(45)).is_limit(false));
        assert!(!full(None).is_limit(false));
        assert_eq!(full(Some(45)).may_limit_server(), None);
        let words = full(None).may_limit_server().unwrap();
        assert!(words.contains("100 %"), "{words}");
        // one that works, and a client that is late
        assert!(full(Some(380)).is_limit(false));
        assert!(full(None).is_limit(true));
        assert!(!facts(1_000, Some(10), 10, Some(380)).is_limit(true));
    }

    #[test]
    fn what_was_not_counted_is_named() {
        assert!(facts(1_000, Some(1), 1, None).unobserved().is_empty());
        let all = MachineUse {
            nanos: 1,
            ..MachineUse::default()
        };
        let none = MachineFacts::of(&all, (None, None), 1).unwrap();
        assert!(!none.is_busy());
        assert_eq!(none.unobserved().len(), 3);
        assert_eq!(
            MachineFacts::of(&MachineUse::default(), (None, None), 1),
            None
        );
    }
}
