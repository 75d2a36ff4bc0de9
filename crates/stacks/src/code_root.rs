//! Which call of a stack is in the user's code, and what its file is called.
//!
//! The user's code is below one folder, the code root, without the packages in there. Paths are
//! printed from that folder on; other paths are cut, because they name the machine's folders.

use crate::python::PythonSources;
use crate::{CodeKind, Frame, NoOwnCall, ThreadStack};
use std::collections::HashMap;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Folders of packages: what is below belongs to others, wherever they are.
const PACKAGES: &[&str] = &[
    "site-packages",
    "dist-packages",
    "node_modules",
    "vendor",
    "third_party",
    ".cargo",
    ".rustup",
];
/// What is outermost in a thread that a program started.
const STARTS: &[&str] = &[
    "_bootstrap",
    "Thread._bootstrap",
    "java.lang.Thread.run",
    "java.lang.VirtualThread.run",
    "start_thread",
];
/// Paths that are remembered.
const KNOWN: usize = 4096;

/// The folder of the user's code.
#[derive(Clone, Debug)]
pub struct CodeRoot {
    folder: PathBuf,
    known: HashMap<Arc<str>, (Arc<str>, bool)>,
    sources: PythonSources,
}

/// A call as the reader of its runtime found it.
pub(crate) struct RawFrame {
    pub(crate) function: Arc<str>,
    /// The path in the machine.
    pub(crate) path: Option<Arc<str>>,
    pub(crate) line: Option<u32>,
    pub(crate) kind: CodeKind,
    /// The line that the function is defined at, where its file is Python's.
    pub(crate) defined: Option<u32>,
}

impl CodeRoot {
    /// The code below this folder.
    pub fn new(folder: &Path) -> CodeRoot {
        CodeRoot {
            folder: folder.canonicalize().unwrap_or_else(|_| folder.to_owned()),
            known: HashMap::new(),
            sources: PythonSources::default(),
        }
    }

    /// The folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Names the files of a stack, and chooses the innermost call in the user's code.
    pub(crate) fn apply(&mut self, raw: Vec<RawFrame>) -> ThreadStack {
        // the first call of the user's decides: an outer one is another line
        let mut first_own = None;
        let mut is_inside = true;
        let outermost = raw.last();
        let is_thread = outermost.is_some_and(|frame| STARTS.contains(&&*frame.function));
        let mut frames = Vec::with_capacity(raw.len());
        for (nth, mut frame) in raw.into_iter().enumerate() {
            let file = frame.path.clone().map(|path| match frame.kind {
                CodeKind::Own => (path, true),
                CodeKind::Library => (path, false),
                CodeKind::Other | CodeKind::Loop => self.file(&path),
            });
            is_inside &= frame.kind != CodeKind::Loop;
            let is_own = file.as_ref().is_some_and(|(_, is_own)| *is_own);
            if is_own && self.sources.contradict(&frame) {
                frame.line = None;
            }
            if first_own.is_none() && is_inside && is_own {
                first_own = Some(frame.line.map(|_| nth));
            }
            frames.push(Frame {
                function: frame.function,
                file: file.map(|(name, _)| name),
                line: frame.line,
            });
        }
        ThreadStack {
            frames,
            own: match first_own {
                Some(own) => own.ok_or(NoOwnCall::NoLine),
                None if is_thread || !is_inside => Err(NoOwnCall::Started),
                None => Err(NoOwnCall::Outside),
            },
        }
    }

    /// What a file is called, and whether it is the user's.
    fn file(&mut self, path: &Arc<str>) -> (Arc<str>, bool) {
        if let Some(known) = self.known.get(path) {
            return known.clone();
        }
        let named = self.named(Path::new(&**path));
        if self.known.len() >= KNOWN {
            self.known.clear();
        }
        self.known.insert(path.clone(), named.clone());
        named
    }

    fn named(&self, path: &Path) -> (Arc<str>, bool) {
        let cut = package_part(path);
        if let Some(cut) = cut {
            return (text(&cut), false);
        }
        let plain = without_dots(path);
        let real = plain.strip_prefix(&self.folder).map(Path::to_owned);
        let real = real.or_else(|_| {
            let real = plain.canonicalize().unwrap_or_else(|_| plain.clone());
            real.strip_prefix(&self.folder).map(Path::to_owned)
        });
        match real {
            Ok(below) if path.is_absolute() => (text(&below), true),
            _ => (
                text(Path::new(plain.file_name().unwrap_or_default())),
                false,
            ),
        }
    }
}

/// The path from the folder of packages on, or from that of a standard library.
fn package_part(path: &Path) -> Option<PathBuf> {
    let parts: Vec<Component<'_>> = path.components().collect();
    let name = |part: &Component<'_>| part.as_os_str().to_string_lossy().into_owned();
    let is_package = |part: &Component<'_>| PACKAGES.contains(&&*name(part));
    let last = parts.len().saturating_sub(1);
    if let Some(at) = parts[..last].iter().rposition(is_package) {
        return Some(parts[at..].iter().collect());
    }
    // lib/python3.12/http/client.py, lib/python312.zip/http/client.py
    let is_library = |pair: &[Component<'_>]| {
        let (folder, version) = (name(&pair[0]), name(&pair[1]));
        let digits = version.strip_prefix("python").unwrap_or_default();
        matches!(&*folder, "lib" | "lib64") && digits.starts_with(|one: char| one.is_ascii_digit())
    };
    let at = parts[..last].windows(2).position(is_library)?;
    Some(parts[at + 1..].iter().collect())
}

/// The path without `.` and `..`.
fn without_dots(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            other => plain.push(other),
        }
    }
    plain
}

fn text(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(path: &str, kind: CodeKind) -> RawFrame {
        RawFrame {
            function: "f".into(),
            path: Some(path.into()),
            line: Some(1),
            kind,
            defined: None,
        }
    }

    #[test]
    fn the_own_call_is_the_innermost_one_below_the_root_that_is_no_package() {
        let mut root = CodeRoot::new(Path::new("/nowhere/app"));
        let stack = root.apply(vec![
            frame("/usr/lib/python3.11/socket.py", CodeKind::Other),
            frame(
                "/nowhere/app/venv/lib/python3.11/site-packages/requests/api.py",
                CodeKind::Other,
            ),
            frame("/nowhere/app/node_modules/x/y.js", CodeKind::Other),
            frame("/home/someone/other.py", CodeKind::Other),
            frame("/nowhere/app/src/../billing.py", CodeKind::Other),
            frame("/nowhere/app/main.py", CodeKind::Other),
        ]);
        let names: Vec<&str> = stack
            .frames
            .iter()
            .filter_map(|one| one.file.as_deref())
            .collect();
        assert_eq!(
            names,
            [
                "python3.11/socket.py",
                "site-packages/requests/api.py",
                "node_modules/x/y.js",
                "other.py",
                "billing.py",
                "main.py"
            ]
        );
        assert_eq!(stack.own, Ok(4));
    }

    #[test]
    fn what_is_outside_of_a_loop_did_not_call() {
        let mut root = CodeRoot::new(Path::new("/nowhere"));
        let stack = root.apply(vec![
            frame("/lib/python3.11/asyncio/events.py", CodeKind::Loop),
            frame("/nowhere/main.py", CodeKind::Other),
        ]);
        assert_eq!(stack.own, Err(NoOwnCall::Started));
    }

    #[test]
    fn a_call_without_a_line_is_not_named() {
        let mut root = CodeRoot::new(Path::new("/nowhere"));
        let mut one = frame("/nowhere/main.py", CodeKind::Other);
        one.line = None;
        let outer = frame("/nowhere/main.py", CodeKind::Other);
        assert_eq!(root.apply(vec![one, outer]).own, Err(NoOwnCall::NoLine));
    }
}
