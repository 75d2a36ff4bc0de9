//! Processor time in words, the same on every page.

use crate::number::{count, maybe_time, percent};
use findings::cpu::{CpuFacts, CpuUse};

/// What was taken and for what, a line for each who took it.
pub(crate) fn lines(cpu: &CpuFacts) -> Vec<String> {
    let mut lines = vec![said("", &cpu.program)];
    for one in &cpu.beside {
        let who = format!("beside it, {} ({}): ", one.command, one.pid);
        lines.push(said(&who, &one.took));
    }
    lines
}

fn said(who: &str, took: &CpuUse) -> String {
    let mut line = format!(
        "{who}{} of its own, {} in the kernel",
        maybe_time(took.user_ms),
        maybe_time(took.system_ms)
    );
    if let Some(work) = took.work {
        let parts = [
            ("sockets", work.socket),
            ("TLS", work.tls),
            ("look-ups", work.dns),
            ("waiting for readiness", work.readiness),
            ("anything else", work.other),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(_, share)| *share > 0.0)
            .map(|(name, share)| format!("{name} {}", percent(Some(*share))))
            .collect();
        line.push_str(&format!(
            ": {} ({} samples)",
            parts.join(", "),
            count(work.samples)
        ));
    }
    line
}
