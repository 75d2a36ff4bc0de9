//! The dial plan for each combination of HTTP and TLS versions.

use crate::config::{Config, ConfigError};
use intact_client::tls::{Client, Settings, Trust};
use intact_client::{Endpoint, Plan, Proxy, ServerUrl, SocketSettings};
use intact_ledger::{Protocol, Scheme, TlsVersion};
use std::sync::Arc;

/// Dial plans for one address.
pub(crate) struct Plans<'a> {
    config: &'a Config,
    trust: Trust,
    pub(crate) address: ServerUrl,
}

impl<'a> Plans<'a> {
    /// Plans for the configuration's address.
    pub(crate) fn new(config: &'a Config) -> Result<Plans<'a>, ConfigError> {
        Ok(Plans {
            config,
            trust: Trust::load(&config.credentials.verify)?,
            address: config.address.clone(),
        })
    }

    /// Whether the URL's scheme is https.
    pub(crate) fn is_secure(&self) -> bool {
        self.address.scheme == Scheme::Https
    }

    /// A plan that offers this TLS version; all versions if `version` is absent.
    pub(crate) fn plan(
        &self,
        protocol: Protocol,
        version: Option<TlsVersion>,
    ) -> Result<Arc<Plan>, ConfigError> {
        let tls = match (self.is_secure(), protocol) {
            (true, _) => Some(self.client(protocol, version, false)?),
            (false, Protocol::Http3) => {
                return Err(ConfigError::Http3(
                    "HTTP/3 contains TLS 1.3; name an https:// URL",
                ));
            }
            (false, _) => None,
        };
        self.with_client(protocol, tls).map(Arc::new)
    }

    /// A TLS client for the address.
    pub(crate) fn client(
        &self,
        protocol: Protocol,
        version: Option<TlsVersion>,
        resume: bool,
    ) -> Result<Client, ConfigError> {
        let settings = Settings {
            version,
            protocol,
            resume,
            certificate: self.config.credentials.certificate.clone(),
        };
        Ok(Client::new(&self.address.host, &settings, &self.trust)?)
    }

    /// What to connect to for a host and port.
    pub(crate) fn endpoint(&self, host: &str, port: u16) -> Result<Endpoint, ConfigError> {
        Ok(self.config.route.endpoint(host, port)?)
    }

    /// A plan with this TLS client, or without TLS.
    pub(crate) fn with_client(
        &self,
        protocol: Protocol,
        tls: Option<Client>,
    ) -> Result<Plan, ConfigError> {
        Ok(Plan {
            origin: self.address.origin(),
            names: None,
            endpoint: self.endpoint(&self.address.host, self.address.port)?,
            proxy: Proxy::Transparent,
            tls,
            protocol,
            stamps: true,
            socket: SocketSettings::default(),
            local_address: true,
            header_table: None,
        })
    }
}
