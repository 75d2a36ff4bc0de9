//! Source files of Java, Kotlin and other languages of the JVM below the code root. A dump has the
//! name of a file without its folder, so the file is found by its name and its package.

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Endings of source files: those of which the package is one statement, and others.
const STRICT: [&str; 2] = ["java", "kt"];
const OTHERS: [&str; 3] = ["scala", "groovy", "clj"];
/// Files and folders that are looked at, at most.
const MAX_ENTRIES: usize = 50_000;
/// Where a package is declared, at most.
const MAX_HEAD: u64 = 1 << 16;

/// Whose a class is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// The user's, in this file below the code root.
    Own(Arc<str>),
    /// It may be the user's.
    Unclear,
    /// A library's.
    Library,
}

/// The source files by their names.
pub(super) struct Sources {
    root: PathBuf,
    files: HashMap<String, Vec<PathBuf>>,
    known: HashMap<(String, Arc<str>), Origin>,
}

impl Sources {
    /// Those below this folder; `None` if there are too many.
    pub(super) fn find(root: &Path) -> Option<Sources> {
        let mut files: HashMap<String, Vec<PathBuf>> = HashMap::new();
        let mut folders = vec![root.to_owned()];
        let mut left = MAX_ENTRIES;
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                left = left.checked_sub(1)?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
                if kind.is_dir() && !name.starts_with('.') && name != "node_modules" {
                    folders.push(entry.path());
                } else if kind.is_file() && [&STRICT[..], &OTHERS].concat().contains(&ending) {
                    files.entry(name).or_default().push(entry.path());
                }
            }
        }
        Some(Sources {
            root: root.to_owned(),
            files,
            known: HashMap::new(),
        })
    }

    /// Whose a method is, by its class and the name of its file.
    pub(super) fn origin(&mut self, function: &str, file: &Arc<str>) -> Origin {
        let class = function.rsplit_once('.').map_or("", |(class, _)| class);
        let package = class.rsplit_once('.').map_or("", |(package, _)| package);
        let key = (package.to_owned(), file.clone());
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let origin = self.look(package, file);
        self.known.insert(key, origin.clone());
        origin
    }

    fn look(&self, package: &str, file: &str) -> Origin {
        let Some(candidates) = self.files.get(file) else {
            return Origin::Library;
        };
        let is_strict = STRICT.iter().any(|ending| file.ends_with(ending));
        let mut own = candidates
            .iter()
            .filter(|path| declared(path).is_some_and(|declared| declared == package));
        match (own.next(), own.next()) {
            (Some(path), None) => {
                let below = path.strip_prefix(&self.root).unwrap_or(path);
                Origin::Own(below.to_string_lossy().into())
            }
            (None, _) if is_strict => Origin::Library,
            _ => Origin::Unclear,
        }
    }
}

/// The package that a file declares; an empty one if it declares none.
fn declared(path: &Path) -> Option<String> {
    let mut head = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    file.take(MAX_HEAD).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let statement = head.lines().find_map(|line| {
        let line = line.trim().trim_start_matches('\u{feff}');
        let rest = line.strip_prefix("package")?;
        rest.starts_with([' ', '\t']).then_some(rest)
    });
    let name = statement.unwrap_or_default().split([';', '/']).next()?;
    Some(
        name.chars()
            .filter(|one| !one.is_whitespace() && *one != '`')
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_found_by_its_name_and_its_package() {
        let root = std::env::temp_dir().join(format!("intact-java-{}", std::process::id()));
        let write = |path: &str, text: &str| {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write(
            "src/com/acme/App.java",
            "/* x */\npackage com.acme; // y\nclass App {}\n",
        );
        write("src/App.java", "class App {}\n");
        write("a/Twice.kt", "package com.acme\n");
        write("b/Twice.kt", "package com.acme\n");
        write("c/Other.scala", "package com\npackage acme\n");
        let mut sources = Sources::find(&root).unwrap();
        let own = |path: &str| Origin::Own(path.into());
        for (function, file, origin) in [
            (
                "com.acme.App$Inner.open",
                "App.java",
                own("src/com/acme/App.java"),
            ),
            ("App.main", "App.java", own("src/App.java")),
            ("org.other.App.main", "App.java", Origin::Library),
            ("org.other.Http.get", "Http.java", Origin::Library),
            ("com.acme.TwiceKt.get", "Twice.kt", Origin::Unclear),
            ("com.acme.Other.get", "Other.scala", Origin::Unclear),
        ] {
            assert_eq!(sources.origin(function, &file.into()), origin, "{function}");
        }
        std::fs::remove_dir_all(root).unwrap();
    }
}
