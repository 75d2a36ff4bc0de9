//! Writes frames to the caller's buffer (RFC 9113 section 6).
//!
//! Plain functions without checks: a server under test must be able to misbehave.

use super::error::ErrorCode;
use super::settings::Setting;
use super::{FRAME_HEADER_LEN, flag, kind};

/// Appends SETTINGS.
pub fn write_settings(out: &mut Vec<u8>, settings: &[(Setting, u32)]) {
    write_head(out, settings.len() * 6, kind::SETTINGS, 0, 0);
    for &(setting, value) in settings {
        out.extend_from_slice(&(setting as u16).to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends the acknowledgement of the peer's SETTINGS.
pub fn write_settings_ack(out: &mut Vec<u8>) {
    write_head(out, 0, kind::SETTINGS, flag::ACK, 0);
}

/// Appends a header block as HEADERS, and CONTINUATION where it exceeds the peer's `max_frame`
/// bytes (at least 1).
pub fn write_headers(
    out: &mut Vec<u8>,
    stream: u32,
    block: &[u8],
    end_stream: bool,
    max_frame: usize,
) {
    let (mut fragment, mut rest) = block.split_at(block.len().min(max_frame.max(1)));
    let (mut kind, mut flags) = (kind::HEADERS, if end_stream { flag::END_STREAM } else { 0 });
    loop {
        let last = if rest.is_empty() {
            flag::END_HEADERS
        } else {
            0
        };
        write_head(out, fragment.len(), kind, flags | last, stream);
        out.extend_from_slice(fragment);
        if rest.is_empty() {
            return;
        }
        (fragment, rest) = rest.split_at(rest.len().min(max_frame.max(1)));
        (kind, flags) = (kind::CONTINUATION, 0);
    }
}

/// Appends one DATA frame. The caller respects the peer's frame size and windows.
pub fn write_data(out: &mut Vec<u8>, stream: u32, payload: &[u8], end_stream: bool) {
    write_head(
        out,
        payload.len(),
        kind::DATA,
        if end_stream { flag::END_STREAM } else { 0 },
        stream,
    );
    out.extend_from_slice(payload);
}

/// Appends RST_STREAM.
pub fn write_reset(out: &mut Vec<u8>, stream: u32, code: ErrorCode) {
    write_head(out, 4, kind::RST_STREAM, 0, stream);
    out.extend_from_slice(&code.0.to_be_bytes());
}

/// Appends PING, or its answer.
pub fn write_ping(out: &mut Vec<u8>, ack: bool, payload: [u8; 8]) {
    write_head(out, 8, kind::PING, if ack { flag::ACK } else { 0 }, 0);
    out.extend_from_slice(&payload);
}

/// Appends GOAWAY.
pub fn write_go_away(out: &mut Vec<u8>, last_stream: u32, code: ErrorCode, debug: &[u8]) {
    write_head(out, 8 + debug.len(), kind::GOAWAY, 0, 0);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(debug);
}

/// Appends WINDOW_UPDATE for a stream, or for the connection if `stream` is 0.
pub fn write_window_update(out: &mut Vec<u8>, stream: u32, increment: u32) {
    write_head(out, 4, kind::WINDOW_UPDATE, 0, stream);
    out.extend_from_slice(&increment.to_be_bytes());
}

fn write_head(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    debug_assert!(length < 1 << 24, "a frame's length has 24 bits");
    let [_, a, b, c] = (length as u32).to_be_bytes();
    out.reserve(FRAME_HEADER_LEN + length);
    out.extend_from_slice(&[a, b, c, kind, flags]);
    out.extend_from_slice(&stream.to_be_bytes());
}
