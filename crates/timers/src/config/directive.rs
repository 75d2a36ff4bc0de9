//! A configuration as a tree of directives, and the place of a directive in a file.

use crate::hop::{Idle, Place, Timer, after};
use std::time::Duration;

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
        let place = Place::Directive {
            words: self.words.join(" "),
            file: self.file.clone(),
            line: self.line,
        };
        Timer::new(idle, place).of(scope)
    }

    /// A limit of this time, which is one of its arguments; `None` if the argument is no time.
    pub(super) fn limit(&self, time: Option<Duration>, scope: String) -> Timer {
        let idle = time.map_or(Idle::Unknown("its value is no time"), after);
        self.timer(idle, scope)
    }

    /// Whether it has this name, in any case.
    pub(super) fn is(&self, name: &str) -> bool {
        self.name().eq_ignore_ascii_case(name)
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

/// The directives of a block and of its inner blocks, except those inside of a `whole` one.
pub(super) fn walk(block: &[Directive], whole: impl Fn(&Directive) -> bool) -> Vec<&Directive> {
    let mut all = Vec::new();
    let mut rest: Vec<&Directive> = block.iter().rev().collect();
    while let Some(one) = rest.pop() {
        all.push(one);
        if !whole(one) {
            rest.extend(one.block.iter().rev());
        }
    }
    all
}

/// Builds a tree from opened and closed blocks. What is never closed ends with its file.
#[derive(Default)]
pub(super) struct Tree {
    open: Vec<Directive>,
    /// The directives of the outermost level.
    pub(super) roots: Vec<Directive>,
    /// Blocks that were open when the current file began. It cannot close these.
    outer: usize,
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

    /// Closes the innermost block of the current file.
    pub(super) fn close(&mut self) {
        if self.depth() == self.outer {
            return;
        }
        if self.too_deep > 0 {
            self.too_deep -= 1;
        } else if let Some(block) = self.open.pop() {
            self.add(block);
        }
    }

    /// Begins a file inside of the current one. Returns what [`Tree::end`] needs.
    pub(super) fn begin(&mut self) -> usize {
        let depth = self.depth();
        std::mem::replace(&mut self.outer, depth)
    }

    /// Ends the current file.
    pub(super) fn end(&mut self, outer: usize) {
        while self.depth() > self.outer {
            self.close();
        }
        self.outer = outer;
    }

    fn depth(&self) -> usize {
        self.open.len() + self.too_deep
    }
}
