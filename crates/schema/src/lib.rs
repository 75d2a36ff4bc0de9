//! The derive `JsonSchema` in builds without the feature `schema`: it derives nothing.
//!
//! Types of JSON documents name `JsonSchema` among their other derives. The `lib.rs` of each crate
//! with such types chooses whose it is: this one, or that of schemars, which only tests need. Must
//! not write code.

use proc_macro::TokenStream;

/// Accepts the attributes of schemars, and writes nothing.
#[proc_macro_derive(JsonSchema, attributes(schemars))]
pub fn json_schema(_: TokenStream) -> TokenStream {
    TokenStream::new()
}
