//! Which host a request names: `Host` in HTTP/1 (RFC 9112 section 3.2), `:authority` or `host` in
//! HTTP/2 (RFC 9113 section 8.3.1).

use std::net::{IpAddr, Ipv6Addr};

/// The host that a request names, in the case in which it came; absent where it names none. Or why
/// the request has to be refused.
pub(crate) type RequestHost<'a> = Result<Option<&'a str>, &'static str>;

/// Reads the values of all `Host` fields of a request. `needed`: one without is refused.
pub(crate) fn of_fields<'a>(
    mut values: impl Iterator<Item = &'a [u8]>,
    needed: bool,
) -> RequestHost<'a> {
    match (values.next(), values.next()) {
        (None, _) if needed => Err("a request needs a Host\n"),
        (None, _) => Ok(None),
        (Some(value), None) => host_of(value).map(Some).ok_or("that is no Host\n"),
        (Some(_), Some(_)) => Err("a request has one Host\n"),
    }
}

/// The host of `uri-host [":" port]` (RFC 9110 section 7.2); nothing where it is none.
fn host_of(value: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(value).ok()?;
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => {
            let (inner, port) = rest.split_once(']')?;
            inner.parse::<Ipv6Addr>().ok()?;
            (&text[..inner.len() + 2], port)
        }
        None => {
            let end = text.find(':').unwrap_or(text.len());
            (&text[..end], &text[end..])
        }
    };
    let is_port = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some("") => true,
        Some(digits) => {
            digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.parse::<u16>().is_ok()
        }
    };
    (is_port && (host.starts_with('[') || is_name(host))).then_some(host)
}

/// Whether it is a registered name or an IPv4 address (RFC 3986 section 3.2.2). An empty one is
/// allowed.
fn is_name(host: &str) -> bool {
    let mut bytes = host.bytes();
    while let Some(byte) = bytes.next() {
        let is_fine = match byte {
            b'%' => {
                let mut is_hex = || bytes.next().is_some_and(|digit| digit.is_ascii_hexdigit());
                is_hex() && is_hex()
            }
            _ => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte),
        };
        if !is_fine {
            return false;
        }
    }
    true
}

/// Whether a host is this server by a name that no other site can have: a name or an address of the
/// loopback, the address that was connected to, or one of `names`. A page of another site reaches
/// this server under that site's name, however it resolves.
pub(crate) fn is_ours(host: &str, local: Option<IpAddr>, names: &[String]) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'));
    if let Ok(address) = bare.unwrap_or(host).parse::<IpAddr>() {
        let address = address.to_canonical();
        return address.is_loopback() || local.is_some_and(|local| local.to_canonical() == address);
    }
    let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    host == "localhost"
        || host.ends_with(".localhost")
        || names.iter().any(|name| name.eq_ignore_ascii_case(&host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(values: &[&'static str]) -> RequestHost<'static> {
        of_fields(values.iter().map(|value| value.as_bytes()), true)
    }

    #[test]
    fn a_host_is_a_name_or_an_address_with_or_without_a_port() {
        for (value, host) in [
            ("a.test", "a.test"),
            ("A.test:80", "A.test"),
            ("a:", "a"),
            ("", ""),
            ("127.0.0.1:8080", "127.0.0.1"),
            ("[::1]:443", "[::1]"),
            ("[::1]", "[::1]"),
            ("a_b~c%20", "a_b~c%20"),
        ] {
            assert_eq!(read(&[value]), Ok(Some(host)), "{value}");
        }
        for bad in [
            "a b",
            "a/b",
            "a@b",
            "a\"b",
            "a:b",
            "a:80:80",
            "a:-1",
            "a:+1",
            "a:65536",
            "[::1",
            "[a]",
            "[::1]x",
            "a%2",
            "a%zz",
            "http://a",
            "a,b\u{e9}",
            "a?b",
            "a#b",
            "<a>",
            "a\\b",
        ] {
            assert!(read(&[bad]).is_err(), "{bad}");
        }
    }

    #[test]
    fn one_host_is_needed_and_two_are_refused() {
        assert!(read(&[]).is_err());
        assert!(read(&["a", "a"]).is_err());
        assert_eq!(of_fields(std::iter::empty(), false), Ok(None));
    }

    #[test]
    fn only_names_that_no_other_site_can_have_are_ours() {
        let local = Some("192.0.2.7".parse().unwrap());
        let names = ["rig.test".to_owned()];
        for ours in [
            "localhost",
            "LOCALHOST.",
            "a.localhost",
            "127.0.0.1",
            "127.9.9.9",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "192.0.2.7",
            "Rig.test",
        ] {
            assert!(is_ours(ours, local, &names), "{ours}");
        }
        for other in [
            "",
            "evil.test",
            "localhost.evil.test",
            "notlocalhost",
            "192.0.2.8",
            "[2001:db8::1]",
            "0.0.0.0",
        ] {
            assert!(!is_ours(other, local, &names), "{other}");
        }
    }
}
