//! The seccomp filter of a watched program: which system calls are asked about, which are refused,
//! and that everything else passes. Only builds the program; [`intact_sys::seccomp::launch`]
//! installs it.
//!
//! `read`, `write` and their kin are never asked about, so that data costs nothing here. A test
//! compares `filter/calls.rs`, which has every call of the kernel's tables, with this filter.

#[cfg(test)]
mod calls;

use intact_sys::bpf::{Instruction, give, if_equal, if_greater, load, unless_equal, unless_set};
use intact_sys::seccomp::{ARCH, ARCH_32, X32};
use libc::{SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO, SECCOMP_RET_USER_NOTIF};

/// The numbers, in one table of the kernel, of the calls that can connect a socket or receive a
/// connected one.
struct Connecting {
    connect: u32,
    sendto: u32,
    sendmsg: u32,
    sendmmsg: u32,
    recvmsg: u32,
    /// With times of 32 and of 64 bits; the same where there is one call.
    recvmmsg: [u32; 2],
    /// The one call for all of sockets that older programs make, where there is one.
    socketcall: Option<u32>,
}

/// Of 32-bit programs.
#[cfg(target_arch = "x86_64")]
const NARROW: Connecting = Connecting {
    connect: 362,
    sendto: 369,
    sendmsg: 370,
    sendmmsg: 345,
    recvmsg: 372,
    recvmmsg: [337, 417],
    socketcall: Some(102),
};
/// Of 32-bit programs.
#[cfg(target_arch = "aarch64")]
const NARROW: Connecting = Connecting {
    connect: 283,
    sendto: 290,
    sendmsg: 296,
    sendmmsg: 374,
    recvmsg: 297,
    recvmmsg: [365, 417],
    socketcall: None,
};
/// Of programs with 32-bit addresses on a 64-bit machine, without [`X32`].
#[cfg(target_arch = "x86_64")]
const NARROW_ADDRESSES: Option<Connecting> = Some(Connecting {
    connect: 42,
    sendto: 44,
    sendmsg: 518,
    sendmmsg: 538,
    recvmsg: 519,
    recvmmsg: [537, 537],
    socketcall: None,
});
#[cfg(target_arch = "aarch64")]
const NARROW_ADDRESSES: Option<Connecting> = None;

/// First arguments of the one call for all (linux/net.h).
const CONNECT_OF_ALL: u32 = 3;
const SENDTO_OF_ALL: u32 = 11;
const SENDMSG_OF_ALL: u32 = 16;
const SENDMMSG_OF_ALL: u32 = 20;
const RECVMSG_OF_ALL: u32 = 17;
const RECVMMSG_OF_ALL: u32 = 19;

/// What a 32-bit program asks for by the one call for all, whose second argument is the place of
/// the real ones.
pub(crate) enum OneForAll {
    Connect,
    /// With the number of the real argument that has the flags.
    Send(usize),
    /// With that number as well.
    Receive(usize),
}

impl OneForAll {
    /// What this call of a 32-bit program asks for; `None` for any other call.
    pub(crate) fn of(call: libc::c_long, first: u64) -> Option<OneForAll> {
        if NARROW.socketcall.map(libc::c_long::from) != Some(call) {
            return None;
        }
        match first as u32 {
            CONNECT_OF_ALL => Some(OneForAll::Connect),
            SENDMSG_OF_ALL => Some(OneForAll::Send(2)),
            SENDTO_OF_ALL | SENDMMSG_OF_ALL => Some(OneForAll::Send(3)),
            RECVMSG_OF_ALL => Some(OneForAll::Receive(2)),
            RECVMMSG_OF_ALL => Some(OneForAll::Receive(3)),
            _ => None,
        }
    }
}

/// The number of the argument that has the flags, if this call of a 32-bit program receives
/// messages.
pub(crate) fn flags_of_narrow_receive(call: libc::c_long) -> Option<usize> {
    [Some(NARROW), NARROW_ADDRESSES]
        .into_iter()
        .flatten()
        .find_map(|numbers| match u32::try_from(call) {
            Ok(number) if number == numbers.recvmsg => Some(2),
            Ok(number) if numbers.recvmmsg.contains(&number) => Some(3),
            _ => None,
        })
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
    /// Messages that may bring descriptors: where the program was started with a Unix socket of
    /// another process.
    pub(crate) receives: bool,
}

const ALLOW: Instruction = give(SECCOMP_RET_ALLOW);
const ASK: Instruction = give(SECCOMP_RET_USER_NOTIF);

const fn refuse(errno: i32) -> Instruction {
    give(SECCOMP_RET_ERRNO | errno as u32)
}

/// The filter's instructions.
pub(crate) fn program(asked: FilteredCalls) -> Vec<Instruction> {
    let mut code = start(asked.receives);
    let mut call = |number: libc::c_long, body: &[Instruction]| {
        code.extend(for_call(number as u32, body));
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
    call(
        libc::SYS_sendto,
        &send(3, question(asked.relayed).as_slice()),
    );
    call(libc::SYS_sendmsg, &send(2, &[ALLOW]));
    // resolvers send their one or two questions so; media and QUIC send many at once
    let few = [load(low(2)), if_greater(2, 1), ASK, ALLOW];
    let few = if asked.relayed { &few[..] } else { &[ALLOW] };
    call(libc::SYS_sendmmsg, &send(3, few));
    if asked.relayed {
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
    if asked.receives {
        call(libc::SYS_recvmsg, &[ASK]);
        call(libc::SYS_recvmmsg, &[ASK]);
    }
    code.extend(everywhere(0));
    if let Some(narrow) = NARROW_ADDRESSES {
        code.extend(connecting(&narrow, X32, asked.receives));
        code.extend(everywhere(X32));
    }
    code.push(ALLOW);
    code
}

/// The load of the call's number, and before it the verdict on 32-bit programs: their connects are
/// asked about, so that they can be counted.
fn start(receives: bool) -> Vec<Instruction> {
    let mut narrow = vec![load(NR)];
    narrow.extend(connecting(&NARROW, 0, receives));
    narrow.extend(everywhere(0));
    narrow.push(ALLOW);
    let mut code = vec![
        load(ARCHITECTURE),
        if_equal(ARCH, narrow.len() as u8 + 2),
        if_equal(ARCH_32, 1),
        ALLOW,
    ];
    code.append(&mut narrow);
    code.push(load(NR));
    code
}

/// A body for a call of this number. A body always returns, because it leaves another word than
/// the call's number in the accumulator.
fn for_call(number: u32, body: &[Instruction]) -> Vec<Instruction> {
    [&[unless_equal(number, body.len() as u8)], body].concat()
}

/// The calls of another table that can connect a socket, or receive one; its numbers have these
/// bits too.
fn connecting(numbers: &Connecting, bits: u32, receives: bool) -> Vec<Instruction> {
    let mut code = Vec::new();
    let mut call = |number: u32, body: &[Instruction]| code.extend(for_call(number | bits, body));
    call(numbers.connect, &[ASK]);
    call(numbers.sendto, &send(3, &[ALLOW]));
    call(numbers.sendmsg, &send(2, &[ALLOW]));
    call(numbers.sendmmsg, &send(3, &[ALLOW]));
    if receives {
        for received in [numbers.recvmsg].into_iter().chain(numbers.recvmmsg) {
            call(received, &[ASK]);
        }
    }
    if let Some(socketcall) = numbers.socketcall {
        let mut subs = vec![
            CONNECT_OF_ALL,
            SENDTO_OF_ALL,
            SENDMSG_OF_ALL,
            SENDMMSG_OF_ALL,
        ];
        if receives {
            subs.extend([RECVMSG_OF_ALL, RECVMMSG_OF_ALL]);
        }
        let mut body = vec![load(low(0))];
        for (nth, &sub) in subs.iter().enumerate() {
            body.push(if_equal(sub, (subs.len() - nth) as u8));
        }
        body.extend([ALLOW, ASK]);
        call(socketcall, &body);
    }
    code
}

/// The calls that have the same number in all tables, here with this bit.
fn everywhere(bit: u32) -> Vec<Instruction> {
    let mut code = Vec::new();
    let mut call = |number: libc::c_long, body: Instruction| {
        code.extend(for_call(number as u32 | bit, &[body]));
    };
    // a ring would connect without a system call of its own; libraries fall back to epoll on ENOSYS
    call(libc::SYS_io_uring_setup, refuse(libc::ENOSYS));
    // one that was made outside, whose owner knows no other way
    call(libc::SYS_io_uring_enter, ASK);
    call(libc::SYS_io_uring_register, ASK);
    // a connection of another process
    call(libc::SYS_pidfd_getfd, ASK);
    code
}

/// A call that sends, with its flags in this argument. TCP Fast Open connects without `connect`;
/// its callers connect when it is not supported.
fn send(flags: u32, body: &[Instruction]) -> Vec<Instruction> {
    let fast_open = [
        load(low(flags)),
        unless_set(libc::MSG_FASTOPEN as u32, 1),
        refuse(libc::EOPNOTSUPP),
    ];
    [&fast_open, body].concat()
}

/// `sendto`: asks about short datagrams with an address.
fn question(asks: bool) -> Vec<Instruction> {
    if !asks {
        return vec![ALLOW];
    }
    vec![
        load(low(4)),
        unless_equal(0, 3),
        load(high(4)),
        unless_equal(0, 1),
        ALLOW,
        load(low(2)),
        if_greater(QUESTION, 1),
        ASK,
        ALLOW,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use libc::{BPF_ABS, BPF_JEQ, BPF_JGT, BPF_JMP, BPF_JSET, BPF_K, BPF_LD, BPF_RET, BPF_W};

    /// What the kernel would say to a call; panics where it would refuse the program.
    pub(super) fn verdict(
        code: &[Instruction],
        arch: u32,
        number: libc::c_long,
        arguments: [u64; 6],
    ) -> u32 {
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
        receives: true,
    };
    pub(super) const ASK: u32 = SECCOMP_RET_USER_NOTIF;
    pub(super) const ALLOW: u32 = SECCOMP_RET_ALLOW;

    pub(super) fn refused(errno: i32) -> u32 {
        SECCOMP_RET_ERRNO | errno as u32
    }

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
                receives: false,
            },
        ] {
            assert_eq!(says(asked, libc::SYS_connect, [0; 6]), ASK);
            for call in [libc::SYS_read, libc::SYS_write, libc::SYS_execve] {
                assert_eq!(says(asked, call, [u64::MAX; 6]), ALLOW);
            }
            let received = if asked.receives { ASK } else { ALLOW };
            for call in [libc::SYS_recvmsg, libc::SYS_recvmmsg] {
                assert_eq!(says(asked, call, [3, 1, 0, 0, 0, 0]), received);
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
    fn of_32_bit_programs_connects_are_asked_about_and_of_other_machines_nothing() {
        let says = |arch, number: u32, first: u32| {
            let arguments = [u64::from(first), 0, 0, 0, 0, 0];
            verdict(&program(ALL), arch, libc::c_long::from(number), arguments)
        };
        assert_eq!(says(ARCH_32, NARROW.connect, 7), ASK);
        if let Some(socketcall) = NARROW.socketcall {
            for (first, verdict) in [
                (3, ASK),
                (11, ASK),
                (16, ASK),
                (20, ASK),
                (17, ASK),
                (19, ASK),
                (9, ALLOW),
            ] {
                assert_eq!(says(ARCH_32, socketcall, first), verdict, "{first}");
            }
        }
        assert_eq!(says(ARCH_32, 4, 3), ALLOW);
        assert_eq!(says(0xc000_0016, NARROW.connect, 3), ALLOW);
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
