//! What happens to the events of a check: rows for the facts, ledger, packets, the profile as soon
//! as there is one, progress with a countdown.
//! Trouble with a file does not end the check: it is printed.

use super::ladder;
use super::output_files::{OpenOutputs, OutputFiles};
use super::progress;
use crate::console;
use crate::interrupt::Interrupt;
use indicatif::ProgressBar;
use intact_check::{CheckProgress, Packets, ProbeKind, ServerProfile};
use intact_ledger::{Caveat, Event, Row, Run};
use intact_report::documents::{self, CheckPart, CheckRun};
use intact_report::page::Section;
use intact_report::terminal::{FirstPart, Length};
use intact_servers::check::CheckFacts;
use intact_units::plural::counted;
use std::fs::File;
use std::io::Write as _;
use std::time::Duration;

/// Takes the events of a check. Their number is bounded by the check's budget, so that all are
/// kept.
pub(crate) struct Watching {
    rows: Vec<Row>,
    kept: OpenOutputs,
    troubles: Vec<String>,
    bar: ProgressBar,
    interrupt: Interrupt,
    stage: Option<ProbeKind>,
    early: Option<Early>,
    wanted: Wanted,
    /// The packets as a page, until they are printed.
    ladders: String,
}

/// What is to become of packets.
#[derive(Default)]
pub(crate) struct Wanted {
    /// Whether they are shown.
    pub(crate) ladder: bool,
    /// Where they are kept.
    pub(crate) pcapng: Option<File>,
}

/// How the profile is printed before anything is waited for.
pub(crate) struct Early {
    /// The head of the run.
    pub(crate) run: Run,
    /// What comes after the profile.
    pub(crate) next: String,
    /// The profile, once it is printed.
    pub(crate) printed: Option<PrintedProfile>,
    /// How much of the profile is printed.
    pub(crate) length: Length,
}

/// A profile that is printed already.
pub(crate) struct PrintedProfile {
    /// What it was made of.
    pub(crate) facts: CheckFacts,
    /// Its text.
    pub(crate) part: FirstPart,
}

/// What was recorded.
pub(crate) struct Watched {
    /// Everything that happened.
    pub(crate) rows: Vec<Row>,
    /// What could not be written.
    pub(crate) caveats: Vec<Caveat>,
    /// The profile, if it is printed already.
    pub(crate) printed: Option<PrintedProfile>,
    /// The packets as a page, unless they are printed already.
    pub(crate) ladders: String,
}

impl Watching {
    /// Opens the ledger that was asked for; `early` where a profile is to be printed as soon as
    /// there is one.
    pub(crate) fn start(
        run: &Run,
        files: &OutputFiles,
        interrupt: Interrupt,
        early: Option<Early>,
        wanted: Wanted,
    ) -> anyhow::Result<Watching> {
        let kept = files.open(run)?;
        let bar = progress::bar(None, 10, "{spinner} {wide_msg}")?;
        Ok(Watching {
            rows: Vec::new(),
            kept,
            troubles: Vec::new(),
            bar,
            interrupt,
            stage: None,
            early,
            wanted,
            ladders: String::new(),
        })
    }

    /// Ends the recording.
    pub(crate) fn finish(mut self, profile: &ServerProfile) -> Watched {
        self.bar.finish_and_clear();
        if self.wanted.pcapng.take().is_some() {
            self.troubles
                .push("--pcapng: no packets were captured, so the file is empty".to_owned());
        }
        self.kept.replace_profile(profile);
        let mut caveats = self.kept.finish();
        caveats.extend(
            self.troubles
                .into_iter()
                .map(|words| Caveat::new("not-written", words)),
        );
        Watched {
            rows: self.rows,
            caveats,
            printed: self.early.and_then(|early| early.printed),
            ladders: self.ladders,
        }
    }

    /// Prints what is known before the limits are looked for.
    fn print_profile(&mut self, profile: &ServerProfile) {
        let Some(early) = &mut self.early else { return };
        let facts = CheckFacts::new(profile, &self.rows);
        let run = CheckRun {
            run: &early.run,
            facts: &facts,
        };
        let part = intact_report::terminal::write_first(
            &documents::check(run, CheckPart::Early),
            console::paper(early.length),
        );
        let ladders = std::mem::take(&mut self.ladders);
        self.bar.suspend(|| {
            console::print_written(&part.text);
            console::print_written(&ladders);
            console::note_lines(&format!("\n{}", early.next));
        });
        early.printed = Some(PrintedProfile { facts, part });
    }

    /// Reports trouble with a file, now and in the page.
    fn report(&mut self, trouble: String) {
        self.note(&trouble);
        self.troubles.push(trouble);
    }

    fn note(&self, trouble: &str) {
        self.bar
            .suspend(|| console::note(&format!("intact: {trouble}; the check goes on")));
    }

    fn flush_now_and_then(&mut self) {
        self.kept.flush_now_and_then();
        if let Some(trouble) = self.kept.news() {
            self.note(&trouble);
        }
    }
}

impl CheckProgress for Watching {
    fn event(&mut self, event: Event<'_>) {
        self.rows.push(event.to_row());
        self.kept.record(event);
        self.flush_now_and_then();
    }

    fn stage(&mut self, stage: ProbeKind, profile: &ServerProfile) {
        if stage == ProbeKind::Requests {
            self.print_profile(profile);
        }
        self.stage = Some(stage);
        self.bar.set_message(stage.name());
        self.bar.tick();
        self.kept.replace_profile(profile);
        self.kept.flush();
    }

    fn packets(&mut self, packets: &Packets) {
        if let Some(mut file) = self.wanted.pcapng.take()
            && let Err(error) = file.write_all(&packets.file)
        {
            self.report(format!("--pcapng: {error}; the file is not whole"));
            console::unwritten_as_noted();
        }
        if packets.lost > 0 {
            self.report(format!(
                "there was no room for {}, which the file lacks",
                counted(packets.lost, "packet")
            ));
        }
        if self.wanted.ladder {
            match ladder::of_packets(packets) {
                Ok((ladders, answers)) => {
                    let mut sections: Vec<Section> =
                        ladders.iter().map(documents::ladder).collect();
                    sections.push(documents::answers(&answers));
                    self.ladders = intact_report::terminal::write_sections(
                        &sections,
                        console::paper(Length::Full),
                    );
                }
                Err(error) => self.report(format!("--ladder: {error:#}")),
            }
        }
    }

    fn waiting(&mut self, left: Duration) {
        let stage = self.stage.map_or("", ProbeKind::name);
        self.bar.set_message(format!(
            "{stage}: waiting, {} s at most; Ctrl-C keeps what is there",
            left.as_secs() + 1
        ));
        self.bar.tick();
        self.flush_now_and_then();
    }

    fn stopped(&self) -> bool {
        self.interrupt.signal().is_some()
    }
}
