//! The key log that a program writes already.

use std::fs;
use std::path::{Path, PathBuf};

/// Where the environment of a process has it log keys, as seen from here.
pub(super) fn of_process(process: u32) -> Option<PathBuf> {
    let environment = fs::read(format!("/proc/{process}/environ")).ok()?;
    let path = variable(&environment, "SSLKEYLOGFILE=")?;
    // in a container, it is below another root
    let root = match path.is_absolute() {
        true => format!("/proc/{process}/root"),
        false => format!("/proc/{process}/cwd"),
    };
    let inside = path.strip_prefix("/").unwrap_or(path);
    Some(Path::new(&root).join(inside))
}

/// The path after a name in an environment, if it is not empty.
fn variable<'a>(environment: &'a [u8], name: &str) -> Option<&'a Path> {
    let mut all = environment.split(|byte| *byte == 0);
    let value = all.find_map(|one| one.strip_prefix(name.as_bytes()))?;
    let value = std::str::from_utf8(value).ok()?;
    (!value.is_empty()).then(|| Path::new(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_is_found_among_others() {
        let environment = b"HOME=/root\0SSLKEYLOGFILE=/tmp/keys\0A=b\0";
        let found = variable(environment, "SSLKEYLOGFILE=");
        assert_eq!(found, Some(Path::new("/tmp/keys")));
        assert_eq!(variable(b"SSLKEYLOGFILE=\0", "SSLKEYLOGFILE="), None);
        assert_eq!(variable(b"XSSLKEYLOGFILE=a", "SSLKEYLOGFILE="), None);
    }
}
