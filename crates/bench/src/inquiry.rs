//! Calls of gRPC before a run: what the server responds decides what the run sends.
//!
//! One connection over HTTP/2, opened as the first variant opens its own, with one request at a
//! time. Must not measure, and must not know what the messages mean.

use crate::config::{Config, ConfigError};
use intact_client::tls::Trust;
use intact_client::{Clock, Detail, EventLoop, HttpConnection, Plan, Request};
use intact_experiment::ConnectionSettings;
use intact_ledger::{
    Connection, Event, Exchange, Failure, GrpcCall, Nanos, Outcome, Protocol, Sink,
};
use std::io;
use std::sync::Arc;

/// Why a server could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum InquiryError {
    /// The configuration cannot be used.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The event loop failed.
    #[error("event loop: {0}")]
    Loop(#[from] io::Error),
    /// The connection or a call failed.
    #[error("{}{}", .kind.words(), more(.detail.as_deref()))]
    Failed {
        /// How.
        kind: Failure,
        /// More about it.
        detail: Option<Arc<str>>,
    },
}

fn more(detail: Option<&str>) -> String {
    detail.map_or_else(String::new, |words| format!(": {words}"))
}

/// The response to a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InquiryReply {
    /// The call; its status is absent if the server speaks no gRPC there.
    pub call: GrpcCall,
    /// The outcome in words.
    pub words: String,
    /// The content.
    pub body: Vec<u8>,
}

/// A connection for calls before a run.
pub struct Inquiry<'a> {
    config: &'a Config,
    trust: Trust,
    clock: Clock,
    event_loop: EventLoop,
    last_id: u64,
    http: Option<HttpConnection>,
    most: usize,
}

/// Stores the exchange that ended.
#[derive(Default)]
struct LastExchange(Option<Exchange>);

impl Sink for LastExchange {
    fn record(&mut self, event: Event<'_>) {
        if let Event::Exchange(exchange) = event {
            self.0 = Some(exchange.clone());
        }
    }
}

impl<'a> Inquiry<'a> {
    /// A connection by `config`, not opened yet, for responses of at most `most` bytes. Each dial
    /// and each call has the timeout of `config`.
    ///
    /// # Errors
    /// If there is no trust for TLS, or no event loop.
    pub fn new(config: &'a Config, most: usize) -> Result<Inquiry<'a>, InquiryError> {
        let trust = Trust::load(&config.credentials.verify).map_err(ConfigError::from)?;
        let clock = Clock::start();
        Ok(Inquiry {
            config,
            trust,
            clock,
            event_loop: EventLoop::new(clock)?,
            last_id: 0,
            http: None,
            most,
        })
    }

    /// Calls the method at `path` with a body of messages, and waits for the end of the response.
    ///
    /// # Errors
    /// If the configuration cannot be used, or there is no complete response.
    pub fn call(&mut self, path: &str, body: Vec<u8>) -> Result<InquiryReply, InquiryError> {
        let (plan, request) = self.plan_and_request(path, body)?;
        let mut http = match self.http.take() {
            Some(http) if http.ended().is_none() && http.life().goaway_at.is_none() => http,
            _ => self.open(&plan)?,
        };
        let exchange = self.exchange(&mut http, &request)?;
        let body = http.take_content();
        self.http = Some(http);
        match exchange.outcome {
            Outcome::Ok | Outcome::Failed(Failure::GrpcStatus) => {
                let call = exchange.grpc.unwrap_or_default();
                let words = match exchange.detail {
                    Some(detail) => detail.to_string(),
                    None => call.words(),
                };
                Ok(InquiryReply { call, words, body })
            }
            Outcome::Failed(kind) => Err(InquiryError::Failed {
                kind,
                detail: exchange.detail,
            }),
            Outcome::Pending | Outcome::Unknown => Err(InquiryError::Failed {
                kind: Failure::Aborted,
                detail: exchange.detail,
            }),
        }
    }

    /// The plan of the first variant's connections, and the request.
    fn plan_and_request(
        &self,
        path: &str,
        body: Vec<u8>,
    ) -> Result<(Arc<Plan>, Arc<Request>), InquiryError> {
        let mut config = self.config.clone();
        let address = config.address()?;
        let (scheme, authority) = (address.scheme.as_str(), address.authority());
        config.target.url = format!("{scheme}://{authority}{path}");
        config.body = body;
        config.expect = None;
        let mut choices = config.axes.choices();
        let mut choice = choices.swap_remove(0);
        choice.http = Protocol::Http2;
        choice.keepalive = true;
        choice.early_data = None;
        choice.connection = ConnectionSettings::default();
        let variant_plan = config.variant_plan(0, &choice, &self.trust, false)?;
        Ok((variant_plan.plan, variant_plan.request))
    }

    fn open(&mut self, plan: &Arc<Plan>) -> Result<HttpConnection, InquiryError> {
        let deadline = self.deadline();
        self.last_id += 1;
        let opened = self.event_loop.open(plan, self.last_id, deadline)?;
        let established = opened.map_err(|connection| dial_failure(&connection))?;
        let blank = Exchange::new(0, Nanos(0));
        let (http2, detail) = (Protocol::Http2, Detail::Outcome);
        let mut http = HttpConnection::new(*established, http2, detail, 1, blank);
        http.keep_content(self.most);
        Ok(http)
    }

    fn exchange(
        &mut self,
        http: &mut HttpConnection,
        request: &Arc<Request>,
    ) -> Result<Exchange, InquiryError> {
        let deadline = self.deadline();
        let mut last = LastExchange::default();
        let id = http.exchanges() + 1;
        http.begin(request, id, self.clock.now(), false);
        self.event_loop.send(http);
        loop {
            let more = self.event_loop.read(http, &mut last);
            if last.0.is_none() && self.clock.now() >= deadline {
                http.give_up(Some(Failure::Timeout), self.clock.now(), &mut last);
            }
            if let Some(exchange) = last.0.take() {
                return Ok(exchange);
            }
            if !more {
                self.event_loop.wait(deadline)?;
            }
        }
    }

    fn deadline(&self) -> Nanos {
        let timeout = u64::try_from(self.config.timeout.as_nanos()).unwrap_or(u64::MAX);
        self.clock.now().after(timeout)
    }
}

fn dial_failure(connection: &Connection) -> InquiryError {
    let failed = connection.failed.as_ref();
    InquiryError::Failed {
        kind: failed.map_or(Failure::Unreachable, |failed| failed.kind),
        detail: failed.and_then(|failed| failed.detail.clone()),
    }
}
