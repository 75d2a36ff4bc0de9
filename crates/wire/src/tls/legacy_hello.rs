//! A ClientHello of TLS 1.0 or 1.1, to test whether a server still accepts these versions. Nothing
//! else of them is supported.

/// Suites of servers with these versions: ECDHE, DHE and RSA key exchange with AES and 3DES in CBC
/// mode, all with SHA-1.
const SUITES: [u16; 11] = [
    0xc009, 0xc00a, 0xc013, 0xc014, 0x0033, 0x0039, 0x002f, 0x0035, 0xc012, 0x000a,
    // not a suite: secure renegotiation is supported (RFC 5746 section 3.3)
    0x00ff,
];

/// Appends a record with a ClientHello that offers `version` (0x0301 or 0x0302) at most. A
/// `server_name` of more than 255 bytes is omitted.
pub fn write_old_client_hello(
    version: u16,
    server_name: Option<&str>,
    random: [u8; 32],
    out: &mut Vec<u8>,
) {
    let mut extensions = Vec::new();
    if let Some(name) = server_name.filter(|name| name.len() <= 255) {
        let length = name.len() as u16;
        let mut value = Vec::new();
        push(&mut value, &[length + 3]);
        value.push(0);
        push(&mut value, &[length]);
        value.extend_from_slice(name.as_bytes());
        extension(&mut extensions, 0, &value);
    }
    // groups secp256r1, secp384r1, secp521r1; points uncompressed
    extension(&mut extensions, 10, &[0, 6, 0, 23, 0, 24, 0, 25]);
    extension(&mut extensions, 11, &[1, 0]);
    let mut body = Vec::new();
    push(&mut body, &[version]);
    body.extend_from_slice(&random);
    body.push(0);
    push(&mut body, &[SUITES.len() as u16 * 2]);
    push(&mut body, &SUITES);
    body.extend_from_slice(&[1, 0]);
    push(&mut body, &[extensions.len() as u16]);
    body.extend_from_slice(&extensions);
    out.push(22);
    push(out, &[0x0301, body.len() as u16 + 4]);
    out.extend_from_slice(&[1, 0]);
    push(out, &[body.len() as u16]);
    out.extend_from_slice(&body);
}

fn push(out: &mut Vec<u8>, numbers: &[u16]) {
    for number in numbers {
        out.extend_from_slice(&number.to_be_bytes());
    }
}

fn extension(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    push(out, &[kind, value.len() as u16]);
    out.extend_from_slice(value);
}

#[cfg(test)]
mod tests {
    use super::super::{ClientHello, ContentType, RecordReader};
    use super::*;

    #[test]
    fn the_hello_reads_back() {
        for (version, name) in [(0x0301, Some("a.example")), (0x0302, None)] {
            let mut out = Vec::new();
            write_old_client_hello(version, name, [7; 32], &mut out);
            let mut reader = RecordReader::default();
            let step = reader.read(&out).unwrap();
            assert_eq!(step.consumed, out.len());
            let record = step.event.unwrap();
            assert_eq!(record.content, ContentType::Handshake);
            let hello = ClientHello::parse(&record.payload[4..]).unwrap();
            assert_eq!(hello.highest_version(), version);
            assert_eq!(hello.server_name.as_deref(), name);
            assert_eq!(hello.cipher_suites, SUITES);
        }
    }
}
