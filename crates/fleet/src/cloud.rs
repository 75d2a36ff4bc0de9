//! Requests to services of a platform: the HTTP client of `object_store`, one request at a time.

use bytes::Bytes;
use object_store::ClientOptions;
use object_store::client::{HttpClient, HttpConnector, HttpError, HttpRequest, ReqwestConnector};
use std::io;
use tokio::runtime::Runtime;

/// A client and the runtime that drives it.
pub(crate) struct CloudClient {
    http: HttpClient,
    runtime: Runtime,
}

impl CloudClient {
    pub(crate) fn new(options: &ClientOptions) -> Result<CloudClient, CloudError> {
        Ok(CloudClient {
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?,
            http: ReqwestConnector::default().connect(options)?,
        })
    }

    /// Sends a request and reads the whole response.
    pub(crate) fn send(&self, request: HttpRequest) -> Result<http::Response<Bytes>, HttpError> {
        self.wait(async {
            let (parts, body) = self.http.execute(request).await?.into_parts();
            Ok(http::Response::from_parts(parts, body.bytes().await?))
        })
    }

    /// Waits for another operation of the platform.
    pub(crate) fn wait<T>(&self, operation: impl Future<Output = T>) -> T {
        self.runtime.block_on(operation)
    }
}

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloudError {
    /// No runtime.
    #[error("cannot start a runtime: {0}")]
    Runtime(#[from] io::Error),
    /// The options of the client are refused.
    #[error(transparent)]
    Client(#[from] object_store::Error),
}

/// An error with its causes: the outermost one only states that something failed.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(": ")
}
