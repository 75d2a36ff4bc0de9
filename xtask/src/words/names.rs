//! The names that a Rust file declares: of items, fields, parameters and locals.
//!
//! It reads tokens, because a syntax tree would need a parser of the compiler's size. Uses of a
//! name are not read: a name is wrong where it is declared. Attributes and comments are left out.

use ra_ap_rustc_lexer::{FrontmatterAllowed, TokenKind, tokenize};
use std::ops::Range;

/// A name that a file declares.
pub(super) struct Name {
    /// Offset in the source, in bytes.
    pub(super) start: usize,
    /// The words of the name, with a space between two.
    pub(super) words: String,
}

/// Keywords that an item's name follows.
const ITEMS: &[&str] = &[
    "fn", "struct", "enum", "trait", "type", "mod", "const", "static",
];

/// Keywords of expressions and patterns. None is a name, and a closure may follow most of them.
const KEYWORDS: &[&str] = &[
    "as", "async", "await", "box", "break", "else", "false", "if", "in", "let", "match", "move",
    "mut", "ref", "return", "self", "static", "super", "true", "unsafe", "crate", "pub", "dyn",
    "impl", "where", "for", "loop", "while", "const", "fn",
];

/// The declared names of a Rust file, in order of their offset.
pub(super) fn of_rust(source: &str) -> Vec<Name> {
    let tokens = Tokens::of(source);
    let mut found = Vec::new();
    for at in 0..tokens.0.len() {
        match tokens.text(at) {
            "let" => tokens.bindings(at + 1, &mut found),
            "for" => {
                if let Some(end) = tokens.loop_pattern(at + 1) {
                    tokens.pattern(at + 1..end, &mut found);
                }
            }
            "|" if tokens.begins_closure(at) => tokens.bindings(at + 1, &mut found),
            "=" if tokens.is_arrow(at) => {
                tokens.pattern(tokens.arm_start(at)..at, &mut found);
            }
            item if ITEMS.contains(&item) => tokens.item(at, &mut found),
            _ => {}
        }
    }
    found.sort_unstable();
    found.dedup();
    let name = |at: usize| Name {
        start: tokens.0[at].start,
        words: words(tokens.text(at)),
    };
    found.into_iter().map(name).collect()
}

/// The words of a name in snake case or camel case.
fn words(name: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
    let characters: Vec<char> = name.chars().collect();
    let mut words = String::new();
    for (at, &character) in characters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| characters[before]);
        let after = characters.get(at + 1);
        let begins_word = character.is_uppercase()
            && before.is_some_and(|before| {
                !before.is_uppercase() || after.is_some_and(|after| after.is_lowercase())
            });
        if begins_word && before != Some('_') {
            words.push(' ');
        }
        words.push(if character == '_' { ' ' } else { character });
    }
    words
}

struct Token<'s> {
    start: usize,
    text: &'s str,
    is_ident: bool,
    is_literal: bool,
}

/// The tokens of a file, without spaces, comments and attributes.
struct Tokens<'s>(Vec<Token<'s>>);

impl<'s> Tokens<'s> {
    fn of(source: &'s str) -> Tokens<'s> {
        let mut tokens: Vec<Token<'s>> = Vec::new();
        let mut end = 0;
        // the depth of brackets in an attribute
        let mut attribute = 0;
        for token in tokenize(source, FrontmatterAllowed::No) {
            let start = end;
            end += token.len as usize;
            let text = &source[start..end];
            match token.kind {
                TokenKind::Whitespace
                | TokenKind::LineComment { .. }
                | TokenKind::BlockComment { .. } => continue,
                TokenKind::OpenBracket if attribute > 0 => attribute += 1,
                TokenKind::CloseBracket if attribute > 0 => {
                    attribute -= 1;
                    continue;
                }
                TokenKind::OpenBracket => {
                    let marks = tokens.iter().rev().map(|token| token.text);
                    let marks = marks.take_while(|text| matches!(*text, "#" | "!"));
                    let marks: Vec<&str> = marks.collect();
                    if let Some(hash) = marks.iter().position(|mark| *mark == "#") {
                        tokens.truncate(tokens.len() - hash - 1);
                        attribute = 1;
                    }
                }
                _ => {}
            }
            if attribute == 0 {
                tokens.push(Token {
                    start,
                    text,
                    is_ident: matches!(token.kind, TokenKind::Ident | TokenKind::RawIdent),
                    is_literal: matches!(token.kind, TokenKind::Literal { .. }),
                });
            }
        }
        Tokens(tokens)
    }

    /// The text of a token; empty beyond the end.
    fn text(&self, at: usize) -> &'s str {
        self.0.get(at).map_or("", |token| token.text)
    }

    fn before(&self, at: usize) -> &'s str {
        at.checked_sub(1).map_or("", |before| self.text(before))
    }

    /// Whether two tokens touch, as those of `::` and `=>` do.
    fn is_joined(&self, at: usize) -> bool {
        let next = self.0.get(at + 1);
        next.is_some_and(|next| self.0[at].start + self.0[at].text.len() == next.start)
    }

    fn is_arrow(&self, at: usize) -> bool {
        self.text(at + 1) == ">" && self.is_joined(at)
    }

    /// Whether a token is a colon that is no part of `::`.
    fn is_colon(&self, at: usize) -> bool {
        self.text(at) == ":" && !self.is_path(at) && !(at > 0 && self.is_path(at - 1))
    }

    fn is_path(&self, at: usize) -> bool {
        self.text(at) == ":" && self.text(at + 1) == ":" && self.is_joined(at)
    }

    fn is_name(&self, at: usize) -> bool {
        let token = self.0.get(at);
        token.is_some_and(|token| token.is_ident && !KEYWORDS.contains(&token.text))
    }

    /// Offset after the group that opens at `open`.
    fn group_end(&self, open: usize) -> usize {
        let mut depth = 0;
        for at in open..self.0.len() {
            match self.text(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return at + 1;
            }
        }
        self.0.len()
    }

    /// The name of an item, and its fields, variants or parameters.
    fn item(&self, at: usize, found: &mut Vec<usize>) {
        let keyword = self.text(at);
        let name = at + 1 + usize::from(self.text(at + 1) == "mut");
        // `*const T` is a type
        if self.before(at) != "*" && self.is_name(name) {
            found.push(name);
        }
        let open = match keyword {
            "fn" => "(",
            "struct" | "enum" => "{",
            _ => return,
        };
        let Some(start) = (name..self.0.len())
            .find(|&at| matches!(self.text(at), "{" | ";") || self.text(at) == open)
        else {
            return;
        };
        let end = self.group_end(start);
        match keyword {
            _ if self.text(start) != open => {}
            "fn" => self.bindings(start + 1, found),
            _ => {
                found.extend((start..end).filter(|&at| self.is_name(at) && self.is_colon(at + 1)));
            }
        }
        if keyword == "enum" {
            let mut at = start + 1;
            while at < end {
                if matches!(self.text(at), "(" | "[" | "{") {
                    at = self.group_end(at);
                    continue;
                }
                if self.is_name(at) && matches!(self.before(at), "{" | ",") {
                    found.push(at);
                }
                at += 1;
            }
        }
    }

    /// The bindings of patterns from `start` on, without their types: of `let`, or of a list of
    /// parameters.
    fn bindings(&self, start: usize, found: &mut Vec<usize>) {
        let mut depth = 0_usize;
        let mut angles = 0_usize;
        let mut begin = Some(start);
        let mut at = start;
        while at < self.0.len() {
            let is_outside = depth == 0 && angles == 0;
            let text = self.text(at);
            let is_end = match text {
                ")" | "]" | "}" => depth == 0,
                // a range has `..=`
                "=" | ";" | "|" => is_outside && self.before(at) != ".",
                _ => false,
            };
            if is_end || is_outside && (text == "," || self.is_colon(at)) {
                if let Some(begin) = begin.take() {
                    self.pattern(begin..at, found);
                }
                begin = (text == ",").then_some(at + 1);
            }
            // an or-pattern of `let` goes on
            if is_end {
                if text == "|" && self.text(start - 1) == "let" {
                    begin = Some(at + 1);
                } else {
                    return;
                }
            }
            match text {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                "<" if begin.is_none() => angles += 1,
                // `->` is no end of a type
                ">" if !matches!(self.before(at), "-" | "=") => angles = angles.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
    }

    /// The bindings of a pattern. A guard ends it.
    fn pattern(&self, range: Range<usize>, found: &mut Vec<usize>) {
        for at in range.clone() {
            let text = self.text(at);
            // a macro's pattern has no bindings
            if text == "if" || text == "$" {
                return;
            }
            let is_lower = text.starts_with(|first: char| first.is_lowercase() || first == '_');
            let is_part = self.is_path(at + 1)
                || at > 1 && self.is_path(at - 2)
                || matches!(self.text(at + 1), "(" | "{" | "!")
                // the field of a struct pattern
                || at + 1 < range.end && self.is_colon(at + 1);
            if self.is_name(at) && is_lower && !is_part {
                found.push(at);
            }
        }
    }

    /// The `in` of a loop whose pattern begins at `start`; none if `for` belongs to a type.
    fn loop_pattern(&self, start: usize) -> Option<usize> {
        let mut at = start;
        loop {
            match self.text(at) {
                "in" => return Some(at),
                "" | "<" | ";" | ">" | ")" | "=" => return None,
                "(" | "[" | "{" => {
                    at = self.group_end(at);
                    if self.before(at) == "}" && self.text(at) != "in" {
                        return None;
                    }
                }
                _ => at += 1,
            }
        }
    }

    /// Whether the `|` at `at` begins the parameters of a closure: no operand precedes it.
    fn begins_closure(&self, at: usize) -> bool {
        let Some(before) = at.checked_sub(1).and_then(|before| self.0.get(before)) else {
            return false;
        };
        let is_operand = before.is_literal
            || before.is_ident
                && !matches!(before.text, "move" | "return" | "else" | "in" | "break")
            || matches!(before.text, ")" | "]" | "}" | "?" | "|" | ">");
        !is_operand || before.text == ">" && self.before(at - 1) == "="
    }

    /// The start of the pattern of a match arm whose `=>` is at `arrow`.
    fn arm_start(&self, arrow: usize) -> usize {
        let mut depth = 0_usize;
        for at in (0..arrow).rev() {
            match self.text(at) {
                "(" | "[" | "{" if depth == 0 => return at + 1,
                "," | ";" if depth == 0 => return at + 1,
                // the body of the arm before
                "}" if depth == 0 && !matches!(self.text(at + 1), "|" | "if" | "=") => {
                    return at + 1;
                }
                "(" | "[" | "{" => depth -= 1,
                ")" | "]" | "}" => depth += 1,
                _ => {}
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names of a source, with a comma between two.
    fn names(source: &str) -> String {
        let names = of_rust(source).into_iter();
        names.map(|name| name.words).collect::<Vec<_>>().join(",")
    }

    #[test]
    fn a_name_is_split_at_underscores_and_capitals() {
        for (name, expected) in [
            ("old_books", "old books"),
            ("OldBooks", "Old Books"),
            ("OLD_BOOKS", "OLD BOOKS"),
            ("HTTPBooks2", "HTTP Books2"),
            ("r#type", "type"),
        ] {
            assert_eq!(words(name), expected, "{name}");
        }
    }

    #[test]
    fn items_and_their_fields_and_variants_are_names() {
        assert_eq!(names("mod a; static mut B: *const u8 = c;"), "a,B");
        assert_eq!(
            names("#[serde(a: b)] pub struct A<T: Copy> { #[b] pub(crate) c: d::E<F>, g: T }"),
            "A,c,g"
        );
        assert_eq!(
            names("enum A { B, #[c] D(e::F, G), H { i: J, k: L }, M = 2 }"),
            "A,B,D,H,i,k,M"
        );
        assert_eq!(names("struct A(b::C); struct D; trait E {}"), "A,D,E");
    }

    #[test]
    fn parameters_are_names_and_their_types_are_not() {
        assert_eq!(
            names("fn a<'b, C>(&self, mut d: e::F<G, H>, (i, j): (K, L), m: impl Fn(N) -> o) {}"),
            "a,d,i,j,m"
        );
        assert_eq!(names("fn a<T>(T { b, c: d }: T) -> e { f(g, h) }"), "a,b,d");
        assert_eq!(
            names("a.map(|b| c).fold(d, |mut e, (f, g): (H<I, J>, k)| l || m | n)"),
            "b,e,f,g"
        );
        assert_eq!(names("a(move || b, |c| match d { e => |f| g })"), "c,e,f");
    }

    #[test]
    fn locals_are_names_where_a_pattern_binds_them() {
        assert_eq!(
            names("let a: b::C<D, e> = f; let g; let mut h = i;"),
            "a,g,h"
        );
        assert_eq!(
            names("let Some(A { b, c: d, .. }) = e else { f }; let (g, ref h) = i;"),
            "b,d,g,h"
        );
        assert_eq!(names("if let A(b) | B(b) = c && let 1..=d = e {}"), "b,b,d");
        assert_eq!(
            names("for (a, b) in c {} impl D for E {} for A { f } in g {}"),
            "a,b,f"
        );
        assert_eq!(names("fn a(b: &dyn for<'c> Fn(&'c d)) {}"), "a,b");
        assert_eq!(
            names(
                "match a { B(c) if d => e, F { g, h: i } => { j } k @ L | m => match n { o => p } Q => r }"
            ),
            "c,g,i,k,m,o"
        );
    }

    #[test]
    fn a_use_of_a_name_is_none() {
        assert_eq!(names("a.b(c); D { e: f, g }; h = i; j::k(|| l)"), "");
        assert_eq!(names("// let a\n/* fn b() */ \"let c\""), "");
    }

    #[test]
    fn a_name_has_the_offset_of_its_declaration() {
        let source = "\nlet books = 1;";
        assert_eq!(of_rust(source)[0].start, source.find("books").unwrap());
    }
}
