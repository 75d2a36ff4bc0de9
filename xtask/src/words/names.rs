//! The names that a Rust file declares: of items, fields, parameters and locals.
//!
//! Uses of a name are not read: a name is wrong where it is declared. Neither are the rules of a
//! macro; the arguments of its calls are, where they are expressions.

use heck::ToSnakeCase;
use syn::parse::{ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Block, Expr, Ident, ImplItem, Item, Token, TraitItem};

/// A name that a file declares.
pub(super) struct Name {
    /// Offset in the source, in bytes.
    pub(super) start: usize,
    /// The words of the name, with a space between two.
    pub(super) words: String,
}

/// The declared names of a Rust file, in order of their offset. A file that cannot be parsed has
/// none: the compiler rejects it.
pub(super) fn of_rust(source: &str) -> Vec<Name> {
    let statements = |file: ParseStream<'_>| {
        Attribute::parse_inner(file)?;
        Block::parse_within(file)
    };
    let mut declared = Declared(Vec::new());
    for statement in statements.parse_str(source).unwrap_or_default() {
        declared.visit_stmt(&statement);
    }
    declared.0.sort_by_key(|name| name.start);
    declared.0
}

struct Declared(Vec<Name>);

impl Declared {
    fn add(&mut self, name: &Ident) {
        self.0.push(Name {
            start: name.span().byte_range().start,
            words: words(&name.to_string()),
        });
    }
}

impl<'ast> Visit<'ast> for Declared {
    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Struct(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Mod(item) => Some(&item.ident),
            Item::Const(item) => Some(&item.ident),
            Item::Static(item) => Some(&item.ident),
            _ => None,
        };
        name.into_iter().for_each(|name| self.add(name));
        visit::visit_item(self, item);
    }

    fn visit_impl_item(&mut self, item: &'ast ImplItem) {
        match item {
            ImplItem::Const(item) => self.add(&item.ident),
            ImplItem::Type(item) => self.add(&item.ident),
            _ => {}
        }
        visit::visit_impl_item(self, item);
    }

    fn visit_trait_item(&mut self, item: &'ast TraitItem) {
        match item {
            TraitItem::Const(item) => self.add(&item.ident),
            TraitItem::Type(item) => self.add(&item.ident),
            _ => {}
        }
        visit::visit_trait_item(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.add(&signature.ident);
        visit::visit_signature(self, signature);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        field.ident.iter().for_each(|name| self.add(name));
        visit::visit_field(self, field);
    }

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.add(&variant.ident);
        visit::visit_variant(self, variant);
    }

    fn visit_pat_ident(&mut self, pattern: &'ast syn::PatIdent) {
        // else a constant or a variant
        if !pattern.ident.to_string().starts_with(char::is_uppercase) {
            self.add(&pattern.ident);
        }
        visit::visit_pat_ident(self, pattern);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        let arguments = Punctuated::<Expr, Token![,]>::parse_terminated;
        for argument in call.parse_body_with(arguments).into_iter().flatten() {
            Declared::visit_expr(self, &argument);
        }
    }
}

/// The words of a name in snake case or camel case, in lower case.
fn words(name: &str) -> String {
    let name = name.strip_prefix("r#").unwrap_or(name);
    name.to_snake_case().replace('_', " ")
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
            ("OldBooks", "old books"),
            ("OLD_BOOKS", "old books"),
            ("HTTPBooks2", "http books2"),
            ("r#type", "type"),
        ] {
            assert_eq!(words(name), expected, "{name}");
        }
    }

    #[test]
    fn items_and_their_fields_and_variants_are_names() {
        assert_eq!(names("mod a; static mut B: *const u8 = c;"), "a,b");
        assert_eq!(
            names("#[serde(a: b)] pub struct A<T: Copy> { #[b] pub(crate) c: d::E<F>, g: T }"),
            "a,c,g"
        );
        assert_eq!(
            names("enum A { B, #[c] D(e::F, G), H { i: J, k: L }, M = 2 }"),
            "a,b,d,h,i,k,m"
        );
        assert_eq!(names("struct A(b::C); struct D; trait E {}"), "a,d,e");
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
        assert_eq!(
            names("if let A(b) | B(b) = c && let (1, d) = e {}"),
            "b,b,d"
        );
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
