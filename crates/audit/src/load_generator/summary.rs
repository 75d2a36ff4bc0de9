//! Results with sums and no requests: the tool that wrote them, and the command that writes
//! requests.

/// A summary of a load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Description of the file.
    pub(crate) what: &'static str,
    /// The command that writes one row per request.
    pub(crate) instead: &'static str,
}

/// First bytes of each summary, without blanks; its description; the command that writes requests.
const BEGINNINGS: [(&str, &str, &str); 7] = [
    (
        "{\"summary\":{\"successRate\"",
        "oha's summary",
        "oha --output-format csv",
    ),
    ("{\"root_group\":", "k6's summary", "k6 run --out json=FILE"),
    ("{\"metrics\":{", "k6's summary", "k6 run --out json=FILE"),
    (
        "{\"latencies\":{\"total\":",
        "vegeta's report",
        "vegeta encode --to json < results.bin",
    ),
    (
        "Requests[total,rate,throughput]",
        "vegeta's report",
        "vegeta encode --to json < results.bin",
    ),
    ("Summary:Total:", "hey's summary", "hey -o csv"),
    (
        "Summary:Successrate:",
        "oha's summary",
        "oha --output-format csv",
    ),
];

impl Summary {
    /// Detects a summary by its first bytes.
    pub(crate) fn detect(prefix: &[u8]) -> Option<Summary> {
        let start: String = String::from_utf8_lossy(&prefix[..prefix.len().min(256)])
            .chars()
            .filter(|letter| !letter.is_whitespace())
            .take(64)
            .collect();
        let known = BEGINNINGS
            .iter()
            .find(|(beginning, ..)| start.starts_with(beginning));
        known.map(|&(_, what, instead)| Summary { what, instead })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_detected_with_any_indentation() {
        let what = |text: &str| Summary::detect(text.as_bytes()).map(|summary| summary.what);
        assert_eq!(
            what("{\n  \"summary\": {\n    \"successRate\": 1.0"),
            Some("oha's summary")
        );
        assert_eq!(
            what("\nSummary:\n  Total:\t0.1 secs"),
            Some("hey's summary")
        );
        assert_eq!(what("{\"level\":\"info\"}"), None);
        assert_eq!(what(""), None);
    }
}
