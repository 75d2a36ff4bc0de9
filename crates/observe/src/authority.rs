//! The names in `Host`, `:authority` and TLS server names, as host and port.

use std::sync::Arc;

/// The longest DNS name, in bytes (RFC 1035 section 2.3.4).
const MAX_HOST: usize = 253;

/// An authority (RFC 3986 section 3.2) as host and port. The host is in lower case, without
/// userinfo and brackets. `None` for bytes that are no host.
pub fn split_authority(authority: &[u8]) -> Option<(Arc<str>, Option<u16>)> {
    let text = std::str::from_utf8(authority).ok()?;
    let text = text.rsplit('@').next().unwrap_or(text);
    let (host, port) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => match text.rsplit_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let is_clean = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:".contains(&byte);
    if host.is_empty() || host.len() > MAX_HOST || !host.bytes().all(is_clean) {
        return None;
    }
    let port = match port {
        Some(port) => Some(port.parse().ok()?),
        None => None,
    };
    Some((host.to_ascii_lowercase().into(), port))
}

/// The host of an authority or a server name, see [`split_authority`].
pub fn host_of(authority: &[u8]) -> Option<Arc<str>> {
    split_authority(authority).map(|(host, _)| host)
}

/// Whether a target is in absolute form (RFC 9112 section 3.2.2), which a client sends to a proxy.
pub(crate) fn is_absolute_form(target: &[u8]) -> bool {
    target.starts_with(b"http://") || target.starts_with(b"https://")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_split_into_host_and_port() {
        let split = |text: &str| {
            split_authority(text.as_bytes()).map(|(host, port)| (host.to_string(), port))
        };
        assert_eq!(split("A.example"), Some(("a.example".to_owned(), None)));
        assert_eq!(split("a:81"), Some(("a".to_owned(), Some(81))));
        assert_eq!(split("[::1]:8080"), Some(("::1".to_owned(), Some(8080))));
        assert_eq!(split("[::1]"), Some(("::1".to_owned(), None)));
        assert_eq!(split("me:pw@a:1"), Some(("a".to_owned(), Some(1))));
        for none in ["a:port", "a b", "", "a<b>", ":80"] {
            assert_eq!(split(none), None, "{none}");
        }
    }
}
