//! The packet filter for TCP of all connections, each packet of loopback once.

use crate::bpf::{Instruction, give, instruction};
use libc::{BPF_ABS, BPF_ALU, BPF_AND, BPF_B, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_W};

/// Protocol numbers: TCP, and the authentication header before it.
const TCP: u32 = 6;
const AUTHENTICATION: u32 = 51;
/// Other headers of IPv6 before it: hop-by-hop options, routing, fragment, destination options.
const HOPS: u32 = 0;
const ROUTING: u32 = 43;
const FRAGMENT: u32 = 44;
const OPTIONS: u32 = 60;

/// A filter that keeps packets of TCP over IPv4 or IPv6, whole and fragments; for packets that
/// begin with their IP header. Of a loopback device it keeps what comes in, because the same packet
/// has gone out before.
pub fn tcp_filter() -> [Instruction; 20] {
    const LOAD: u32 = BPF_LD | BPF_W | BPF_ABS;
    const LOAD_BYTE: u32 = BPF_LD | BPF_B | BPF_ABS;
    const AND: u32 = BPF_ALU | BPF_AND | BPF_K;
    const IS: u32 = BPF_JMP | BPF_JEQ | BPF_K;
    let step = |code, jt, jf, k| instruction(code, k, jt, jf);
    let about = |what: i32| (libc::SKF_AD_OFF + what) as u32;
    [
        step(LOAD, 0, 0, about(libc::SKF_AD_PKTTYPE)),
        step(IS, 0, 2, u32::from(libc::PACKET_OUTGOING)),
        step(LOAD, 0, 0, about(libc::SKF_AD_HATYPE)),
        step(IS, 15, 0, u32::from(libc::ARPHRD_LOOPBACK)),
        step(LOAD_BYTE, 0, 0, 0),
        step(AND, 0, 0, 0xf0),
        step(IS, 0, 3, 0x40),
        // IPv4
        step(LOAD_BYTE, 0, 0, 9),
        step(IS, 9, 0, TCP),
        step(IS, 8, 9, AUTHENTICATION),
        // IPv6
        step(IS, 0, 8, 0x60),
        step(LOAD_BYTE, 0, 0, 6),
        step(IS, 5, 0, TCP),
        step(IS, 4, 0, HOPS),
        step(IS, 3, 0, ROUTING),
        step(IS, 2, 0, FRAGMENT),
        step(IS, 1, 0, AUTHENTICATION),
        step(IS, 0, 1, OPTIONS),
        // the whole packet, or nothing of it
        give(u32::MAX),
        give(0),
    ]
}
