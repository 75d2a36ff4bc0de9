//! What all processes of this machine did with its processors while a round ran. Must not know who
//! of them is client or server.

use serde::{Deserialize, Serialize};

/// The use of the processors of the machine that measures, over a time. Absent is what the system
/// does not count.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MachineUse {
    /// The time, in nanoseconds.
    pub nanos: u64,
    /// Number of processors.
    pub cpus: u32,
    /// CPU time of all processes and of the kernel, in nanoseconds.
    pub busy: Option<u64>,
    /// CPU time that the hypervisor gave to others, in nanoseconds.
    pub steal: Option<u64>,
    /// Time in which at least one task waited for a processor, in nanoseconds: `some` of
    /// /proc/pressure/cpu.
    pub waited: Option<u64>,
}

impl MachineUse {
    /// Both times together. A figure that one of them lacks is absent.
    #[must_use]
    pub fn and(self, other: MachineUse) -> MachineUse {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        MachineUse {
            nanos: self.nanos.saturating_add(other.nanos),
            cpus: self.cpus.min(other.cpus),
            busy: sum(self.busy, other.busy),
            steal: sum(self.steal, other.steal),
            waited: sum(self.waited, other.waited),
        }
    }
}
