//! Values that formats call by names: one row per value.

/// An enum whose variants have one name or several in a format.
macro_rules! named {
    ($(#[$about:meta])* $vis:vis $name:ident { $($variant:ident $($text:literal)|+,)* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $vis enum $name {
            $($variant,)*
        }

        impl $name {
            fn named(text: &str) -> Option<$name> {
                Some(match text {
                    $($($text)|+ => $name::$variant,)*
                    _ => return None,
                })
            }
        }
    };
}
pub(crate) use named;
