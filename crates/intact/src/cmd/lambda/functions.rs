//! The functions that a command line names: commands after a `--` each, times the variants of their
//! environment.

use crate::cmd::compare::distinct_names;
use crate::exit::{Failed, refuse};
use anyhow::anyhow;
use intact_lambda::Function;
use intact_ledger::{Variant, redact};
use std::collections::BTreeMap;
use std::ffi::OsString;

/// Takes the words apart.
pub(super) fn parse(
    words: &[OsString],
    variants: &[String],
    handler: Option<&OsString>,
) -> Result<Vec<(Variant, Function)>, Failed> {
    let commands: Vec<&[OsString]> = words.split(|word| word == "--").collect();
    if commands.iter().any(|command| command.is_empty()) {
        refuse!("a -- has no function after it");
    }
    let environments = if variants.is_empty() {
        vec![(String::new(), Vec::new())]
    } else {
        let read = variants.iter().map(|given| environment(given));
        let read: Vec<(String, Variables)> = read.collect::<Result<_, Failed>>()?;
        let (names, variables): (Vec<String>, Vec<Variables>) = read.into_iter().unzip();
        distinct_names(names).into_iter().zip(variables).collect()
    };
    let mut functions: Vec<(Variant, Function)> = Vec::new();
    for command in &commands {
        for (given, variables) in &environments {
            let line: Vec<String> = command
                .iter()
                .map(|word| word.to_string_lossy().into_owned())
                .collect();
            let line = redact::argv(&line).join(" ");
            let name = match (commands.len(), given.is_empty()) {
                (1, false) => given.clone(),
                (_, true) => line.clone(),
                (_, false) => format!("{line} {given}"),
            };
            let axes = [("command", &line), ("environment", given)];
            let axes = axes.map(|(axis, value)| (axis.to_owned(), value.clone()));
            let function = Function {
                command: command.to_vec(),
                environment: variables.clone(),
                handler: handler.cloned(),
                serves: None,
            };
            functions.push((
                Variant {
                    name,
                    axes: BTreeMap::from(axes),
                },
                function,
            ));
        }
    }
    Ok(functions)
}

type Variables = Vec<(OsString, OsString)>;

/// `KEY=VALUE KEY=VALUE`, and its name: the value of a variable that looks like a secret is left
/// out.
fn environment(given: &str) -> Result<(String, Variables), Failed> {
    let mut variables = Vec::new();
    for word in given.split_whitespace() {
        let (key, value) = word
            .split_once('=')
            .filter(|(key, _)| !key.is_empty())
            .ok_or_else(|| {
                Failed::usage(anyhow!(
                    "--variants {}: KEY=VALUE is wanted",
                    redact::value_of("--variants", given)
                ))
            })?;
        variables.push((key.into(), value.into()));
    }
    let words: Vec<String> = given.split_whitespace().map(str::to_owned).collect();
    Ok((redact::argv(&words).join(" "), variables))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(words: &[&str], variants: &[&str]) -> Vec<String> {
        let words: Vec<OsString> = words.iter().map(OsString::from).collect();
        let variants: Vec<String> = variants.iter().map(|one| (*one).to_owned()).collect();
        parse(&words, &variants, None)
            .map(|all| all.into_iter().map(|(variant, _)| variant.name).collect())
            .unwrap_or_default()
    }

    #[test]
    fn commands_and_environments_multiply() {
        assert_eq!(names(&["./a"], &["K=0", "K=1 L=2"]), ["K=0", "K=1 L=2"]);
        assert_eq!(names(&["./a", "x", "--", "./b"], &[]), ["./a x", "./b"]);
        assert_eq!(
            names(&["./a", "--", "./b"], &["K=0", "K=1"]),
            ["./a K=0", "./a K=1", "./b K=0", "./b K=1"]
        );
        assert!(names(&["./a", "--"], &[]).is_empty());
        assert!(names(&["./a"], &["K"]).is_empty());
    }
}
