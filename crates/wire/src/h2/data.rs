//! A DATA frame that is being read (RFC 9113 section 6.1): payload and padding, passed on as they
//! arrive.

use super::error::Error;
use super::flag;
use super::frame::{Head, PADDING};

/// The remaining bytes of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct DataFrame {
    pub(super) stream: u32,
    pub(super) end_stream: bool,
    /// The pad length has not arrived; it counts as payload until then.
    pad_length_due: bool,
    payload: u32,
    padding: u32,
}

/// A part of the payload, as a range of the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part {
    pub(super) from: usize,
    pub(super) to: usize,
    /// Bytes that count against the flow-control windows, including pad length and padding.
    pub(super) flow: u32,
}

impl DataFrame {
    pub(super) fn new(head: &Head) -> Self {
        Self {
            stream: head.stream,
            end_stream: head.has(flag::END_STREAM),
            pad_length_due: head.has(flag::PADDED),
            payload: head.length,
            padding: 0,
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        !self.pad_length_due && self.payload == 0 && self.padding == 0
    }

    /// Takes the available bytes from `at` on, and moves `at` after them.
    pub(super) fn advance(&mut self, input: &[u8], at: &mut usize) -> Result<Part, Error> {
        let start = *at;
        if self.pad_length_due {
            if self.payload == 0 {
                return Err(PADDING);
            }
            if let Some(&padding) = input.get(*at) {
                *at += 1;
                self.pad_length_due = false;
                self.padding = u32::from(padding);
                self.payload = (self.payload - 1)
                    .checked_sub(self.padding)
                    .ok_or(PADDING)?;
            }
        }
        let mut take = |left: &mut u32| {
            let taken = (input.len() - *at).min(*left as usize);
            *left -= taken as u32;
            *at += taken;
            (*at - taken, *at)
        };
        let (from, to) = take(&mut self.payload);
        take(&mut self.padding);
        Ok(Part {
            from,
            to,
            flow: (*at - start) as u32,
        })
    }
}
