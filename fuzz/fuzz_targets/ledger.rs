//! Any files as a ledger: the reader, the facts of its document, its page in every form, and its exports. An error or a page,
//! never a panic. A part begins with 0x1e and a letter that names its file; events may be plain or compressed.
#![no_main]

use intact_findings::stored::Stored;
use intact_fuzz::{mutate_text, scratch};
use intact_ledger::store::Reader;
use intact_ledger::{Row, Run, export};
use intact_model::{Counting, Reuse};
use intact_report::documents::{self, BenchRun, CheckRun, CompareRun, LambdaRun, Source, TrafficRun};
use intact_report::page::Page;
use intact_report::terminal::TerminalOptions;
use intact_report::{html, markdown, terminal};
use libfuzzer_sys::{fuzz_mutator, fuzz_target};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

fuzz_mutator!(|data: &mut [u8], size: usize, room: usize, seed: u32| {
    mutate_text(data, size, room, seed)
});

fuzz_target!(|bytes: &[u8]| {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| scratch("ledger"));
    write(folder, bytes);
    let Ok(reader) = Reader::open(folder) else { return };
    if let Ok(stored) = Stored::read(folder, &reader) {
        // the HTML is most of the time: it is written for every fourth input
        print(&page(&stored), bytes.len() % 4 == 0);
    }
    if let Ok(traffic) = intact_findings::stored::traffic(&reader)
        && let Some(fit) = intact_model::fit("fuzz", &traffic.facts())
    {
        let forecast = intact_model::Forecast::new(&fit.chain, Counting::Tcp, Reuse::Configured);
        print(&documents::model(&forecast, "fuzz", Some(&fit), true), false);
    }
    export_rows(&reader);
});

/// Replaces the folder's files by the parts of the input.
fn write(folder: &Path, bytes: &[u8]) {
    for name in ["run.json", "events.jsonl.zst", "tally.json", "server-profile.json", "end.json"] {
        let _ = fs::remove_file(folder.join(name));
    }
    for part in bytes.split(|byte| *byte == 0x1e) {
        let Some((kind, content)) = part.split_first() else { continue };
        let (name, content) = match kind {
            b'r' => ("run.json", content.to_vec()),
            b'e' => ("events.jsonl.zst", zstd::bulk::compress(content, 1).expect("memory")),
            b'z' => ("events.jsonl.zst", content.to_vec()),
            b't' => ("tally.json", content.to_vec()),
            b'p' => ("server-profile.json", content.to_vec()),
            b'n' => ("end.json", content.to_vec()),
            _ => continue,
        };
        fs::write(folder.join(name), content).expect("a file in memory");
    }
}

fn page(stored: &Stored) -> Page<'_> {
    let source = match stored {
        Stored::Bench(one) => Source::Bench(BenchRun { run: &one.run, facts: &one.facts, charts: &one.charts }),
        Stored::Observed(one) => Source::Traffic(TrafficRun {
            run: &one.run,
            facts: &one.facts,
            charts: &one.charts,
            inputs: &[],
            answers: &[],
            ladder: None,
        }),
        Stored::Compared(one) => Source::Compare(CompareRun { run: &one.run, facts: &one.facts }),
        Stored::Check(one) => Source::Check(CheckRun { run: &one.run, facts: &one.facts }),
        Stored::Lambda(one) => Source::Lambda(LambdaRun { run: &one.run, facts: &one.facts }),
    };
    source.page()
}

fn print(page: &Page<'_>, with_html: bool) {
    let text = terminal::write(page, TerminalOptions { width: 80, colour: false });
    let is_plain = |letter: char| letter == '\n' || !letter.is_control();
    assert!(text.chars().all(is_plain), "a control character reaches the terminal");
    if with_html {
        let _ = html::write(std::slice::from_ref(page));
    }
    markdown::write(std::slice::from_ref(page));
}

fn export_rows(reader: &Reader) {
    let Ok(events) = reader.events() else { return };
    let run: &Run = reader.run();
    let mut har = export::har::HarWriter::new(Vec::new(), run).ok();
    for row in events {
        if let (Row::Exchange(exchange), Some(har)) = (&row, &mut har) {
            har.entry(exchange, None).expect("memory");
        }
    }
}
