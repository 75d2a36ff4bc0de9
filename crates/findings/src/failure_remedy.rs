//! The option that helps after a failure, the same in every document that sends requests itself.

use intact_ledger::Failure;

/// What to do about a failure of this kind; absent where no option helps.
pub(crate) fn failure_remedy(kind: Failure) -> Option<&'static str> {
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
        Failure::Lookup => "check the name, or lead elsewhere with --resolve",
        Failure::Refused | Failure::Unreachable => "check host and port",
        _ => return None,
    })
}
