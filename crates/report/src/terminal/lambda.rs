//! The page of a function's invocations: verdict, a row for each variant and kind, what failed.

use super::page::Page;
use super::table::Column;
use super::{Style, TerminalOptions, escape};
use crate::number::maybe_time;
use intact_findings::lambda::{
    FreezeEffect, Freezes, FrozenConnection, Kind, LambdaFacts, VariantFacts,
};
use intact_ledger::Run;
use intact_units::number::count;

/// The page of a function's invocations.
pub fn lambda(run: &Run, facts: &LambdaFacts, paper: TerminalOptions) -> String {
    let mut page = Page::on(paper);
    let link = run.link.as_ref().map(|link| format!(" behind {link}"));
    page.line(&format!(
        "{}{}",
        page.paper.ink(Style::Strong, "intact lambda"),
        escape(&link.unwrap_or_default())
    ));
    page.line("");
    for (nth, sentence) in facts.verdict.iter().enumerate() {
        page.wrapped((nth == 0).then_some(Style::Strong), &escape(sentence), "  ");
    }
    page.title("Invocations, the function's own time");
    let rows: Vec<(&VariantFacts, &Kind)> = facts
        .variants
        .iter()
        .flat_map(|variant| variant.kinds.iter().map(move |kind| (variant, kind)))
        .collect();
    let column = |head, rank, cell: &dyn Fn(&VariantFacts, &Kind) -> String| Column {
        head,
        rank,
        cells: rows
            .iter()
            .map(|(variant, kind)| cell(variant, kind))
            .collect(),
    };
    let mut columns = vec![
        column("kind", 0, &|_, kind| kind.name.clone()),
        column("count", 0, &|_, kind| count(kind.count)),
        column("failed", 0, &|_, kind| count(kind.failed)),
        column("mean", 0, &|_, kind| maybe_time(kind.latency_ms.mean)),
        column("p50", 1, &|_, kind| maybe_time(kind.latency_ms.p50)),
        column("p99", 2, &|_, kind| maybe_time(kind.latency_ms.p99)),
        column("conns", 2, &|_, kind| each(kind.connections_per_invocation)),
        column("max", 3, &|_, kind| maybe_time(kind.latency_ms.max)),
        column("start", 4, &|_, kind| {
            maybe_time(kind.init_ms.as_ref().and_then(|init| init.mean))
        }),
    ];
    if facts.variants.len() > 1 {
        columns.insert(0, column("variant", 0, &|variant, _| escape(&variant.name)));
    }
    page.table(columns);
    if facts.connections.is_some() {
        let note = "conns: connections opened for each invocation, by the function's own doing";
        page.wrapped(Some(Style::Faint), note, "  ");
    }
    pauses(&mut page, &rows);
    page.stands_out(&facts.findings);
    let failed = rows.iter().any(|(_, kind)| kind.failed > 0);
    if failed {
        page.title("What failed");
        for (variant, kind) in rows {
            for (words, times) in &kind.failures {
                let told = format!("{} {}: {times} x {words}", variant.name, kind.name);
                page.wrapped(Some(Style::Alarm), &escape(&told), "  ");
            }
        }
    }
    let again = facts
        .invocations
        .iter()
        .filter(|call| call.duplicate_response > 0);
    let again = again.count();
    if again > 0 {
        let told = format!("{again} invocations were answered more than once; Lambda refuses that");
        page.wrapped(Some(Style::Alarm), &told, "  ");
    }
    if !facts.caveats.is_empty() {
        page.line("");
    }
    for caveat in &facts.caveats {
        let told = format!("caveat: {}", escape(&caveat.message));
        page.wrapped(Some(Style::Alarm), &told, "  ");
    }
    page.text
}

fn each(count: Option<f64>) -> String {
    match count {
        None => "-".to_owned(),
        Some(count) if count.fract() == 0.0 => format!("{count:.0}"),
        Some(count) => format!("{count:.2}"),
    }
}

/// What became of the connections that freezes found open.
fn pauses(page: &mut Page, rows: &[(&VariantFacts, &Kind)]) {
    let rows: Vec<(&str, &str, &Freezes)> = rows
        .iter()
        .filter_map(|(variant, kind)| Some((&*variant.name, &*kind.name, kind.freezes.as_ref()?)))
        .collect();
    if rows.is_empty() {
        return;
    }
    page.title("Connections that were open when the function was frozen");
    let column = |head, rank, cell: &dyn Fn(&Freezes) -> u64| Column {
        head,
        rank,
        cells: rows.iter().map(|(.., one)| count(cell(one))).collect(),
    };
    let name = |head, of: &dyn Fn(&(&str, &str, &Freezes)) -> String| Column {
        head,
        rank: 0,
        cells: rows.iter().map(of).collect(),
    };
    let several = rows.iter().any(|(variant, ..)| *variant != rows[0].0);
    let mut columns = vec![name("pause", &|(_, kind, _)| escape(kind))];
    if several {
        columns.insert(0, name("variant", &|(variant, ..)| escape(variant)));
    }
    columns.push(column("open", 0, &|one| one.open));
    for case in FrozenConnection::ALL {
        let of = |one: &Freezes| one.connection_states.get(&case).copied().unwrap_or(0);
        if rows.iter().any(|(.., one)| of(one) > 0) {
            columns.push(column(case.words(), 0, &of));
        }
    }
    for (head, saw) in [
        ("recovered", FreezeEffect::Recovered),
        ("failed", FreezeEffect::Failed),
    ] {
        let of = move |one: &Freezes| one.effect.get(&saw).copied().unwrap_or(0);
        columns.push(column(head, 1, &of));
    }
    page.table(columns);
    let note = "recovered, failed: invocations after a pause in which a connection had died";
    page.wrapped(Some(Style::Faint), note, "  ");
}
