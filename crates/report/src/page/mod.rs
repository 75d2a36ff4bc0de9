//! What a page says, whatever it is written as: verdict, findings, pictures, tables, method.
//!
//! One module for each kind of facts fills a [`Page`]; [`crate::html`] and [`crate::markdown`] write it. Text in here is plain: the
//! writers escape it. Must not compute: what is shown comes from findings.

mod bench;
mod by_round;
mod check;
mod compare;
mod download;
mod environment;
mod lambda;
mod observed;
mod parts;
mod populations;
mod timeline;

pub use bench::BenchRun;
pub use check::CheckRun;
pub use compare::CompareRun;
pub use lambda::LambdaRun;
pub use observed::ObservedRun;
pub(crate) use parts::{
    Assessment, Case, Fact, Figure, FindingGroup, Headline, Method, Section, Table,
};

use intact_ledger::Run;

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
    pub(crate) chapters: Vec<Section>,
}

/// What a page can be made of.
#[derive(Clone, Copy)]
pub enum Source<'a> {
    /// A bench.
    Bench(BenchRun<'a>),
    /// What `watch`, `audit` or a server saw.
    Observed(ObservedRun<'a>),
    /// Programs side by side.
    Compared(CompareRun<'a>),
    /// The card of a server.
    Checked(CheckRun<'a>),
    /// A function.
    Lambda(LambdaRun<'a>),
}

impl<'a> From<LambdaRun<'a>> for Source<'a> {
    fn from(run: LambdaRun<'a>) -> Source<'a> {
        Source::Lambda(run)
    }
}

impl<'a> From<BenchRun<'a>> for Source<'a> {
    fn from(run: BenchRun<'a>) -> Source<'a> {
        Source::Bench(run)
    }
}

impl<'a> From<ObservedRun<'a>> for Source<'a> {
    fn from(run: ObservedRun<'a>) -> Source<'a> {
        Source::Observed(run)
    }
}

impl<'a> From<CompareRun<'a>> for Source<'a> {
    fn from(run: CompareRun<'a>) -> Source<'a> {
        Source::Compared(run)
    }
}

impl<'a> From<CheckRun<'a>> for Source<'a> {
    fn from(run: CheckRun<'a>) -> Source<'a> {
        Source::Checked(run)
    }
}

impl<'a> Source<'a> {
    fn run(&self) -> &'a Run {
        match self {
            Source::Bench(one) => one.run,
            Source::Observed(one) => one.run,
            Source::Compared(one) => one.run,
            Source::Checked(one) => one.run,
            Source::Lambda(one) => one.run,
        }
    }

    /// What was measured, and through what.
    fn subject(&self) -> String {
        let run = self.run();
        let subject = match (&run.subject, self) {
            (Some(subject), _) => subject.clone(),
            (None, Source::Bench(_)) => "the built-in server".to_owned(),
            (None, Source::Compared(one)) => {
                let names: Vec<&str> = one
                    .run
                    .variants
                    .iter()
                    .map(|one| one.name.as_str())
                    .collect();
                names.join(" against ")
            }
            (None, Source::Checked(one)) => {
                let target = one.facts.target.as_ref();
                target.map_or_else(String::new, |target| target.url.clone())
            }
            // a wrapper's program stands behind the dashes
            (None, Source::Observed(_) | Source::Lambda(_)) => {
                let mut words = run.argv.iter().skip_while(|word| *word != "--").skip(1);
                let first = words.next().cloned().unwrap_or_default();
                words.fold(first, |all, word| all + " " + word)
            }
        };
        match &run.link {
            Some(link) => format!("{subject} behind {link}"),
            None => subject,
        }
    }

    fn chapter(&self, prefix: String) -> serde_json::Result<Section> {
        match *self {
            Source::Bench(one) => bench::chapter(one, prefix),
            Source::Observed(one) => observed::chapter(one, prefix),
            Source::Compared(one) => compare::chapter(one, prefix),
            Source::Checked(one) => check::chapter(one, prefix),
            Source::Lambda(one) => lambda::chapter(one, prefix),
        }
    }
}

impl Page {
    /// The page of one run, or of several one below the other.
    ///
    /// # Errors
    /// The raw numbers could not be written as JSON.
    pub fn new(sources: &[Source<'_>]) -> serde_json::Result<Page> {
        let several = sources.len() > 1;
        let mut chapters = Vec::new();
        for (nth, source) in (1..).zip(sources) {
            let prefix = if several {
                format!("run{nth}-")
            } else {
                String::new()
            };
            let mut chapter = source.chapter(prefix)?;
            let run = source.run();
            chapter.heading = several.then(|| {
                let (subject, started) = (source.subject(), when(&run.started));
                format!("Run {nth}: {} {subject}, {started}", run.producer)
            });
            chapters.push(chapter);
        }
        let mut subjects: Vec<String> = sources.iter().map(Source::subject).collect();
        subjects.dedup();
        let mut commands: Vec<&str> = sources
            .iter()
            .map(|source| source.run().producer.as_str())
            .collect();
        commands.dedup();
        let first = sources.first().map(Source::run);
        Ok(Page {
            command: commands.join(", "),
            subject: subjects.join(", "),
            started: first.map_or_else(String::new, |run| run.started.clone()),
            version: first.map_or_else(String::new, |run| run.version.clone()),
            chapters,
        })
    }
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
