//! The beginning of a function of x86-64 that keeps a frame pointer, and the call before a return
//! address. Only the usual forms are read.

/// Bytes that are read of a function, at most.
pub(super) const LONGEST: usize = 64;

/// A call before a return address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    /// To this distance from the return address.
    To(i64),
    /// To the address that is at this distance from the return address.
    Through(i64),
    /// To an address in a register or in memory.
    Indirect,
}

/// How far the frame pointer is above the stack pointer, by the beginning of a function; `None`
/// where that is not clear.
pub(super) fn frame_size(code: &[u8]) -> Option<u64> {
    // a mark for indirect calls
    let code = code.strip_prefix(b"\xf3\x0f\x1e\xfa").unwrap_or(code);
    // push rbp; mov rbp, rsp
    let rest = code.strip_prefix(b"\x55")?;
    let rest = rest
        .strip_prefix(b"\x48\x89\xe5")
        .or_else(|| rest.strip_prefix(b"\x48\x8b\xec"))?;
    let (mut rest, mut size) = (rest, 0);
    loop {
        rest = match rest {
            [0x50..=0x57, after @ ..] | [0x41, 0x50..=0x57, after @ ..] => after,
            _ => break,
        };
        size += 8;
    }
    match rest {
        // sub rsp, number
        [0x48, 0x83, 0xec, number @ 0..=127, after @ ..] if !is_stack_changed(after) => {
            Some(size + u64::from(*number))
        }
        [0x48, 0x81, 0xec, a, b, c, d @ 0..=127, after @ ..] if !is_stack_changed(after) => {
            Some(size + u64::from(u32::from_le_bytes([*a, *b, *c, *d])))
        }
        [0x48, 0x81 | 0x83, 0xe4 | 0xec, ..] => None,
        _ => Some(size),
    }
}

/// Whether the stack pointer is moved again at once: a large frame, page by page.
fn is_stack_changed(code: &[u8]) -> bool {
    matches!(
        code,
        [0x48, 0x83, 0x0c | 0xe4 | 0xec, ..]
            | [0x48, 0x81, 0xe4 | 0xec, ..]
            | [0x48, 0xc7, 0x04, 0x24, ..]
    )
}

/// The call that ends where these eight bytes do.
pub(super) fn call_before(bytes: &[u8]) -> Option<Call> {
    let bytes: &[u8; 8] = bytes.try_into().ok()?;
    if let [_, _, _, 0xe8, a, b, c, d] = *bytes {
        return Some(Call::To(i64::from(i32::from_le_bytes([a, b, c, d]))));
    }
    if let [_, _, 0xff, 0x15, a, b, c, d] = *bytes {
        return Some(Call::Through(i64::from(i32::from_le_bytes([a, b, c, d]))));
    }
    // ff /2, in its lengths
    let is_indirect = [2, 3, 4, 6, 7].iter().any(|length| {
        let one = &bytes[8 - length..];
        one[0] == 0xff && one[1] & 0x38 == 0x10
    });
    is_indirect.then_some(Call::Indirect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_usual_beginnings_show_the_size_of_the_frame() {
        for (code, size) in [
            (
                &b"\x55\x48\x89\xe5\x48\x83\xec\x20\x89\x7d\xec"[..],
                Some(0x20),
            ),
            (
                b"\xf3\x0f\x1e\xfa\x55\x48\x89\xe5\x53\x48\x83\xec\x18\x90",
                Some(0x20),
            ),
            (
                b"\x55\x48\x89\xe5\x41\x57\x41\x56\x53\x48\x81\xec\x00\x01\x00\x00\x90",
                Some(0x118),
            ),
            (b"\x55\x48\x89\xe5\xbf\x01\x00\x00\x00", Some(0)),
            // aligned, or page by page
            (b"\x55\x48\x89\xe5\x48\x83\xe4\xf0\x90", None),
            (
                b"\x55\x48\x89\xe5\x48\x81\xec\x00\x10\x00\x00\x48\x83\x0c\x24\x00",
                None,
            ),
            // without a frame pointer
            (b"\x53\x48\x83\xec\x18\x90", None),
            (b"", None),
        ] {
            assert_eq!(frame_size(code), size, "{code:x?}");
        }
    }

    #[test]
    fn the_call_before_a_return_address_is_seen() {
        let call = |bytes: &[u8]| call_before(bytes);
        assert_eq!(
            call(b"\x90\x90\x90\xe8\xfb\xff\xff\xff"),
            Some(Call::To(-5))
        );
        assert_eq!(
            call(b"\x90\x90\x90\x90\x90\x90\xff\xd0"),
            Some(Call::Indirect)
        );
        assert_eq!(
            call(b"\x90\x90\xff\x15\x00\x10\x00\x00"),
            Some(Call::Through(0x1000))
        );
        assert_eq!(call(b"\x90\x90\x90\x90\x90\x90\x90\x90"), None);
        assert_eq!(call(b""), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = (frame_size(&bytes), call_before(&bytes));
        }
    }
}
