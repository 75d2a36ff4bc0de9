//! The requirements that make the gate print its reading of every figure, and its lines. The only
//! place that knows how a line of the gate is written.

use super::reading::Reading;
use crate::program::intact;
use serde_json::Value;
use std::collections::BTreeSet;

/// A figure as `intact help --json` lists it: a threshold that it cannot have, in its unit.
pub(crate) struct Metric {
    pub(crate) name: String,
    pub(crate) commands: BTreeSet<String>,
    pub(crate) never: &'static str,
}

/// Every figure that can be required.
pub(crate) fn metrics() -> Vec<Metric> {
    let out = intact(&["help", "--json"]);
    let help: Value = serde_json::from_slice(&out.stdout).unwrap();
    let metrics = help["metrics"].as_array().unwrap().iter().map(|one| {
        let name = one["name"].as_str().unwrap();
        let name = name.replace("<kind>", "timeout").replace("<code>", "200");
        let units = one["units"].as_str().unwrap();
        let never = match units.split([' ', ',']).next().unwrap() {
            "%" => "-1%",
            "/s" => "-1/s",
            "ns" => "-1ms",
            "B" => "-1B",
            _ => "-1",
        };
        let commands = one["commands"].as_array().unwrap().iter();
        let commands = commands.map(|command| command.as_str().unwrap().to_owned());
        Metric {
            name,
            commands: commands.collect(),
            never,
        }
    });
    metrics.collect()
}

/// What a line of the gate says after the name of the figure, and whether it says it in one of the
/// display forms.
pub(crate) fn gate_reading(words: &str) -> (Reading, bool) {
    let reason = |words: &str| {
        let why = words.split_once('(').map(|(_, why)| why);
        let why = why.and_then(|why| why.rsplit_once(')'));
        why.map(|(why, _)| why.to_owned())
    };
    if let Some(words) = words.strip_prefix("is unknown, ~") {
        let value = words.split(" is inferred (").next().unwrap_or_default();
        return (Reading::displayed(value), true);
    }
    if let Some(why) = words.strip_prefix("is unknown, not judged: ") {
        return (Reading::Unknown(Some(why.to_owned())), true);
    }
    if let Some(words) = words.strip_prefix("is unknown") {
        return (Reading::Unknown(reason(words)), true);
    }
    if let Some(words) = words.strip_prefix("has no value") {
        return (Reading::Unknown(reason(words)), false);
    }
    let Some(words) = words.strip_prefix("is ") else {
        return (Reading::Strange(words.to_owned()), false);
    };
    let value = words.split(", ").next().unwrap_or_default();
    match value.strip_prefix("between ") {
        Some(value) => (Reading::displayed(&value.replace(" and ", " to ")), false),
        None => {
            let reading = Reading::displayed(value);
            let is_form = !matches!(reading, Reading::Strange(_));
            (reading, is_form)
        }
    }
}

#[test]
fn a_line_of_the_gate_is_read_in_its_form_of_today_and_in_the_display_form() {
    for (words, stated, is_form) in [
        ("is 6, required == -1", "6", true),
        ("is between 2 and 8, required == -1", "2 to 8", false),
        ("is 2 to 8, required == -1", "2 to 8", true),
        ("is at least 1,300, required == -1", "at least 1300", true),
        (
            "has no value (not seen (here))",
            "unknown (not seen (here))",
            false,
        ),
        ("is unknown (not seen)", "unknown (not seen)", true),
        (
            "is not judged, because no request got a complete response",
            "no reading: not judged",
            false,
        ),
    ] {
        let (reading, form) = gate_reading(words);
        assert_eq!((reading.to_string(), form), (stated.to_owned(), is_form));
    }
}
