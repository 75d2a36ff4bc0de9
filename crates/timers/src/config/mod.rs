//! Reads idle limits from the text of configuration files. Parses only the relevant directives and
//! skips others. Reports a file that it may not read.

mod apache;
mod caddy;
mod directive;
mod haproxy;
mod include;
mod nginx;
mod time;

pub use include::{FileError, Files, MOST_BYTES, NotRead};

use crate::hop::Hop;
use crate::product::{Product, Version};
use directive::Directive;
use include::Syntax;
use std::path::Path;

/// Why a configuration gives no limits.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// The file itself cannot be read.
    #[error("{file}: {why}")]
    Unreadable {
        /// The file.
        file: String,
        /// The reason.
        why: FileError,
    },
    /// The product has no files that are read here.
    #[error("configuration files of {0} are not read: write the limit, such as {0}=60s")]
    NoFiles(&'static str),
}

/// Adds the limits that directives set to a hop.
type Timers = fn(&[Directive], Option<&Version>, &mut Hop);

/// The limits of a hop that this file configures. Includes are followed within the folder of the
/// file. The version decides what a directive that is not there means.
///
/// # Errors
/// When the file cannot be read; an include that cannot is part of the result.
pub fn read(
    name: &str,
    product: Product,
    version: Option<&Version>,
    file: &Path,
    files: &dyn Files,
) -> Result<Hop, ConfigError> {
    let (syntax, timers): (Syntax, Timers) = match product {
        Product::Nginx => (nginx::parse, nginx::timers),
        Product::Haproxy => (haproxy::parse, |roots, _, hop| haproxy::timers(roots, hop)),
        Product::Apache => (apache::parse, |roots, _, hop| apache::timers(roots, hop)),
        Product::Caddy => (caddy::parse, |roots, _, hop| caddy::timers(roots, hop)),
        other => return Err(ConfigError::NoFiles(other.name())),
    };
    let read = include::directives(file, files, syntax);
    let (roots, not_read) = read.map_err(|why| ConfigError::Unreadable {
        file: file.display().to_string(),
        why,
    })?;
    let mut hop = Hop {
        name: name.to_owned(),
        product: Some(product),
        not_read,
        ..Hop::default()
    };
    timers(&roots, version, &mut hop);
    if hop.accepts.is_empty() {
        hop.accepts.push(product.default_accepts());
    }
    Ok(hop)
}

/// The words of a line, up to a `comment` character. A word in quotes may contain spaces.
fn words(line: &str, quotes: [char; 2], comment: Option<char>) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next().filter(|&first| Some(first) != comment) {
        let (word, after) = match rest.strip_prefix(quotes) {
            Some(inside) => inside.split_once(first).unwrap_or((inside, "")),
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word.to_owned());
        rest = after.trim_start();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hop::Idle;
    use include::tests::Texts;
    use proptest::prelude::*;

    /// Words that the readers look at, so that random texts reach their branches.
    const WORDS: &str = "(http|server|upstream|location|keepalive|keepalive_timeout|proxy_pass|include|defaults|frontend|backend|listen|timeout|client|http-keep-alive|option|httpclose|no|mode|tcp|from|KeepAlive|KeepAliveTimeout|ProxyPass|ttl=5|disablereuse=On|Include|ServerRoot|<VirtualHost a>|</VirtualHost>|servers|timeouts|idle|reverse_proxy|transport|import|off|On|5s|75|1m30s|none|a\\*|/|\\{|\\}|;|\\n|\"|'|`|#|\\\\|<<E|\\$)";

    fn read_all(text: &str) {
        for product in [
            Product::Nginx,
            Product::Haproxy,
            Product::Apache,
            Product::Caddy,
        ] {
            let files = Texts::of(&[("/c/main", text), ("/c/a1", text)]);
            let hop = read("x", product, None, Path::new("/c/main"), &files).unwrap();
            for timer in hop.accepts.iter().chain(&hop.keeps) {
                assert!(!matches!(timer.idle, Idle::After(time) if time.is_zero()));
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in "(?s).{0,200}") {
            read_all(&text);
        }

        #[test]
        fn any_order_of_known_words_is_read_without_panic(words in proptest::collection::vec(WORDS, 0..60)) {
            read_all(&words.join(" "));
        }
    }

    #[test]
    fn deep_nesting_is_cut_and_not_followed() {
        for open in [
            "a {\n",
            "<a>\n",
            "include a1;\n",
            "Include a1\n",
            "import a1\n",
        ] {
            read_all(&open.repeat(500));
        }
    }
}
