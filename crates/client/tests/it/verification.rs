//! Which certificates are accepted: those of `openssl req -x509` have CA:TRUE and are their own
//! issuer.

use crate::rig::{Driver, tls_server_with};
use intact_client::tls::Verify;
use intact_ledger::{DialFailure, Failure};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair, date_time_ymd};
use std::io::Read;

/// The certificate of a certificate authority for `localhost`, which a server uses itself.
fn ca_params() -> CertificateParams {
    let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params
}

/// Dials `name` on a server with this certificate, and trusts `trusted`.
fn dial(
    presented: &rcgen::Certificate,
    key: &KeyPair,
    name: &str,
    trusted: &rcgen::Certificate,
) -> Result<(), DialFailure> {
    let address = tls_server_with(presented.der().clone(), key, |mut stream| {
        let _ = stream.read(&mut [0]);
    });
    let verify = Verify::Roots(trusted.pem().into_bytes().into());
    Driver::verifying(address, name, &verify).map(drop)
}

/// The same, if both are one certificate.
fn dial_itself(params: &CertificateParams, name: &str) -> Result<(), DialFailure> {
    let key = KeyPair::generate().unwrap();
    let own = params.self_signed(&key).unwrap();
    dial(&own, &key, name, &own)
}

#[track_caller]
fn assert_refused(dialled: Result<(), DialFailure>, kind: Failure, words: &str) {
    let failure = dialled.unwrap_err();
    assert_eq!(failure.kind, kind);
    assert_eq!(failure.detail.as_deref(), Some(words));
}

#[test]
fn a_trusted_ca_certificate_is_accepted_as_the_servers_own() {
    dial_itself(&ca_params(), "localhost").unwrap();
}

#[test]
fn a_trusted_certificate_needs_no_issuer() {
    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(ca_params(), KeyPair::generate().unwrap());
    let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let issued = params.signed_by(&key, &issuer).unwrap();
    dial(&issued, &key, "localhost", &issued).unwrap();
}

#[test]
fn a_trusted_certificate_is_for_its_own_names_only() {
    assert_refused(
        dial_itself(&ca_params(), "other.test"),
        Failure::CertificateName,
        "it is for localhost, not for other.test",
    );
}

#[test]
fn a_trusted_certificate_without_names_is_for_none() {
    let mut params = ca_params();
    params.subject_alt_names.clear();
    assert_refused(
        dial_itself(&params, "localhost"),
        Failure::CertificateName,
        "it has no subjectAltName, so it cannot be for localhost",
    );
}

#[test]
fn a_trusted_certificate_is_refused_before_and_after_its_dates() {
    let mut expired = ca_params();
    expired.not_before = date_time_ymd(2020, 1, 1);
    expired.not_after = date_time_ymd(2021, 1, 1);
    assert_refused(
        dial_itself(&expired, "localhost"),
        Failure::CertificateExpired,
        "it expired on 2021-01-01 00:00 UTC",
    );
    let mut early = ca_params();
    early.not_before = date_time_ymd(3000, 1, 1);
    early.not_after = date_time_ymd(3001, 1, 1);
    assert_refused(
        dial_itself(&early, "localhost"),
        Failure::CertificateExpired,
        "it is not valid before 3000-01-01 00:00 UTC",
    );
}

#[test]
fn another_ca_certificate_of_the_same_subject_is_refused() {
    let key = KeyPair::generate().unwrap();
    let presented = ca_params().self_signed(&key).unwrap();
    let trusted = ca_params()
        .self_signed(&KeyPair::generate().unwrap())
        .unwrap();
    assert_refused(
        dial(&presented, &key, "localhost", &trusted),
        Failure::Certificate,
        "it is a CA's certificate (CA:TRUE), and not one of the trusted certificates itself",
    );
}

#[test]
fn a_trusted_certificate_without_its_key_is_refused() {
    let key = KeyPair::generate().unwrap();
    let trusted = ca_params().self_signed(&key).unwrap();
    let other = KeyPair::generate().unwrap();
    assert_refused(
        dial(&trusted, &other, "localhost", &trusted),
        Failure::Certificate,
        "a signature does not match the certificate's key",
    );
}
