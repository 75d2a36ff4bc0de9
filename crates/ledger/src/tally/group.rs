//! The exchanges of one kind: their histograms and bytes.

use super::{OverTime, add};
use crate::exchange::{Exchange, ExchangeBytes, Phase};
use crate::failure::Outcome;
use crate::histogram::Histogram;
use crate::reuse::Reuse;
use crate::time::Span;
use serde::{Deserialize, Serialize};

/// Bytes that a socket takes at once: the least that Linux has by default (`tcp_wmem`).
const IN_BUFFER: u64 = 16_384;

/// The key of a group of exchanges within a cell.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct GroupKey {
    /// Fresh, preconnected, reused, or unknown.
    pub reuse: Option<Reuse>,
    /// Excluded from steady-state figures.
    pub warmup: bool,
    /// The outcome.
    pub outcome: Outcome,
}

/// What the exchanges of an open loop have in addition.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenLoopTimes {
    /// How late the client started those that were started, beginning when a connection was free.
    pub scheduling_error: Histogram,
    /// How long those waited that were due while every connection was busy.
    pub queued: Histogram,
    /// From when they were due to when the client read the response, of those that have a kernel
    /// stamp.
    pub until_read: Histogram,
    /// Latency without the client's lateness: what it would have been at least, had the client
    /// been on time.
    #[serde(default)]
    pub on_time: Histogram,
    /// The same without the setup that the exchanges waited for.
    #[serde(default)]
    pub on_time_without_setup: Histogram,
    /// Latency by the time at which requests were due.
    #[serde(default)]
    pub over_time: OverTime,
}

impl OpenLoopTimes {
    fn record(&mut self, exchange: &Exchange, error: Span) {
        self.scheduling_error.record(error.nanos());
        let late = exchange.late_at_most.unwrap_or(error.nanos());
        let late = late.saturating_add(late_in_sending(exchange));
        self.over_time.record(exchange.at, exchange.latency());
        let on_time = |nanos: u64| nanos.saturating_sub(late);
        self.on_time.record(on_time(exchange.latency()));
        let without_setup = exchange.latency_without_setup();
        self.on_time_without_setup.record(on_time(without_setup));
        if error.start > exchange.at {
            self.queued.record(error.start.since(exchange.at));
        }
        if let Some(delay) = exchange.client_delay {
            self.until_read.record(delay.end.since(exchange.at));
        }
    }

    /// Adds all of `other`.
    pub fn merge(&mut self, other: &OpenLoopTimes) {
        self.scheduling_error.merge(&other.scheduling_error);
        self.queued.merge(&other.queued);
        self.until_read.merge(&other.until_read);
        self.on_time.merge(&other.on_time);
        self.on_time_without_setup
            .merge(&other.on_time_without_setup);
        self.over_time.merge(&other.over_time);
    }
}

/// What of the sending is the client's: a request that fits into the socket's buffer waits for no
/// peer.
fn late_in_sending(exchange: &Exchange) -> u64 {
    let bytes = &exchange.bytes;
    let fits = bytes.request_head.saturating_add(bytes.request_body) <= IN_BUFFER;
    let send = exchange.spans.send.filter(|_| fits);
    send.map_or(0, Span::nanos)
}

/// The exchanges of one kind in one cell.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// The key.
    #[serde(flatten)]
    pub key: GroupKey,
    /// Latency including setup; its count is the number of exchanges.
    pub latency: Histogram,
    /// Latency without the setup that the exchanges waited for.
    pub without_setup: Histogram,
    /// Client delay of exchanges with a kernel timestamp.
    pub client_delay: Histogram,
    /// Duration of each phase in the exchanges that had it, in the order of [`Phase::ALL`].
    pub phases: [Histogram; 8],
    /// Times of an open loop; absent in a closed one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<Box<OpenLoopTimes>>,
    /// Sums of bytes on the wire; `decoded` is not kept.
    pub bytes: ExchangeBytes,
}

/// The group of a kind, created on demand.
#[inline]
fn group_of(groups: &mut Vec<Group>, key: GroupKey) -> &mut Group {
    // a few kinds at most: a scan is faster than a map
    let at = groups.iter().position(|group| group.key == key);
    let at = at.unwrap_or_else(|| {
        groups.push(Group {
            key,
            ..Group::default()
        });
        groups.len() - 1
    });
    &mut groups[at]
}

/// Counts an exchange in the group of its kind.
#[inline]
pub(super) fn record(groups: &mut Vec<Group>, exchange: &Exchange) {
    let key = GroupKey {
        reuse: exchange.reuse,
        warmup: exchange.warmup,
        outcome: exchange.outcome,
    };
    group_of(groups, key).record(exchange);
}

/// Adds all of `theirs`.
pub(super) fn merge(ours: &mut Vec<Group>, theirs: &[Group]) {
    for group in theirs {
        group_of(ours, group.key).merge(group);
    }
}

/// The groups for which `keep` returns true, merged into one; its key is that of the first.
pub(super) fn merged(groups: &[Group], keep: impl Fn(&GroupKey) -> bool) -> Option<Group> {
    let mut groups = groups.iter().filter(|group| keep(&group.key));
    let mut all = groups.next()?.clone();
    for group in groups {
        all.merge(group);
    }
    Some(all)
}

impl Group {
    /// Number of exchanges.
    pub fn count(&self) -> u64 {
        self.latency.count()
    }

    /// See [`super::Tally::sum_of_counts`].
    pub(super) fn counts(&self) -> [u64; 5] {
        let bytes = &self.bytes;
        let (head, body) = (bytes.request_head, bytes.request_body);
        [head, body, bytes.head, bytes.body, self.count()]
    }

    /// The histogram of one phase.
    pub fn phase(&self, phase: Phase) -> &Histogram {
        &self.phases[phase as usize]
    }

    #[inline]
    fn record(&mut self, exchange: &Exchange) {
        let latency = exchange.latency();
        self.latency.record(latency);
        self.without_setup.record(exchange.latency_without_setup());
        if let Some(span) = exchange.client_delay {
            self.client_delay.record(span.nanos());
        }
        for phase in Phase::ALL {
            if let Some(span) = exchange.spans.of(phase) {
                self.phases[phase as usize].record(span.nanos());
            }
        }
        if let Some(error) = exchange.scheduling_error {
            let times = self.open_loop.get_or_insert_default();
            times.record(exchange, error);
        }
        self.add_bytes(&exchange.bytes);
    }

    /// Adds all of `other`, whose key is ignored.
    pub fn merge(&mut self, other: &Group) {
        self.latency.merge(&other.latency);
        self.without_setup.merge(&other.without_setup);
        self.client_delay.merge(&other.client_delay);
        for (ours, theirs) in self.phases.iter_mut().zip(&other.phases) {
            ours.merge(theirs);
        }
        if let Some(theirs) = &other.open_loop {
            self.open_loop.get_or_insert_default().merge(theirs);
        }
        self.add_bytes(&other.bytes);
    }

    /// Packs its histograms.
    pub(super) fn pack(&mut self) {
        self.latency.pack();
        self.client_delay.pack();
        self.phases.iter_mut().for_each(Histogram::pack);
        // the same, unless exchanges waited for a setup
        self.without_setup.pack_like(&self.latency);
        if let Some(times) = &mut self.open_loop {
            times.scheduling_error.pack();
            times.queued.pack();
            times.until_read.pack();
            times.on_time.pack_like(&self.latency);
            times.on_time_without_setup.pack_like(&times.on_time);
            times.over_time.pack();
        }
    }

    #[inline]
    fn add_bytes(&mut self, more: &ExchangeBytes) {
        let ours = &mut self.bytes;
        add(&mut ours.request_head, more.request_head);
        add(&mut ours.request_body, more.request_body);
        add(&mut ours.head, more.head);
        add(&mut ours.body, more.body);
    }
}
