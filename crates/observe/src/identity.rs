//! The user that a request belongs to, as hashes with the run's salt.
//!
//! Must not keep a part of a credential or a cookie. `Proxy-Authorization` names the user of a
//! proxy, not of the request, and is not read.

use intact_ledger::{FingerprintKey, Identity};
use intact_wire::exchange::UserFields;
use std::sync::Arc;

/// Longest accepted scheme, in bytes.
const MAX_SCHEME: usize = 24;

/// The hashes of the fields that tie a request to a user.
pub(crate) fn of(user: &UserFields, key: &FingerprintKey) -> Identity {
    let credential = user.credential.as_deref().and_then(split);
    let named = credential.and_then(|(_, value)| user_in(value));
    Identity {
        scheme: credential.map(|(scheme, _)| Arc::from(scheme)),
        credential: named.map(|named| key.hash(named)),
        cookie: user.cookie.as_deref().map(|cookie| key.hash(cookie)),
    }
}

/// The scheme, and what follows it (RFC 9110 section 11.6.2).
fn split(credential: &[u8]) -> Option<(&str, &[u8])> {
    let credential = credential.trim_ascii();
    let end = credential.iter().position(u8::is_ascii_whitespace)?;
    let scheme = std::str::from_utf8(&credential[..end]).ok()?;
    (scheme.len() <= MAX_SCHEME).then(|| (scheme, credential[end..].trim_ascii_start()))
}

/// The part of a credential that is the same in all requests of its user. A token is it as a whole.
/// A list of parameters has a signature, a nonce or a counter that differs in each request, so only
/// the name of the user counts (RFC 7616 section 3.4); `None` where there is none.
fn user_in(value: &[u8]) -> Option<&[u8]> {
    let is_list = value.iter().enumerate().any(|(at, byte)| {
        let rest = &value[at + 1..];
        // a token ends with any number of `=`
        *byte == b'=' && rest.iter().any(|byte| *byte != b'=')
    });
    if !is_list {
        return (!value.is_empty()).then_some(value);
    }
    value.split(|byte| *byte == b',').find_map(|parameter| {
        let at = parameter.iter().position(|byte| *byte == b'=')?;
        let (name, value) = (parameter[..at].trim_ascii(), &parameter[at + 1..]);
        name.eq_ignore_ascii_case(b"username").then_some(value)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(credential: &str, cookie: Option<&str>) -> Identity {
        let user = UserFields {
            credential: Some(credential.into()),
            cookie: cookie.map(Into::into),
        };
        of(&user, &FingerprintKey::new(&[7; 32]))
    }

    #[test]
    fn a_token_is_hashed_with_the_salt_and_names_its_scheme() {
        let one = identity("Bearer a", Some("sid=1"));
        assert_eq!(one.scheme.as_deref(), Some("Bearer"));
        assert_eq!(one, identity("Bearer   a", Some("sid=1")));
        assert_ne!(one.credential, identity("Bearer b", None).credential);
        assert_ne!(one.cookie, identity("Bearer a", Some("sid=2")).cookie);
        let user = UserFields {
            credential: Some(b"Bearer a".to_vec()),
            cookie: None,
        };
        let other = of(&user, &FingerprintKey::new(&[8; 32]));
        assert_ne!(one.credential, other.credential);
        assert!(identity("Basic YTpi==", None).credential.is_some());
    }

    #[test]
    fn what_differs_in_each_request_of_a_user_is_no_other_user() {
        let digest = |user: &str, count: u32| {
            identity(
                &format!("Digest username=\"{user}\", nc={count:08x}, response=\"{count}\""),
                None,
            )
        };
        assert_eq!(digest("ann", 1), digest("ann", 2));
        assert_ne!(digest("ann", 1), digest("bob", 1));
        let signed = identity("AWS4-HMAC-SHA256 Credential=A/1, Signature=00", None);
        assert_eq!(signed.credential, None);
        assert_eq!(identity("opaque", None), Identity::default());
    }
}
