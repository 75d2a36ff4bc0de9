//! Kinds: enums without values whose variants have stable names.
//!
//! A name is stated once, in the row of its variant. JSON, text and lists follow from it. Must not
//! know a kind.

/// No kind has the name. Contains the names that there are, each with a comma after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("one of {}", .0.trim_end_matches(", "))]
pub struct UnknownKind(#[doc(hidden)] pub &'static str);

/// Makes an enum whose rows are `Variant = "name"`, a list of its variants (`ALL`), a method that
/// returns the name, `Display`, and `FromStr`. With `json`, serde reads and writes the same name,
/// and kinds are keys that have an order. With the name of a second method, rows are
/// `Variant = "name", "text";`, and the method returns the text. With `method -> Type` rows are
/// `Variant = "name", VALUE;`, and the method returns the value.
#[macro_export]
macro_rules! kinds {
    (
        json
        $(#[$about:meta])*
        pub enum $kind:ident, $name:ident {
            $($(#[$row:meta])* $variant:ident = $text:literal,)*
        }
    ) => {
        $crate::kinds! {
            $(#[$about])*
            #[derive(
                Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
                ::serde::Serialize, ::serde::Deserialize,
            )]
            #[cfg_attr(feature = "schema", derive(::schemars::JsonSchema))]
            pub enum $kind, $name {
                $($(#[$row])* #[serde(rename = $text)] $variant = $text,)*
            }
        }
    };
    (
        json
        $(#[$about:meta])*
        pub enum $kind:ident, $name:ident, $words:ident {
            $($variant:ident = $text:literal, $description:literal;)*
        }
    ) => {
        $crate::kinds! {
            json
            $(#[$about])*
            pub enum $kind, $name, $words -> &'static str {
                $(
                    #[doc = concat!("`", $text, "`: ", $description, ".")]
                    $variant = $text, $description;
                )*
            }
        }
    };
    (
        json
        $(#[$about:meta])*
        pub enum $kind:ident, $name:ident, $row_of:ident -> $row_type:ty {
            $($(#[$row:meta])* $variant:ident = $text:literal, $cells:expr;)*
        }
    ) => {
        $crate::kinds! {
            json
            $(#[$about])*
            pub enum $kind, $name {
                $($(#[$row])* $variant = $text,)*
            }
        }

        impl $kind {
            /// What else the row has: a value, or a description for users.
            pub const fn $row_of(self) -> $row_type {
                match self {
                    $($kind::$variant => $cells,)*
                }
            }
        }
    };
    (
        $(#[$about:meta])*
        pub enum $kind:ident, $name:ident {
            $($(#[$row:meta])* $variant:ident = $text:literal,)*
        }
    ) => {
        $(#[$about])*
        pub enum $kind {
            $($(#[$row])* $variant,)*
        }

        impl $kind {
            /// Every variant, in the order of declaration.
            pub const ALL: [$kind; [$($text),*].len()] = [$($kind::$variant),*];

            /// The stable name.
            #[inline]
            pub const fn $name(self) -> &'static str {
                match self {
                    $($kind::$variant => $text,)*
                }
            }
        }

        impl ::std::fmt::Display for $kind {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.write_str(self.$name())
            }
        }

        impl ::std::str::FromStr for $kind {
            type Err = $crate::UnknownKind;

            fn from_str(name: &str) -> ::std::result::Result<$kind, $crate::UnknownKind> {
                match name {
                    $($text => Ok($kind::$variant),)*
                    _ => Err($crate::UnknownKind(concat!($($text, ", "),*))),
                }
            }
        }
    };
}
