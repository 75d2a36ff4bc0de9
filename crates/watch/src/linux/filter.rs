//! The seccomp filter of a watched program: which system calls are asked about, which are refused,
//! and that everything else passes. Only builds the program; [`intact_sys::seccomp::launch`]
//! installs it.
//!
//! `read`, `write` and their kin are never asked about, so that data costs nothing here.

use intact_sys::bpf::{Instruction, give, if_equal, if_greater, load, unless_equal, unless_set};
use intact_sys::seccomp::{ARCH, ARCH_32};
use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_USER_NOTIF};

/// Their `connect`, and the one call for all of sockets that older ones make, where there is one.
#[cfg(target_arch = "x86_64")]
const CONNECTS_32: [u32; 2] = [362, 102];
/// Their `connect`.
#[cfg(target_arch = "aarch64")]
const CONNECTS_32: [u32; 2] = [283, 283];
/// `SYS_CONNECT`: the first argument of the one call for all where it connects.
const CONNECT_OF_ALL: u32 = 3;

/// Whether a 32-bit program connects by the one call for all, whose second argument is the place of
/// the real ones.
pub(crate) fn is_indirect_32(call: libc::c_long) -> bool {
    CONNECTS_32[0] != CONNECTS_32[1] && call == libc::c_long::from(CONNECTS_32[1])
}

/// Offsets into `struct seccomp_data`.
const NR: u32 = 0;
const ARCHITECTURE: u32 = 4;
/// The low half of an argument, on a little-endian machine.
const fn low(argument: u32) -> u32 {
    16 + argument * 8
}
const fn high(argument: u32) -> u32 {
    low(argument) + 4
}

/// The longest datagram that can be a question to a name server sent without `connect`, in bytes.
const QUESTION: u32 = 512;

/// What is asked about besides `connect`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FilteredCalls {
    /// What a relay has to know of: where the program asks for the addresses of a connection, its
    /// rules for its own connects, and datagrams that may be questions to a name server, or
    /// answers.
    pub(crate) relayed: bool,
    /// `socket`, `bind` and `listen`: where sockets are made for the program.
    pub(crate) sockets: bool,
    /// The end of a process: what is in its memory may still be looked for.
    pub(crate) ends: bool,
}

const ALLOW: Instruction = give(SECCOMP_RET_ALLOW);
const ASK: Instruction = give(SECCOMP_RET_USER_NOTIF);

const fn refuse(errno: i32) -> Instruction {
    give(SECCOMP_RET_ERRNO | errno as u32)
}

/// The filter's instructions.
pub(crate) fn program(asked: FilteredCalls) -> Vec<Instruction> {
    let mut code = start();
    // a body always returns, since it leaves another word than the call's number in the accumulator
    let mut call = |number: libc::c_long, body: &[Instruction]| {
        code.push(unless_equal(number as u32, body.len() as u8));
        code.extend_from_slice(body);
    };
    call(libc::SYS_connect, &[ASK]);
    if asked.relayed {
        call(libc::SYS_getpeername, &[ASK]);
        call(libc::SYS_getsockname, &[ASK]);
        call(libc::SYS_landlock_create_ruleset, &[ASK]);
        call(libc::SYS_landlock_restrict_self, &[ASK]);
    }
    if asked.sockets {
        let of_the_internet = [
            load(low(0)),
            if_equal(libc::AF_INET as u32, 1),
            unless_equal(libc::AF_INET6 as u32, 1),
            ASK,
            ALLOW,
        ];
        call(libc::SYS_socket, &of_the_internet);
        call(libc::SYS_bind, &[ASK]);
        call(libc::SYS_listen, &[ASK]);
    }
    if asked.ends {
        call(libc::SYS_exit_group, &[ASK]);
    }
    // a ring would connect without a system call of its own; libraries fall back to epoll on ENOSYS
    call(libc::SYS_io_uring_setup, &[refuse(libc::ENOSYS)]);
    // TCP Fast Open connects without `connect`; its callers connect when it is not supported
    call(libc::SYS_sendto, &send_to(asked.relayed));
    call(
        libc::SYS_sendmsg,
        &[
            load(low(2)),
            unless_set(libc::MSG_FASTOPEN as u32, 1),
            refuse(libc::EOPNOTSUPP),
            ALLOW,
        ],
    );
    if asked.relayed {
        // resolvers send their one or two questions so; media and QUIC send many at once
        call(
            libc::SYS_sendmmsg,
            &[load(low(2)), if_greater(2, 1), ASK, ALLOW],
        );
        // answers are taken with their sender's address; data of connections is not
        call(
            libc::SYS_recvfrom,
            &[
                load(low(4)),
                unless_equal(0, 3),
                load(high(4)),
                unless_equal(0, 1),
                ALLOW,
                ASK,
            ],
        );
    }
    code.push(ALLOW);
    code
}

/// The load of the call's number, and before it the verdict on 32-bit programs: only their connects
/// are asked about, so that they can be counted.
fn start() -> Vec<Instruction> {
    vec![
        load(ARCHITECTURE),
        if_equal(ARCH, 9),
        unless_equal(ARCH_32, 7),
        load(NR),
        if_equal(CONNECTS_32[0], 4),
        unless_equal(CONNECTS_32[1], 4),
        load(low(0)),
        if_equal(CONNECT_OF_ALL, 1),
        ALLOW,
        ASK,
        ALLOW,
        load(NR),
    ]
}

/// `sendto`: refuses TCP Fast Open, and asks about short datagrams with an address.
fn send_to(asks_questions: bool) -> [Instruction; 12] {
    let question = if asks_questions { ASK } else { ALLOW };
    [
        load(low(3)),
        unless_set(libc::MSG_FASTOPEN as u32, 1),
        refuse(libc::EOPNOTSUPP),
        load(low(4)),
        unless_equal(0, 3),
        load(high(4)),
        unless_equal(0, 1),
        ALLOW,
        load(low(2)),
        if_greater(QUESTION, 1),
        question,
        ALLOW,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::{BPF_ABS, BPF_JEQ, BPF_JGT, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W};

    /// What the kernel would say to a call; panics where it would refuse the program.
    fn verdict(code: &[Instruction], arch: u32, number: libc::c_long, arguments: [u64; 6]) -> u32 {
        let mut data = [0; 64];
        data[..4].copy_from_slice(&(number as u32).to_ne_bytes());
        data[4..8].copy_from_slice(&arch.to_ne_bytes());
        for (place, argument) in arguments.iter().enumerate() {
            data[16 + place * 8..24 + place * 8].copy_from_slice(&argument.to_ne_bytes());
        }
        let (mut at, mut word) = (0, 0);
        loop {
            let step = &code[at];
            let branch = |taken: bool| usize::from(if taken { step.jt } else { step.jf });
            at += 1;
            match u32::from(step.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => {
                    let from = step.k as usize;
                    word = u32::from_ne_bytes(data[from..from + 4].try_into().unwrap());
                }
                code if code == BPF_JMP | BPF_JEQ | BPF_K => at += branch(word == step.k),
                code if code == BPF_JMP | BPF_JGT | BPF_K => at += branch(word > step.k),
                code if code == BPF_JMP | BPF_JSET | BPF_K => at += branch(word & step.k != 0),
                code if code == BPF_RET | BPF_K => return step.k,
                other => panic!("instruction {other:#x}"),
            }
        }
    }

    const ALL: FilteredCalls = FilteredCalls {
        relayed: true,
        sockets: true,
        ends: true,
    };
    const ASK: u32 = SECCOMP_RET_USER_NOTIF;
    const ALLOW: u32 = SECCOMP_RET_ALLOW;

    fn says(asked: FilteredCalls, number: libc::c_long, arguments: [u64; 6]) -> u32 {
        verdict(&program(asked), ARCH, number, arguments)
    }

    #[test]
    fn connect_is_always_asked_about_and_data_never() {
        for asked in [
            ALL,
            FilteredCalls {
                ends: false,
                relayed: false,
                sockets: false,
            },
        ] {
            assert_eq!(says(asked, libc::SYS_connect, [0; 6]), ASK);
            for call in [
                libc::SYS_read,
                libc::SYS_write,
                libc::SYS_recvmsg,
                libc::SYS_execve,
            ] {
                assert_eq!(says(asked, call, [u64::MAX; 6]), ALLOW);
            }
            // recv
            assert_eq!(says(asked, libc::SYS_recvfrom, [3, 1, 9, 0, 0, 0]), ALLOW);
            for (call, is_asked) in [
                (libc::SYS_getpeername, asked.relayed),
                (libc::SYS_landlock_restrict_self, asked.relayed),
            ] {
                assert_eq!(says(asked, call, [0; 6]) == ASK, is_asked);
            }
        }
    }

    #[test]
    fn of_32_bit_programs_connects_are_asked_about_and_of_others_nothing() {
        let says = |arch, number: u32, first: u32| {
            let arguments = [u64::from(first), 0, 0, 0, 0, 0];
            verdict(&program(ALL), arch, libc::c_long::from(number), arguments)
        };
        assert_eq!(says(ARCH_32, CONNECTS_32[0], 7), ASK);
        assert_eq!(says(ARCH_32, CONNECTS_32[1], CONNECT_OF_ALL), ASK);
        if CONNECTS_32[0] != CONNECTS_32[1] {
            assert_eq!(says(ARCH_32, CONNECTS_32[1], CONNECT_OF_ALL + 1), ALLOW);
        }
        assert_eq!(says(ARCH_32, 4, 3), ALLOW);
        assert_eq!(says(0xc000_0016, CONNECTS_32[0], 3), ALLOW);
    }

    #[test]
    fn sockets_of_the_internet_are_asked_about_where_they_are_made_for_the_program() {
        let socket = |family: i32| says(ALL, libc::SYS_socket, [family as u64, 1, 0, 0, 0, 0]);
        assert_eq!((socket(libc::AF_INET), socket(libc::AF_INET6)), (ASK, ASK));
        assert_eq!(
            (socket(libc::AF_UNIX), socket(libc::AF_NETLINK)),
            (ALLOW, ALLOW)
        );
        let plain = FilteredCalls {
            sockets: false,
            ..ALL
        };
        for call in [libc::SYS_socket, libc::SYS_bind, libc::SYS_listen] {
            assert_eq!(says(ALL, call, [2, 0, 0, 0, 0, 0]), ASK);
            assert_eq!(says(plain, call, [2, 0, 0, 0, 0, 0]), ALLOW);
        }
    }

    #[test]
    fn only_short_datagrams_with_an_address_are_taken_for_questions() {
        let send =
            |address, len, flags| says(ALL, libc::SYS_sendto, [3, 0, len, flags, address, 16]);
        assert_eq!(send(0, 40, 0), ALLOW);
        assert_eq!(send(0x7fff_0000, 40, 0), ASK);
        assert_eq!(send(0xff_0000_0000, 40, 0), ASK);
        assert_eq!(send(0x7fff_0000, 513, 0), ALLOW);
        let few = |count| says(ALL, libc::SYS_sendmmsg, [3, 0, count, 0, 0, 0]);
        assert_eq!((few(2), few(3)), (ASK, ALLOW));
        let take = |address| says(ALL, libc::SYS_recvfrom, [3, 0, 2048, 0, address, 0]);
        assert_eq!((take(0x7fff_0000), take(0xff_0000_0000)), (ASK, ASK));
        assert_eq!(take(0), ALLOW);
    }

    #[test]
    fn what_would_connect_unseen_is_refused_as_unsupported() {
        let refused = |errno: i32| SECCOMP_RET_ERRNO | errno as u32;
        let flag = libc::MSG_FASTOPEN as u64;
        assert_eq!(
            says(ALL, libc::SYS_sendto, [3, 0, 9, flag, 1, 16]),
            refused(libc::EOPNOTSUPP)
        );
        assert_eq!(
            says(ALL, libc::SYS_sendmsg, [3, 0, flag, 0, 0, 0]),
            refused(libc::EOPNOTSUPP)
        );
        assert_eq!(says(ALL, libc::SYS_sendmsg, [3, 0, 0, 0, 0, 0]), ALLOW);
        assert_eq!(
            says(ALL, libc::SYS_io_uring_setup, [0; 6]),
            refused(libc::ENOSYS)
        );
    }
}
