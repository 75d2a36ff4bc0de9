//! Compares the readers of this crate with independent ones: httparse and hyper, httlib-hpack,
//! rustls.
//!
//! Each comparison accepts any bytes, so the fuzz targets of the same names run it, too. An
//! intended difference is a [`Verdict::Listed`] with its reason; every other difference is an
//! error.

pub(crate) mod hpack;
pub(crate) mod http1_heads;
pub(crate) mod http1_messages;
pub(crate) mod tls;

#[cfg(test)]
mod cases;

/// The result of comparing two readers of the same bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Both read the same, or both refuse.
    Same,
    /// They differ for this reason: the RFC leaves it open, or the other reader violates it.
    Listed(&'static str),
}

/// A difference without a listed reason.
#[derive(Debug)]
pub(crate) struct Disagreement(pub(crate) String);
