//! The product that a client names in `User-Agent`. The full field identifies machines, builds and
//! people, and is not stored.

use std::sync::Arc;

/// Limit of a product in bytes.
const LONGEST: usize = 64;
/// The products of browsers, which follow words that all browsers have in common; the most specific
/// first.
const BROWSERS: [&str; 7] = [
    "HeadlessChrome/",
    "Edg/",
    "OPR/",
    "Firefox/",
    "CriOS/",
    "Chrome/",
    "Version/",
];

/// The first product of a `User-Agent` (RFC 9110 section 10.1.5), for example
/// `python-requests/2.31.0`. For a browser, the product that distinguishes it from others. `None`
/// for a field without a product.
pub fn product(field: &str) -> Option<Arc<str>> {
    let words = || field.split([' ', '\t', ',', ';', '(', ')']);
    let is_browser = field.starts_with("Mozilla/");
    let browser = is_browser.then(|| {
        let rank = |word: &&str| BROWSERS.iter().position(|name| word.starts_with(name));
        let named = words().filter_map(|word| Some((rank(&word)?, word)));
        named.min_by_key(|(rank, _)| *rank).map(|(_, word)| word)
    });
    let product = browser
        .flatten()
        .or(words().find(|word| !word.is_empty()))?;
    let is_clean = product.bytes().all(|byte| byte.is_ascii_graphic());
    (is_clean && product != "-").then(|| product[..product.len().min(LONGEST)].into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_product_is_stored_and_the_rest_is_not() {
        let of = |field: &str| product(field).map(|name| name.to_string());
        let named = |name: &str| Some(name.to_owned());
        assert_eq!(
            of("python-requests/2.31.0 (me@example)"),
            named("python-requests/2.31.0")
        );
        assert_eq!(of("Go-http-client/1.1"), named("Go-http-client/1.1"));
        let chrome = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/156.0.0.0 Safari/537.36";
        assert_eq!(of(chrome), named("HeadlessChrome/156.0.0.0"));
        assert_eq!(of("Mozilla/5.0 (compatible; x)"), named("Mozilla/5.0"));
        assert_eq!(of("-"), None);
        assert_eq!(of(""), None);
        assert_eq!(of("ü/1"), None);
    }
}
