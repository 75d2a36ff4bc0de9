//! The catalogue while it is measured: read from the tree, compared or rewritten.

use super::closed_loop::Loop;
use super::watch_counts::{Counts, Order, Watched};
use super::{Args, Job, check, environment, lock};
use crate::tally::Tally;
use anyhow::{Context, bail};
use intact_fix::{Catalogue, Client, Measurement, Variant};
use serde::Serialize;
use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Of variants: one passes if it was measured, or agrees with the catalogue.
impl Tally {
    fn fail(&mut self, job: &Job<'_>) {
        self.failed.push(job.plain_name());
    }

    /// What a variant gave. One that could not be run is taken in as a failure, and its error
    /// printed.
    fn unless_failed<T>(&mut self, job: &Job<'_>, ran: anyhow::Result<T>) -> Option<T> {
        ran.inspect_err(|error| {
            self.fail(job);
            println!("{}: FAILED: {error:#}", job.name());
        })
        .ok()
    }

    /// Takes in whether the loops of a variant close, and prints a row for each.
    pub(super) fn note_loops(&mut self, job: &Job<'_>, loops: anyhow::Result<Vec<Loop>>) {
        let name = job.name();
        for one in self.unless_failed(job, loops).unwrap_or_default() {
            let order = match one.order {
                Order::InTurn => "in turn",
                Order::AtOnce => "at once",
            };
            let (rules, gates) = (one.rules.join(", "), one.gates.join(", "));
            let closes = match one.broken.is_empty() {
                true => "closes".to_owned(),
                false => one.broken.join("; "),
            };
            let connections = one.connections;
            println!("| {name} | {order} | {connections} | {rules} | {gates} | {closes} |");
            match one.broken.is_empty() {
                true => self.passed += 1,
                false => self.fail(job),
            }
        }
    }

    /// Takes in the result of a variant under `intact watch`, and prints its rows.
    pub(super) fn note_watched(&mut self, job: &Job<'_>, rows: anyhow::Result<Vec<Watched>>) {
        let Some(rows) = self.unless_failed(job, rows) else {
            return;
        };
        let name = job.name();
        for scheme in ["http", "https"] {
            let cell = |order: Order| {
                let mut rows = rows.iter();
                let row = rows.find(|row| row.scheme == scheme && row.order == order)?;
                // what is inferred is marked
                let mark = if row.is_inferred { "~" } else { "" };
                let Counts {
                    connections,
                    requests,
                } = row.watch;
                let mut text = format!("{connections}, {mark}{requests}");
                if row.server != row.watch {
                    let Counts {
                        connections,
                        requests,
                    } = row.server;
                    let _ = write!(text, " (server: {connections}, {requests})");
                }
                for difference in &row.differences {
                    let _ = write!(text, "; {difference}");
                }
                for rule in &row.wrong_findings {
                    let _ = write!(text, "; finding {rule}");
                }
                Some(text)
            };
            let [in_turn, at_once] = Order::ALL.map(cell);
            if in_turn.is_some() || at_once.is_some() {
                let or_dash = |cell: Option<String>| cell.unwrap_or_else(|| "-".to_owned());
                println!(
                    "| {name} | {scheme} | {} | {} |",
                    or_dash(in_turn),
                    or_dash(at_once)
                );
            }
        }
        if rows.iter().all(Watched::holds) {
            self.passed += 1;
        } else {
            self.fail(job);
        }
    }
}

/// What has been found so far.
pub(super) struct CatalogueRun {
    pub(super) catalogue: Catalogue,
    pub(super) done: Tally,
}

impl CatalogueRun {
    /// One line per claim of the catalogue that the measurement contradicts. Without a claim for
    /// the same versions, it is compared with one for other versions. Faults are not compared in
    /// the quick set, which does not measure them.
    fn compared_with(&self, measured: &Measurement, args: &Args) -> Vec<String> {
        let claims = || self.catalogue.measured.iter();
        let exact = claims().find(|one| check::is_of(one, measured));
        let similar = || {
            claims().rfind(|one| one.client == measured.client && one.variant == measured.variant)
        };
        match exact.or_else(similar) {
            Some(claimed) if args.quick => {
                let mut claimed = claimed.clone();
                claimed.facts.faults = None;
                check::differences(&claimed, measured, args.idle_for())
            }
            Some(claimed) => check::differences(claimed, measured, args.idle_for()),
            None => vec!["the catalogue has no measurement of this variant".to_owned()],
        }
    }

    /// Takes one measurement in and prints it.
    pub(super) fn note(
        &mut self,
        job: &Job<'_>,
        measured: anyhow::Result<Measurement>,
        args: &Args,
    ) {
        let taken = measured.and_then(|measured| self.take(job, measured, args));
        let Some(differences) = self.done.unless_failed(job, taken) else {
            return;
        };
        let name = job.name();
        if differences.is_empty() {
            self.done.passed += 1;
            println!("{name}: {}", if args.check { "holds" } else { "measured" });
        } else {
            self.done.fail(job);
            for line in differences {
                println!("{name}: {line}");
            }
        }
    }

    /// Checks, shows or writes; gives what does not hold.
    fn take(
        &mut self,
        job: &Job<'_>,
        measured: Measurement,
        args: &Args,
    ) -> anyhow::Result<Vec<String>> {
        if args.check {
            return Ok(self.compared_with(&measured, args));
        }
        if args.show {
            println!("{}", serde_json::to_string_pretty(&measured)?);
            return Ok(Vec::new());
        }
        let _alone = lock::take(lock::MEASURED)?;
        // another harness may have written meanwhile
        self.catalogue = read()?;
        if let Some(part) = args.only {
            let mut all = self.catalogue.measured.iter_mut();
            let Some(known) = all.find(|one| check::is_of(one, &measured)) else {
                bail!("the catalogue has no measurement with these versions; run without --only");
            };
            part.take_over(&mut known.facts, measured.facts);
            write(&mut self.catalogue)?;
            return Ok(Vec::new());
        }
        // without versions in the catalogue, the installed runtime is the only one
        let only = job.runtime.is_none();
        self.catalogue.measured.retain(|one| {
            let same = one.client == measured.client && one.variant == measured.variant;
            !(check::is_of(one, &measured) || only && same)
        });
        self.catalogue.measured.push(measured);
        // after each, so that a later failure loses nothing
        write(&mut self.catalogue)?;
        Ok(Vec::new())
    }
}

/// The lines of a program between its marks.
pub(super) fn snippet(client: &Client, variant: &Variant) -> anyhow::Result<String> {
    let folder = environment::sources().join(&client.id);
    let path = fs::read_dir(&folder)
        .with_context(|| folder.display().to_string())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| {
            path.file_stem()
                .is_some_and(|stem| stem == variant.program())
        })
        .with_context(|| format!("no program {} in {}", variant.program(), folder.display()))?;
    let text = fs::read_to_string(&path)?;
    let parts = marked(&text);
    if parts.is_empty() {
        bail!(
            "{} has no lines between `snippet` and `end`",
            path.display()
        );
    }
    Ok(parts.join("\n\n"))
}

/// The lines between each pair of marks, without the indentation that they share. A mark is a
/// comment.
fn marked(text: &str) -> Vec<String> {
    let is_mark = |line: &str, word: &str| {
        let line = line.trim();
        let comment = line.strip_prefix("//").or_else(|| line.strip_prefix('#'));
        comment.is_some_and(|comment| comment.trim() == word)
    };
    let mut parts = Vec::new();
    let mut rest = text.lines();
    while rest.any(|line| is_mark(line, "snippet")) {
        let lines: Vec<&str> = rest
            .by_ref()
            .take_while(|line| !is_mark(line, "end"))
            .collect();
        let indented = lines.iter().filter(|line| !line.trim().is_empty());
        let margin = indented
            .map(|line| line.len() - line.trim_start().len())
            .min();
        let lines: Vec<&str> = lines
            .iter()
            .map(|line| line.get(margin.unwrap_or(0)..).unwrap_or(""))
            .collect();
        parts.push(lines.join("\n").trim_matches('\n').trim_end().to_owned());
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Copies the snippets of the programs into the measured part, without measuring. For programs in
/// which only the marks have moved; `--check` verifies others.
pub(super) fn refresh_snippets() -> anyhow::Result<Tally> {
    let _alone = lock::take(lock::MEASURED)?;
    let mut catalogue = read()?;
    let mut done = Tally::default();
    let mut measured = std::mem::take(&mut catalogue.measured);
    for one in &mut measured {
        let of = |client: &&Client| client.id == one.client;
        let Some(client) = catalogue.clients.iter().find(of) else {
            continue;
        };
        let of = |variant: &&Variant| variant.id == one.variant;
        let Some(variant) = client.variants.iter().find(of) else {
            continue;
        };
        let lines = snippet(client, variant)?;
        if lines != one.snippet {
            println!("{}/{}: lines taken over", one.client, one.variant);
            one.snippet = lines;
            done.passed += 1;
        }
    }
    catalogue.measured = measured;
    write(&mut catalogue)?;
    Ok(done)
}

/// The catalogue as it is in the tree now, which may be newer than this program.
pub(super) fn read() -> anyhow::Result<Catalogue> {
    let folder = environment::sources();
    let written = fs::read_to_string(folder.join("catalogue.toml"))?;
    let measured = fs::read_to_string(folder.join("measured.json"))?;
    Ok(Catalogue::parse(&written, &measured)?)
}

/// Writes the measured part, in the order of the written one.
fn write(catalogue: &mut Catalogue) -> anyhow::Result<()> {
    let order: Vec<(String, String)> = catalogue
        .clients
        .iter()
        .flat_map(|client| {
            client
                .variants
                .iter()
                .map(|variant| (client.id.clone(), variant.id.clone()))
        })
        .collect();
    catalogue.measured.sort_by_key(|one| {
        let at = order
            .iter()
            .position(|(client, variant)| *client == one.client && *variant == one.variant);
        (at, format!("{:?}", one.versions))
    });
    write_measured(
        &environment::sources().join("measured.json"),
        &catalogue.measured,
    )
}

/// Replaces a file of measurements in one step.
pub(super) fn write_measured(path: &Path, measured: &impl Serialize) -> anyhow::Result<()> {
    let text = serde_json::to_string_pretty(measured)? + "\n";
    let new = path.with_extension("json.new");
    fs::write(&new, text)?;
    Ok(fs::rename(new, path)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_several_marked_parts_and_words_are_no_marks() {
        let text =
            "a\n// snippet\nimport x\n// end\nb\n  # snippet\n  def f\n    1\n  end\n  # end\nc";
        assert_eq!(marked(text), ["import x", "def f\n  1\nend"]);
    }

    #[test]
    fn what_fix_prints_is_what_was_measured() {
        let catalogue = read().unwrap();
        for client in &catalogue.clients {
            for variant in &client.variants {
                let written = snippet(client, variant).unwrap();
                for one in catalogue.of(client, variant) {
                    assert_eq!(
                        one.snippet, written,
                        "{}/{} was changed and not measured again",
                        client.id, variant.id
                    );
                }
            }
        }
    }

    #[test]
    fn every_variant_was_measured_on_every_runtime() {
        let catalogue = read().unwrap();
        for client in &catalogue.clients {
            for variant in &client.variants {
                let measured: Vec<&Measurement> = catalogue.of(client, variant).collect();
                assert!(!measured.is_empty(), "{}/{}", client.id, variant.id);
                for runtime in &client.runtimes {
                    let has =
                        |one: &Measurement| one.versions.values().any(|version| version == runtime);
                    assert!(
                        measured.iter().any(|one| has(one)),
                        "{}/{} on {runtime}",
                        client.id,
                        variant.id
                    );
                }
            }
        }
    }
}
