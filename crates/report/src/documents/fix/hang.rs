//! What a client does when its connection fails: the columns of a measurement, and the setting that limits a hang.

use super::{Row, copied, outcome, pair, seconds};
use crate::page::*;
use intact_fix::{Catalogue, Client, CutBody, HangLimit, RequestOutcome, SilentWait, UserTimeout};

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
        SilentWait::Endless { for_s, outcome } => (text!("≥ {}", seconds(for_s)), outcome),
    };
    let result = match result {
        RequestOutcome::Fine => ", then sent again",
        RequestOutcome::Error => "",
        RequestOutcome::SentTwice | RequestOutcome::SentTwiceInVain => ", then sent twice",
    };
    text!("{}{}", time, result)
}

/// Whether a GET / POST whose response was reset is sent again, although the server has processed it.
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

/// What the default does on a connection that went silent, and what limits that; for the newest version.
pub(super) fn limit(
    catalogue: &Catalogue,
    client: &Client,
    reusing: Option<&Row<'_>>,
    newest: Option<&Row<'_>>,
) -> Option<Section> {
    let limit = catalogue.hang_limit(client, newest?.one)?;
    let HangLimit {
        variant,
        measured,
        timeout_s,
        snippet,
    } = &limit;
    let without = reusing.and_then(|row| {
        let silent = row.one.facts.faults.as_ref()?.silent_get?;
        let words = match silent {
            SilentWait::Ended { .. } => "Without it (`{}`) a GET on a silent connection waited {}.",
            SilentWait::Endless { .. } => {
                "Without it (`{}`) a GET on a silent connection waited for at least {}; no timeout of the client ended that."
            }
        };
        Some(text!(words, &row.variant.id, seconds(time(silent))))
    });
    let words = match measured {
        SilentWait::Ended { .. } => "With a limit of 2 s (`{}`) it waited {}.",
        SilentWait::Endless { .. } => {
            "With a limit of 2 s (`{}`) it waited for at least {}: this setting does not limit the wait."
        }
    };
    let with = text!(words, variant, seconds(time(*measured)));
    let advice = text!(
        "These lines wait for at most {}; set what your callers can wait for:",
        seconds(*timeout_s)
    );
    Some(
        Section::new("hang", "What limits a hang")
            .summary(without)
            .summary(with)
            .summary(advice)
            .summary(Block::Code(copied(snippet))),
    )
}
