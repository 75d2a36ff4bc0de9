//! A server that stopped accepting connections while the check ran: the sentence and the finding.
//!
//! What such a server does to its connections is no limit of theirs, so their ends become lower
//! bounds. Must not decide that a server stopped: the probe saw refused dials.

use super::{CheckFacts, finding};
use intact_document::failure_remedy::failure_words;
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{Value, statement};
use intact_ledger::server_profile::{IdleWait, Outage, ServerProfile};
use intact_units::number::timer;
use intact_units::plural::counted;
use serde::Serialize;

/// A time in which the server refused connections, after it had responded.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OutageFacts {
    /// Requests that the check had sent before.
    pub requests: u32,
    /// How the first dial failed.
    pub failed: &'static str,
    /// The cause in words.
    pub cause: String,
    /// From the first refused dial to the next accepted one, in milliseconds; absent where the
    /// server accepted none.
    pub lasted_ms: Option<f64>,
}

impl OutageFacts {
    pub(super) fn of(outage: &Outage) -> OutageFacts {
        let lasted = outage
            .over_at
            .map(|over_at| over_at.since(outage.began.end));
        OutageFacts {
            requests: outage.requests,
            failed: outage.failure.id(),
            cause: failure_words(outage.failure, outage.detail.as_deref()),
            lasted_ms: lasted.map(|nanos| nanos as f64 / 1e6),
        }
    }

    /// In a sentence.
    pub(super) fn sentence(&self) -> String {
        let requests = counted(self.requests.into(), "request");
        let OutageFacts { cause, .. } = self;
        match self.lasted_ms {
            None => format!("The server stopped accepting connections after {requests} ({cause})."),
            Some(lasted) => format!(
                "The server accepted no connections for {} after {requests} ({cause}).",
                timer(lasted)
            ),
        }
    }
}

/// What an outage explains, as bounds.
pub(super) struct WithoutOutages {
    pub(super) profile: ServerProfile,
    /// Whether the end of the connection that carried the requests was one of an outage.
    pub(super) requests: bool,
    /// Whether the end of an idle connection was.
    pub(super) idle: bool,
}

impl WithoutOutages {
    pub(super) fn of(profile: &ServerProfile) -> WithoutOutages {
        let mut profile = profile.clone();
        let outages = std::mem::take(&mut profile.outages);
        let is_covered = |at| outages.iter().any(|outage| outage.covers(at));
        let mut requests = false;
        if let Some(tried) = &mut profile.requests {
            let is_over = tried.ended.is_some() || tried.failed.is_some();
            requests = is_over
                && !tried.last_announced
                && tried.lasted.is_some_and(|lasted| is_covered(lasted.end));
            if requests {
                (tried.ended, tried.failed) = (None, None);
            }
        }
        let mut is_cut = false;
        let mut open = |waited: &mut IdleWait| {
            if waited.ended.is_some() && is_covered(waited.span.end) {
                waited.ended = None;
                is_cut = true;
            }
        };
        if let Some(idle) = &mut profile.idle {
            idle.samples.iter_mut().for_each(&mut open);
            idle.between.iter_mut().for_each(&mut open);
            idle.before_first.iter_mut().for_each(&mut open);
        }
        if let Some(held) = &mut profile.idle_under_load {
            held.waited.iter_mut().for_each(&mut open);
        }
        if let Some(age) = &mut profile.age
            && is_covered(age.span.end)
        {
            age.ended = None;
        }
        profile.outages = outages;
        WithoutOutages {
            profile,
            requests,
            idle: is_cut,
        }
    }
}

pub(super) fn findings(facts: &CheckFacts) -> Vec<Finding> {
    let outages = facts.outages.iter();
    let found = outages.map(|outage| {
        let requests = Value::Count(outage.requests.into(), "request");
        let claim = match outage.lasted_ms {
            None => statement!(
                "the server stopped accepting connections after {requests}",
                requests = requests
            ),
            Some(lasted) => statement!(
                "the server accepted no connections for {outage} after {requests}",
                outage = Value::Timer(lasted),
                requests = requests
            ),
        };
        finding(facts, "stopped-accepting", Severity::Error, claim)
            .evidence(outage.cause.clone())
            .fix("find out why it stopped: its log, its exit code, the memory limit; a limit of requests per process (gunicorn `--max-requests`) needs a supervisor that keeps the port open")
            .risk("figures that this outage cut short are unknown, and no requirement about them passes")
    });
    found.collect()
}
