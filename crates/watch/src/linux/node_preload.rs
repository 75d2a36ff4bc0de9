//! Scripts that Node loads before the program: the paths in them, and `NODE_OPTIONS`.

use std::ffi::OsString;
use std::path::Path;

/// The variable that makes Node load a script first.
pub(crate) const NODE_OPTIONS: &str = "NODE_OPTIONS";

/// The script with this path in the place of `word`; `None` for a path that cannot be written into
/// JavaScript.
pub(crate) fn filled(script: &str, word: &str, path: &Path) -> Option<String> {
    let path = path.to_str()?;
    let plain = path
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte));
    plain.then(|| script.replace(word, path))
}

/// The options with a script to load first.
pub(crate) fn required(mut options: OsString, script: &Path) -> OsString {
    if !options.is_empty() {
        options.push(" ");
    }
    options.push("--require ");
    options.push(script);
    options
}
