//! A page while it is written: lines, wrapped sentences, titles, tables.

use super::table::{Column, lay_out};
use super::{Style, TerminalOptions, wrap};

pub(super) struct Page {
    pub(super) paper: TerminalOptions,
    pub(super) text: String,
}

impl Page {
    /// An empty page.
    pub(super) fn on(paper: TerminalOptions) -> Page {
        Page {
            paper: TerminalOptions {
                width: paper.width.max(40),
                ..paper
            },
            text: String::new(),
        }
    }

    pub(super) fn line(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(super) fn wrapped(&mut self, ink: Option<Style>, text: &str, indent: &str) {
        for line in wrap(text, self.paper.width - 2, indent) {
            let line = ink.map_or_else(|| line.clone(), |ink| self.paper.ink(ink, &line));
            self.line(&format!("  {line}"));
        }
    }

    pub(super) fn title(&mut self, text: &str) {
        let text = self.paper.ink(Style::Strong, text);
        self.line("");
        self.line(&text);
    }

    pub(super) fn table(&mut self, columns: Vec<Column>) {
        let (lines, gone) = lay_out(columns, self.paper.width);
        for (nth, line) in lines.iter().enumerate() {
            let line = if nth == 0 {
                self.paper.ink(Style::Faint, line)
            } else {
                line.clone()
            };
            self.line(&line);
        }
        if !gone.is_empty() {
            let told = format!(
                "not shown for want of width: {} (--json has all)",
                gone.join(", ")
            );
            self.wrapped(Some(Style::Faint), &told, "");
        }
    }
}
