//! The programs of a comparison: taken apart from the command line, multiplied by the values of
//! variables, given names.

use crate::exit::{Failed, refuse};
use anyhow::anyhow;
use intact_ledger::{Variant, redact};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

/// One program.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Program {
    /// Its words.
    pub(super) command: Vec<OsString>,
    /// Variables that are set for it.
    pub(super) environment: Vec<(OsString, OsString)>,
    /// The folder that it runs in, where that is not ours.
    pub(super) directory: Option<PathBuf>,
    /// The folder of its code, where that is not the one of the command line.
    pub(super) code_root: Option<PathBuf>,
    /// What it is called, and the settings in which it differs.
    pub(super) variant: Variant,
}

/// Takes the words after the first `--` apart, and multiplies by `--env KEY=A,B`.
pub(super) fn parse(words: &[OsString], variables: &[String]) -> Result<Vec<Program>, Failed> {
    let commands: Vec<&[OsString]> = words.split(|word| word == "--").collect();
    if commands.iter().any(|command| command.is_empty()) {
        refuse!("a -- has no program after it");
    }
    let lines: Vec<String> = commands.iter().map(|command| words_of(command)).collect();
    let names = distinct_names(differing(&lines));
    let mut programs: Vec<Program> = commands
        .iter()
        .zip(lines)
        .zip(names)
        .map(|((command, line), name)| Program {
            command: through_shell(command),
            environment: Vec::new(),
            directory: None,
            code_root: None,
            variant: Variant {
                name,
                axes: BTreeMap::from([("command".to_owned(), line)]),
            },
        })
        .collect();
    let alone = programs.len() == 1;
    for variable in variables {
        let (key, values) = variable
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| {
                let shown = redact::value_of("--env", variable);
                Failed::usage(anyhow!("--env {shown}: KEY=A,B is wanted"))
            })?;
        let values: Vec<&str> = values.split(',').collect();
        let shown = values.iter().map(|value| shown_value(key, value));
        let shown = distinct_names(shown.collect());
        programs = values
            .iter()
            .zip(&shown)
            .flat_map(|(value, shown)| {
                programs
                    .iter()
                    .map(move |program| with(program, key, value, shown, alone))
            })
            .collect();
    }
    if programs.len() < 2 {
        refuse!("one program alone: name another after a second --, or --env KEY=A,B");
    }
    Ok(programs)
}

/// The words of a single program.
pub(super) fn one(words: &[OsString]) -> Result<Vec<OsString>, Failed> {
    if words.is_empty() || words.iter().any(|word| word == "--") {
        refuse!("--commits runs one program in both commits: name it after a single --");
    }
    Ok(through_shell(words))
}

/// The value of a variable as it is recorded: without a secret.
fn shown_value(key: &str, value: &str) -> String {
    let setting = redact::word(&format!("{key}={value}"));
    let shown = setting.split_once('=').map(|(_, shown)| shown);
    shown.unwrap_or_default().to_owned()
}

/// A program with one variable more; of a single command the variables alone are name enough.
fn with(program: &Program, key: &str, value: &str, shown: &str, alone: bool) -> Program {
    let mut program = program.clone();
    let setting = format!("{key}={shown}");
    let name = &mut program.variant.name;
    if alone && program.environment.is_empty() {
        *name = setting;
    } else {
        *name = format!("{name} {setting}");
    }
    program.environment.push((key.into(), value.into()));
    program
        .variant
        .axes
        .insert(key.to_owned(), shown.to_owned());
    program
}

/// A single word with blanks in it is a line for a shell.
fn through_shell(command: &[OsString]) -> Vec<OsString> {
    match command {
        [line] if line.to_string_lossy().contains(char::is_whitespace) => {
            vec!["sh".into(), "-c".into(), line.clone()]
        }
        words => words.to_vec(),
    }
}

fn words_of(command: &[OsString]) -> String {
    let words: Vec<String> = command
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    match &words[..] {
        [line] if line.contains(char::is_whitespace) => {
            redact::line(&line.split_whitespace().collect::<Vec<&str>>().join(" "))
        }
        words => redact::argv(words).join(" "),
    }
}

/// The words of the lines that are not common to all of them, in the same order: the difference is
/// name enough.
fn differing(lines: &[String]) -> Vec<String> {
    let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split(' ').collect()).collect();
    let common = words
        .iter()
        .cloned()
        .reduce(|one, other| common_words(&one, &other));
    let common = common.unwrap_or_default();
    let gaps: Vec<Vec<Vec<&str>>> = words.iter().map(|line| gaps(line, &common)).collect();
    let name = |own: &Vec<Vec<&str>>| {
        let with_option = own.iter().enumerate().flat_map(|(at, gap)| {
            let before = at.checked_sub(1).map(|before| common[before]);
            let says = |before: &&str| gaps.iter().any(|gaps| is_value(before, &gaps[at]));
            before.filter(says).into_iter().chain(gap.iter().copied())
        });
        with_option.collect::<Vec<&str>>().join(" ")
    };
    let is_empty = |gaps: &Vec<Vec<&str>>| gaps.iter().all(Vec::is_empty);
    // where nothing would be left of one, all keep their whole names
    match gaps.iter().any(is_empty) {
        true => lines.to_vec(),
        false => gaps.iter().map(name).collect(),
    }
}

/// The longest list of words that both have in this order.
fn common_words<'a>(one: &[&'a str], other: &[&'a str]) -> Vec<&'a str> {
    // how many are common to what begins at each pair of places
    let mut longest = vec![vec![0; other.len() + 1]; one.len() + 1];
    for (at, word) in one.iter().enumerate().rev() {
        for (there, theirs) in other.iter().enumerate().rev() {
            longest[at][there] = match word == theirs {
                true => longest[at + 1][there + 1] + 1,
                false => longest[at + 1][there].max(longest[at][there + 1]),
            };
        }
    }
    let (mut at, mut there, mut common) = (0, 0, Vec::new());
    while at < one.len() && there < other.len() {
        if one[at] == other[there] {
            common.push(one[at]);
            (at, there) = (at + 1, there + 1);
        } else if longest[at + 1][there] >= longest[at][there + 1] {
            at += 1;
        } else {
            there += 1;
        }
    }
    common
}

/// The words of a line before each of the common words, and after the last.
fn gaps<'a>(line: &[&'a str], common: &[&str]) -> Vec<Vec<&'a str>> {
    let mut gaps = vec![Vec::new(); common.len() + 1];
    let mut at = 0;
    for word in line {
        match common.get(at) == Some(word) {
            true => at += 1,
            false => gaps[at].push(*word),
        }
    }
    gaps
}

/// Whether what differs begins with a bare value, such as `0` or the `on` of `--keepalive on`: the
/// word before it says of what.
fn is_value(before: &str, gap: &[&str]) -> bool {
    let is_option = |word: &str| word.starts_with('-');
    let is_bare = |word: &str| {
        let is_switch = ["on", "off", "true", "false", "yes", "no"].contains(&word);
        is_switch || !word.chars().any(char::is_alphabetic)
    };
    // a short option such as `-s` says nothing of the URL after it
    let says = |word: &&str| !is_option(word) && (before.starts_with("--") || is_bare(word));
    gap.first().is_some_and(says)
}

/// Names that differ.
pub(crate) fn distinct_names(names: Vec<String>) -> Vec<String> {
    let mut distinct: Vec<String> = Vec::new();
    for name in names {
        let mut candidate = name.clone();
        let mut nth = 2;
        while distinct.contains(&candidate) {
            candidate = format!("{name} ({nth})");
            nth += 1;
        }
        distinct.push(candidate);
    }
    distinct
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str], variables: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let variables: Vec<String> = variables.iter().map(|one| (*one).to_owned()).collect();
        parse(&words, &variables)
            .map(|programs| programs.into_iter().map(|one| one.variant.name).collect())
            .unwrap_or_default()
    }

    #[test]
    fn programs_stand_after_a_double_dash_each() {
        assert_eq!(
            names(&["node", "a.js", "--", "node b.js"], &[]),
            ["a.js", "b.js"]
        );
        assert_eq!(
            names(&["node", "a.js", "1", "--", "node", "b.js", "-v", "1"], &[]),
            ["a.js", "b.js -v"]
        );
        assert_eq!(
            names(&["make", "--", "make", "all"], &[]),
            ["make", "make all"]
        );
        assert_eq!(names(&["./a", "--", "./a"], &[]), ["./a", "./a (2)"]);
        assert_eq!(
            names(
                &["node a.js http://a/ -n", "--", "node b.js http://a/ -m"],
                &[]
            ),
            ["a.js -n", "b.js -m"]
        );
        assert_eq!(
            names(
                &["node a.js b.js z.js", "--", "node a.js c.js d.js z.js"],
                &[]
            ),
            ["b.js", "c.js d.js"]
        );
    }

    #[test]
    fn a_value_is_named_with_the_word_before_it() {
        assert_eq!(
            names(
                &["./a", "--reuse", "0", "u", "--", "./a", "--reuse", "1", "u"],
                &[]
            ),
            ["--reuse 0", "--reuse 1"]
        );
        assert_eq!(names(&["./a 0", "--", "./a 1"], &[]), ["./a 0", "./a 1"]);
        assert_eq!(
            names(&["./a", "-v", "off", "--", "./a", "-v", "on"], &[]),
            ["-v off", "-v on"]
        );
        assert_eq!(names(&["./a", "-v", "--", "./a", "-q"], &[]), ["-v", "-q"]);
        assert_eq!(
            names(&["curl -s http://a/", "--", "curl -s http://b/"], &[]),
            ["http://a/", "http://b/"]
        );
    }

    #[test]
    fn a_program_is_needed_after_each_double_dash() {
        assert!(names(&["./a"], &[]).is_empty());
        assert!(names(&["./a", "--"], &[]).is_empty());
    }

    #[test]
    fn variables_multiply_the_programs() {
        assert_eq!(names(&["./a"], &["K=0,1"]), ["K=0", "K=1"]);
        assert_eq!(
            names(&["./a", "--", "./b"], &["K=0,1"]),
            ["./a K=0", "./b K=0", "./a K=1", "./b K=1"]
        );
        assert_eq!(names(&["./a"], &["K=0,1", "L=x"]), ["K=0 L=x", "K=1 L=x"]);
        assert!(names(&["./a"], &["K"]).is_empty());
    }

    #[test]
    fn the_secret_value_of_a_variable_is_hidden() {
        assert_eq!(
            names(&["./a"], &["API_TOKEN=s3cret,s4cret"]),
            ["API_TOKEN=…", "API_TOKEN=… (2)"]
        );
    }

    #[test]
    fn a_line_for_a_shell_goes_to_one() {
        let programs = parse(&["a b".into(), "--".into(), "a".into(), "b".into()], &[]).unwrap();
        assert_eq!(programs[0].command, ["sh", "-c", "a b"]);
        assert_eq!(programs[1].command, ["a", "b"]);
    }

    #[test]
    fn secrets_do_not_become_names() {
        let distinct = names(
            &[
                "curl -H 'Authorization: Bearer s3cret' http://a",
                "--",
                "curl",
                "-u",
                "me:s3cret",
            ],
            &[],
        );
        assert_eq!(distinct, ["-H", "-u"]);
        let lines = ["a -H 'Cookie: s3cret' b", "a -H 'Cookie: s3cret' b c"];
        assert_eq!(lines.map(redact::line), ["a -H …"; 2]);
    }
}
