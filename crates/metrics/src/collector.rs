//! One request of OTLP/HTTP to a collector, and its response.
//!
//! A collector that is absent, refuses or stalls does not end the command. The request is repeated
//! for a limited time; then the reason is returned. The caller passes environment, time and TLS.

use crate::fold::Measured;
use crate::otlp::{self, Dates};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceResponse;
use percent_encoding::percent_decode_str;
use prost::Message;
use rustls::crypto::CryptoProvider;
use std::sync::Arc;
use std::time::{Duration, Instant};
use ureq::http::{HeaderName, HeaderValue, Response, StatusCode, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, Body};

/// Environment variable with the endpoint (same specification). The next two apply to this endpoint
/// only.
const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// Environment variable with the header fields to send.
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
/// Environment variable with the time limit, in milliseconds.
const TIMEOUT: &str = "OTEL_EXPORTER_OTLP_TIMEOUT";
/// The default endpoint of OTLP/HTTP (OpenTelemetry's specification of exporters).
const USUAL: &str = "http://localhost:4318";
/// The path for metrics.
const PATH: &str = "/v1/metrics";
/// The content type of the request and of its response.
const PROTOBUF: &str = "application/x-protobuf";
/// Time limit of all attempts together: the default of the same specification.
const PATIENCE: Duration = Duration::from_secs(10);
/// Interval between two attempts, if the collector names none.
const PAUSE: Duration = Duration::from_secs(1);
/// Limit of the bytes of a response that are read.
const ANSWER: u64 = 65_536;
/// Limit of the characters of a collector's message that are kept.
const WORDS: usize = 200;

/// Why metrics did not arrive, or not all. A message may contain the collector's text: one line,
/// control characters included.
#[derive(Debug, thiserror::Error)]
pub enum CollectorError {
    /// The collector did not respond.
    #[error("{url}: {reason}; the metrics were not sent (is a collector listening there?)")]
    Away {
        /// The endpoint.
        url: String,
        /// The reason.
        reason: String,
    },
    /// The collector responded with an error status.
    #[error("{url} answered {status}{words}; it did not accept the metrics")]
    Refused {
        /// The endpoint.
        url: String,
        /// The status.
        status: StatusCode,
        /// The collector's message, after a colon; may be empty.
        words: String,
    },
    /// The response is a success, but not one of a collector.
    #[error(
        "{url} answered 200, but not as a collector; use the port for OTLP over HTTP, usually 4318"
    )]
    NoCollector {
        /// The endpoint.
        url: String,
    },
    /// The collector rejected a part.
    #[error("{url} rejected {points} data points{words}")]
    Rejected {
        /// The endpoint.
        url: String,
        /// Number of data points.
        points: i64,
        /// The reason, after a colon.
        words: String,
    },
    /// The run has no metrics.
    #[error("no connection and no request was seen, so nothing was sent")]
    Nothing,
    /// The metrics were sent, with times that are not the run's.
    #[error("the input has no dates: its metrics are stamped with the time of sending")]
    Undated,
}

/// The endpoint and its header fields. Its `Debug` has neither, because they may hold secrets.
#[derive(Clone)]
pub struct Collector {
    url: String,
    headers: Vec<(HeaderName, HeaderValue)>,
    patience: Duration,
}

impl std::fmt::Debug for Collector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Collector").finish_non_exhaustive()
    }
}

fn milliseconds(text: &str) -> Result<Duration, String> {
    let count = text
        .parse()
        .map_err(|_| format!("{text} is no number of milliseconds"))?;
    Ok(Duration::from_millis(count))
}

/// A base URL with the path for metrics.
fn endpoint(text: &str) -> Result<String, String> {
    let url: Uri = text.parse().map_err(|error| format!("{error}"))?;
    let (Some(scheme @ ("http" | "https")), Some(authority)) = (url.scheme_str(), url.authority())
    else {
        return Err("a collector is reached by http://HOST:PORT or https://HOST:PORT".to_owned());
    };
    if authority.as_str().contains('@') {
        return Err(format!(
            "credentials belong into {HEADERS}, which --otlp without a URL sends along"
        ));
    }
    let path = url.path().trim_end_matches('/');
    let path = path.strip_suffix(PATH).unwrap_or(path);
    let query = url
        .query()
        .map_or(String::new(), |query| format!("?{query}"));
    Ok(format!("{scheme}://{authority}{path}{PATH}{query}"))
}

/// `name=value,name=value`, values percent-encoded. An error message does not show the value.
fn headers(text: &str) -> Result<Vec<(HeaderName, HeaderValue)>, String> {
    let pairs = text
        .split(',')
        .map(str::trim)
        .filter(|pair| !pair.is_empty());
    pairs
        .map(|pair| {
            let (name, value) = pair
                .split_once('=')
                .ok_or("write name=value,name=value, values percent-encoded")?;
            let name = name.trim();
            let value: Vec<u8> = percent_decode_str(value.trim()).collect();
            let wrong = |what| format!("{what} of {name:?} cannot be sent");
            Ok((
                HeaderName::try_from(name).map_err(|_| wrong("the name"))?,
                HeaderValue::try_from(value).map_err(|_| wrong("the value"))?,
            ))
        })
        .collect()
}

impl Collector {
    /// The collector at a URL, or that of the environment if the URL is empty. Header fields of the
    /// environment may be credentials, so they are sent to the endpoint of the environment only.
    pub fn parse(
        url: &str,
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Collector, String> {
        if !url.is_empty() {
            return Ok(Collector {
                url: endpoint(url)?,
                headers: Vec::new(),
                patience: PATIENCE,
            });
        }
        let read = |name: &str, otherwise: &str| {
            let text = environment(name);
            text.filter(|text| !text.is_empty())
                .unwrap_or_else(|| otherwise.to_owned())
        };
        let wrong = |name: &'static str| move |error: String| format!("{name}: {error}");
        let url = endpoint(&read(ENDPOINT, USUAL)).map_err(wrong(ENDPOINT))?;
        let headers = headers(&read(HEADERS, "")).map_err(wrong(HEADERS))?;
        let patience = match &*read(TIMEOUT, "") {
            "" => PATIENCE,
            text => milliseconds(text).map_err(wrong(TIMEOUT))?,
        };
        Ok(Collector {
            url,
            headers,
            patience,
        })
    }

    /// Sends the metrics. A run without dates is stamped with `now`.
    pub fn send(
        &self,
        measured: &Measured,
        now: jiff::Timestamp,
        tls: CryptoProvider,
    ) -> Result<(), CollectorError> {
        let now = u64::try_from(now.as_nanosecond()).unwrap_or(0);
        let dates = Dates::of(&measured.run, now);
        let message = otlp::message(measured, dates).ok_or(CollectorError::Nothing)?;
        self.deliver(&agent(tls), &message.encode_to_vec())?;
        match dates {
            Dates::From(_) => Ok(()),
            Dates::Only(_) => Err(CollectorError::Undated),
        }
    }

    /// Repeats the request until it is accepted or refused permanently, or the time limit has
    /// passed.
    fn deliver(&self, agent: &Agent, message: &[u8]) -> Result<(), CollectorError> {
        let deadline = Instant::now() + self.patience;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = self.post(agent, message, left)?;
            let pause = pause(&answer);
            let left = deadline.saturating_duration_since(Instant::now());
            match pause.filter(|pause| *pause < left) {
                Some(pause) => std::thread::sleep(pause),
                None => return self.judge(answer),
            }
        }
    }

    fn post(
        &self,
        agent: &Agent,
        message: &[u8],
        left: Duration,
    ) -> Result<Response<Body>, CollectorError> {
        let mut request = agent
            .post(&self.url)
            .content_type(PROTOBUF)
            .config()
            .timeout_global(Some(left))
            .build();
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.send(message).map_err(|error| self.away(&error))
    }

    /// The URL for messages, without its query: a key in the query is sent to the collector only.
    fn place(&self) -> String {
        intact_ledger::redact::url(&self.url)
    }

    fn away(&self, error: &ureq::Error) -> CollectorError {
        CollectorError::Away {
            url: self.place(),
            reason: match error {
                ureq::Error::Timeout(_) => {
                    format!("no answer within {:?}", self.patience)
                }
                ureq::Error::Io(error) => error.to_string(),
                error => error.to_string(),
            },
        }
    }

    fn judge(&self, mut answer: Response<Body>) -> Result<(), CollectorError> {
        let status = answer.status();
        let kind = answer.headers().get(header::CONTENT_TYPE).cloned();
        let kind = kind.and_then(|kind| Some(kind.to_str().ok()?.to_ascii_lowercase()));
        let is_protobuf = kind.is_none_or(|kind| kind.starts_with(PROTOBUF));
        let body = answer.body_mut().with_config().limit(ANSWER).read_to_vec();
        let url = || self.place();
        if !status.is_success() {
            return Err(CollectorError::Refused {
                url: url(),
                status,
                words: one_line(&refusal(&body.unwrap_or_default(), is_protobuf)),
            });
        }
        // the response of a collector that accepted everything may be empty
        let body = body.map_err(|error| self.away(&error))?;
        let answer = ExportMetricsServiceResponse::decode(&body[..])
            .ok()
            .filter(|_| is_protobuf || body.is_empty())
            .ok_or_else(|| CollectorError::NoCollector { url: url() })?;
        match answer.partial_success {
            Some(partial) if partial != Default::default() => Err(CollectorError::Rejected {
                url: url(),
                points: partial.rejected_data_points,
                words: one_line(&partial.error_message),
            }),
            _ => Ok(()),
        }
    }
}

fn agent(tls: CryptoProvider) -> Agent {
    let tls = TlsConfig::builder()
        .root_certs(RootCerts::PlatformVerifier)
        .unversioned_rustls_crypto_provider(Arc::new(tls));
    Agent::config_builder()
        .tls_config(tls.build())
        .http_status_as_error(false)
        .max_redirects(0)
        // a proxy cannot reach a collector on this machine
        .proxy(None)
        .user_agent(concat!("intact/", env!("CARGO_PKG_VERSION")))
        .build()
        .into()
}

/// How long to wait before the next attempt; `None` for a response that is final (OTLP, retryable
/// responses).
fn pause(answer: &Response<Body>) -> Option<Duration> {
    if !matches!(answer.status().as_u16(), 429 | 502..=504) {
        return None;
    }
    let asked = answer.headers().get(header::RETRY_AFTER);
    let seconds = asked.and_then(|value| value.to_str().ok()?.parse().ok());
    Some(seconds.map_or(PAUSE, Duration::from_secs))
}

/// The collector's reason for a refusal: the message (second field) of a `google.rpc.Status`, or
/// plain text.
fn refusal(body: &[u8], is_protobuf: bool) -> String {
    #[derive(Clone, PartialEq, Message)]
    struct Status {
        #[prost(string, tag = "2")]
        message: String,
    }
    match Status::decode(body) {
        Ok(status) if is_protobuf => status.message,
        _ => String::from_utf8_lossy(body).into_owned(),
    }
}

/// A collector's message on one line of limited length.
fn one_line(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    let words: String = words.join(" ").chars().take(WORDS).collect();
    if words.is_empty() {
        return words;
    }
    format!(": {words}")
}

#[cfg(test)]
mod tests;
