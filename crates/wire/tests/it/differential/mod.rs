//! The readers of this crate against independent ones: httparse and hyper, httlib-hpack, rustls. Each comparison takes any bytes, so
//! that the fuzz targets of the same names run it too. Where the two sides differ on purpose, the difference is a [`Verdict::Listed`]
//! with its reason; every other difference is an error.

pub(crate) mod hpack;
pub(crate) mod http1_heads;
pub(crate) mod http1_messages;
pub(crate) mod tls;

#[cfg(test)]
mod cases;

/// How two readers of the same bytes compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Both read the same, or both refuse.
    Same,
    /// They differ, and this is why: the RFC leaves it open, or the other side is wrong by it.
    Listed(&'static str),
}

/// A difference that no reason explains.
#[derive(Debug)]
pub(crate) struct Disagreement(pub(crate) String);
