//! Connections over time as a picture, of a bench and of what was observed.

use crate::svg::{self, Tone};
use intact_findings::timeline::{TimelineConnection, TimelineGroup};
use intact_ledger::Side;
use intact_units::number::{count, tick, time};
use intact_units::plural::counted;

/// The picture of these lanes.
pub(super) fn picture(lanes: &[TimelineGroup]) -> svg::Timeline {
    let end = lanes
        .iter()
        .flat_map(|lane| &lane.connections)
        .map(last_moment)
        .fold(0.0, f64::max);
    svg::Timeline {
        lanes: lanes
            .iter()
            .map(|lane| svg::Lane {
                name: match lane.more {
                    0 => lane.name.clone(),
                    more => format!("{} (+{})", lane.name, count(more)),
                },
                lives: lane
                    .connections
                    .iter()
                    .map(|connection| life(connection, end))
                    .collect(),
            })
            .collect(),
        label: tick,
    }
}

/// The last moment of a connection that is known.
fn last_moment(life: &TimelineConnection) -> f64 {
    let exchanges = life.exchanges.iter().map(|exchange| exchange.1);
    exchanges
        .chain(life.to_ms)
        .chain(life.ready_ms)
        .fold(life.from_ms, f64::max)
}

fn life(life: &TimelineConnection, end: f64) -> svg::Life {
    let carried = life.carried.map_or(String::new(), |carried| {
        format!(", carried {}", counted(carried, "request"))
    });
    // requests that are not drawn must not look like idle time
    let rest = life
        .carried
        .and_then(|carried| carried.checked_sub(life.exchanges.len() as u64))
        .filter(|&rest| rest > 0);
    let (tone, how) = match (life.failed, life.ended_by) {
        (Some(kind), _) => (Some(Tone::Alarm), format!("dial failed: {kind}")),
        (None, Some(by)) => {
            let tone = match life.ended_by_side() {
                Some(Side::Client) => Tone::Plain,
                _ => Tone::Alarm,
            };
            (Some(tone), format!("ended by {by}"))
        }
        (None, None) if life.to_ms.is_some() => (None, "its end is not told".to_owned()),
        (None, None) => (None, "open".to_owned()),
    };
    svg::Life {
        from: life.from_ms,
        ready: life.ready_ms,
        to: match life.to_ms {
            _ if rest.is_some() => last_moment(life),
            Some(to) => to,
            None if life.failed.is_some() => last_moment(life),
            None => end,
        },
        ticks: life
            .exchanges
            .iter()
            .map(|&(from, to, ok)| svg::Tick { from, to, ok })
            .collect(),
        rest: rest.map(|rest| format!("… {} more", count(rest))),
        end: tone
            .filter(|_| rest.is_none())
            .map(|tone| (tone, how.clone())),
        words: format!("opened at {}{carried}, {how}", time(life.from_ms)),
    }
}
