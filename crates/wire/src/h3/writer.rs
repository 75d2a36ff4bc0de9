//! Writes frames to the caller's buffer.

use super::frame::StreamKind;
use super::kind;
use super::settings::Setting;

/// Appends a number of variable length (RFC 9000 section 16), at most 62 bits.
pub fn write_number(out: &mut Vec<u8>, value: u64) {
    match value {
        0..=0x3f => out.push(value as u8),
        0x40..=0x3fff => out.extend_from_slice(&(value as u16 | 0x4000).to_be_bytes()),
        0x4000..=0x3fff_ffff => out.extend_from_slice(&(value as u32 | 0x8000_0000).to_be_bytes()),
        _ => out.extend_from_slice(&(value | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// The length of a number of variable length in bytes.
pub fn number_len(value: u64) -> usize {
    match value {
        0..=0x3f => 1,
        0x40..=0x3fff => 2,
        0x4000..=0x3fff_ffff => 4,
        _ => 8,
    }
}

fn write_header(out: &mut Vec<u8>, frame_type: u64, length: usize) {
    write_number(out, frame_type);
    write_number(out, length as u64);
}

/// Appends the number that begins a unidirectional stream.
pub fn write_stream_kind(out: &mut Vec<u8>, stream: StreamKind) {
    write_number(out, stream.number());
}

/// The first bytes of a control stream without a dynamic table of QPACK, which no other stream has
/// to follow. `largest_list` is the largest header section that is accepted, in bytes.
pub fn control_stream(largest_list: usize) -> Vec<u8> {
    let mut out = Vec::new();
    write_stream_kind(&mut out, StreamKind::Control);
    let settings = [
        (Setting::QpackMaxTableCapacity, 0),
        (Setting::QpackBlockedStreams, 0),
        (Setting::MaxFieldSectionSize, largest_list as u64),
    ];
    write_settings(&mut out, &settings);
    out
}

/// Appends HEADERS.
pub fn write_headers(out: &mut Vec<u8>, block: &[u8]) {
    write_header(out, kind::HEADERS, block.len());
    out.extend_from_slice(block);
}

/// Appends the header of DATA with `length` bytes, which the caller appends.
pub fn write_data_header(out: &mut Vec<u8>, length: usize) {
    write_header(out, kind::DATA, length);
}

/// The length of the header of DATA with `length` bytes.
pub fn data_header_len(length: usize) -> usize {
    1 + number_len(length as u64)
}

/// Appends SETTINGS.
pub fn write_settings(out: &mut Vec<u8>, settings: &[(Setting, u64)]) {
    let mut payload = Vec::new();
    for &(setting, value) in settings {
        write_number(&mut payload, setting as u64);
        write_number(&mut payload, value);
    }
    write_header(out, kind::SETTINGS, payload.len());
    out.extend_from_slice(&payload);
}

/// Appends GOAWAY with the first request stream that is not processed.
pub fn write_go_away(out: &mut Vec<u8>, stream: u64) {
    write_header(out, kind::GOAWAY, number_len(stream));
    write_number(out, stream);
}

/// Appends a frame of another type.
pub fn write_unknown(out: &mut Vec<u8>, frame_type: u64, payload: &[u8]) {
    write_header(out, frame_type, payload.len());
    out.extend_from_slice(payload);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_rfc_9000_a_1() {
        let written = |value| {
            let mut out = Vec::new();
            write_number(&mut out, value);
            assert_eq!(out.len(), number_len(value));
            out
        };
        assert_eq!(
            written(151_288_809_941_952_652),
            [0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c]
        );
        assert_eq!(written(494_878_333), [0x9d, 0x7f, 0x3e, 0x7d]);
        assert_eq!(written(15_293), [0x7b, 0xbd]);
        assert_eq!(written(37), [0x25]);
    }
}
