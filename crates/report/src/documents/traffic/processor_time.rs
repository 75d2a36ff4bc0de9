//! What the program and other processes took of the processors.

use crate::page::*;
use intact_document::cpu::{CpuFacts, CpuUse};
use intact_units::Quantity::{Share, Time};

/// Processor time, a line for each process.
pub(super) fn processor_time(cpu: Option<&CpuFacts>) -> Section {
    let Some(cpu) = cpu else {
        return Section::new("cpu", "Processor time");
    };
    let others = cpu.other_processes.iter().map(|one| {
        let who = format!("{} ({}), running at the same time: ", one.command, one.pid);
        cpu_use(&who, &one.took)
    });
    let lines = std::iter::once(cpu_use("", &cpu.program)).chain(others);
    Section::new("cpu", "Processor time")
        .weighing(Weight::Asked)
        .summary(lines.map(Block::from).collect::<Vec<Block>>())
}

fn cpu_use(who: &str, took: &CpuUse) -> Text {
    let times = match (took.user_ms, took.system_ms) {
        (Some(user), Some(system)) => text!(
            "{}{} in the program, {} in the kernel",
            who,
            Time(user),
            Time(system)
        ),
        _ => text!(
            "{}not known: the process ended before it could be read",
            who
        ),
    };
    let Some(work) = took.work else { return times };
    let parts = [
        ("sockets", work.socket),
        ("TLS", work.tls),
        ("lookups", work.dns),
        ("waiting for readiness", work.readiness),
        ("other", work.other),
    ];
    let parts = parts.iter().filter(|(_, share)| *share > 0.0);
    let parts: Vec<String> = parts
        .map(|(name, share)| format!("{name} {}", Share(*share)))
        .collect();
    text!("{}: {} ({} samples)", times, parts.join(", "), work.samples)
}
