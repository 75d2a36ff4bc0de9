//! What limits the figures of a run by its plan alone.

use crate::plan::{Freezer, Plan};
use intact_ledger::{CONNECTIONS_NOT_FOLLOWED, Caveat};

impl Plan {
    /// The caveats of every run of this plan. `cut_off`: nothing passes the network of a frozen function.
    pub fn caveats(&self, cut_off: bool) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        if self.watcher.is_none() {
            caveats.push(Caveat::incomplete(
                CONNECTIONS_NOT_FOLLOWED,
                "the function's connections were not followed (--watch off): what died in a freeze is not known",
            ));
        }
        if self.time_scale > 1.0 {
            let words = format!(
                "idle times passed {} times faster than they say: what gives up connections by a timer did not, so these figures are no measure of idle limits and are not for the catalogue of clients",
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
                "the function was stopped {by} and cut off from the network; the kernel's clock ran on meanwhile, which may differ on Lambda: timers of the client were due at the thaw"
            )
        } else {
            format!(
                "the function was stopped {by} and the kernel below it went on: it took a FIN meanwhile, and the monotonic clock ran; a paused virtual machine may miss both"
            )
        };
        let rests = self.idle.iter().any(|idle| !idle.is_zero());
        rests.then(|| Caveat::new("emulated-freeze", words))
    }
}
