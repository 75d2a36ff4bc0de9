//! Verifies the server's certificate: chain, dates and name with the trusted roots, and the
//! signature of the handshake.
//!
//! The signature is always verified, even if `--insecure` skips chain and name.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{verify_server_cert_signed_by_trust_anchor, verify_server_name};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{
    CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use std::sync::Arc;

/// Trusted certificates: as issuers of a chain, and as servers' own certificates.
#[derive(Debug)]
pub(crate) struct Trusted {
    issuers: RootCertStore,
    certificates: Vec<CertificateDer<'static>>,
}

impl Trusted {
    /// Trusts no certificate yet.
    pub(crate) fn nothing() -> Trusted {
        Trusted {
            issuers: RootCertStore::empty(),
            certificates: Vec::new(),
        }
    }

    /// Adds a certificate. Fails if it cannot be parsed.
    pub(crate) fn add(&mut self, certificate: CertificateDer<'static>) -> Result<(), Error> {
        self.issuers.add(certificate.clone())?;
        self.certificates.push(certificate);
        Ok(())
    }

    /// Adds the issuers that browsers trust, for a system without certificates.
    pub(crate) fn add_public_issuers(&mut self) {
        self.issuers
            .extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }

    /// Whether no certificate is trusted.
    pub(crate) fn is_empty(&self) -> bool {
        self.issuers.is_empty()
    }
}

/// Verifies servers with the trusted certificates; without any, only the signature of the
/// handshake.
#[derive(Debug)]
pub(crate) struct ServerVerifier {
    pub(crate) trusted: Option<Arc<Trusted>>,
    pub(crate) provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for ServerVerifier {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if let Some(trusted) = &self.trusted {
            let certificate = ParsedCertificate::try_from(presented)?;
            let algorithms = self.provider.signature_verification_algorithms.all;
            let issuers = &trusted.issuers;
            match verify_server_cert_signed_by_trust_anchor(
                &certificate,
                issuers,
                intermediates,
                now,
                algorithms,
            ) {
                // trusted itself, as with OpenSSL's partial chains: it needs no issuer
                Err(error)
                    if concerns_the_issuer(&error) && trusted.certificates.contains(presented) => {}
                result => result?,
            }
            verify_server_name(&certificate, name)?;
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider
            .signature_verification_algorithms
            .supported_schemes()
    }
}

/// Whether the chain failed only because of its issuer. The issuer is not trusted, another issuer
/// signed, or the server's certificate is that of a CA. webpki checks the dates first; tests of
/// this crate verify this order.
fn concerns_the_issuer(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(
            CertificateError::UnknownIssuer | CertificateError::BadSignature,
        ) => true,
        Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
            is_ca_certificate(inner.as_ref())
        }
        _ => false,
    }
}

/// Whether a server sent a certificate with CA:TRUE (RFC 5280 section 4.2.1.9), which webpki
/// refuses.
pub(crate) fn is_ca_certificate(inner: &(dyn std::error::Error + 'static)) -> bool {
    matches!(
        inner.downcast_ref::<webpki::Error>(),
        Some(webpki::Error::CaUsedAsEndEntity)
    )
}
