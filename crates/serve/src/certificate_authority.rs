//! Certificates: a CA of our own made at start, or a pair from files.

use crate::named_variants::choices;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, date_time_ymd,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;

choices! {
    /// What is wrong with the certificate that is made.
    #[derive(Default)]
    Certificate, "kind of certificate";
    #[default]
    Good "good" "nothing, once its CA is trusted",
    Expired "expired" "it expired long ago",
    WrongName "wrong-name" "it is for another name",
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// One could not be made.
    #[error("cannot make a certificate")]
    Make(#[from] rcgen::Error),
    /// A file could not be read.
    #[error("cannot read {path} as PEM")]
    Read {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: rustls_pki_types::pem::Error,
    },
}

/// A certificate with its key, and the CA that vouches for it.
#[derive(Debug)]
pub struct CertificateAuthority {
    pub(crate) chain: Vec<CertificateDer<'static>>,
    pub(crate) key: PrivateKeyDer<'static>,
    ca_pem: Option<String>,
}

impl CertificateAuthority {
    /// A new CA (ECDSA P-256) and a certificate for localhost, its addresses and `names`.
    pub fn make(names: &[String]) -> Result<CertificateAuthority, AuthorityError> {
        CertificateAuthority::issue(names, Certificate::Good)
    }

    /// The same with a certificate that may be no good.
    pub fn issue(
        names: &[String],
        kind: Certificate,
    ) -> Result<CertificateAuthority, AuthorityError> {
        let mut ca = CertificateParams::default();
        ca.distinguished_name
            .push(DnType::CommonName, "intact serve, a CA for one run");
        ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let ca_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let ca = CertifiedIssuer::self_signed(ca, ca_key)?;
        let mut all: Vec<String> = match kind {
            Certificate::WrongName => vec!["elsewhere.invalid".to_owned()],
            _ => ["localhost", "127.0.0.1", "::1"].map(str::to_owned).into(),
        };
        all.extend_from_slice(names);
        let mut leaf = CertificateParams::new(all)?;
        if kind == Certificate::Expired {
            leaf.not_before = date_time_ymd(2001, 1, 1);
            leaf.not_after = date_time_ymd(2002, 1, 1);
        }
        leaf.distinguished_name
            .push(DnType::CommonName, "localhost");
        leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        leaf.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let certificate = leaf.signed_by(&key, &ca)?;
        Ok(CertificateAuthority {
            chain: vec![certificate.der().clone()],
            key: PrivateKeyDer::Pkcs8(key.serialize_der().into()),
            ca_pem: Some(ca.pem()),
        })
    }

    /// A certificate chain and key from PEM files.
    pub fn read(chain: &Path, key: &Path) -> Result<CertificateAuthority, AuthorityError> {
        let unreadable = |path: &Path| {
            let path = path.display().to_string();
            move |source| AuthorityError::Read { path, source }
        };
        Ok(CertificateAuthority {
            chain: CertificateDer::pem_file_iter(chain)
                .and_then(Iterator::collect)
                .map_err(unreadable(chain))?,
            key: PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?,
            ca_pem: None,
        })
    }

    /// The CA's certificate, for clients to trust; absent when the certificate came from a file.
    pub fn ca_pem(&self) -> Option<&str> {
        self.ca_pem.as_deref()
    }
}
