//! Classic BPF (linux/bpf_common.h): the instructions that seccomp filters and packet filters are
//! made of.

pub use libc::sock_filter as Instruction;
use libc::{BPF_ABS, BPF_JEQ, BPF_JGT, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W};

/// Ends the program with this value.
pub const fn give(value: u32) -> Instruction {
    instruction(BPF_RET | BPF_K, value, 0, 0)
}

/// Loads the 32-bit word at this offset into the accumulator.
pub const fn load(offset: u32) -> Instruction {
    instruction(BPF_LD | BPF_W | BPF_ABS, offset, 0, 0)
}

/// Skips the next `over` instructions if the accumulator equals `value`.
pub const fn if_equal(value: u32, over: u8) -> Instruction {
    instruction(BPF_JMP | BPF_JEQ | BPF_K, value, over, 0)
}

/// Runs the next `over` instructions only if the accumulator equals `value`.
pub const fn unless_equal(value: u32, over: u8) -> Instruction {
    instruction(BPF_JMP | BPF_JEQ | BPF_K, value, 0, over)
}

/// Runs the next `over` instructions only if one of these bits is set.
pub const fn unless_set(bits: u32, over: u8) -> Instruction {
    instruction(BPF_JMP | BPF_JSET | BPF_K, bits, 0, over)
}

/// Skips the next `over` instructions if the accumulator is greater than `value`.
pub const fn if_greater(value: u32, over: u8) -> Instruction {
    instruction(BPF_JMP | BPF_JGT | BPF_K, value, over, 0)
}

/// Any instruction; `jt` and `jf` are the numbers of instructions that a comparison skips when true
/// and when false.
pub const fn instruction(code: u32, k: u32, jt: u8, jf: u8) -> Instruction {
    Instruction {
        code: code as u16,
        jt,
        jf,
        k,
    }
}
