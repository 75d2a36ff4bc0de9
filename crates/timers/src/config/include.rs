//! The files of one configuration: includes, their patterns, the allowed folder, and limits on the
//! number of files. Must not do I/O.

use super::directive::{Directive, Tree};
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

/// The most bytes of one file that are read.
pub const MOST_BYTES: u64 = 4 << 20;
/// Files of one configuration.
const MOST_FILES: usize = 1_000;
/// Includes inside includes.
const DEEPEST: usize = 10;

/// The files of a configuration, as the caller can reach them.
pub trait Files {
    /// The text of a file of at most [`MOST_BYTES`].
    ///
    /// # Errors
    /// When there is none.
    fn read(&self, path: &Path) -> Result<String, FileError>;

    /// The names in a folder.
    ///
    /// # Errors
    /// When there is no such folder.
    fn list(&self, folder: &Path) -> Result<Vec<String>, FileError>;
}

/// Why a file was not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// It is not in the folder of the configuration.
    #[error("outside the folder of the configuration")]
    Outside,
    /// The pattern has more than `*` and `?`.
    #[error("a pattern with more than * and ?")]
    Pattern,
    /// It holds a variable.
    #[error("a variable in its name")]
    Variable,
    /// Too many files, or includes inside includes.
    #[error("more than {MOST_FILES} files, or includes nested deeper than {DEEPEST}")]
    TooMany,
    /// The system's reason.
    #[error("{0}")]
    System(String),
}

/// A file that the configuration names and that was not read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRead {
    /// As the configuration names it.
    pub name: String,
    /// The reason.
    pub why: FileError,
}

/// Reads the directives of a text, and the files that it includes.
pub(super) type Syntax = fn(&mut Reader<'_>, &str);

/// Reads one configuration with its includes.
pub(super) struct Reader<'a> {
    files: &'a dyn Files,
    syntax: Syntax,
    /// The folder that includes may be in.
    root: PathBuf,
    /// The folder that relative names start from.
    pub(super) base: PathBuf,
    /// The name of the current file.
    file: String,
    /// The directives so far.
    pub(super) tree: Tree,
    depth: usize,
    /// Number of included files.
    included: usize,
    not_read: Vec<NotRead>,
}

/// The directives of a configuration, and the files that were not read.
///
/// # Errors
/// When the file itself cannot be read.
pub(super) fn directives(
    main: &Path,
    files: &dyn Files,
    syntax: Syntax,
) -> Result<(Vec<Directive>, Vec<NotRead>), FileError> {
    let root = normal(main.parent().unwrap_or(Path::new("")));
    let mut reader = Reader {
        files,
        syntax,
        base: root.clone(),
        root,
        file: String::new(),
        tree: Tree::default(),
        depth: 0,
        included: 0,
        not_read: Vec::new(),
    };
    let name = main.file_name().unwrap_or(main.as_os_str());
    reader.read(&name.to_string_lossy(), &files.read(main)?);
    Ok((reader.tree.roots, reader.not_read))
}

impl Reader<'_> {
    /// A directive of the current file.
    pub(super) fn directive(&self, words: Vec<String>, line: u32) -> Directive {
        Directive {
            words,
            file: self.file.clone(),
            line,
            block: Vec::new(),
        }
    }

    fn read(&mut self, name: &str, text: &str) {
        let including = std::mem::replace(&mut self.file, name.to_owned());
        let outer = self.tree.begin();
        (self.syntax)(self, text);
        self.tree.end(outer);
        self.file = including;
    }

    /// Reads every file that `pattern` finds. A pattern that finds none is no error; a file that
    /// cannot be read is kept in `not_read`.
    pub(super) fn include(&mut self, pattern: &str) {
        if self.depth >= DEEPEST || self.included >= MOST_FILES {
            return self.leave_out(pattern, FileError::TooMany);
        }
        let paths = match self.find(pattern) {
            Ok(paths) => paths,
            Err(why) => return self.leave_out(pattern, why),
        };
        for path in paths {
            if self.included >= MOST_FILES {
                return self.leave_out(pattern, FileError::TooMany);
            }
            self.included += 1;
            let name = path
                .strip_prefix(&self.root)
                .unwrap_or(&path)
                .display()
                .to_string();
            match self.files.read(&path) {
                Ok(text) => {
                    self.depth += 1;
                    self.read(&name, &text);
                    self.depth -= 1;
                }
                Err(why) => self.leave_out(&name, why),
            }
        }
    }

    fn leave_out(&mut self, name: &str, why: FileError) {
        let one = NotRead {
            name: name.to_owned(),
            why,
        };
        if self.not_read.len() < MOST_FILES && !self.not_read.contains(&one) {
            self.not_read.push(one);
        }
    }

    /// The paths of a pattern, sorted.
    fn find(&self, pattern: &str) -> Result<BTreeSet<PathBuf>, FileError> {
        if pattern.contains('$') || pattern.contains("{%") {
            return Err(FileError::Variable);
        }
        if pattern.contains(['[', '{']) {
            return Err(FileError::Pattern);
        }
        let path = normal(&self.base.join(pattern));
        let Ok(inside) = path.strip_prefix(&self.root) else {
            return Err(FileError::Outside);
        };
        let mut found = BTreeSet::from([self.root.clone()]);
        for part in inside.components() {
            let part = part.as_os_str().to_string_lossy();
            found = if part.contains(['*', '?']) {
                let names = |folder: &PathBuf| -> Vec<PathBuf> {
                    let names = self.files.list(folder).unwrap_or_default();
                    let names = names.into_iter().filter(|name| matches(&part, name));
                    names.map(|name| folder.join(name)).collect()
                };
                found.iter().flat_map(names).take(MOST_FILES).collect()
            } else {
                found.iter().map(|folder| folder.join(&*part)).collect()
            };
        }
        Ok(found)
    }
}

/// A path without `.` and `..`, by its names alone.
fn normal(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                if !parts.pop() {
                    parts.push("..");
                }
            }
            part => parts.push(part),
        }
    }
    parts
}

/// Whether a name fits a pattern of `*` and `?`. A leading point is matched only by a point.
fn matches(pattern: &str, name: &str) -> bool {
    if name.starts_with('.') && !pattern.starts_with('.') {
        return false;
    }
    let (pattern, name): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), name.chars().collect());
    let (mut at, mut in_name) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while in_name < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, in_name));
                at += 1;
            }
            Some(one) if *one == '?' || *one == name[in_name] => {
                at += 1;
                in_name += 1;
            }
            _ => match star {
                Some((star_at, from)) => {
                    star = Some((star_at, from + 1));
                    at = star_at + 1;
                    in_name = from + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|one| *one == '*')
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Files in memory.
    pub(in crate::config) struct Texts(BTreeMap<PathBuf, String>);

    impl Texts {
        pub(in crate::config) fn of(texts: &[(&str, &str)]) -> Texts {
            let texts = texts.iter();
            Texts(
                texts
                    .map(|(path, text)| (PathBuf::from(path), (*text).to_owned()))
                    .collect(),
            )
        }
    }

    impl Files for Texts {
        fn read(&self, path: &Path) -> Result<String, FileError> {
            let text = self.0.get(path).cloned();
            text.ok_or_else(|| FileError::System("No such file".to_owned()))
        }

        fn list(&self, folder: &Path) -> Result<Vec<String>, FileError> {
            let inside = self.0.keys().filter(|path| path.parent() == Some(folder));
            Ok(inside
                .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
                .collect())
        }
    }

    fn included(pattern: &str) -> (Vec<String>, Vec<NotRead>) {
        let files = Texts::of(&[
            ("/etc/p/main", &format!("include {pattern}")),
            ("/etc/p/conf.d/b.conf", ""),
            ("/etc/p/conf.d/a.conf", ""),
            ("/etc/p/conf.d/.hidden.conf", ""),
            ("/etc/other", ""),
        ]);
        let syntax: Syntax = |reader, text| match text.strip_prefix("include ") {
            Some(pattern) => reader.include(pattern),
            None => reader.tree.add(reader.directive(Vec::new(), 1)),
        };
        let (read, not_read) = directives(Path::new("/etc/p/main"), &files, syntax).unwrap();
        (read.into_iter().map(|one| one.file).collect(), not_read)
    }

    #[test]
    fn patterns_find_files_in_the_folder_in_order() {
        for pattern in [
            "conf.d/*.conf",
            "/etc/p/conf.d/?.conf",
            "./conf.d/../conf.d/*",
        ] {
            let (names, not_read) = included(pattern);
            let expected = ["a.conf", "b.conf"].map(|name| Path::new("conf.d").join(name));
            let names: Vec<PathBuf> = names.iter().map(PathBuf::from).collect();
            assert_eq!(names, expected, "{pattern}");
            assert!(not_read.is_empty());
        }
    }

    #[test]
    fn what_is_not_followed_is_reported_with_its_reason() {
        for (pattern, why) in [
            ("/etc/other", FileError::Outside),
            ("../other", FileError::Outside),
            ("conf.d/[ab].conf", FileError::Pattern),
            ("${DIR}/x", FileError::Variable),
            ("missing", FileError::System("No such file".to_owned())),
        ] {
            let (names, not_read) = included(pattern);
            assert!(names.is_empty());
            assert_eq!(not_read.len(), 1, "{pattern}");
            assert_eq!(not_read[0].why, why);
        }
    }
}
