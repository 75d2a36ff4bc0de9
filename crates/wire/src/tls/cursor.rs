//! Reads the presentation language of TLS (RFC 8446 section 3): big-endian numbers, vectors with a
//! length before them.

/// Unread bytes. Each method takes bytes from the front, or takes none and returns `None`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor<'a>(pub(crate) &'a [u8]);

impl<'a> Cursor<'a> {
    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(|[byte]| byte)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    /// A vector with a length of one byte.
    pub(crate) fn vec8(&mut self) -> Option<Self> {
        let len = self.u8()?;
        self.bytes(usize::from(len)).map(Cursor)
    }

    /// A vector with a length of two bytes.
    pub(crate) fn vec16(&mut self) -> Option<Self> {
        let len = self.u16()?;
        self.bytes(usize::from(len)).map(Cursor)
    }

    /// A vector with a length of three bytes.
    pub(crate) fn vec24(&mut self) -> Option<Self> {
        let [a, b, c] = self.array()?;
        self.bytes(u32::from_be_bytes([0, a, b, c]) as usize)
            .map(Cursor)
    }

    /// The rest as numbers; an odd byte at the end is ignored.
    pub(crate) fn u16s(self) -> Option<Vec<u16>> {
        let (pairs, odd) = self.0.as_chunks::<2>();
        odd.is_empty()
            .then(|| pairs.iter().map(|&pair| u16::from_be_bytes(pair)).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
