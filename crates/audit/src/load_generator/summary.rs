//! Results that hold sums and no requests: what wrote them, and how the requests are to be had.

/// A summary of a load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Summary {
    /// What it is.
    pub(crate) what: &'static str,
    /// How its requests are to be had, one by one.
    pub(crate) instead: &'static str,
}

/// What only such files begin with, after blanks are left out.
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
    /// The summary that a file with these first bytes is.
    pub(crate) fn tell(prefix: &[u8]) -> Option<Summary> {
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
    fn summaries_are_told_however_they_are_indented() {
        let told = |text: &str| Summary::tell(text.as_bytes()).map(|summary| summary.what);
        assert_eq!(
            told("{\n  \"summary\": {\n    \"successRate\": 1.0"),
            Some("oha's summary")
        );
        assert_eq!(
            told("\nSummary:\n  Total:\t0.1 secs"),
            Some("hey's summary")
        );
        assert_eq!(told("{\"level\":\"info\"}"), None);
        assert_eq!(told(""), None);
    }
}
