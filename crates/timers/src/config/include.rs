//! Included files: patterns, the allowed folder, and limits on the number of files. Must not do
//! I/O.

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

/// Follows the includes of one configuration.
pub(super) struct Reader<'a> {
    files: &'a dyn Files,
    main: PathBuf,
    /// The folder that includes may be in.
    root: PathBuf,
    depth: usize,
    read: usize,
    pub(super) not_read: Vec<NotRead>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(main: &Path, files: &'a dyn Files) -> Reader<'a> {
        Reader {
            files,
            main: main.to_owned(),
            root: normal(main.parent().unwrap_or(Path::new(""))),
            depth: 0,
            read: 0,
            not_read: Vec::new(),
        }
    }

    /// The text of the configuration itself.
    pub(super) fn main(&mut self) -> Result<String, FileError> {
        self.files.read(&self.main)
    }

    /// The folder of the configuration.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Calls `each` with the name and the text of every file that `pattern` finds, seen from
    /// `base`. A pattern that finds none is no error; a file that cannot be read is kept in
    /// `not_read`.
    pub(super) fn include(
        &mut self,
        pattern: &str,
        base: &Path,
        each: &mut dyn FnMut(&mut Self, &str, &str),
    ) {
        if self.depth >= DEEPEST || self.read >= MOST_FILES {
            return self.leave_out(pattern, FileError::TooMany);
        }
        let paths = match self.find(pattern, base) {
            Ok(paths) => paths,
            Err(why) => return self.leave_out(pattern, why),
        };
        for path in paths {
            if self.read >= MOST_FILES {
                return self.leave_out(pattern, FileError::TooMany);
            }
            self.read += 1;
            let name = path
                .strip_prefix(&self.root)
                .unwrap_or(&path)
                .display()
                .to_string();
            match self.files.read(&path) {
                Ok(text) => {
                    self.depth += 1;
                    each(self, &name, &text);
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
    fn find(&self, pattern: &str, base: &Path) -> Result<BTreeSet<PathBuf>, FileError> {
        if pattern.contains('$') || pattern.contains("{%") {
            return Err(FileError::Variable);
        }
        if pattern.contains(['[', '{']) {
            return Err(FileError::Pattern);
        }
        let path = normal(&base.join(pattern));
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
            ("/etc/p/main", ""),
            ("/etc/p/conf.d/b.conf", ""),
            ("/etc/p/conf.d/a.conf", ""),
            ("/etc/p/conf.d/.hidden.conf", ""),
            ("/etc/other", ""),
        ]);
        let mut reader = Reader::new(Path::new("/etc/p/main"), &files);
        let mut names = Vec::new();
        let base = reader.root().to_owned();
        reader.include(pattern, &base, &mut |_, name, _| {
            names.push(name.to_owned());
        });
        (names, reader.not_read)
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
