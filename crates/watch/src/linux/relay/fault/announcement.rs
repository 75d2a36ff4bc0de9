//! Announces the end of a connection in a response of HTTP/1 (RFC 9112 section 9.6).

/// The response with `Connection: close` instead of what its header section says of the connection;
/// `None` where these bytes do not begin with a whole header section of a final response.
pub(super) fn with_close(bytes: &[u8]) -> Option<Vec<u8>> {
    let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")? + 2;
    let (head, rest) = bytes.split_at(end);
    let first = head.windows(2).position(|two| two == b"\r\n")? + 2;
    let (status_line, fields) = head.split_at(first);
    if !status_line.starts_with(b"HTTP/1.")
        || status_line.get(9).is_none_or(|hundreds| *hundreds == b'1')
    {
        return None;
    }
    let mut announced = status_line.to_vec();
    announced.extend_from_slice(b"Connection: close\r\n");
    for field in fields.split_inclusive(|byte| *byte == b'\n') {
        let name = field.split(|byte| *byte == b':').next().unwrap_or_default();
        let is_of_connection = [&b"connection"[..], b"keep-alive", b"proxy-connection"];
        if !is_of_connection
            .iter()
            .any(|one| name.eq_ignore_ascii_case(one))
        {
            announced.extend_from_slice(field);
        }
    }
    announced.extend_from_slice(rest);
    Some(announced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_close_is_announced_and_all_else_stays() {
        let response = b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nKeep-Alive: timeout=5\r\nContent-Length: 2\r\n\r\nok";
        let announced = with_close(response).unwrap();
        assert_eq!(
            announced,
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"
        );
    }

    #[test]
    fn no_part_of_a_head_and_no_interim_response_is_changed() {
        for bytes in [
            &b"HTTP/1.1 200 OK\r\nContent-Le"[..],
            b"HTTP/1.1 100 Continue\r\n\r\n",
            b"a body\r\n\r\n",
            b"",
        ] {
            assert_eq!(with_close(bytes), None, "{bytes:?}");
        }
    }
}
