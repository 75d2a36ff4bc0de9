//! One commit in a folder: a repository that borrows the objects of the user's. Must not write to
//! the user's.

use super::git::{Git, OF_REPOSITORY};
use super::revisions::{Revisions, Side};
use super::unprepared;
use crate::exit::{self, Failed, refuse};
use anyhow::{Context, anyhow};
use intact_ledger::redact;
use intact_units::foreign_text::escape;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What a file of git LFS begins with that was not fetched.
const LFS_POINTER: &[u8] = b"version https://git-lfs.github.com/spec/v1";
/// Lines of a failed setup that are printed.
const LAST_LINES: usize = 20;

/// A commit in a folder.
pub(super) struct Checkout {
    /// `base`, `head`.
    name: &'static str,
    short: String,
    /// The top of the working tree.
    pub(super) root: PathBuf,
    /// The folder that the program runs in: where `intact` was started, in this working tree.
    pub(super) directory: PathBuf,
}

impl Checkout {
    /// Checks a side out below `scratch`.
    pub(super) fn make(
        user: &Git,
        revisions: &Revisions,
        side: &Side,
        scratch: &Path,
    ) -> Result<Checkout, Failed> {
        let root = scratch.join(side.name);
        let checkout = Checkout {
            name: side.name,
            short: side.short.clone(),
            directory: root.join(&revisions.below),
            root,
        };
        checkout.borrow_objects(user)?;
        let wanted = format!("the checkout of {}", checkout.words());
        let words = ["checkout", "--quiet", "--force", "--detach", &side.commit];
        checkout.git().must(&wanted, &words)?;
        if side.changed > 0 {
            checkout
                .lay_over(&revisions.top, &revisions.changed)
                .with_context(|| wanted.clone())
                .map_err(unprepared)?;
        }
        if !checkout.directory.is_dir() {
            let below = revisions.below.display();
            refuse!(
                "{} has no folder {below}: run `intact` in a folder that both commits have",
                checkout.words()
            );
        }
        Ok(checkout)
    }

    /// `base (1a2b3c4d5e)`.
    fn words(&self) -> String {
        format!("{} ({})", self.name, self.short)
    }

    fn git(&self) -> Git {
        Git::of_checkout(&self.root)
    }

    /// Makes the repository: its settings, branches and tags are those of the user's.
    fn borrow_objects(&self, user: &Git) -> Result<(), Failed> {
        let wanted = format!("a repository for {}", self.words());
        let failed = |error: io::Error| unprepared(anyhow!("{wanted}: {error}"));
        fs::create_dir(&self.root).map_err(failed)?;
        let format = user.line(&["rev-parse", "--show-object-format"])?;
        let format = format!("--object-format={}", format.as_deref().unwrap_or("sha1"));
        let init = [
            "-c",
            "init.defaultBranch=intact",
            "init",
            "--quiet",
            "--template=",
            &format,
        ];
        self.git().must(&wanted, &init)?;
        let ours = self.root.join(".git");
        let shared = |name: &str| user.path(&["rev-parse", "--git-path", name]);
        let line = |path: &Path| [path.as_os_str().as_encoded_bytes(), b"\n"].concat();
        if let Some(objects) = shared("objects")? {
            let info = ours.join("objects/info");
            fs::create_dir_all(&info).map_err(failed)?;
            fs::write(info.join("alternates"), line(&objects)).map_err(failed)?;
        }
        // where the history of a shallow clone ends
        if let Some(shallow) = shared("shallow")?.filter(|path| path.exists()) {
            fs::copy(shallow, ours.join("shallow")).map_err(failed)?;
        }
        let refs = ["for-each-ref", "--format=%(objectname) %(refname)"];
        let refs = user.ask(&refs)?.unwrap_or_default();
        fs::write(ours.join("packed-refs"), refs).map_err(failed)?;
        let settings = self.settings(user)?;
        let path = ours.join("config");
        let known = fs::read(&path).map_err(failed)?;
        fs::write(path, [known, settings.into_bytes()].concat()).map_err(failed)
    }

    /// Settings: those of the user's repository (remotes, credentials, filters), without those that
    /// lead back to its tree and its hooks.
    fn settings(&self, user: &Git) -> Result<String, Failed> {
        let quoted = |path: &Path| {
            let path = path.to_string_lossy();
            format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\""))
        };
        let mut settings = String::new();
        let shared = |name: &str| user.path(&["rev-parse", "--git-path", name]);
        if let Some(config) = shared("config")?.filter(|path| path.exists()) {
            settings += &format!("[include]\n\tpath = {}\n", quoted(&config));
        }
        if let Some(remote) = user.line(&["config", "--get", "extensions.partialClone"])? {
            settings += "[core]\n\trepositoryformatversion = 1\n";
            settings += &format!(
                "[extensions]\n\tpartialClone = {}\n",
                quoted(remote.as_ref())
            );
        }
        if let Some(storage) = shared("lfs")?.filter(|path| path.exists()) {
            settings += &format!("[lfs]\n\tstorage = {}\n", quoted(&storage));
        }
        let root = quoted(&self.root);
        let hooks = quoted(&self.root.join(".git/hooks"));
        settings += &format!(
            "[core]\n\tbare = false\n\tworktree = {root}\n\thooksPath = {hooks}\n\tsparseCheckout = false\n\tfsmonitor = false\n[gc]\n\tauto = 0\n"
        );
        Ok(settings)
    }

    /// Copies changed files of a working tree over the commit, and removes those that it lacks.
    fn lay_over(&self, top: &Path, changed: &[PathBuf]) -> io::Result<()> {
        for path in changed {
            let (from, to) = (top.join(path), self.root.join(path));
            let Ok(about) = fs::symlink_metadata(&from) else {
                remove(&to)?;
                continue;
            };
            // the commit of a submodule, or a repository in this one
            if about.is_dir() {
                continue;
            }
            if let Some(folder) = to.parent() {
                fs::create_dir_all(folder)?;
            }
            remove(&to)?;
            if about.is_symlink() {
                std::os::unix::fs::symlink(fs::read_link(&from)?, &to)?;
            } else if about.is_file() {
                fs::copy(&from, &to)?;
            }
        }
        Ok(())
    }

    /// Variables of what runs here. Those that a hook of git has would lead to the user's
    /// repository.
    pub(super) fn environment(&self) -> Vec<(OsString, OsString)> {
        let git = self.root.join(".git");
        let led = OF_REPOSITORY.into_iter().filter_map(|name| {
            std::env::var_os(name)?;
            let value: OsString = match name {
                "GIT_DIR" | "GIT_COMMON_DIR" => git.clone().into(),
                "GIT_WORK_TREE" => self.root.clone().into(),
                "GIT_INDEX_FILE" => git.join("index").into(),
                "GIT_OBJECT_DIRECTORY" => git.join("objects").into(),
                _ => OsString::new(),
            };
            Some((name.into(), value))
        });
        let here = ("PWD".into(), self.directory.clone().into());
        led.chain([here]).collect()
    }

    /// Runs the setup command.
    pub(super) fn set_up(&self, line: &str, shows_output: bool) -> Result<(), Failed> {
        let failed = |error: io::Error| unprepared(anyhow!("--setup: {error}"));
        let log = self.root.with_extension("setup");
        let mut command = Command::new("sh");
        command
            .args(["-c", line])
            .current_dir(&self.directory)
            .envs(self.environment())
            .stdin(Stdio::null());
        if !shows_output {
            let file = fs::File::create(&log).map_err(failed)?;
            command
                .stdout(file.try_clone().map_err(failed)?)
                .stderr(file);
        }
        super::end_with_us(&mut command);
        let status = command.status().map_err(failed)?;
        if status.success() {
            return Ok(());
        }
        let said = fs::read(&log).unwrap_or_default();
        let said = String::from_utf8_lossy(&said);
        let lines: Vec<&str> = said.lines().collect();
        let last = &lines[lines.len().saturating_sub(LAST_LINES)..];
        let last: String = last
            .iter()
            .map(|line| format!("\n  {}", escape(line)))
            .collect();
        let line = redact::line(line);
        Err(unprepared(anyhow!(
            "--setup failed in {} ({status}): {line}{last}",
            self.words()
        )))
    }

    /// Fails where submodules or files of git LFS are missing: a program that lacks them is not
    /// that of the commit.
    pub(super) fn check_complete(&self, has_setup: bool) -> Result<(), Failed> {
        let wanted = format!("the files of {}", self.words());
        let files = self.git().must(&wanted, &["ls-files", "-z", "--stage"])?;
        let remedy = |command: &str| match has_setup {
            true => format!(
                "have --setup fetch them (`{command}`), or remove what the program does not need"
            ),
            false => format!("fetch them in each checkout: --setup '{command}'"),
        };
        // mode, id and stage stand before a tab
        let entries = files.split(|byte| *byte == 0);
        let submodules = entries.filter(|entry| entry.starts_with(b"160000 "));
        let mut submodules = submodules.filter_map(|entry| {
            let tab = entry.iter().position(|byte| *byte == b'\t')?;
            Some(String::from_utf8_lossy(&entry[tab + 1..]).into_owned())
        });
        let is_empty = |path: &String| {
            let entries = fs::read_dir(self.root.join(path));
            entries.is_ok_and(|mut entries| entries.next().is_none())
        };
        if let Some(path) = submodules.find(is_empty) {
            return Err(unprepared(anyhow!(
                "{} has submodules, which a checkout leaves empty ({}): {}",
                self.words(),
                escape(&path),
                remedy("git submodule update --init --recursive")
            )));
        }
        let of_lfs = ["ls-files", "-z", "--", ":(attr:filter=lfs)"];
        let of_lfs = self.git().paths(&wanted, &of_lfs)?;
        let mut pointers = of_lfs
            .iter()
            .filter(|path| is_pointer(&self.root.join(path)));
        if let Some(path) = pointers.next() {
            return Err(unprepared(anyhow!(
                "{} has files of git LFS that were not fetched ({} is a pointer): {}",
                self.words(),
                escape(&path.to_string_lossy()),
                remedy("git lfs pull")
            )));
        }
        Ok(())
    }

    /// Fails where the program is a file of the repository that this commit lacks.
    pub(super) fn check_program(&self, command: &[OsString]) -> Result<(), Failed> {
        let is_of_tree = |word: &OsStr| {
            let path = Path::new(word);
            path.is_relative() && path.components().count() > 1
        };
        match command.first() {
            Some(program) if is_of_tree(program) && !self.directory.join(program).exists() => {
                Err(Failed::with_code(
                    exit::NOT_FOUND,
                    anyhow!(
                        "{}: not found in {}: name a program that both commits have, or make it with --setup",
                        program.display(),
                        self.words()
                    ),
                ))
            }
            _ => Ok(()),
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(_) if path.is_dir() => fs::remove_dir_all(path),
        done => done,
    }
}

fn is_pointer(path: &Path) -> bool {
    let mut begin = [0; LFS_POINTER.len()];
    let file = fs::File::open(path);
    let read = file.and_then(|mut file| file.read_exact(&mut begin));
    read.is_ok() && begin == LFS_POINTER
}
