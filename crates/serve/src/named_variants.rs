//! What a person picks from: each variant has a stable kebab-case id and words, said once for
//! `--help`, files and errors.

use std::str::FromStr;

/// A set of named variants.
pub trait NamedVariants: Copy + FromStr<Err = UnknownChoice> + 'static {
    /// What they are, in the singular.
    const NOUN: &'static str;
    /// Every variant.
    const ALL: &'static [Self];

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
    all: String,
}

/// Finds a variant by its id.
pub(crate) fn find<T: NamedVariants>(given: &str) -> Result<T, UnknownChoice> {
    let found = T::ALL.iter().copied().find(|choice| choice.id() == given);
    found.ok_or_else(|| UnknownChoice {
        noun: T::NOUN,
        given: given.to_owned(),
        all: T::ALL
            .iter()
            .map(|choice| choice.id())
            .collect::<Vec<_>>()
            .join(", "),
    })
}

/// Defines an enumeration that is a [`NamedVariants`].
macro_rules! choices {
    (
        $(#[$attribute:meta])*
        $name:ident, $noun:literal;
        $($(#[$on_variant:meta])* $variant:ident $id:literal $words:literal,)*
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        pub enum $name {
            $(#[doc = concat!("`", $id, "`: ", $words, ".")] #[serde(rename = $id)] $(#[$on_variant])* $variant,)*
        }

        impl $crate::named_variants::NamedVariants for $name {
            const NOUN: &'static str = $noun;
            const ALL: &'static [Self] = &[$($name::$variant,)*];

            fn id(self) -> &'static str {
                match self { $($name::$variant => $id,)* }
            }

            fn words(self) -> &'static str {
                match self { $($name::$variant => $words,)* }
            }
        }

        impl std::str::FromStr for $name {
            type Err = $crate::named_variants::UnknownChoice;

            fn from_str(id: &str) -> Result<$name, $crate::named_variants::UnknownChoice> {
                $crate::named_variants::find(id)
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<$name, D::Error> {
                let id = <std::borrow::Cow<'de, str>>::deserialize(from)?;
                id.parse().map_err(serde::de::Error::custom)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str($crate::named_variants::NamedVariants::id(*self))
            }
        }
    };
}
pub(crate) use choices;
