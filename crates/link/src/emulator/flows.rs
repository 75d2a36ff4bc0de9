//! The flows that the emulator knows, to forget idle flows and to keep the packets of a flow in
//! order.

use super::FlowDirection;
use super::packet::{FlowKey, Kind, Packet};
use crate::spec::Nat;
use std::collections::HashMap;

/// Limit of remembered flows; at the limit, the half that was idle longest is forgotten.
const MOST: usize = 1 << 17;

/// What a middle box does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Lets it pass.
    Pass,
    /// The flow of the packet is unknown.
    Forgotten,
}

#[derive(Clone, Copy, Default)]
struct Flow {
    seen: u64,
    released: [u64; 2],
}

/// All known flows.
#[derive(Default)]
pub(crate) struct Flows {
    known: HashMap<FlowKey, Flow>,
}

impl Flows {
    /// Decides about a packet that arrived at `at` (ns), as a middle box that forgets idle flows. A
    /// TCP flow becomes known by a SYN, a UDP flow by a packet of the client side. Packets of other
    /// protocols always pass.
    pub(crate) fn admit(
        &mut self,
        nat: Nat,
        packet: &Packet,
        direction: FlowDirection,
        at: u64,
    ) -> Verdict {
        let opens = match packet.kind {
            Kind::Tcp { opens } => opens,
            Kind::Udp => direction == FlowDirection::Up,
            Kind::Else => return Verdict::Pass,
        };
        let idle = nat.idle.as_nanos() as u64;
        if let Some(flow) = self.known.get_mut(&packet.flow)
            && (opens || at.saturating_sub(flow.seen) < idle)
        {
            flow.seen = at;
            return Verdict::Pass;
        }
        if opens {
            self.entry(packet.flow, at).seen = at;
            return Verdict::Pass;
        }
        self.known.remove(&packet.flow);
        Verdict::Forgotten
    }

    /// Returns `due`, or the time of the last packet of the same flow and direction if that is
    /// later.
    pub(crate) fn in_order(
        &mut self,
        packet: &Packet,
        direction: FlowDirection,
        at: u64,
        due: u64,
    ) -> u64 {
        let flow = self.entry(packet.flow, at);
        flow.seen = at;
        let last = &mut flow.released[direction as usize];
        *last = due.max(*last);
        *last
    }

    /// Forgets them all.
    pub(crate) fn clear(&mut self) {
        self.known.clear();
    }

    fn entry(&mut self, key: FlowKey, at: u64) -> &mut Flow {
        if self.known.len() >= MOST && !self.known.contains_key(&key) {
            let mut ages: Vec<u64> = self.known.values().map(|flow| flow.seen).collect();
            let (_, middle, _) = ages.select_nth_unstable(MOST / 2);
            let middle = *middle;
            self.known.retain(|_, flow| flow.seen > middle);
        }
        self.known.entry(key).or_insert_with(|| Flow {
            seen: at,
            ..Flow::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::samples::{ACK, SYN, tcp};
    use super::*;
    use crate::emulator::packet;
    use crate::spec::Forgotten;
    use std::time::Duration;

    const SECOND: u64 = 1_000_000_000;

    fn packet(direction: FlowDirection, port: u16, flags: u8) -> Packet {
        packet::read(&tcp(direction, port, flags, 0), direction).unwrap()
    }

    #[test]
    fn an_idle_flow_is_forgotten_in_both_directions_until_a_new_syn() {
        let nat = Nat {
            idle: Duration::from_secs(5),
            forgotten: Forgotten::Silent,
        };
        let mut flows = Flows::default();
        let mut admit = |direction, flags, at| {
            flows.admit(nat, &packet(direction, 5000, flags), direction, at * SECOND)
        };
        assert_eq!(
            admit(FlowDirection::Up, ACK, 0),
            Verdict::Forgotten,
            "never opened"
        );
        assert_eq!(admit(FlowDirection::Up, SYN, 1), Verdict::Pass);
        assert_eq!(admit(FlowDirection::Down, ACK, 4), Verdict::Pass);
        assert_eq!(
            admit(FlowDirection::Up, ACK, 8),
            Verdict::Pass,
            "the answer kept it alive"
        );
        assert_eq!(admit(FlowDirection::Down, ACK, 13), Verdict::Forgotten);
        assert_eq!(admit(FlowDirection::Up, ACK, 13), Verdict::Forgotten);
        assert_eq!(admit(FlowDirection::Up, SYN, 14), Verdict::Pass);
        assert_eq!(admit(FlowDirection::Down, ACK, 14), Verdict::Pass);
    }

    #[test]
    fn memory_is_bounded_and_the_busiest_flows_stay() {
        let mut flows = Flows::default();
        let busy = packet(FlowDirection::Up, 1, SYN);
        for nth in 0..MOST as u64 * 3 / 2 {
            // distinct flows by address; the busy one is seen all the time
            let mut frame = tcp(FlowDirection::Up, 2, SYN, 0);
            let source = packet::VNET + 14 + 12;
            frame[source..source + 4].copy_from_slice(&(nth as u32).to_be_bytes());
            let stranger = packet::read(&frame, FlowDirection::Up).unwrap();
            let nat = Nat {
                idle: Duration::from_secs(1_000_000_000),
                forgotten: Forgotten::Silent,
            };
            flows.admit(nat, &stranger, FlowDirection::Up, nth);
            flows.admit(nat, &busy, FlowDirection::Up, nth);
        }
        assert!(flows.known.len() <= MOST);
        assert!(flows.known.contains_key(&busy.flow));
    }
}
