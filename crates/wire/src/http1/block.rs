//! Collects one block of lines (a header section, a trailer section) up to its empty line, for any
//! split, and remembers it.
//!
//! Knows line ends only, no grammar. Searches every byte once, for pieces of any size.

use memchr::memchr_iter;

use super::error::{Error, Part};

/// The current block, and the last complete one.
#[derive(Debug)]
pub(super) struct Block {
    complete: Vec<u8>,
    partial: Vec<u8>,
    line: Line,
    part: Part,
    limit: usize,
}

/// State of the search for the empty line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line {
    Start,
    StartCr,
    Inside,
}

/// What [`Block::read`] found, with the number of consumed bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read {
    /// The block is incomplete.
    More(usize),
    /// The block is complete and not the same as the one before.
    New(usize),
    /// The block is complete and identical to the one before.
    Same(usize),
}

impl Block {
    pub(super) fn new(part: Part, limit: usize) -> Self {
        Self {
            complete: Vec::new(),
            partial: Vec::new(),
            line: Line::Start,
            part,
            limit,
        }
    }

    /// The last complete block, including its empty line.
    #[inline]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.complete
    }

    /// The bytes of an incomplete block.
    #[inline]
    pub(super) fn partial(&self) -> &[u8] {
        &self.partial
    }

    #[inline]
    pub(super) fn read(&mut self, input: &[u8]) -> Result<Read, Error> {
        if self.partial.is_empty() && !self.complete.is_empty() && input.starts_with(&self.complete)
        {
            return Ok(Read::Same(self.complete.len()));
        }
        let room = self.limit - self.partial.len();
        let within = &input[..input.len().min(room)];
        let Some(end) = self.find_end(within) else {
            if within.len() == room {
                return Err(Error::TooLong {
                    part: self.part,
                    limit: self.limit,
                });
            }
            self.partial.extend_from_slice(input);
            return Ok(Read::More(input.len()));
        };
        self.line = Line::Start;
        self.partial.extend_from_slice(&input[..end]);
        let same = self.partial == self.complete;
        std::mem::swap(&mut self.partial, &mut self.complete);
        self.partial.clear();
        Ok(if same {
            Read::Same(end)
        } else {
            Read::New(end)
        })
    }

    /// The position after the empty line; continues where the last call stopped.
    fn find_end(&mut self, input: &[u8]) -> Option<usize> {
        match (self.line, input) {
            (Line::Start | Line::StartCr, [b'\n', ..]) => return Some(1),
            (Line::Start, [b'\r', b'\n', ..]) => return Some(2),
            (Line::Start, [b'\r']) => {
                self.line = Line::StartCr;
                return None;
            }
            (_, []) => return None,
            _ => {}
        }
        self.line = Line::Inside;
        for newline in memchr_iter(b'\n', input) {
            let next = newline + 1;
            match input[next..] {
                [b'\n', ..] => return Some(next + 1),
                [b'\r', b'\n', ..] => return Some(next + 2),
                [b'\r'] => self.line = Line::StartCr,
                [] => self.line = Line::Start,
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_same_end_at_every_split() {
        let whole = b"a: b\r\nc: d\r\n\r\nrest";
        for split in 0..whole.len() {
            let mut block = Block::new(Part::Head, 1024);
            let mut used = 0;
            for piece in [&whole[..split], &whole[split..]] {
                match block.read(piece).unwrap() {
                    Read::More(n) => used += n,
                    Read::New(n) => {
                        used += n;
                        break;
                    }
                    Read::Same(_) => panic!("nothing came before"),
                }
            }
            assert_eq!(used, whole.len() - 4, "split at {split}");
            assert_eq!(block.bytes(), &whole[..used]);
        }
    }

    #[test]
    fn accepts_a_block_of_exactly_the_limit_and_no_byte_more() {
        let mut block = Block::new(Part::Head, 6);
        assert_eq!(block.read(b"ab\r\n\r\n"), Ok(Read::New(6)));
        let error = Error::TooLong {
            part: Part::Head,
            limit: 6,
        };
        assert_eq!(block.read(b"abc\r\n\r\n"), Err(error));
    }

    #[test]
    fn recognises_a_repeated_block_complete_or_in_pieces() {
        let mut block = Block::new(Part::Head, 1024);
        assert_eq!(block.read(b"a\n\nnext"), Ok(Read::New(3)));
        assert_eq!(block.read(b"a\n\nnext"), Ok(Read::Same(3)));
        assert_eq!(block.read(b"a"), Ok(Read::More(1)));
        assert_eq!(block.read(b"\n\nnext"), Ok(Read::Same(2)));
        assert_eq!(block.read(b"b\n\nnext"), Ok(Read::New(3)));
    }
}
