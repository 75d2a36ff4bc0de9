//! The pictures of an observed run.

use super::ObservedRun;
use crate::page::download::Download;
use crate::page::parts::sentence;
use crate::page::{Figure, populations, timeline};
use crate::svg::{self, Tone};
use crate::terminal::step_side;
use intact_findings::traffic::Destination;
use intact_units::number::{count, tick, time, whole};

/// Destinations in the picture of waste.
const BARS: usize = 12;

/// All pictures that have something to show.
pub(super) fn all(one: ObservedRun<'_>) -> Vec<Figure> {
    [
        waste(one),
        latency(one),
        phases(one),
        over_time(one),
        openings(one),
        gaps(one),
        lives(one),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Where the setup that was not needed went.
fn waste(one: ObservedRun<'_>) -> Option<Figure> {
    let wasteful: Vec<&Destination> = one
        .facts
        .destinations
        .iter()
        .filter(|destination| destination.figures.avoidable > 0)
        .collect();
    let bars: Vec<svg::Bar> = wasteful
        .iter()
        .filter_map(|destination| {
            let figures = &destination.figures;
            let wasted = figures.wasted_ms?;
            Some(svg::Bar {
                name: destination.origin.clone(),
                tone: Tone::Fresh,
                value: wasted,
                interval: None,
                words: format!(
                    "{}: {} opened, {} needed",
                    time(wasted),
                    count(figures.connections.opened),
                    count(figures.connections.needed)
                ),
            })
        })
        .take(BARS)
        .collect();
    if bars.is_empty() {
        return None;
    }
    let mut notes = vec!["Setup of connections beyond those that were needed.".to_owned()];
    if wasteful.len() > bars.len() {
        notes.push(format!(
            "{} of {} destinations that waste some; the table has the others.",
            bars.len(),
            wasteful.len()
        ));
    }
    let picture = svg::Bars { bars, label: tick };
    Some(Figure::new("waste", "Where time is wasted", picture, notes))
}

fn latency(one: ObservedRun<'_>) -> Option<Figure> {
    let all = &one.pictures.latency;
    if all.is_empty() {
        return None;
    }
    let picture = svg::Histogram {
        panels: vec![populations::panel(String::new(), all)],
        label: tick,
    };
    let notes =
        vec!["Latency of complete requests to all destinations, setup included.".to_owned()];
    let rows = all
        .iter()
        .flat_map(|population| populations::bucket_rows("all", population));
    let file = Download::csv(
        "latency.csv",
        &populations::bucket_head("destination"),
        rows,
    );
    let title = "Latency: new against reused connections";
    Some(Figure::new("latency", title, picture, notes).with_file(file))
}

fn phases(one: ObservedRun<'_>) -> Option<Figure> {
    let all = &one.pictures.latency;
    let stacks = populations::stacks("", all);
    if stacks.is_empty() {
        return None;
    }
    let notes = vec![
        "Mean time that each phase adds to a request. Cold requests waited for a new connection; warm ones ran on one that was there."
            .to_owned(),
    ];
    let rows = all
        .iter()
        .flat_map(|population| populations::phase_rows("all", population));
    let file = Download::csv("phases.csv", &populations::phase_head("destination"), rows);
    let picture = svg::Stacks {
        stacks,
        label: tick,
    };
    let title = "Where the time goes: cold against warm";
    Some(Figure::new("waterfall", title, picture, notes).with_file(file))
}

fn over_time(one: ObservedRun<'_>) -> Option<Figure> {
    let pictures = one.pictures;
    let points: Vec<svg::LinePoint> = pictures
        .periods
        .iter()
        .filter_map(|period| {
            Some(svg::LinePoint {
                x: period.from_s * 1e3,
                y: period.mean_ms?,
                interval: None,
            })
        })
        .collect();
    if points.len() < 3 {
        return None;
    }
    let mut notes = vec![format!(
        "Mean latency of the requests that ended in each {}.",
        tick(pictures.period_s * 1e3)
    )];
    let mut marks = Vec::new();
    if let Some((when, change)) = pictures.change {
        let (before, after) = (time(change.before), time(change.after));
        notes.push(format!(
            "The level changed at {}, from {before} to {after} (p = {:.3}; latency that drifts by itself is marked too easily).",
            time(when * 1e3),
            change.p_value
        ));
        if let Some(step) = &pictures.step {
            for (name, side) in [("Before", step.before), ("After", step.after)] {
                notes.push(sentence(&step_side(name, side)));
            }
        }
        marks.push(svg::Mark {
            x: when * 1e3,
            words: format!("{before} → {after}"),
        });
    }
    let picture = svg::Lines {
        lines: vec![svg::Line {
            name: "mean latency".to_owned(),
            tone: Tone::Reused,
            points,
            // a pause of a few periods is a pause
            reach: Some(pictures.period_s * 3.5e3),
        }],
        marks,
        x_spread: svg::ScaleKind::Linear,
        x_label: tick,
        y_label: tick,
    };
    Some(Figure::new("over-time", "Latency over time", picture, notes).with_file(periods(one)))
}

/// Connections opened beside the requests that they were for.
fn openings(one: ObservedRun<'_>) -> Option<Figure> {
    let pictures = one.pictures;
    if pictures.periods.len() < 3 {
        return None;
    }
    let line = |name: &str, tone, of: fn(&intact_findings::traffic::Period) -> u64| svg::Line {
        name: name.to_owned(),
        tone,
        points: pictures
            .periods
            .iter()
            .map(|period| svg::LinePoint {
                x: period.from_s * 1e3,
                y: of(period) as f64,
                interval: None,
            })
            .collect(),
        reach: None,
    };
    let picture = svg::Lines {
        lines: vec![
            line("requests", Tone::Reused, |period| period.requests),
            line("connections opened", Tone::Fresh, |period| period.opened),
        ],
        marks: Vec::new(),
        x_spread: svg::ScaleKind::Linear,
        x_label: tick,
        y_label: whole,
    };
    let notes = vec![format!(
        "In each {}. Where the two lines lie together, every request opens a connection.",
        tick(pictures.period_s * 1e3)
    )];
    Some(Figure::new(
        "openings",
        "Requests and connections opened",
        picture,
        notes,
    ))
}

fn periods(one: ObservedRun<'_>) -> Download {
    let rows = one.pictures.periods.iter().map(|period| {
        vec![
            period.from_s.to_string(),
            period.requests.to_string(),
            period.mean_ms.map_or_else(String::new, |ms| ms.to_string()),
            period.opened.to_string(),
        ]
    });
    Download::csv(
        "over-time.csv",
        &["from_s", "requests", "mean_ms", "opened"],
        rows,
    )
}

fn gaps(one: ObservedRun<'_>) -> Option<Figure> {
    let panels = &one.pictures.gaps;
    if panels.is_empty() {
        return None;
    }
    let picture = svg::Histogram {
        panels: panels
            .iter()
            .map(|panel| svg::Panel {
                name: panel.name.clone(),
                populations: vec![svg::Population {
                    words: format!("{} reuses", count(panel.count)),
                    tone: Tone::Reused,
                    buckets: panel.buckets.clone(),
                }],
                band: panel.danger_ms.map(|(from, to)| svg::Band {
                    from,
                    to,
                    words: format!("server closes at {}", tick(to)),
                }),
            })
            .collect(),
        label: tick,
    };
    let notes = vec![
        "How long connections lay idle before they were used again. In the band the server is about to close: what is sent then may be lost.".to_owned(),
    ];
    let rows = panels.iter().flat_map(|panel| {
        panel.buckets.iter().map(|(low, high, count)| {
            vec![
                panel.name.clone(),
                low.to_string(),
                high.to_string(),
                count.to_string(),
            ]
        })
    });
    let file = Download::csv(
        "idle-gaps.csv",
        &["destination", "low_ms", "high_ms", "count"],
        rows,
    );
    let title = "Idle time before a connection was used again";
    Some(Figure::new("gaps", title, picture, notes).with_file(file))
}

fn lives(one: ObservedRun<'_>) -> Option<Figure> {
    let pictures = one.pictures;
    if pictures.timeline.is_empty() {
        return None;
    }
    let mut notes = vec![
        "The first connections to each of the first destinations; (+n): so many more are not drawn.".to_owned(),
    ];
    if pictures.elsewhere > 0 {
        notes.push(format!(
            "{} connections lead to further destinations.",
            count(pictures.elsewhere)
        ));
    }
    if !one.run.ends_seen {
        notes.push(
            "When a connection ended is not told: its line ends with its last request.".to_owned(),
        );
    }
    let picture = timeline::picture(&pictures.timeline);
    Some(Figure::new("timeline", "Connections over time", picture, notes).across())
}
