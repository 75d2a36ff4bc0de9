//! Messages of gRPC in a body: the length before each (gRPC `doc/PROTOCOL-HTTP2.md`). Must not know
//! what a message is.

/// Bytes before a message: the mark of compression and the length.
const PREFIX: usize = 5;

/// Why a body is no list of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// A message needs more than the 32 bits of its length.
    #[error("a message has at most 4 GiB")]
    TooLarge,
    /// A message is compressed, which the request did not allow.
    #[error("a message is compressed")]
    Compressed,
    /// The body ends within a message.
    #[error("the body ends within a message")]
    Truncated,
}

/// A message after its length, not compressed.
///
/// # Errors
/// If the length needs more than 32 bits.
pub fn frame(message: &[u8]) -> Result<Vec<u8>, FrameError> {
    let length = u32::try_from(message.len()).map_err(|_| FrameError::TooLarge)?;
    Ok([&[0], &length.to_be_bytes()[..], message].concat())
}

/// The messages of a body, in order. An error is the last item: a message that is compressed or
/// incomplete.
pub fn unframe(body: &[u8]) -> impl Iterator<Item = Result<&[u8], FrameError>> {
    let mut rest = body;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let read = split_message(rest);
        rest = read.map_or(&[], |(_, rest)| rest);
        Some(read.map(|(message, _)| message))
    })
}

/// Whether a body so far ends with a whole message, or with one that is compressed. `read` is the
/// length of the messages that were found whole before, and grows.
pub fn is_whole(body: &[u8], read: &mut usize) -> bool {
    for message in unframe(&body[*read..]) {
        match message {
            Ok(message) => *read += PREFIX + message.len(),
            Err(error) => return error != FrameError::Truncated,
        }
    }
    !body.is_empty()
}

fn split_message(body: &[u8]) -> Result<(&[u8], &[u8]), FrameError> {
    let (prefix, rest) = body
        .split_first_chunk::<PREFIX>()
        .ok_or(FrameError::Truncated)?;
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return Err(FrameError::Compressed);
    }
    let length = u32::from_be_bytes(length) as usize;
    rest.split_at_checked(length).ok_or(FrameError::Truncated)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_body_is_whole_after_each_message_and_never_within_one() {
        let body = [frame(b"one").unwrap(), frame(b"").unwrap()].concat();
        let mut read = 0;
        let whole: Vec<usize> = (0..=body.len())
            .filter(|&len| is_whole(&body[..len], &mut read))
            .collect();
        assert_eq!((whole, read), (vec![8, 13], 13));
        assert!(is_whole(&[1, 0, 0, 0, 9], &mut 0), "compressed");
    }

    proptest! {
        #[test]
        fn framed_messages_are_read_back(messages: Vec<Vec<u8>>) {
            let body: Vec<u8> = messages.iter().flat_map(|one| frame(one).unwrap()).collect();
            let read: Result<Vec<&[u8]>, FrameError> = unframe(&body).collect();
            prop_assert_eq!(read.unwrap(), messages);
        }

        #[test]
        fn a_body_that_was_cut_is_refused(message: Vec<u8>, cut in 1_usize..5) {
            let body = frame(&message).unwrap();
            let cut = &body[..body.len() - cut];
            let read: Vec<_> = unframe(cut).collect();
            let expected: &[_] = match cut.is_empty() {
                true => &[],
                false => &[Err(FrameError::Truncated)],
            };
            prop_assert_eq!(read, expected);
        }
    }

    #[test]
    fn a_compressed_message_is_refused() {
        let read: Vec<_> = unframe(&[1, 0, 0, 0, 0]).collect();
        assert_eq!(read, [Err(FrameError::Compressed)]);
    }
}
