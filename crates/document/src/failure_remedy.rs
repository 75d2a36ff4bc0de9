//! The option that helps after a failure, the same in every document that sends requests itself.

use intact_ledger::Failure;

/// The remedy where a server sends more than its response.
pub const BODY_LENGTH: &str = "correct `Content-Length`: the body is longer than it, or a response to HEAD, 204 or 304 has a body";

/// What happened, and what the system said in addition.
pub fn failure_words(failure: Failure, detail: Option<&str>) -> String {
    let words = failure.words();
    let says_more = |detail: &&str| {
        let mut parts = detail.split_whitespace();
        !parts.all(|part| words.contains(&part.to_lowercase()))
    };
    let detail = detail.filter(says_more);
    detail.map_or_else(|| words.to_owned(), |detail| format!("{words} ({detail})"))
}

/// What to do about a failure of this kind; absent where no option helps.
pub fn failure_remedy(kind: Failure) -> Option<&'static str> {
    Some(match kind {
        Failure::CertificateUnknown | Failure::Certificate => {
            "--cacert FILE trusts its issuer, or the certificate itself; --insecure checks neither chain nor name"
        }
        Failure::CertificateName => {
            "use a name that it is for, with --connect-to where that leads elsewhere; --insecure checks neither chain nor name"
        }
        Failure::CertificateExpired => {
            "renew it, or check the clock of this machine; --insecure checks neither chain nor name"
        }
        Failure::Timeout | Failure::ConnectTimeout => "--timeout gives it longer",
        Failure::Lookup => "check the name, or connect to another address with --resolve",
        Failure::Refused | Failure::Unreachable => "check host and port",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_detail_that_repeats_the_failure_is_left_out() {
        let refused = |detail| failure_words(Failure::Refused, detail);
        assert_eq!(
            refused(Some("Connection refused")),
            Failure::Refused.words()
        );
        assert_eq!(refused(None), Failure::Refused.words());
        assert!(refused(Some("by the proxy")).ends_with(" (by the proxy)"));
    }
}
