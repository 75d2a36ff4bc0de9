//! Whether a server accepts TLS 1.0 or 1.1: sends a ClientHello of that version and reads the first
//! record.

use intact_ledger::TlsVersion;
use intact_ledger::server_profile::OldTls;
use intact_wire::tls::{ContentType, RecordReader, ServerHello, write_old_client_hello};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// The timeout of each step.
const PATIENCE: Duration = Duration::from_secs(3);
/// The handshake type of ServerHello (RFC 8446 section 4).
const SERVER_HELLO: u8 = 2;
/// The maximum of bytes read.
const LONGEST: usize = 32 * 1024;

/// Connects for an offer.
pub(crate) fn connect(peer: SocketAddr) -> io::Result<TcpStream> {
    TcpStream::connect_timeout(&peer, PATIENCE)
}

/// Offers one version to a server. `random` is the random of the ClientHello.
pub(crate) fn offer(
    stream: TcpStream,
    server_name: Option<&str>,
    version: TlsVersion,
    random: [u8; 32],
) -> OldTls {
    let number = if version == TlsVersion::Tls10 {
        0x0301
    } else {
        0x0302
    };
    let mut hello = Vec::new();
    write_old_client_hello(number, server_name, random, &mut hello);
    let (accepted, detail) = match first_words(stream, &hello) {
        Ok(FirstRecord::Hello(chosen)) if chosen == number => (Some(true), None),
        Ok(FirstRecord::Hello(chosen)) => (
            Some(false),
            Some(format!("it chose version 0x{chosen:04x} instead")),
        ),
        Ok(FirstRecord::Alert(description)) => (Some(false), Some(words(description))),
        Ok(FirstRecord::Nothing) => (Some(false), Some("it closed the connection".to_owned())),
        Ok(FirstRecord::Nonsense) => (Some(false), Some("its response is not TLS".to_owned())),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            (None, Some("no answer in time".to_owned()))
        }
        Err(error) if error.kind() == ErrorKind::ConnectionReset => {
            (Some(false), Some("it reset the connection".to_owned()))
        }
        Err(error) => (None, Some(error.to_string())),
    };
    OldTls {
        version,
        accepted,
        detail,
    }
}

/// The first record of a server.
enum FirstRecord {
    Hello(u16),
    Alert(u8),
    Nothing,
    Nonsense,
}

fn first_words(mut stream: TcpStream, hello: &[u8]) -> io::Result<FirstRecord> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    stream.write_all(hello)?;
    let mut reader = RecordReader::default();
    let mut buffer = [0; 4096];
    let mut read = 0;
    while read < LONGEST {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(FirstRecord::Nothing);
        }
        read += count;
        let Ok(step) = reader.read(&buffer[..count]) else {
            return Ok(FirstRecord::Nonsense);
        };
        let Some(record) = step.event else { continue };
        return Ok(match (record.content, record.payload) {
            (ContentType::Alert, [_, description, ..]) => FirstRecord::Alert(*description),
            (ContentType::Handshake, [SERVER_HELLO, a, b, c, body @ ..]) => {
                let length = u32::from_be_bytes([0, *a, *b, *c]) as usize;
                match ServerHello::parse(&body[..length.min(body.len())]) {
                    Ok(hello) => FirstRecord::Hello(hello.version()),
                    Err(_) => FirstRecord::Nonsense,
                }
            }
            _ => FirstRecord::Nonsense,
        });
    }
    Ok(FirstRecord::Nonsense)
}

/// The name of an alert (RFC 8446 section 6), or its number.
fn words(description: u8) -> String {
    let name = match description {
        40 => "handshake_failure",
        70 => "protocol_version",
        71 => "insufficient_security",
        80 => "internal_error",
        86 => "inappropriate_fallback",
        112 => "unrecognized_name",
        _ => return format!("alert {description}"),
    };
    format!("alert {name}")
}
