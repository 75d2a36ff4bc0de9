//! Subjects of commits: `area: imperative`, at most 72 characters, without a rejected word.
//!
//! Only the commits since the branch point are checked. A shallow clone may lack it; then the check
//! prints that it skips the subjects.

use super::prose::Passage;
use super::rejected::Rejected;
use crate::tool;
use std::path::Path;

/// Characters of a subject.
const MAX_CHARACTERS: usize = 72;

/// Imperatives that end like a past tense, a participle or a third person.
const IMPERATIVES: &[&str] = &[
    "alias", "bias", "bring", "canvas", "embed", "exceed", "feed", "focus", "heed", "need",
    "precede", "proceed", "ring", "seed", "shed", "speed", "spring", "string", "succeed", "wed",
];

/// What is wrong with the subjects of a branch: a line for each problem. `None`: the branch point
/// is not known.
pub(super) fn problems(root: &Path, rejected: &Rejected) -> Option<Vec<String>> {
    let git = |words: &[&str]| tool::run(root, "git", words).ok();
    // on GitHub a pull request is a merge commit: the target is named by a variable
    let target = std::env::var("GITHUB_BASE_REF").ok();
    let target = target.filter(|name| !name.is_empty());
    let target = target.map(|name| format!("origin/{name}"));
    let bases = target
        .as_deref()
        .into_iter()
        .chain(["origin/HEAD", "origin/main", "main"]);
    let point = bases
        .into_iter()
        .find_map(|base| git(&["merge-base", "HEAD", base]))?;
    let range = format!("{}..HEAD", point.trim());
    let log = git(&["log", "--no-merges", "--format=%h %s", &range])?;
    let lines = log.lines().filter_map(|line| line.split_once(' '));
    let wrong = lines.flat_map(|(commit, subject)| {
        let each = wrong(subject, rejected).into_iter();
        each.map(move |problem| format!("commit {commit}: {problem}: {subject}"))
    });
    Some(wrong.collect())
}

/// The rules that a subject breaks.
fn wrong(subject: &str, rejected: &Rejected) -> Vec<String> {
    let mut wrong = Vec::new();
    let characters = subject.chars().count();
    if characters > MAX_CHARACTERS {
        wrong.push(format!(
            "{characters} characters, more than {MAX_CHARACTERS}"
        ));
    }
    let is_area = |area: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
        let mut names = area.split(", ");
        names.all(|name| !name.is_empty() && name.chars().all(allowed))
    };
    match subject.split_once(": ") {
        Some((area, rest)) if is_area(area) => {
            let verb = rest.split_whitespace().next().unwrap_or_default();
            if !is_imperative(verb) {
                wrong.push(format!("\"{verb}\" is no imperative"));
            }
        }
        _ => wrong.push("does not begin with `area: `".to_owned()),
    }
    if subject.ends_with('.') {
        wrong.push("ends in a full stop".to_owned());
    }
    let text = Passage::of(0, subject);
    let words = rejected.find(&text.text).into_iter();
    wrong.extend(words.map(|(_, phrase, instead)| format!("\"{phrase}\"; write {instead}")));
    wrong
}

/// Whether a word can be an imperative, by its ending.
fn is_imperative(word: &str) -> bool {
    let is_lower = word.starts_with(|first: char| first.is_ascii_lowercase());
    let endings = ["ed", "ing"];
    let inflected = endings.iter().any(|end| word.ends_with(end))
        || word.ends_with('s') && !word.ends_with("ss");
    is_lower && (!inflected || IMPERATIVES.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_is_an_area_and_an_imperative() {
        let rejected = Rejected::new().unwrap();
        for right in [
            "watch: detect close_notify by size",
            "wire, client, serve, bench: say shared steps once",
            "docs: need less, and pass `--tell`",
            "xtask/words: check subjects",
        ] {
            assert_eq!(wrong(right, &rejected), [""; 0], "{right}");
        }
        for (subject, expected) in [
            (
                "detect close_notify by size",
                "does not begin with `area: `",
            ),
            ("watch and audit: detect it", "does not begin with `area: `"),
            ("watch: detects it", "\"detects\" is no imperative"),
            ("watch: added it", "\"added\" is no imperative"),
            ("watch: Detect it", "\"Detect\" is no imperative"),
            ("watch: detect it.", "ends in a full stop"),
            (
                "watch: tell it",
                "\"tell\"; write report, print, show, count, detect, infer; configured",
            ),
        ] {
            assert_eq!(wrong(subject, &rejected), [expected], "{subject}");
        }
        let long = format!("watch: {}", "a".repeat(66));
        assert_eq!(wrong(&long, &rejected), ["73 characters, more than 72"]);
    }

    #[test]
    fn without_a_branch_point_nothing_is_checked() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(problems(folder.path(), &Rejected::new().unwrap()), None);
    }

    #[test]
    fn commits_of_the_branch_are_checked_and_earlier_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| tool::run(folder.path(), "git", words).unwrap();
        let commit = |subject: &str| {
            let name = ["-c", "user.name=a", "-c", "user.email=a@example.com"];
            let words = ["commit", "--allow-empty", "--quiet", "-m", subject];
            git(&[&name[..], &words].concat());
        };
        git(&["init", "--quiet", "--initial-branch", "main"]);
        commit("Older");
        git(&["checkout", "--quiet", "-b", "change"]);
        commit("watch: detect it");
        commit("Newer");
        let found = problems(folder.path(), &Rejected::new().unwrap()).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].ends_with("does not begin with `area: `: Newer"));
    }
}
