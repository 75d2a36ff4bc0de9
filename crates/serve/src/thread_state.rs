//! What all connections of one thread share.

use crate::caching::{Caching, Preconditions};
use crate::config::Config;
use crate::disturbance::{Disturbance, Disturbed, ScriptState};
use crate::drain::DrainState;
use crate::fault::Fault;
use crate::host::RequestHost;
use crate::read_buffers::ReadBuffers;
use crate::record::{Record, ThreadRecorder};
use crate::response::{Response, ResponseRoutes, is_admin};
use crate::upstream::{DEEPEST, DEPTH, Upstream};
use crate::{admin, host};
use intact_experiment::Rng;
use intact_ledger::{Connection, ConnectionId, Nanos, Origin, Scheme};
use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::sleep;

/// Settings, records and the random generator.
pub(crate) struct ThreadState {
    pub(crate) config: Arc<Config>,
    pub(crate) recorder: Rc<ThreadRecorder>,
    answers: ResponseRoutes,
    caching: Caching,
    rng: RefCell<Rng>,
    script: Arc<ScriptState>,
    pub(crate) buffers: Rc<ReadBuffers>,
    pub(crate) drain: Arc<DrainState>,
    upstream: Option<Arc<Upstream>>,
    /// Where HTTP/3 is spoken, in the words of `Alt-Svc` (RFC 7838 section 3).
    pub(crate) alt_svc: Option<String>,
    /// The UDP port of HTTP/3.
    #[cfg(feature = "http3")]
    pub(crate) http3_port: Option<u16>,
}

/// Who is at the other end, since when.
#[derive(Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) ip: IpAddr,
    /// Our address, if it is known.
    pub(crate) local: Option<IpAddr>,
    pub(crate) since: Instant,
}

/// What to do with a request.
pub(crate) struct ResponsePlan {
    pub(crate) answer: Response,
    pub(crate) pause: Duration,
    pub(crate) fault: Option<Fault>,
    /// What the script does to it.
    pub(crate) disturbed: Vec<Disturbance>,
    /// It is about the server, so it is not counted and cannot go wrong.
    pub(crate) hidden: bool,
    /// The calls of servers like this one that led to the request.
    pub(crate) depth: usize,
}

impl ThreadState {
    pub(crate) fn new(
        config: Arc<Config>,
        recorder: ThreadRecorder,
        thread: usize,
        drain: Arc<DrainState>,
        script: Arc<ScriptState>,
        upstream: Option<Arc<Upstream>>,
        http3_port: Option<u16>,
    ) -> ThreadState {
        ThreadState {
            answers: ResponseRoutes::new(&config),
            caching: Caching::new(config.caching),
            recorder: Rc::new(recorder),
            rng: RefCell::new(Rng::seeded(config.seed.wrapping_add(thread as u64))),
            config,
            script,
            buffers: Rc::default(),
            drain,
            upstream,
            #[cfg(feature = "http3")]
            http3_port,
            alt_svc: http3_port.map(|port| format!("h3=\":{port}\"; ma=3600")),
        }
    }

    /// The record of a connection from `address` to `local`, which is ours, and its other end.
    pub(crate) fn accept(
        &self,
        at: Nanos,
        scheme: Scheme,
        address: SocketAddr,
        local: Option<SocketAddr>,
    ) -> (Box<Connection>, Peer) {
        let mut connection = Box::new(Connection::new(ConnectionId(self.recorder.id()), at));
        connection.local = local;
        connection.peer = Some(address);
        connection.origin = local.map(|local| Origin {
            scheme,
            host: local.ip().to_string().into(),
            port: local.port(),
        });
        let peer = Peer {
            ip: address.ip(),
            local: local.map(|local| local.ip()),
            since: Instant::now(),
        };
        (connection, peer)
    }

    /// The calls that a response waits for; absent where it waits for none.
    pub(crate) fn upstream(&self, plan: &ResponsePlan) -> Option<&Arc<Upstream>> {
        self.upstream
            .as_ref()
            .filter(|_| !plan.hidden && plan.depth < DEEPEST)
    }

    /// How many calls of servers like this one led to a request with these fields, where this one
    /// would make another.
    pub(crate) fn depth<'a>(
        &self,
        mut fields: impl Iterator<Item = (&'a [u8], &'a [u8])>,
    ) -> usize {
        if self.upstream.is_none() {
            return 0;
        }
        let named = fields.find(|(name, _)| name.eq_ignore_ascii_case(DEPTH.as_bytes()));
        let text = named.and_then(|(_, value)| std::str::from_utf8(value).ok());
        text.and_then(|depth| depth.parse().ok()).unwrap_or(0)
    }

    /// Makes the calls that a response waits for, and lets its pause pass. Returns whether the
    /// client is still there: it has left when `gone` ends.
    pub(crate) async fn prepare(&self, plan: &mut ResponsePlan, gone: impl Future) -> bool {
        let (pause, depth, upstream) = (plan.pause, plan.depth, self.upstream(plan));
        if pause.is_zero() && upstream.is_none() {
            return true;
        }
        let waiting = async {
            if let Some(upstream) = upstream {
                let (calls, failed) = upstream.call(depth).await;
                if failed > 0 {
                    plan.answer = Response::bad_gateway(calls, failed);
                }
            }
            if !pause.is_zero() {
                sleep(pause).await;
            }
        };
        tokio::select! {
            () = waiting => true,
            _ = gone => false,
        }
    }

    /// Decides about the next request on a connection.
    pub(crate) fn plan(
        &self,
        target: &[u8],
        host: RequestHost<'_>,
        peer: Peer,
        record: &Record,
    ) -> ResponsePlan {
        let hidden = is_admin(target);
        if hidden {
            // before the answer is made, which would count the connection
            record.asked();
        }
        let at_once = |answer| ResponsePlan {
            answer,
            pause: Duration::ZERO,
            fault: None,
            disturbed: Vec::new(),
            hidden,
            depth: 0,
        };
        let host = match host {
            Ok(host) => host,
            Err(reason) => return at_once(Response::ours(400, "text/plain", reason.to_owned())),
        };
        if hidden {
            let names = &self.config.names;
            let asked_for_us = host.is_some_and(|host| host::is_ours(host, peer.local, names));
            return at_once(admin::answer(
                target,
                peer.ip,
                asked_for_us,
                self.recorder.tally(),
            ));
        }
        let answer = self.answers.to(target);
        let rng = &mut self.rng.borrow_mut();
        let mut pause = answer.delay.draw(rng) + answer.extra_delay;
        if record.exchanges() == 0 {
            pause += self.config.first_request_cost;
        }
        let Disturbed { pause, fault, by } =
            self.config
                .script
                .apply(&self.script, record.now(), record.id(), pause);
        let fault = answer.fault.or(fault);
        ResponsePlan {
            pause,
            fault: fault.or_else(|| self.config.faults.draw(rng)),
            disturbed: by,
            hidden: false,
            depth: 0,
            answer,
        }
    }

    /// Whether responses depend on fields of the request, so that [`ThreadState::adapt`] needs
    /// them.
    pub(crate) fn has_caching(&self) -> bool {
        self.caching.is_on()
    }

    /// Adapts a response that nothing is wrong with to what the client has stored and accepts.
    pub(crate) fn adapt(&self, plan: &mut ResponsePlan, method: &[u8], request: &Preconditions) {
        if !plan.hidden && plan.fault.is_none() {
            self.caching.adapt(&mut plan.answer, method, request);
        }
    }

    /// How long a connection may go on being idle.
    pub(crate) fn patience(&self, peer: Peer) -> Option<Duration> {
        let age = self.config.max_age;
        let young = age.map(|age| age.saturating_sub(peer.since.elapsed()));
        let limits = [self.config.idle_timeout, young, self.drain.grace_left()];
        limits.into_iter().flatten().min()
    }

    /// When a connection that has been idle since `since` is ended, without a drain.
    pub(crate) fn idle_until(&self, since: Instant, peer: Peer) -> Option<Instant> {
        let idle = self.config.idle_timeout.map(|limit| since + limit);
        let age = self.config.max_age.map(|age| peer.since + age);
        [idle, age].into_iter().flatten().min()
    }

    /// Whether a connection ends once its exchange `number` (from 1) is answered.
    pub(crate) fn is_last(&self, number: u64, peer: Peer) -> bool {
        self.config.max_requests.is_some_and(|most| number >= most)
            || self
                .config
                .max_age
                .is_some_and(|age| peer.since.elapsed() >= age)
            || self.drain.has_begun()
    }
}
