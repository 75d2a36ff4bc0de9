//! What a person picks from: each variant has a stable kebab-case id and words, said once for
//! `--help`, files and errors.

use intact_ledger::UnknownKind;
use std::str::FromStr;

/// A set of named variants.
pub trait NamedVariants: Copy + FromStr<Err = UnknownKind> + 'static {
    /// What they are, in the singular.
    const NOUN: &'static str;
    /// Every variant.
    const VARIANTS: &'static [Self];

    /// The stable kebab-case id.
    fn id(self) -> &'static str;
    /// What it means, in words for a person.
    fn words(self) -> &'static str;
}

/// No variant has that id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no {noun} {given:?}; there are {all}")]
pub struct UnknownChoice {
    noun: &'static str,
    given: String,
    all: &'static str,
}

/// Finds a variant by its id.
pub(crate) fn find<T: NamedVariants>(given: &str) -> Result<T, UnknownChoice> {
    given.parse().map_err(|UnknownKind(all)| UnknownChoice {
        noun: T::NOUN,
        given: given.to_owned(),
        all: all.trim_end_matches(", "),
    })
}

/// Defines kinds that are [`NamedVariants`].
macro_rules! choices {
    (
        $(#[$attribute:meta])*
        $name:ident, $noun:literal;
        $($(#[$on_variant:meta])* $variant:ident $id:literal $words:literal,)*
    ) => {
        intact_ledger::kinds! {
            json
            $(#[$attribute])*
            pub enum $name, id, words -> &'static str {
                $(
                    #[doc = concat!("`", $id, "`: ", $words, ".")]
                    $(#[$on_variant])*
                    $variant = $id, $words;
                )*
            }
        }

        impl $crate::named_variants::NamedVariants for $name {
            const NOUN: &'static str = $noun;
            const VARIANTS: &'static [Self] = &$name::ALL;

            fn id(self) -> &'static str {
                $name::id(self)
            }

            fn words(self) -> &'static str {
                $name::words(self)
            }
        }
    };
}
pub(crate) use choices;
