//! Which two commits `--commits` names. Must not check anything out.

use super::git::Git;
use super::unprepared;
use crate::exit::{Failed, refuse};
use anyhow::anyhow;
use intact_ledger::Caveat;
use intact_units::foreign_text::escape;
use intact_units::plural::counted;
use std::path::PathBuf;

/// Both sides of a change, and the repository that has them.
pub(super) struct Revisions {
    pub(super) base: Side,
    pub(super) head: Side,
    /// The user's working tree.
    pub(super) top: PathBuf,
    /// The working folder, below it.
    pub(super) below: PathBuf,
    /// Files of the working tree that differ from its commit, or are in none.
    pub(super) changed: Vec<PathBuf>,
    /// Whether the head is the commit of a working tree that has changes.
    leaves_changes_out: bool,
}

/// One side of a change.
pub(super) struct Side {
    /// `base`, `head`.
    pub(super) name: &'static str,
    /// The whole id.
    pub(super) commit: String,
    /// The beginning of the id.
    pub(super) short: String,
    /// The first line of the commit's message.
    pub(super) subject: String,
    /// Changed files of the working tree that are laid over the commit.
    pub(super) changed: usize,
}

impl Revisions {
    /// Reads `BASE..HEAD`, `BASE...HEAD` (from their merge base on) or `BASE` (from the merge base
    /// to the working tree).
    pub(super) fn read(user: &Git, text: &str) -> Result<Revisions, Failed> {
        let top = match user.ask(&["rev-parse", "--show-toplevel"])? {
            Ok(_) => user.path(&["rev-parse", "--show-toplevel"])?,
            Err(refusal) => {
                let words =
                    "--commits needs the working tree of a repository of git: run it in one";
                refuse!("{words} (git: {refusal})");
            }
        };
        let top = top.unwrap_or_default();
        let below = user.directory.strip_prefix(&top);
        let below = below.map_or_else(|_| PathBuf::new(), PathBuf::from);
        let (base, head) = match (text.split_once("..."), text.split_once("..")) {
            (Some((base, head)), _) => (merge_base(user, base, named(head))?, Some(named(head))),
            (None, Some((base, head))) => (commit(user, named(base))?, Some(named(head))),
            (None, None) => (merge_base(user, text, "HEAD")?, None),
        };
        let changed = changed(&Git::of_user(&top))?;
        let is_tree = head.is_none();
        let head = commit(user, head.unwrap_or("HEAD"))?;
        let laid_over = if is_tree { changed.len() } else { 0 };
        if base == head && laid_over == 0 {
            let short = &head[..head.len().min(10)];
            let hint = match is_tree {
                true => {
                    "the working tree has no changes since; name an older commit: --commits HEAD~1"
                }
                false => "name two commits: --commits HEAD~1..HEAD",
            };
            let text = escape(text);
            refuse!("--commits {text}: both sides are the commit {short}: {hint}");
        }
        let leaves_changes_out = !is_tree
            && !changed.is_empty()
            && user.line(&["rev-parse", "HEAD"])?.as_deref() == Some(&*head);
        Ok(Revisions {
            base: side(user, "base", base, 0)?,
            head: side(user, "head", head, laid_over)?,
            top,
            below,
            changed: if is_tree { changed } else { Vec::new() },
            leaves_changes_out,
        })
    }

    /// What limits the comparison.
    pub(super) fn caveats(&self) -> Vec<Caveat> {
        let files = |count: usize| counted(count as u64, "file");
        let laid_over = (self.head.changed > 0).then(|| {
            let files = files(self.head.changed);
            format!(
                "head is the working tree as it stands: the commit {} with {files} of uncommitted changes",
                self.head.short
            )
        });
        let left_out = self.leaves_changes_out.then(|| {
            format!(
                "the working tree has uncommitted changes, which are not in head; `--commits {}` compares the working tree",
                self.base.short
            )
        });
        let all = laid_over.into_iter().chain(left_out);
        all.map(|words| Caveat::new("uncommitted", words)).collect()
    }
}

/// HEAD where nothing is named.
fn named(revision: &str) -> &str {
    match revision {
        "" => "HEAD",
        revision => revision,
    }
}

fn side(user: &Git, name: &'static str, commit: String, changed: usize) -> Result<Side, Failed> {
    let subject = user.line(&["log", "-1", "--format=%s", &commit, "--"])?;
    Ok(Side {
        name,
        short: commit.chars().take(10).collect(),
        subject: subject.unwrap_or_default(),
        commit,
        changed,
    })
}

/// The id of a commit, which is in this clone.
fn commit(user: &Git, revision: &str) -> Result<String, Failed> {
    let verify = |revision: &str| {
        let peeled = format!("{revision}^{{commit}}");
        user.line(&[
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            &peeled,
        ])
    };
    if let Some(id) = verify(revision)? {
        return Ok(id);
    }
    let shown = escape(revision);
    let unknown = format!("--commits: there is no commit {shown} in this clone");
    let remote = format!("origin/{revision}");
    let remedy = if verify(&remote)?.is_some() {
        format!("did you mean {}?", escape(&remote))
    } else if is_shallow(user)? {
        format!("the clone is shallow: fetch it (git fetch --depth 1 origin {shown})")
    } else {
        format!("`git log --all --oneline` lists those that it has; git fetch origin {shown}")
    };
    Err(Failed::usage(anyhow!("{unknown}: {remedy}")))
}

/// The commit where two histories part.
fn merge_base(user: &Git, base: &str, head: &str) -> Result<String, Failed> {
    let (ours, theirs) = (commit(user, named(base))?, commit(user, head)?);
    if let Some(id) = user.line(&["merge-base", &ours, &theirs])? {
        return Ok(id);
    }
    let (base, head) = (escape(named(base)), escape(head));
    let remedy = match is_shallow(user)? {
        true => "the clone is shallow: fetch more of it (git fetch --unshallow), or name",
        false => "name",
    };
    Err(Failed::usage(anyhow!(
        "--commits: {base} and {head} have no commit in common: {remedy} both commits (--commits {base}..{head})"
    )))
}

fn is_shallow(user: &Git) -> Result<bool, Failed> {
    let answer = user.line(&["rev-parse", "--is-shallow-repository"])?;
    Ok(answer.as_deref() == Some("true"))
}

/// Files of the working tree that differ from its commit, and those that git does not ignore.
fn changed(top: &Git) -> Result<Vec<PathBuf>, Failed> {
    let wanted = "the changes of the working tree";
    let born = top.line(&["rev-parse", "--verify", "--quiet", "HEAD"])?;
    if born.is_none() {
        return Err(unprepared(anyhow!("the repository has no commit yet")));
    }
    let differ = ["diff", "--name-only", "--no-renames", "-z", "HEAD", "--"];
    let mut changed = top.paths(wanted, &differ)?;
    let others = ["ls-files", "-z", "--others", "--exclude-standard"];
    changed.extend(top.paths(wanted, &others)?);
    Ok(changed)
}
