//! SETTINGS (RFC 9113 section 6.5): entries as sent, and their effect on what a peer accepts.

use super::error::Error;
use super::hpack::{DEFAULT_TABLE_SIZE, Encoder};

/// Largest flow-control window (RFC 9113 section 6.9.1), in bytes.
const LARGEST_WINDOW: i64 = 0x7fff_ffff;

/// Adds to a flow-control window; SETTINGS may also make it smaller.
///
/// # Errors
/// If it becomes too large.
pub fn widen(window: &mut i64, change: i64) -> Result<(), Error> {
    *window += change;
    match *window > LARGEST_WINDOW {
        true => Err(Error::FlowControl("a flow-control window above 2^31 - 1")),
        false => Ok(()),
    }
}

/// The settings that this crate reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum Setting {
    /// SETTINGS_HEADER_TABLE_SIZE: the sender's dynamic table for decoding, in bytes.
    HeaderTableSize = 0x1,
    /// SETTINGS_ENABLE_PUSH.
    EnablePush = 0x2,
    /// SETTINGS_MAX_CONCURRENT_STREAMS.
    MaxConcurrentStreams = 0x3,
    /// SETTINGS_INITIAL_WINDOW_SIZE, in bytes.
    InitialWindowSize = 0x4,
    /// SETTINGS_MAX_FRAME_SIZE, in bytes.
    MaxFrameSize = 0x5,
    /// SETTINGS_MAX_HEADER_LIST_SIZE, in bytes; advisory.
    MaxHeaderListSize = 0x6,
    /// SETTINGS_ENABLE_CONNECT_PROTOCOL (RFC 8441).
    EnableConnectProtocol = 0x8,
    /// SETTINGS_NO_RFC7540_PRIORITIES (RFC 9218).
    NoRfc7540Priorities = 0x9,
}

/// The entries of one SETTINGS frame as (identifier, value), in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SettingsPayload<'a> {
    bytes: &'a [u8],
}

impl<'a> SettingsPayload<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }
}

impl Iterator for SettingsPayload<'_> {
    type Item = (u16, u32);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[a, b, c, d, e, f], rest) = self.bytes.split_first_chunk()?;
        self.bytes = rest;
        Some((u16::from_be_bytes([a, b]), u32::from_be_bytes([c, d, e, f])))
    }
}

/// The limits of one endpoint for what it receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Dynamic table in bytes.
    pub header_table_size: u32,
    /// `None` means no limit.
    pub max_concurrent_streams: Option<u32>,
    /// In bytes, at most 2^31 - 1.
    pub initial_window_size: u32,
    /// In bytes, 2^14 to 2^24 - 1.
    pub max_frame_size: u32,
}

impl Default for Settings {
    /// The values before the first SETTINGS frame.
    fn default() -> Self {
        Self {
            header_table_size: DEFAULT_TABLE_SIZE,
            max_concurrent_streams: None,
            initial_window_size: super::DEFAULT_WINDOW,
            max_frame_size: super::DEFAULT_MAX_FRAME_SIZE,
        }
    }
}

impl Settings {
    /// Applies the entries of one frame and ignores unknown ones. A value out of range is fatal
    /// (RFC 9113 section 6.5.2).
    pub fn apply(&mut self, payload: SettingsPayload<'_>) -> Result<(), Error> {
        for (id, value) in payload {
            match (id, value) {
                (0x1, _) => self.header_table_size = value,
                (0x2, 2..) => {
                    return Err(Error::Protocol("SETTINGS_ENABLE_PUSH other than 0 or 1"));
                }
                (0x3, _) => self.max_concurrent_streams = Some(value),
                (0x4, ..=0x7fff_ffff) => self.initial_window_size = value,
                (0x4, _) => {
                    return Err(Error::FlowControl(
                        "SETTINGS_INITIAL_WINDOW_SIZE above 2^31 - 1",
                    ));
                }
                (0x5, 0x4000..=0xff_ffff) => self.max_frame_size = value,
                (0x5, _) => {
                    return Err(Error::Protocol(
                        "SETTINGS_MAX_FRAME_SIZE outside 2^14 to 2^24 - 1",
                    ));
                }
                (0x8, 2..) => {
                    return Err(Error::Protocol(
                        "SETTINGS_ENABLE_CONNECT_PROTOCOL other than 0 or 1",
                    ));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Applies the entries of one frame to what is sent: the table of the encoder follows. Returns
    /// the change of the streams' windows.
    ///
    /// # Errors
    /// Those of [`Settings::apply`].
    pub fn apply_to(
        &mut self,
        encoder: &mut Encoder,
        payload: SettingsPayload<'_>,
    ) -> Result<i64, Error> {
        let before = *self;
        self.apply(payload)?;
        if self.header_table_size != before.header_table_size {
            // a smaller table than the peer allows is allowed
            encoder.resize(self.header_table_size.min(DEFAULT_TABLE_SIZE));
        }
        Ok(i64::from(self.initial_window_size) - i64::from(before.initial_window_size))
    }
}
