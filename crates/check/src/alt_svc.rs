//! The announcement of HTTP/3 in `Alt-Svc` (RFC 7838 section 3). Must not connect: the probe does.

use intact_client::ResponseInfo;

/// The host if it differs, and the UDP port.
type Endpoint = (Option<String>, u16);

/// The first `Alt-Svc` of a response that announces HTTP/3, and the endpoint.
pub(crate) fn announced(reply: &ResponseInfo) -> Option<(&str, Endpoint)> {
    let mut values = reply.all("alt-svc");
    values.find_map(|value| Some((value, http3(value)?)))
}

/// The endpoint that a value announces for HTTP/3. The first entry counts.
fn http3(value: &str) -> Option<Endpoint> {
    offers(value).find_map(|offer| {
        let (protocol, rest) = offer.split_once('=')?;
        if protocol.trim() != "h3" {
            return None;
        }
        let quoted = rest.trim().strip_prefix('"')?;
        let (authority, _) = quoted.split_once('"')?;
        let (host, port) = authority.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = port.parse().ok().filter(|port| *port > 0)?;
        Some(((!host.is_empty()).then(|| host.to_owned()), port))
    })
}

/// The parts between commas that are outside of quotes.
fn offers(value: &str) -> impl Iterator<Item = &str> {
    let mut is_quoted = false;
    value.split(move |letter| {
        is_quoted ^= letter == '"';
        letter == ',' && !is_quoted
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_offer_of_http3_is_found() {
        let other = |host: &str, port| Some((Some(host.to_owned()), port));
        for (value, expected) in [
            ("h3=\":8443\"; ma=3600", Some((None, 8443))),
            (
                "h3-29=\":443\", h3=\":444\"; ma=1, h3=\":445\"",
                Some((None, 444)),
            ),
            ("h2=\"a:1\", h3=\"alt.test:443\"", other("alt.test", 443)),
            ("h3=\"[2001:db8::1]:443\"", other("2001:db8::1", 443)),
            ("quic=\":443\"; v=\"46,43\", h3=\":1\"", Some((None, 1))),
            ("clear", None),
            ("h3=\":0\"", None),
            ("h3=:443", None),
            ("h3=\":x\"", None),
            ("h3=\"443", None),
            ("", None),
        ] {
            assert_eq!(http3(value), expected, "{value}");
        }
    }
}
