//! Checks the parts of a request that the user sets, before they are sent: method, request target,
//! host, fields.
//!
//! All options, plans and files with a part of a request use it. It refuses text that would end a
//! line or a part of a line. So no argument can add a field or a request. Each error states the
//! problem.

use super::fields::is_token;

/// Checks a method (RFC 9110 section 9.1).
///
/// # Errors
/// If it is empty or contains a byte that is not allowed in a token.
pub fn check_method(method: &str) -> Result<(), &'static str> {
    if method.is_empty() || !method.bytes().all(is_token) {
        return Err(
            "a method is a word of letters, digits and -_.!#$%&'*+^`|~ (RFC 9110 section 9.1)",
        );
    }
    Ok(())
}

/// Checks a request target in origin form: a path, with its query (RFC 9112 section 3.2.1).
///
/// # Errors
/// If it does not begin with a slash, or contains a space, a control character or a byte that is
/// not ASCII.
pub fn check_target(target: &str) -> Result<(), &'static str> {
    if !target.starts_with('/') {
        return Err("a path begins with a slash");
    }
    if !target.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(
            "a path holds no spaces, control characters or bytes outside ASCII: percent-encode them",
        );
    }
    Ok(())
}

/// Checks the value of `Host` or `:authority` (RFC 9110 section 7.2): empty, or a host with an
/// optional port.
///
/// # Errors
/// If it contains a byte that ends a host or is not allowed in one.
pub fn check_authority(authority: &str) -> Result<(), &'static str> {
    let may_stand = |byte: u8| {
        byte.is_ascii_graphic() && !matches!(byte, b'/' | b'?' | b'#' | b'@' | b'\\' | b',')
    };
    if !authority.bytes().all(may_stand) {
        return Err("a host has a name and an optional port, as in example.org:8080");
    }
    Ok(())
}

/// Checks a field, as name and value (RFC 9110 section 5).
///
/// # Errors
/// If the name is no token, or the value contains a control character.
pub fn check_field(name: &str, value: &str) -> Result<(), &'static str> {
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err("that is no field name (RFC 9110 section 5.1)");
    }
    if value
        .bytes()
        .any(|byte| byte.is_ascii_control() && byte != b'\t')
    {
        return Err("a field value cannot hold control characters");
    }
    Ok(())
}

/// Splits a field line of the form `Name: value`.
///
/// # Errors
/// If it has no colon, or if [`check_field`] refuses it.
pub fn split_field(line: &str) -> Result<(&str, &str), &'static str> {
    let (name, value) = line.split_once(':').ok_or("it has to be 'Name: value'")?;
    let (name, value) = (
        name.trim_matches([' ', '\t']),
        value.trim_matches([' ', '\t']),
    );
    check_field(name, value)?;
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that end a line or a part of it for some readers.
    const BREAKS: [&str; 9] = [
        "\r\n",
        "\n",
        "\r",
        "\0",
        "\u{b}",
        "\u{c}",
        "\u{7f}",
        "\r\nX: 1",
        "\u{1b}[2J",
    ];

    #[test]
    fn nothing_that_ends_a_line_is_sent() {
        for bad in BREAKS {
            for text in [format!("{bad}a"), format!("a{bad}b"), format!("a{bad}")] {
                assert!(check_method(&text).is_err(), "{text:?}");
                assert!(check_target(&format!("/{text}")).is_err(), "{text:?}");
                assert!(check_authority(&text).is_err(), "{text:?}");
                assert!(check_field(&text, "v").is_err(), "{text:?}");
                assert!(check_field("n", &text).is_err(), "{text:?}");
                assert!(split_field(&format!("n: {text}")).is_err(), "{text:?}");
                assert!(split_field(&format!("{text}: v")).is_err(), "{text:?}");
            }
        }
    }

    #[test]
    fn nothing_that_ends_a_part_of_the_request_line_is_sent() {
        for bad in ["", "GET /", "GE T", "GET\t", "M\u{e4}H", "GET:", "(x)"] {
            assert!(check_method(bad).is_err(), "{bad:?}");
        }
        for bad in ["", "a", "/a b", "/\u{e4}", "http://h/"] {
            assert!(check_target(bad).is_err(), "{bad:?}");
        }
        for bad in ["a b", "a/b", "u@h", "a,b", "h?x"] {
            assert!(check_authority(bad).is_err(), "{bad:?}");
        }
        for bad in ["no colon", ": v", "a b: c", "n\u{e4}: v"] {
            assert!(split_field(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn what_the_standards_allow_is_accepted() {
        assert!(check_method("M-SEARCH").is_ok());
        assert!(check_target("/a/b?c=%20&d={\"e\"}").is_ok());
        for good in ["", "h", "h:8", "[::1]:8", "xn--a.example", "a_b"] {
            assert!(check_authority(good).is_ok(), "{good:?}");
        }
        assert_eq!(split_field("A:\tb c \u{e4} "), Ok(("A", "b c \u{e4}")));
        assert_eq!(split_field("A:"), Ok(("A", "")));
    }
}
