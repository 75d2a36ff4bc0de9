//! Whose code a source file of a Go program is, and what it is called.
//!
//! A path is that of the machine which built the program. With `-trimpath` it starts with the path
//! of the module instead, and a library's has the version.

use crate::CodeKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The longest `go.mod` that is read.
const MAX_MODULE_FILE: u64 = 1 << 20;

/// Files and folders that are looked at, at most.
const MAX_ENTRIES: usize = 50_000;

/// The source files of a program.
pub(super) struct Sources {
    /// The modules of the user's code: the path, and the folder if it is known.
    modules: Vec<(String, Option<PathBuf>)>,
    /// Where the standard library was when the program was built.
    library: Option<String>,
}

impl Sources {
    /// Those of the user's modules, whose folders are around or below the code root. The standard
    /// library was in this folder.
    pub(super) fn new(modules: Vec<String>, root: &Path, library: Option<String>) -> Sources {
        let around = root.ancestors().map(Path::to_owned);
        let around = with_modules(around.collect());
        // only with -trimpath is the folder of a module not in its paths
        let below = match library {
            None => with_modules(folders_below(root)),
            Some(_) => Vec::new(),
        };
        let folder = |module: &String| {
            let is_it = |(name, _): &&(String, PathBuf)| name == module;
            let mut inner = below.iter().filter(is_it);
            let found = around.iter().find(is_it).or_else(|| inner.next())?;
            // one of two copies is not known
            inner.next().is_none().then(|| found.1.clone())
        };
        Sources {
            modules: modules
                .into_iter()
                .map(|module| {
                    let folder = folder(&module);
                    (module, folder)
                })
                .collect(),
            library,
        }
    }

    /// What a file is called, and whose it is.
    pub(super) fn named(&self, path: &str) -> (Arc<str>, CodeKind) {
        if let Some(library) = &self.library
            && let Some(rest) = path.strip_prefix(&**library)
        {
            return (rest.into(), CodeKind::Library);
        }
        if let Some(cut) = in_module_cache(path) {
            return (cut.into(), CodeKind::Library);
        }
        if path.starts_with('/') {
            return (path.into(), CodeKind::Other);
        }
        // the files that were named to the compiler, in the folder of the build
        if let Some(rest) = path.strip_prefix("./") {
            return (rest.into(), CodeKind::Own);
        }
        for (module, folder) in &self.modules {
            let rest = path.strip_prefix(&**module);
            let Some(rest) = rest.and_then(|rest| rest.strip_prefix('/')) else {
                continue;
            };
            if Path::new(rest).iter().any(|part| part == "vendor") {
                return (rest.into(), CodeKind::Library);
            }
            return match folder {
                Some(folder) => (folder.join(rest).to_string_lossy().into(), CodeKind::Other),
                None => (rest.into(), CodeKind::Own),
            };
        }
        (path.into(), CodeKind::Library)
    }
}

/// The path from the name of a module with a version on.
fn in_module_cache(path: &str) -> Option<&str> {
    let mut parts = path.match_indices("@v").filter(|(at, _)| {
        let next = path.as_bytes().get(at + 2);
        next.is_some_and(u8::is_ascii_digit) && path[*at..].contains('/')
    });
    let (at, _) = parts.next()?;
    if let Some(start) = path[..at].find("/pkg/mod/") {
        return Some(&path[start + "/pkg/mod/".len()..]);
    }
    match path.starts_with('/') {
        // another folder of modules: from the last part of the name on
        true => Some(&path[path[..at].rfind('/')? + 1..]),
        false => Some(path),
    }
}

/// Those of the folders that a module is in, with its path.
fn with_modules(folders: Vec<PathBuf>) -> Vec<(String, PathBuf)> {
    let module = |folder: PathBuf| Some((module_of(&folder)?, folder));
    folders.into_iter().filter_map(module).collect()
}

/// The folders below one, without hidden ones and packages; none if there are too many.
fn folders_below(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root.to_owned()];
    let mut left = MAX_ENTRIES;
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            left -= 1;
            if left == 0 {
                return Vec::new();
            }
            let name = entry.file_name();
            let is_left_out = name.as_encoded_bytes().starts_with(b".")
                || ["vendor", "node_modules"].iter().any(|one| name == *one);
            if !is_left_out && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                found.push(entry.path());
                open.push(entry.path());
            }
        }
    }
    found
}

/// The path of the module whose folder this is.
fn module_of(folder: &Path) -> Option<String> {
    let file = folder.join("go.mod");
    let length = std::fs::metadata(&file).ok()?.len();
    let text = (length <= MAX_MODULE_FILE).then(|| std::fs::read_to_string(file).ok())??;
    let line = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("module "))?;
    let path = line.split("//").next()?.trim().trim_matches(['"', '`']);
    Some(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str) -> (String, CodeKind) {
        let modules = vec!["example.com/app".to_owned()];
        let sources = Sources::new(
            modules,
            Path::new("/nowhere"),
            Some("/home/someone/go1.22/src/".to_owned()),
        );
        let (name, kind) = sources.named(path);
        (name.to_string(), kind)
    }

    #[test]
    fn a_file_belongs_to_the_user_the_library_or_a_module() {
        for (path, name, kind) in [
            (
                "/home/someone/go1.22/src/net/http/transport.go",
                "net/http/transport.go",
                CodeKind::Library,
            ),
            (
                "/home/someone/go/pkg/mod/github.com/x/y@v1.2.3/z.go",
                "github.com/x/y@v1.2.3/z.go",
                CodeKind::Library,
            ),
            (
                "/home/someone/app/main.go",
                "/home/someone/app/main.go",
                CodeKind::Other,
            ),
            // with -trimpath
            (
                "net/http/transport.go",
                "net/http/transport.go",
                CodeKind::Library,
            ),
            (
                "github.com/x/y@v1.2.3/z.go",
                "github.com/x/y@v1.2.3/z.go",
                CodeKind::Library,
            ),
            ("example.com/app/a/b.go", "a/b.go", CodeKind::Own),
            (
                "example.com/app/vendor/x/b.go",
                "vendor/x/b.go",
                CodeKind::Library,
            ),
            (
                "example.com/application/b.go",
                "example.com/application/b.go",
                CodeKind::Library,
            ),
            ("./main.go", "main.go", CodeKind::Own),
        ] {
            assert_eq!(named(path), (name.to_owned(), kind), "{path}");
        }
    }

    #[test]
    fn the_folder_of_a_module_is_around_or_below_the_code_root() {
        let outer = std::env::temp_dir().join(format!("intact-module-{}", std::process::id()));
        let outer = outer.as_path();
        let folder = outer.join("one");
        let root = folder.join("inner");
        std::fs::create_dir_all(&root).unwrap();
        std::fs::write(folder.join("go.mod"), "// x\nmodule example.com/app // y\n").unwrap();
        let sources = Sources::new(vec!["example.com/app".to_owned()], &root, None);
        let expected = folder.join("inner/b.go").display().to_string();
        let named = sources.named("example.com/app/inner/b.go");
        assert_eq!(named, (expected.into(), CodeKind::Other));
        // or below it: one of them, not one of two
        let sources = Sources::new(vec!["example.com/app".to_owned()], outer, None);
        let expected = folder.join("b.go").display().to_string();
        let named = sources.named("example.com/app/b.go");
        assert_eq!(named, (expected.into(), CodeKind::Other));
        std::fs::write(root.join("go.mod"), "module example.com/app\n").unwrap();
        let sources = Sources::new(vec!["example.com/app".to_owned()], outer, None);
        let named = sources.named("example.com/app/b.go");
        assert_eq!(named, ("b.go".into(), CodeKind::Own));
        std::fs::remove_dir_all(outer).unwrap();
    }
}
