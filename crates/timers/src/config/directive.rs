//! A configuration as a tree of directives, and the place of a directive in a file.

use crate::hop::{Idle, Place, Timer};

/// Blocks inside blocks that are followed; a deeper one is left out.
pub(super) const DEEPEST: usize = 40;

/// One directive with its block.
#[derive(Clone, Debug, Default)]
pub(super) struct Directive {
    pub(super) words: Vec<String>,
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) block: Vec<Directive>,
}

impl Directive {
    /// Its name.
    pub(super) fn name(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Its nth argument, from 1.
    pub(super) fn argument(&self, nth: usize) -> &str {
        self.words.get(nth).map_or("", String::as_str)
    }

    /// All arguments.
    pub(super) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    /// A limit that this directive sets.
    pub(super) fn timer(&self, idle: Idle, scope: String) -> Timer {
        Timer {
            idle,
            scope,
            place: Place::Directive {
                words: self.words.join(" "),
                file: self.file.clone(),
                line: self.line,
            },
        }
    }

    /// Its scope for a person: the name with the arguments of a block.
    pub(super) fn scope(&self) -> String {
        self.words.join(" ")
    }
}

/// The last directive of this name in a block.
pub(super) fn last<'a>(block: &'a [Directive], name: &str) -> Option<&'a Directive> {
    block.iter().rfind(|one| one.name() == name)
}

/// Builds a tree from opened and closed blocks. What is never closed ends with the text.
#[derive(Default)]
pub(super) struct Tree {
    open: Vec<Directive>,
    roots: Vec<Directive>,
    /// Blocks that are open and too deep to be kept.
    too_deep: usize,
}

impl Tree {
    /// Adds a directive without a block.
    pub(super) fn add(&mut self, directive: Directive) {
        if self.too_deep > 0 {
            return;
        }
        match self.open.last_mut() {
            Some(parent) => parent.block.push(directive),
            None => self.roots.push(directive),
        }
    }

    /// Opens a block.
    pub(super) fn open(&mut self, directive: Directive) {
        if self.too_deep > 0 || self.open.len() >= DEEPEST {
            self.too_deep += 1;
        } else {
            self.open.push(directive);
        }
    }

    /// Closes the innermost block.
    pub(super) fn close(&mut self) {
        if self.too_deep > 0 {
            self.too_deep -= 1;
        } else if let Some(block) = self.open.pop() {
            self.add(block);
        }
    }

    /// The directives of the outermost level.
    pub(super) fn finish(mut self) -> Vec<Directive> {
        self.too_deep = 0;
        while !self.open.is_empty() {
            self.close();
        }
        self.roots
    }
}
