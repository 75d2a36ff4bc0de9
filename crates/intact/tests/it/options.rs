//! What the help says: every command has examples, and docs/reference/options.md is the help of all
//! of them, without the notes.

use clap::{Arg, Command};
use std::fmt::Write;

/// A command and those below it, with their names as they are typed; without the hidden ones.
fn all(command: &Command, name: &str, into: &mut Vec<(String, Command)>) {
    into.push((name.to_owned(), command.clone()));
    for below in command.get_subcommands() {
        if !below.is_hide_set() && below.get_name() != "help" {
            all(below, &format!("{name} {}", below.get_name()), into);
        }
    }
}

fn commands() -> Vec<(String, Command)> {
    let mut commands = Vec::new();
    all(&intact::command(), "intact", &mut commands);
    commands
}

#[test]
fn every_command_has_examples_that_name_it() {
    let commands = commands();
    assert!(commands.len() > 12);
    for (name, mut command) in commands {
        let help = command.render_long_help().to_string();
        let (_, examples) = help
            .split_once("Examples:\n")
            .unwrap_or_else(|| panic!("{name} --help has no examples"));
        assert!(examples.contains(&name), "{name}: {examples}");
    }
}

#[test]
fn every_line_of_an_example_can_be_pasted() {
    let mut pasted = 0;
    for (name, command) in commands() {
        let notes = command.get_after_help().unwrap().to_string();
        let (_, examples) = notes.split_once("Examples:\n").unwrap();
        let examples = examples.split("\n\n").next().unwrap();
        for line in examples.lines() {
            assert!(
                line.len() <= 80,
                "{name} --help wraps {line:?} at 80 columns"
            );
        }
        for line in examples.replace("\\\n", "").lines() {
            // the shell replaces this
            if line.contains("$(") {
                continue;
            }
            let words = shlex::split(line).unwrap_or_else(|| panic!("{name}: {line}"));
            for one in words.split(|word| matches!(&**word, "|" | ">" | ";")) {
                let is_before = |word: &&String| *word == "sudo" || word.contains('=');
                let own = one.iter().skip_while(is_before);
                let own: Vec<&String> = own.collect();
                // a URL stands in the place of a command, and has arguments of its own
                if own.get(1).is_some_and(|second| second.contains("://")) {
                    continue;
                }
                if own.first().is_some_and(|first| *first == "intact") {
                    let parsed = intact::command().try_get_matches_from(&own);
                    assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
                    pasted += 1;
                }
            }
        }
    }
    assert!(pasted > 80, "{pasted}");
}

/// An option as it is typed.
fn flag(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => format!("--{long}"),
        (None, Some(short)) => format!("-{short}"),
        (None, None) => arg.get_id().to_string(),
    }
}

/// Whether two options have the same name, value, default and help.
fn is_same(one: &Arg, other: &Arg) -> bool {
    let of = |arg: &Arg| {
        let help = arg.get_help().map(ToString::to_string);
        let values = arg.get_value_names().map(<[_]>::to_vec);
        let defaults = arg.get_default_values().to_vec();
        (flag(arg), values, defaults, help)
    };
    of(one) == of(other)
}

/// The options that more than three commands have.
fn shared(commands: &[(String, Command)]) -> Vec<&Arg> {
    let mut all: Vec<(usize, &Arg)> = Vec::new();
    let args = commands.iter().flat_map(|(_, one)| one.get_arguments());
    for arg in args.filter(|arg| !arg.is_positional() && !arg.is_hide_set()) {
        match all.iter_mut().find(|(_, one)| is_same(one, arg)) {
            Some((count, _)) => *count += 1,
            None => all.push((1, arg)),
        }
    }
    all.retain(|(count, _)| *count > 3);
    all.into_iter().map(|(_, arg)| arg).collect()
}

#[test]
fn the_page_of_all_options_is_the_help_of_all_commands() {
    let mut page = String::from(
        "# All options\n\nGenerated from the definitions of the command line; a test compares this page with them.\n`INTACT_UPDATE=1 cargo test -p intact options` writes it. `intact COMMAND --help` prints the same\nwith examples and exit codes. Options that several commands have stand here once, at the end.\n",
    );
    let commands = commands();
    let shared = shared(&commands);
    for (name, command) in &commands {
        let (own, common): (Vec<&Arg>, Vec<&Arg>) = command
            .get_arguments()
            .partition(|arg| !shared.iter().any(|one| is_same(one, arg)));
        let mut command = command.clone().disable_help_flag(true).term_width(100);
        for arg in &common {
            command = command.mut_arg(arg.get_id(), |arg| arg.hide(true));
        }
        let help = command
            .help_template("{about-with-newline}\n{all-args}")
            .render_help()
            .to_string();
        let _ = write!(page, "\n## `{name}`\n\n```text\n{}\n", help.trim_end());
        let common: Vec<String> = common.into_iter().map(flag).collect();
        if !own.is_empty() && !common.is_empty() {
            let _ = write!(page, "\nand, as below, {}\n", common.join(", "));
        }
        page.push_str("```\n");
    }
    page.push_str("\n## Options of several commands\n\n```text\n");
    let mut left = shared;
    for (_, command) in &commands {
        let (here, elsewhere): (Vec<&Arg>, Vec<&Arg>) = left
            .into_iter()
            .partition(|one| command.get_arguments().any(|arg| is_same(one, arg)));
        left = elsewhere;
        let mut shown = command.clone().disable_help_flag(true).term_width(100);
        for arg in command.get_arguments() {
            let is_hidden = !here.iter().any(|one| is_same(one, arg));
            shown = shown.mut_arg(arg.get_id(), |arg| arg.hide(is_hidden));
        }
        let help = shown.help_template("{options}").render_help().to_string();
        if !here.is_empty() {
            let _ = writeln!(page, "{}\n", help.trim_end());
        }
    }
    page.truncate(page.trim_end().len());
    page.push_str("\n```\n");
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/options.md"
    );
    if std::env::var_os("INTACT_UPDATE").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(
        written == page,
        "docs/reference/options.md is not what the help says: INTACT_UPDATE=1 cargo test -p intact options"
    );
}
