//! Kinds: enums without values whose variants have stable names.
//!
//! A name is stated once, in the row of its variant. JSON, text and lists follow from it. Must not
//! know a kind.

/// Makes an enum whose rows are `Variant = "name"`, a list of its variants (`ALL`), a method that
/// returns the name, and `Display`. With `json`, serde reads and writes the same name. With the
/// name of a second method, rows are `Variant = "name", "text";`, and the method returns the text.
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
            pub enum $kind, $name {
                $(#[doc = concat!("`", $text, "`: ", $description, ".")] $variant = $text,)*
            }
        }

        impl $kind {
            /// A description for users.
            pub const fn $words(self) -> &'static str {
                match self {
                    $($kind::$variant => $description,)*
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
    };
}
