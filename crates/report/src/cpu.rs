//! Processor time in words, the same on every page.

use intact_findings::cpu::{CpuFacts, CpuUse};
use intact_units::number::{count, percent, time};

/// What was taken and for what, a line for each who took it.
pub(crate) fn lines(cpu: &CpuFacts) -> Vec<String> {
    let mut lines = vec![said("", &cpu.program)];
    for one in &cpu.other_processes {
        let who = format!("beside it, {} ({}): ", one.command, one.pid);
        lines.push(said(&who, &one.took));
    }
    lines
}

fn said(who: &str, took: &CpuUse) -> String {
    let mut line = match (took.user_ms, took.system_ms) {
        (Some(user), Some(system)) => {
            format!(
                "{who}{} of its own, {} in the kernel",
                time(user),
                time(system)
            )
        }
        _ => format!("{who}how much is not known of a process that ended meanwhile"),
    };
    if let Some(work) = took.work {
        let parts = [
            ("sockets", work.socket),
            ("TLS", work.tls),
            ("lookups", work.dns),
            ("waiting for readiness", work.readiness),
            ("anything else", work.other),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(name, share)| format!("{name} {}", percent(*share)))
            .collect();
        line.push_str(&format!(
            ": {} ({} samples)",
            parts.join(", "),
            count(work.samples)
        ));
    }
    line
}
