//! The function's side of the Lambda Runtime API (2018-06-01): asks for an invocation, answers it,
//! asks for the next one. Knows nothing of what is invoked.

use crate::cloud::{CloudClient, chain};
use bytes::Bytes;
use http::Method;
use object_store::ClientOptions;
use object_store::client::HttpRequest;
use std::convert::Infallible;

/// The response header that names an invocation.
const REQUEST_ID: &str = "lambda-runtime-aws-request-id";

/// The platform does not respond as the Runtime API does.
#[derive(Debug, thiserror::Error)]
#[error("Lambda Runtime API at {api}: {words}")]
pub struct RuntimeApiError {
    api: String,
    words: String,
}

/// Answers invocations until the platform ends the process. `api` is the value of
/// `AWS_LAMBDA_RUNTIME_API`: host and port.
///
/// # Errors
/// If the platform cannot be asked.
pub fn serve_invocations(
    api: &str,
    mut answer: impl FnMut(&[u8]) -> Result<Vec<u8>, String>,
) -> Result<Infallible, RuntimeApiError> {
    let failed = |words: String| RuntimeApiError {
        api: api.to_owned(),
        words,
    };
    // a function is frozen while it waits for its next invocation, for any time
    let options = ClientOptions::new().with_allow_http(true);
    let client = CloudClient::new(&options.with_timeout_disabled());
    let client = client.map_err(|error| failed(chain(&error)))?;
    let send = |method: Method, path: &str, body: Vec<u8>| {
        let mut request = HttpRequest::new(Bytes::from(body).into());
        *request.method_mut() = method;
        let url = format!("http://{api}/2018-06-01/runtime/invocation/{path}");
        *request.uri_mut() = url.parse().map_err(|_| failed(format!("no URL: {url}")))?;
        let response = client.send(request);
        let response = response.map_err(|error| failed(chain(&error)))?;
        match response.status().is_success() {
            true => Ok(response),
            false => Err(failed(format!("{path}: {}", response.status()))),
        }
    };
    loop {
        let invocation = send(Method::GET, "next", Vec::new())?;
        let id = invocation.headers().get(REQUEST_ID);
        let id = id.and_then(|id| id.to_str().ok());
        let id = id.ok_or_else(|| failed(format!("the invocation has no {REQUEST_ID}")))?;
        match answer(invocation.body()) {
            Ok(body) => send(Method::POST, &format!("{id}/response"), body)?,
            Err(words) => {
                let error = serde_json::json!({"errorMessage": words, "errorType": "Event"});
                let error = error.to_string().into_bytes();
                send(Method::POST, &format!("{id}/error"), error)?
            }
        };
    }
}
