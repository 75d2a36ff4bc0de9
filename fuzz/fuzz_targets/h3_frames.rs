//! Frames of HTTP/3, whole and in pieces: the same frames, the same body and the same error, and no
//! panic. The first byte chooses the length of the pieces.

#![no_main]

use intact_wire::h3::{Error, Frame, FrameReader};
use libfuzzer_sys::fuzz_target;

const LONGEST_BLOCK: usize = 512;

fn read(stream: &[u8], piece: usize) -> (Vec<String>, Result<(), Error>) {
    let mut reader = FrameReader::new(LONGEST_BLOCK);
    let (mut seen, mut body, mut overheads) = (Vec::new(), 0, 0);
    for mut input in stream.chunks(piece) {
        loop {
            let step = match reader.read(input) {
                Ok(step) => step,
                Err(error) => return (seen, Err(error)),
            };
            input = &input[step.consumed..];
            match step.event {
                None => break,
                Some(Frame::Data { bytes, overhead }) => {
                    body += bytes.len();
                    overheads += overhead;
                    continue;
                }
                Some(Frame::Settings(payload)) => {
                    seen.push(format!("settings {}", payload.count()));
                }
                Some(Frame::Headers { block, .. }) => {
                    assert!(block.len() <= LONGEST_BLOCK);
                    seen.push(format!("{body} {overheads} headers {block:x?}"));
                }
                Some(frame) => seen.push(format!("{body} {overheads} {frame:?}")),
            }
        }
    }
    seen.push(format!("{body} {overheads}"));
    (seen, reader.finish())
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, stream)) = data.split_first() else {
        return;
    };
    let whole = read(stream, stream.len().max(1));
    assert_eq!(read(stream, usize::from(how) + 1), whole);
});
