//! The instructions on QPACK's two streams (RFC 9204 sections 4.3 and 4.4). Without a dynamic table
//! few of them are allowed, and none has an effect.

use super::error::Error;

/// Reads the peer's encoder stream: only a capacity of 0 may be set.
#[derive(Debug, Clone, Copy, Default)]
pub struct EncoderInstructions;

impl EncoderInstructions {
    /// Checks the next bytes of the stream.
    ///
    /// # Errors
    /// If the encoder uses a dynamic table.
    pub fn read(&mut self, input: &[u8]) -> Result<(), Error> {
        // "Set Dynamic Table Capacity" with the value 0 is the single byte 0x20
        match input.iter().all(|&byte| byte == 0x20) {
            true => Ok(()),
            false => Err(Error::EncoderInstruction),
        }
    }
}

/// Reads the peer's decoder stream: only the cancellation of streams is allowed.
#[derive(Debug, Clone, Copy, Default)]
pub struct DecoderInstructions {
    /// Inside the number of a stream.
    is_inside: bool,
}

impl DecoderInstructions {
    /// Checks the next bytes of the stream.
    ///
    /// # Errors
    /// If the decoder acknowledges a block or an entry, which no one sent.
    pub fn read(&mut self, input: &[u8]) -> Result<(), Error> {
        for &byte in input {
            if self.is_inside {
                self.is_inside = byte & 0x80 != 0;
                continue;
            }
            match byte {
                0x7f => self.is_inside = true,
                0x40..0x7f => {}
                _ => return Err(Error::DecoderInstruction),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_instructions_without_a_table_are_allowed() {
        assert_eq!(EncoderInstructions.read(&[0x20, 0x20]), Ok(()));
        for bad in [0x21, 0x3f, 0x80, 0xc0, 0x40, 0x00] {
            let read = EncoderInstructions.read(&[bad]);
            assert_eq!(read, Err(Error::EncoderInstruction), "{bad:x}");
        }
        let mut decoder = DecoderInstructions::default();
        assert_eq!(decoder.read(&[0x44, 0x7f, 0x81]), Ok(()));
        assert_eq!(decoder.read(&[0x01, 0x48]), Ok(()), "0x01 ends the number");
        for bad in [0x01, 0x80, 0x84, 0x3f] {
            let read = DecoderInstructions::default().read(&[bad]);
            assert_eq!(read, Err(Error::DecoderInstruction), "{bad:x}");
        }
    }
}
