//! Caveats that follow from the plan of a run alone.

use crate::plan::{Freezer, Plan};
use intact_ledger::{CONNECTIONS_NOT_FOLLOWED, Caveat};

impl Plan {
    /// The caveats of every run of this plan. `cut_off`: nothing passes the network of a frozen
    /// function.
    pub fn caveats(&self, cut_off: bool) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        if self.watcher.is_none() {
            caveats.push(Caveat::incomplete(
                CONNECTIONS_NOT_FOLLOWED,
                "the function's connections were not followed (--watch off): connections that ended during a freeze are unknown",
            ));
        }
        if self.time_scale > 1.0 {
            let words = format!(
                "idle times were divided by {}; timers of the client were not, so these figures do not show idle limits and must not enter the catalogue of clients",
                self.time_scale
            );
            caveats.push(Caveat::new("time-scaled", words));
        }
        if self.cpu_share.is_some() && !Plan::can_share_cpu() {
            caveats.push(Caveat::new(
                "cpu-not-limited",
                "--memory-cpu: no control group may be made here, so the function had the whole processor",
            ));
        }
        caveats.extend(self.emulated_freeze(cut_off));
        caveats
    }

    /// How a freeze of this plan differs from the platform's; none where nothing is frozen.
    fn emulated_freeze(&self, cut_off: bool) -> Option<Caveat> {
        let by = match self.freezer? {
            Freezer::ControlGroup => "by a control group",
            Freezer::Signals => "by SIGSTOP",
        };
        let words = if cut_off {
            format!(
                "the function was frozen {by} and cut off from the network. Its clock and its kernel ran on: timers were due at the thaw, and unanswered keep-alive probes ended connections. Lambda may differ"
            )
        } else {
            format!(
                "only the function was frozen ({by}): its clock ran on, and the kernel received FINs and sent keep-alive probes. In a frozen virtual machine none of this may happen"
            )
        };
        let rests = self.idle.iter().any(|idle| !idle.is_zero());
        rests.then(|| Caveat::new("emulated-freeze", words))
    }
}
