//! Linux system interfaces that need `unsafe`, as safe functions and types: one module per kernel
//! interface.
//!
//! This crate has mechanisms only. Callers decide which calls to filter, how to answer them, and
//! which packets to keep. It never prints. It reads the environment only to pass it on to a program
//! that it starts. On systems other than Linux the crate is empty.
#![cfg(target_os = "linux")]
#![allow(
    unsafe_code,
    reason = "the home of system calls that have no safe form; every other crate uses these wrappers"
)]

pub mod address;
pub mod bpf;
pub mod credentials;
pub mod descriptors;
pub mod guard;
pub mod namespaces;
pub mod netlink;
pub mod packet;
pub mod privilege;
pub mod process;
pub mod scratch_dir;
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub mod seccomp;
pub mod secret_dir;
pub mod signals;
pub mod sock_diag;
pub mod socket;
pub mod standard_streams;
pub mod tcp_trace;
pub mod terminal;
pub mod timer;
pub mod timestamps;
pub mod udp;
pub mod uring;

mod mapping;
mod socket_option;

use std::io;

/// The result of a system call that reports an error by -1 and `errno`.
fn checked(result: impl Into<i64>) -> io::Result<i64> {
    match result.into() {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}
