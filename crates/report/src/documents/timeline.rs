//! Connections over time, of a bench and of observed traffic.

use super::common::time_axis;
use crate::page::*;
use intact_ledger::{Run, Side};
use intact_traffic::timeline::{TimelineConnection, TimelineGroup};
use intact_units::Quantity::{Count, Time};
use intact_units::plural::counted;

/// The chart of these lanes.
pub(super) fn chart(run: &Run, lanes: &[TimelineGroup], note: impl Into<Text>) -> Chart {
    let lives = lanes.iter().flat_map(|lane| &lane.connections);
    let end = lives.map(last_moment).fold(0.0, f64::max);
    let x = time_axis(run, end / 1e3);
    let lane = |lane: &TimelineGroup| Lane {
        name: match lane.more {
            0 => lane.name.clone(),
            more => format!("{} (+{})", lane.name, Count(more)),
        },
        lives: lane
            .connections
            .iter()
            .map(|one| life(one, end, x))
            .collect(),
    };
    let timeline = Timeline {
        lanes: lanes.iter().map(lane).collect(),
        x,
    };
    let more = lanes.iter().any(|lane| lane.more > 0);
    let more = more.then(|| "(+n): n more are not drawn.".into());
    Chart::new("timeline", "Connections over time", timeline, note)
        .wide()
        .notes(more)
}

/// The last moment of a connection that is known.
fn last_moment(life: &TimelineConnection) -> f64 {
    let exchanges = life.exchanges.iter().map(|exchange| exchange.1);
    let moments = exchanges.chain(life.to_ms).chain(life.ready_ms);
    moments.fold(life.from_ms, f64::max)
}

fn life(life: &TimelineConnection, end: f64, x: Axis) -> Life {
    let carried = life.carried.map_or_else(String::new, |carried| {
        format!(", carried {}", counted(carried, "request"))
    });
    // requests that are not drawn must not look like idle time
    let undrawn = life
        .carried
        .and_then(|carried| carried.checked_sub(life.exchanges.len() as u64));
    let rest = undrawn.filter(|&rest| rest > 0);
    let (tone, how) = match (life.failed, life.ended_by) {
        (Some(kind), _) => (
            Some(Tone::Alarm),
            format!("connection attempt failed: {kind}"),
        ),
        (None, Some(by)) => {
            let tone = match life.ended_by_side() {
                Some(Side::Client) => Tone::Plain,
                _ => Tone::Alarm,
            };
            (Some(tone), format!("ended by {by}"))
        }
        (None, None) if life.to_ms.is_some() => (None, "end not observed".to_owned()),
        (None, None) => (None, "open".to_owned()),
    };
    let opened = match x {
        Axis::Date { .. } => x.label(life.from_ms),
        Axis::Time | Axis::Count => Time(life.from_ms).to_string(),
    };
    Life {
        from: life.from_ms,
        ready: life.ready_ms,
        to: match life.to_ms {
            _ if rest.is_some() || life.failed.is_some() => last_moment(life),
            Some(to) => to,
            None => end,
        },
        ticks: life
            .exchanges
            .iter()
            .map(|&(from, to, ok)| Tick { from, to, ok })
            .collect(),
        rest: rest.map(|rest| format!("… {} more", Count(rest))),
        end: tone
            .filter(|_| rest.is_none())
            .map(|tone| (tone, how.clone())),
        words: format!("opened at {opened}{carried}, {how}"),
    }
}
