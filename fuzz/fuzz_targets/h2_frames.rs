//! Frames, whole and in pieces: the same frames and the same error, and no panic.
//! The first byte chooses the length of the pieces.

#![no_main]

use intact_wire::h2::{Error, Frame, FrameReader, Limits, Settings};
use libfuzzer_sys::fuzz_target;

fn read(stream: &[u8], piece: usize) -> (Vec<String>, Option<Error>) {
    let limits = Limits {
        frame: 1024,
        block: 512,
        continuations: 4,
    };
    let mut reader = FrameReader::mid_stream(limits);
    let (mut seen, mut flow) = (Vec::new(), 0);
    for mut input in stream.chunks(piece) {
        loop {
            let step = match reader.read(input) {
                Ok(step) => step,
                Err(error) => return (seen, Some(error)),
            };
            input = &input[step.consumed..];
            match step.event {
                None => break,
                Some(Frame::Data(data)) => {
                    flow += data.flow;
                    if data.complete {
                        seen.push(format!("data {} {flow} {}", data.stream, data.end_stream));
                        flow = 0;
                    }
                }
                Some(Frame::Settings(payload)) => {
                    let _ = Settings::default().apply(payload);
                    seen.push(format!("settings {}", payload.count()));
                }
                Some(frame) => seen.push(format!("{frame:?}")),
            }
        }
    }
    (seen, None)
}

fuzz_target!(|data: &[u8]| {
    let Some((&how, stream)) = data.split_first() else {
        return;
    };
    let whole = read(stream, stream.len().max(1));
    assert_eq!(read(stream, usize::from(how) + 1), whole);
});
