//! At which rate of new connections the client's ephemeral ports run out. Must not judge a variant:
//! a finding does.

use intact_ledger::Run;
use serde::Serialize;

/// How long Linux keeps the port of a connection that the client closed first, in seconds
/// (`TCP_TIMEWAIT_LEN`).
const TIME_WAIT_S: f64 = 60.0;
/// The same between two addresses of this machine, in seconds (`tcp_tw_reuse` = 2, the default).
const LOOPBACK_S: f64 = 1.0;

/// The ephemeral ports of the client's machine, and the rates at which they run out.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PortLimit {
    /// Ephemeral ports of one address.
    pub ports: u64,
    /// New connections a second to one address and port of another machine that use them up, if
    /// the client closes them first.
    pub run_out_per_s: f64,
    /// The same to this machine.
    pub run_out_on_loopback_per_s: f64,
}

impl PortLimit {
    /// The limit of the machine that a run names.
    pub(crate) fn of(run: &Run) -> Option<PortLimit> {
        let (first, last) = run.host.ephemeral_ports?;
        let ports = u64::from(last.checked_sub(first)?) + 1;
        Some(PortLimit {
            ports,
            run_out_per_s: ports as f64 / TIME_WAIT_S,
            run_out_on_loopback_per_s: ports as f64 / LOOPBACK_S,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::{Producer, Vantage};

    #[test]
    fn each_port_is_taken_for_a_minute() {
        let started = "2026-01-01T00:00:00Z".parse().unwrap();
        let mut run = Run::new(Producer::Bench, "0", Vantage::Client, started, 1, &[]);
        assert_eq!(PortLimit::of(&run), None);
        run.host.ephemeral_ports = Some((32_768, 60_999));
        let limit = PortLimit::of(&run).unwrap();
        assert_eq!(
            (limit.ports, limit.run_out_on_loopback_per_s),
            (28_232, 28_232.0)
        );
        assert!((limit.run_out_per_s - 470.5).abs() < 0.1);
        run.host.ephemeral_ports = Some((2, 1));
        assert_eq!(PortLimit::of(&run), None);
    }
}
