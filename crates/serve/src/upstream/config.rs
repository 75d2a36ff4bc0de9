//! What the server calls before it responds: the URL, how often, and whether it keeps the
//! connections. Opens nothing.

use intact_client::tls::{Client, Settings, SettingsError, Trust, Verify};
use intact_client::{
    AddressError, ConnectOverride, Plan, Proxy, Request, RequestError, RequestSpec, ServerUrl,
    SocketSettings,
};
use intact_ledger::{Method, Protocol, Scheme};
use std::sync::Arc;

/// The field of a call with the number of calls that led to it, itself included: servers may call
/// each other in a circle.
pub(crate) const DEPTH: &str = "Intact-Depth";
/// A request that this number of calls led to is no longer passed on.
pub(crate) const DEEPEST: usize = 8;

/// Why there is nothing to call.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The URL.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Its path.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// TLS.
    #[error(transparent)]
    Tls(#[from] SettingsError),
}

/// The calls that a response waits for.
#[derive(Clone, Debug)]
pub struct UpstreamConfig {
    /// Calls before each response, one after the other.
    pub calls: u32,
    /// Whether connections are kept for further calls.
    pub keepalive: bool,
    pub(super) plan: Arc<Plan>,
    /// By the number of calls that led here.
    pub(super) requests: Vec<Arc<Request>>,
}

impl UpstreamConfig {
    /// GET requests in HTTP/1.1 to this URL. A response is a success with a status below 400.
    ///
    /// # Errors
    /// The URL cannot be called, or there are no roots for TLS.
    pub fn new(
        url: &str,
        calls: u32,
        keepalive: bool,
        verify: &Verify,
    ) -> Result<UpstreamConfig, UpstreamError> {
        let address = ServerUrl::parse(url)?;
        let agent = concat!("intact/", env!("CARGO_PKG_VERSION"));
        let request = |depth: usize| {
            let fields = [format!("{DEPTH}: {}", depth + 1)];
            let request = RequestSpec::new(&address, Method::new("GET"), agent, &fields, |_| None)?;
            let request = match keepalive {
                true => request,
                false => request.saying("close"),
            };
            Ok(Arc::new(request.format(Protocol::Http11)))
        };
        let requests = (0..DEEPEST)
            .map(request)
            .collect::<Result<_, RequestError>>()?;
        let tls = if address.scheme == Scheme::Https {
            let trust = Trust::load(verify)?;
            let settings = Settings {
                version: None,
                protocol: Protocol::Http11,
                resume: true,
                certificate: None,
            };
            Some(Client::new(&address.host, &settings, &trust)?)
        } else {
            None
        };
        let route = ConnectOverride::default();
        Ok(UpstreamConfig {
            calls,
            keepalive,
            plan: Arc::new(Plan {
                origin: address.origin(),
                names: None,
                endpoint: route.endpoint(&address.host, address.port)?,
                proxy: Proxy::Transparent,
                tls,
                protocol: Protocol::Http11,
                stamps: false,
                socket: SocketSettings::default(),
                local_address: false,
                header_table: None,
            }),
            requests,
        })
    }
}
