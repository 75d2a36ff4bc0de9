//! Error codes of HTTP/2 and HTTP/3: named values, printed by name where the registry has one.

/// Gives the type `ErrorCode` next to it a constant and a name for each code. A code without a name
/// prints as a number.
macro_rules! error_codes {
    ($($name:ident = $value:literal, $doc:literal;)*) => {
        impl ErrorCode {
            $(#[doc = $doc] pub const $name: Self = Self($value);)*

            /// The name in the registry, if the code has one.
            pub fn name(self) -> Option<&'static str> {
                match self {
                    $(Self::$name => Some(stringify!($name)),)*
                    Self(_) => None,
                }
            }
        }

        impl std::fmt::Display for ErrorCode {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => f.write_str(name),
                    None => write!(f, "0x{:x}", self.0),
                }
            }
        }

        impl std::fmt::Debug for ErrorCode {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

pub(crate) use error_codes;
