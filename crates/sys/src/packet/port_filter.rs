//! The packet filter for one port of TCP or UDP.

use crate::bpf::{Instruction, give, instruction};
use libc::{
    BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_LDX,
    BPF_MSH,
};

/// The protocol of a port: its number in the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortProtocol {
    /// TCP.
    Tcp = 6,
    /// UDP.
    Udp = 17,
}

/// A filter that keeps packets of this protocol over IPv4 or IPv6 from or to this port, whole; for
/// packets that begin with their IP header.
pub fn port_filter(protocol: PortProtocol, port: u16) -> [Instruction; 19] {
    const LOAD_BYTE: u32 = BPF_LD | BPF_B | BPF_ABS;
    const LOAD_HALF: u32 = BPF_LD | BPF_H | BPF_ABS;
    const LOAD_HALF_AFTER_HEADER: u32 = BPF_LD | BPF_H | BPF_IND;
    const LOAD_HEADER_LENGTH: u32 = BPF_LDX | BPF_B | BPF_MSH;
    const AND: u32 = BPF_ALU | BPF_AND | BPF_K;
    const IS: u32 = BPF_JMP | BPF_JEQ | BPF_K;
    let protocol = protocol as u32;
    let port = u32::from(port);
    let step = |code, jt, jf, k| instruction(code, k, jt, jf);
    [
        step(LOAD_BYTE, 0, 0, 0),
        step(AND, 0, 0, 0xf0),
        step(IS, 0, 7, 0x40),
        // IPv4
        step(LOAD_BYTE, 0, 0, 9),
        step(IS, 0, 13, protocol),
        step(LOAD_HEADER_LENGTH, 0, 0, 0),
        step(LOAD_HALF_AFTER_HEADER, 0, 0, 0),
        step(IS, 9, 0, port),
        step(LOAD_HALF_AFTER_HEADER, 0, 0, 2),
        step(IS, 7, 8, port),
        // IPv6
        step(IS, 0, 7, 0x60),
        step(LOAD_BYTE, 0, 0, 6),
        step(IS, 0, 5, protocol),
        step(LOAD_HALF, 0, 0, 40),
        step(IS, 2, 0, port),
        step(LOAD_HALF, 0, 0, 42),
        step(IS, 0, 1, port),
        // the whole packet, or nothing of it
        give(u32::MAX),
        give(0),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel does; whether the packet is kept, `None` if it is too short.
    fn takes(program: &[Instruction], packet: &[u8]) -> Option<bool> {
        let byte = |at: usize| packet.get(at).map(|&byte| u32::from(byte));
        let half = |at: usize| Some(byte(at)? << 8 | byte(at + 1)?);
        let (mut at, mut a, mut x) = (0, 0, 0);
        loop {
            let step = program[at];
            let k = step.k as usize;
            at += 1;
            match u32::from(step.code) {
                0x30 => a = byte(k)?,
                0x28 => a = half(k)?,
                0x48 => a = half(x + k)?,
                0xb1 => x = (byte(k)? & 0xf) as usize * 4,
                0x54 => a &= step.k,
                0x15 => at += usize::from(if a == step.k { step.jt } else { step.jf }),
                0x06 => return Some(step.k > 0),
                code => panic!("{code:#x} is not in the program"),
            }
        }
    }

    #[test]
    fn only_the_protocol_and_the_port_are_kept() {
        let programs = [PortProtocol::Tcp, PortProtocol::Udp].map(|one| port_filter(one, 443));
        let packet = |version: u8, protocol: u8, from: u16, to: u16| {
            let mut head = if version == 4 {
                let mut head = vec![0x46; 24];
                head[9] = protocol;
                head
            } else {
                let mut head = vec![0x60; 40];
                head[6] = protocol;
                head
            };
            head.extend(from.to_be_bytes());
            head.extend(to.to_be_bytes());
            head
        };
        for version in [4, 6] {
            for (protocol, from, to, taken) in [
                (6, 443, 9, [true, false]),
                (6, 9, 443, [true, false]),
                (6, 9, 8, [false, false]),
                (17, 9, 443, [false, true]),
                (17, 443, 9, [false, true]),
                (17, 9, 8, [false, false]),
            ] {
                let packet = packet(version, protocol, from, to);
                for (program, taken) in programs.iter().zip(taken) {
                    assert_eq!(takes(program, &packet), Some(taken), "{packet:?}");
                }
            }
        }
        assert_eq!(takes(&programs[0], &[0x10; 60]), Some(false));
    }
}
