//! Whether standard output and standard error were open when the process started. The runtime of
//! Rust opens /dev/null in place of a closed one before `main`, so that later nothing shows that
//! all output is lost.

use std::hint::black_box;
use std::os::fd::RawFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Of descriptors 1 and 2.
static CLOSED: [AtomicBool; 2] = [const { AtomicBool::new(false) }; 2];

/// The dynamic linker calls what this section points to, before the runtime of Rust starts.
#[used]
// SAFETY: the section holds pointers to functions (System V ABI, gABI chapter 5), and `look` calls
// no runtime of Rust
#[unsafe(link_section = ".init_array")]
static LOOK: extern "C" fn() = look;

extern "C" fn look() {
    for (descriptor, closed) in (1..).zip(&CLOSED) {
        // SAFETY: F_GETFD takes no argument and reads a flag of the descriptor
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFD) };
        closed.store(flags == -1, Ordering::Relaxed);
    }
}

/// Whether descriptor 1 or 2 was closed when the process started.
pub fn was_closed(descriptor: RawFd) -> bool {
    // without a use the linker may leave the module's object out
    black_box(LOOK);
    let index = usize::try_from(descriptor - 1).ok();
    let closed = index.and_then(|index| CLOSED.get(index));
    closed.is_some_and(|closed| closed.load(Ordering::Relaxed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_streams_of_a_test_are_open() {
        assert!(!was_closed(1));
        assert!(!was_closed(2));
        assert!(!was_closed(0));
        assert!(!was_closed(7));
    }
}
