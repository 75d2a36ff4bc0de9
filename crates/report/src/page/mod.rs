//! What a page says, whatever it is written as: verdict, findings, pictures, tables, method.
//!
//! One module for each kind of facts fills a [`Page`]; [`crate::html`] and [`crate::markdown`] write it. Text in here is plain: the
//! writers escape it. Must not compute: what is shown comes from findings.

mod bench;
mod download;
mod parts;
mod timeline;

pub use bench::{BenchRun, bench};
pub(crate) use parts::{
    Case, Chapter, Fact, Figure, FindingGroup, Headline, Method, Standing, Table,
};

/// A report in one file.
pub struct Page {
    /// The command that measured.
    pub(crate) command: String,
    /// What was measured.
    pub(crate) subject: String,
    /// When, as RFC 3339.
    pub(crate) started: String,
    /// Version of the tool.
    pub(crate) version: String,
    /// One for each run.
    pub(crate) chapters: Vec<Chapter>,
}

/// `2026-01-01T00:00:00.123Z` as people read it, in UTC.
pub(crate) fn when(started: &str) -> String {
    let seconds = started.split('.').next().unwrap_or(started);
    match seconds.trim_end_matches('Z').split_once('T') {
        Some((day, time)) => format!("{day} {time} UTC"),
        None => started.to_owned(),
    }
}

/// Prose cut at its backticks: every second piece is code. A backtick without a partner stays.
pub(crate) fn pieces(prose: &str) -> impl Iterator<Item = &str> {
    let alone = prose.matches('`').count() % 2 == 1;
    let limit = if alone { 1 } else { usize::MAX };
    prose.splitn(limit, '`')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_told_to_the_second() {
        assert_eq!(
            when("2026-01-01T10:20:30.123456Z"),
            "2026-01-01 10:20:30 UTC"
        );
        assert_eq!(when("2026-01-01T10:20:30Z"), "2026-01-01 10:20:30 UTC");
        assert_eq!(when("yesterday"), "yesterday");
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        let told: Vec<&str> = pieces("set `a`, not `b`").collect();
        assert_eq!(told, ["set ", "a", ", not ", "b", ""]);
        let told: Vec<&str> = pieces("a ` alone").collect();
        assert_eq!(told, ["a ` alone"]);
    }
}
