//! What a client does when its connection fails: the columns of a measurement, and the setting that
//! limits a hang.

use super::{Row, copied, outcome, pair, seconds};
use crate::page::*;
use intact_fix::{
    Catalogue, Client, CutBody, HangLimit, LifetimeFacts, RequestOutcome, SilentWait, UnderFaults,
    UserTimeout,
};

/// The longest waits of a GET / POST on a connection that went silent.
pub(super) fn waits(row: &Row<'_>) -> Option<Text> {
    let faults = row.one.facts.faults.as_ref()?;
    pair([faults.silent_get, faults.silent_post].map(|wait| wait.map(waited)))
}

/// The wait of a GET on a silent connection of HTTP/2.
pub(super) fn over_http2(row: &Row<'_>) -> Option<Text> {
    row.one.facts.faults.as_ref()?.silent_http2.map(waited)
}

/// Its seconds.
fn time(wait: SilentWait) -> f64 {
    match wait {
        SilentWait::Ended { after_s, .. } => after_s,
        SilentWait::Endless { for_s, .. } => for_s,
    }
}

fn waited(wait: SilentWait) -> Text {
    let (time, result) = match wait {
        SilentWait::Ended { after_s, outcome } => (text!("{}", seconds(after_s)), outcome),
        SilentWait::Endless { for_s, outcome } => (text!("at least {}", seconds(for_s)), outcome),
    };
    let result = match result {
        RequestOutcome::Fine => ", then sent again",
        RequestOutcome::Error => "",
        RequestOutcome::SentTwice | RequestOutcome::SentTwiceInVain => ", then sent twice",
    };
    text!("{}{}", time, result)
}

/// Whether a GET / POST whose response was reset is sent again, although the server has processed
/// it.
pub(super) fn after_reset(row: &Row<'_>) -> Option<Text> {
    outcome(&[row.one.facts.faults.as_ref()?.reset])
}

/// What the caller of a request gets whose response was cut short.
pub(super) fn cut(row: &Row<'_>) -> Option<&'static str> {
    Some(match row.one.facts.faults.as_ref()?.cut? {
        CutBody::Error => "error",
        CutBody::SentAgain => "sent again",
        CutBody::TakenAsComplete => "taken as complete",
        CutBody::SentAgainInVain => "sent again, error",
    })
}

/// TCP_USER_TIMEOUT.
pub(super) fn user_timeout(row: &Row<'_>) -> Option<Text> {
    Some(match row.one.facts.faults.as_ref()?.user_timeout? {
        UserTimeout::Off => "off".into(),
        UserTimeout::On { after_s } => text!("{}", seconds(after_s)),
    })
}

/// What the default does on a connection that went silent, and what limits that; for the newest
/// version.
pub(super) fn limit(
    catalogue: &Catalogue,
    client: &Client,
    reusing: Option<&Row<'_>>,
    newest: Option<&Row<'_>>,
) -> Option<Section> {
    let newest = newest?.one;
    let hang = catalogue.hang_limit(client, newest);
    let ping = catalogue.ping_limit(client, newest);
    if hang.is_none() && ping.is_none() {
        return None;
    }
    let without = |wait: fn(&UnderFaults) -> Option<SilentWait>, on| {
        let row = reusing?;
        let silent = wait(row.one.facts.faults.as_ref()?)?;
        let words = match silent {
            SilentWait::Ended { .. } => "Without it (`{}`) a GET on {} waited {}.",
            SilentWait::Endless { .. } => {
                "Without it (`{}`) a GET on {} waited for at least {}; no timeout of the client ended that."
            }
        };
        Some(text!(words, &row.variant.id, on, seconds(time(silent))))
    };
    let mut section = Section::new("hang", "What limits a hang");
    if let Some(limit) = &hang {
        section = section.summary(without(|one| one.silent_get, "a silent connection"));
        section = lines(section, limit);
    }
    if let Some(limit) = &ping {
        section = section
            .summary(Text::from(
                "HTTP/2 PING ends a silent connection, and its requests with it.",
            ))
            .summary(without(
                |one| one.silent_http2,
                "a silent connection of HTTP/2",
            ));
        section = lines(section, limit);
    }
    Some(section)
}

/// What a setting did, and its lines.
fn lines(section: Section, limit: &HangLimit) -> Section {
    let words = match limit.measured {
        SilentWait::Ended { .. } => "With a limit of 2 s (`{}`) it waited {}.",
        SilentWait::Endless { .. } => {
            "With a limit of 2 s (`{}`) it waited for at least {}: this setting does not limit the wait."
        }
    };
    let with = text!(words, &limit.variant, seconds(time(limit.measured)));
    let advice = text!(
        "These lines wait for at most {}; set what your callers can wait for, on the one client that keeps connections:",
        seconds(limit.timeout_s)
    );
    section
        .summary(with)
        .summary(advice)
        .summary(Block::Code(copied(&limit.snippet)))
}

/// The setting that limits the life of a connection, with its effect; for the newest version.
pub(super) fn life(
    catalogue: &Catalogue,
    client: &Client,
    newest: Option<&Row<'_>>,
) -> Option<Section> {
    let limit = catalogue.life_limit(client, newest?.one)?;
    let words = match limit.measured {
        LifetimeFacts::Ended { after_s } => text!(
            "With a limit of 4 s (`{}`) a connection in use lived {}.",
            &limit.variant,
            seconds(after_s)
        ),
        LifetimeFacts::Unlimited { for_s } => text!(
            "With a limit of 4 s (`{}`) a connection in use lived for at least {}: this setting does not limit its life.",
            &limit.variant,
            seconds(for_s)
        ),
    };
    let advice = text!(
        "A pool whose connections are never idle does not notice that DNS has changed. These lines replace a connection after {}:",
        seconds(limit.life_s)
    );
    Some(
        Section::new("life", "What limits the life of a connection")
            .summary(words)
            .summary(advice)
            .summary(Block::Code(copied(&limit.snippet))),
    )
}
