//! What programs took of the processors, and for what kind of work: figures that an observer
//! measured in addition to the ledger.

use intact_ledger::Caveat;
use serde::Serialize;
use std::iter::Sum;
use std::time::Duration;

/// Below this number of samples shares are rough, and a caveat states this.
const FEW: u64 = 400;

/// What the programs took of the processors.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CpuFacts {
    /// The program and all that it started.
    #[serde(flatten)]
    pub program: CpuUse,
    /// Other processes that were measured, such as a resolver's.
    pub other_processes: Vec<OtherProcess>,
    /// Samples a second of processor time; absent where nothing was sampled.
    pub samples_per_s: Option<u64>,
    /// Why nothing was sampled.
    pub not_sampled: Option<String>,
    /// What the sampler could not see.
    pub gaps: Vec<String>,
}

/// What a program of a comparison took processor time for, over its rounds.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ProgramWork {
    /// The program's name.
    pub name: String,
    /// What for; absent without samples.
    pub work: Option<WorkShares>,
}

/// What processes took of the processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct CpuUse {
    /// In the program itself, in milliseconds; absent where it is not known.
    pub user_ms: Option<f64>,
    /// In the kernel on its behalf, in milliseconds; absent where it is not known.
    pub system_ms: Option<f64>,
    /// What for; absent without samples.
    pub work: Option<WorkShares>,
}

impl CpuUse {
    /// Times that are known, without samples.
    pub fn of(user: Duration, system: Duration) -> CpuUse {
        CpuUse {
            user_ms: Some(user.as_secs_f64() * 1e3),
            system_ms: Some(system.as_secs_f64() * 1e3),
            work: None,
        }
    }
}

/// Unknown where one is.
impl Sum for CpuUse {
    fn sum<I: Iterator<Item = CpuUse>>(all: I) -> CpuUse {
        all.fold(CpuUse::of(Duration::ZERO, Duration::ZERO), |sum, one| {
            CpuUse {
                user_ms: sum.user_ms.zip(one.user_ms).map(|(a, b)| a + b),
                system_ms: sum.system_ms.zip(one.system_ms).map(|(a, b)| a + b),
                work: None,
            }
        })
    }
}

/// A process that was measured in addition to the program.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OtherProcess {
    /// Its number.
    pub pid: u32,
    /// Its command's name.
    pub command: String,
    /// What it took meanwhile.
    #[serde(flatten)]
    pub took: CpuUse,
}

/// Shares of the samples, 0 to 1; together 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct WorkShares {
    /// How many samples there were.
    pub samples: u64,
    /// Sockets and packets, in the kernel.
    pub socket: f64,
    /// TLS: handshakes, certificates, encryption.
    pub tls: f64,
    /// Looking names up.
    pub dns: f64,
    /// Waiting for descriptors to become ready.
    pub readiness: f64,
    /// Anything else.
    pub other: f64,
}

impl WorkShares {
    /// The widest 95 % interval of a share of this number of samples, each side, in points.
    pub fn uncertain_by(&self) -> f64 {
        98.0 / (self.samples.max(1) as f64).sqrt()
    }
}

impl CpuFacts {
    /// What limits the figures.
    pub fn caveats(&self) -> Vec<Caveat> {
        let mut caveats = Vec::new();
        if let Some(reason) = &self.not_sampled {
            caveats.push(Caveat::new(
                "cpu-not-sampled",
                format!("what the processor time was spent on is not known: {reason}"),
            ));
        }
        caveats.extend(
            self.gaps
                .iter()
                .map(|gap| Caveat::new("cpu-partly-sampled", gap.clone())),
        );
        if let Some(work) = self.program.work
            && work.samples < FEW
        {
            caveats.push(Caveat::new("few-cpu-samples", format!(
                    "{} samples of processor time: their shares are uncertain by up to {:.0} points either way",
                    work.samples,
                    work.uncertain_by().min(100.0)
                )));
        }
        caveats
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown() {
        let known = CpuUse::of(Duration::from_millis(1), Duration::from_millis(2));
        let unknown = CpuUse::default();
        assert_eq!(
            [known, known].into_iter().sum::<CpuUse>().user_ms,
            Some(2.0)
        );
        assert_eq!([known, unknown].into_iter().sum::<CpuUse>().user_ms, None);
    }
}
