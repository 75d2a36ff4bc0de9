//! A buffer that moves over a stream: the next bytes as one slice, without copying them.

use std::io::{self, Read};

/// Reads ahead in large pieces and returns slices.
pub(crate) struct ReadBuffer<R> {
    inner: R,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Number of bytes that were taken.
    taken: u64,
}

/// How a line ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineEnd {
    /// The stream ended before the line did.
    pub(crate) is_cut: bool,
    /// The line was longer than the limit, and was dropped.
    pub(crate) is_too_long: bool,
}

/// Number of bytes that are read ahead.
const AHEAD: usize = 1 << 20;
/// Size of the first read in bytes; most inputs are small.
const FIRST: usize = 64 << 10;

impl<R: Read> ReadBuffer<R> {
    /// A buffer over `inner`.
    pub(crate) fn new(inner: R) -> ReadBuffer<R> {
        ReadBuffer {
            inner,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            taken: 0,
        }
    }

    /// Number of bytes that were taken.
    pub(crate) fn taken(&self) -> u64 {
        self.taken
    }

    /// Makes at least `len` bytes available if the stream has them. Returns how many there are.
    pub(crate) fn fill(&mut self, len: usize) -> io::Result<usize> {
        while self.end - self.start < len {
            if self.end == self.buffer.len() {
                self.buffer.copy_within(self.start..self.end, 0);
                self.end -= self.start;
                self.start = 0;
                // grows with the bytes that were read, so a false length costs nothing
                let is_full = self.end == self.buffer.len();
                if is_full || self.buffer.len() < AHEAD {
                    let more = self.buffer.len().clamp(FIRST, AHEAD);
                    self.buffer.resize(self.buffer.len() + more, 0);
                }
            }
            let read = match self.inner.read(&mut self.buffer[self.end..]) {
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if read == 0 {
                break;
            }
            self.end += read;
        }
        Ok(self.end - self.start)
    }

    /// The bytes that are available without another read.
    pub(crate) fn available(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes the next `len` bytes; `None`, without taking any, if the stream ends before them.
    pub(crate) fn pull(&mut self, len: usize) -> io::Result<Option<&[u8]>> {
        if self.fill(len)? < len {
            return Ok(None);
        }
        let from = self.start;
        self.take(len);
        Ok(Some(&self.buffer[from..from + len]))
    }
}

impl<R: Read> ReadBuffer<R> {
    /// The next line, without its end; an empty one if it is longer than `longest`. `None` at the
    /// end, or after a read error.
    pub(crate) fn line(&mut self, longest: usize) -> Option<(&[u8], LineEnd)> {
        let mut searched = 0;
        let mut is_too_long = false;
        loop {
            let there = &self.buffer[self.start..self.end];
            let end = memchr::memchr(b'\n', &there[searched..]).map(|end| searched + end);
            let is_over = end.is_none() && {
                searched = there.len();
                !matches!(self.fill(searched + 1), Ok(len) if len > searched)
            };
            let len = end.unwrap_or(searched);
            is_too_long |= len > longest;
            if end.is_some() || is_over {
                let from = self.start;
                let taken = len + usize::from(end.is_some());
                self.take(taken);
                let end = LineEnd {
                    is_cut: is_over,
                    is_too_long,
                };
                let len = if is_too_long { 0 } else { len };
                let line = &self.buffer[from..from + len];
                return (taken > 0 || is_too_long).then_some((line, end));
            }
            if is_too_long {
                // its bytes are not needed
                self.take(searched);
                searched = 0;
            }
        }
    }

    fn take(&mut self, len: usize) {
        self.start += len;
        self.taken += len as u64;
    }
}

/// For readers that need a byte stream.
impl<R: Read> Read for ReadBuffer<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = self.fill(1)?.min(into.len());
        into[..len].copy_from_slice(&self.available()[..len]);
        self.take(len);
        Ok(len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_false_length_does_not_allocate() {
        let mut window = ReadBuffer::new(&b"short"[..]);
        assert!(window.pull(usize::MAX / 4).unwrap().is_none());
        assert!(window.buffer.len() <= 3 * AHEAD);
        assert_eq!(window.pull(5).unwrap(), Some(&b"short"[..]));
    }
}
