//! The names of cipher suites (IANA registry "TLS Cipher Suites").

use rustls::CipherSuite;
use std::borrow::Cow;

/// IANA's name of a cipher suite; without one the number, such as `0x00fe`.
pub fn suite_name(number: u16) -> Cow<'static, str> {
    let Some(name) = CipherSuite::from(number).as_str() else {
        return format!("0x{number:04x}").into();
    };
    match name.strip_prefix("TLS13_") {
        Some(rest) => format!("TLS_{rest}").into(),
        None => name.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suites_have_names_or_numbers() {
        assert_eq!(suite_name(0x1301), "TLS_AES_128_GCM_SHA256");
        assert_eq!(suite_name(0xc0ae), "TLS_ECDHE_ECDSA_WITH_AES_128_CCM_8");
        assert_eq!(
            suite_name(0xcca8),
            "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256"
        );
        assert_eq!(suite_name(0x00fe), "0x00fe");
    }
}
