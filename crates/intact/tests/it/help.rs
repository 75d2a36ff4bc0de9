//! `intact help`, and the same as data.

use super::peers::program;
use super::program::intact;
use serde_json::Value;
use std::process::{Command, Stdio};

fn document() -> Value {
    let out = intact(&["help", "--json"]);
    assert!(out.status.success(), "{out:?}");
    serde_json::from_slice(&out.stdout).unwrap()
}

/// The texts under a key of all members of a list.
fn texts<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    let members = list.as_array().unwrap().iter();
    members.filter_map(|one| one[key].as_str()).collect()
}

#[test]
fn help_of_a_command_is_what_its_option_prints() {
    for words in [&["watch"][..], &["fleet", "plan"], &[]] {
        let help = intact(&[&["help"], words].concat());
        let option = intact(&[words, &["--help"]].concat());
        assert!(help.status.success());
        assert_eq!(help.stdout, option.stdout, "{words:?}");
    }
}

#[test]
fn help_of_an_unknown_command_suggests_one() {
    let out = intact(&["help", "wacth"]);
    assert_eq!(out.status.code(), Some(2));
    let error = String::from_utf8(out.stderr).unwrap();
    assert!(error.contains("watch"), "{error}");
    let out = intact(&["help", "--", "--version"]);
    assert_eq!(out.status.code(), Some(2));
}

/// An id that a page prints, or what a client calls the failure.
#[test]
fn help_knows_how_requests_fail() {
    for (words, expected) in [
        ("client-closed", "the client closed the connection"),
        ("IncompleteRead", "broken-response"),
        ("read timed out", "abandoned-request"),
        ("Premature close", "broken-response"),
    ] {
        let out = intact(&["help", words]);
        assert_eq!(out.status.code(), Some(0), "{out:?}");
        let page = String::from_utf8(out.stdout).unwrap();
        assert!(page.contains(expected), "{words}: {page}");
    }
    assert_eq!(intact(&["help", "no such words"]).status.code(), Some(2));
}

#[test]
fn help_as_json_has_all_commands_and_their_options() {
    let document = document();
    let schema = intact::schemas()
        .into_iter()
        .find(|(name, _)| *name == "help");
    let validator = jsonschema::validator_for(schema.unwrap().1.as_value()).unwrap();
    assert!(validator.is_valid(&document));

    let named = texts(&document["commands"], "name");
    let mut left = vec![(String::new(), intact::command())];
    while let Some((name, command)) = left.pop() {
        let place = named.iter().position(|one| *one == name);
        let found = &document["commands"][place.unwrap_or_else(|| panic!("{name} is missing"))];
        let options = texts(&found["arguments"], "option");
        for option in command.get_arguments().filter(|one| !one.is_hide_set()) {
            if let Some(long) = option.get_long() {
                assert!(options.contains(&&*format!("--{long}")), "{name} --{long}");
            }
        }
        assert!(found["notes"].as_str().unwrap().contains("Examples:"));
        for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = format!("{name} {}", below.get_name());
            left.push((name.trim_start().to_owned(), below.clone()));
        }
    }
    let watch = named.iter().position(|one| *one == "watch").unwrap();
    let arguments = document["commands"][watch]["arguments"].as_array().unwrap();
    let argument = |name: &str| arguments.iter().find(|one| one["option"] == name).unwrap();
    assert_eq!(argument("--require")["repeatable"], true);
    assert_eq!(argument("--keys")["default"], "auto");
    assert_eq!(argument("--fail-on")["accepted"][0], "warning");
    assert_eq!(argument("--quiet")["value"], Value::Null);
}

#[test]
fn help_as_json_has_rules_metrics_and_exit_codes() {
    let document = document();
    let rules = texts(&document["rules"], "id");
    let page = include_str!("../../../../docs/reference/rules.md");
    for id in page.lines().filter_map(|line| line.strip_prefix("## `")) {
        let id = id.trim_end_matches('`');
        assert!(rules.contains(&id), "{id}");
    }
    // a finding of `check` alone
    assert!(rules.contains(&"early-data-accepted"));
    let metrics = texts(&document["metrics"], "name");
    assert!(metrics.contains(&"avoidable") && metrics.contains(&"findings.<rule>"));

    let help = String::from_utf8(intact(&["--help"]).stdout).unwrap();
    let (_, codes) = help.split_once("Exit codes:").unwrap();
    for meaning in document["exit_codes"].as_array().unwrap() {
        let code = meaning["code"].to_string();
        let is_named = codes
            .split(|letter: char| !letter.is_ascii_digit())
            .any(|word| word == code);
        assert!(is_named || meaning["of_wrappers"] == true, "{code}");
    }
}

/// Words of a sentence of help. A semicolon ends a sentence here: the next part can be read alone.
/// `cargo xtask words` checks the same of pages, and skips the code blocks that hold the help.
const SENTENCE: usize = 25;

/// The sentences of a text that are too long. Inline code is one word, and the lists of values at
/// the end of help are no sentence.
fn long_sentences(text: &str) -> Vec<String> {
    let text = text.split(" [default: ").next().unwrap_or_default();
    let text = text.split(" [possible values: ").next().unwrap_or_default();
    let parts = text.split('`').enumerate();
    let parts = parts.map(|(nth, part)| if nth % 2 == 0 { part } else { "code" });
    let text: String = parts.collect();
    let words: Vec<&str> = text.split_whitespace().collect();
    let sentences = words.split_inclusive(|word| word.ends_with(['.', '!', '?', ';']));
    let is_long = |sentence: &&[&str]| {
        let counted = sentence
            .iter()
            .filter(|word| word.contains(char::is_alphanumeric));
        counted.count() > SENTENCE
    };
    sentences.filter(is_long).map(|one| one.join(" ")).collect()
}

#[test]
fn sentences_of_help_are_short() {
    let document = document();
    let mut long = Vec::new();
    let mut check = |subject: &str, text: &str| {
        let sentences = long_sentences(text).into_iter();
        long.extend(sentences.map(|sentence| format!("{subject}: {sentence}")));
    };
    let commands = document["commands"].as_array().unwrap();
    assert!(commands.len() > 10);
    for command in commands {
        let name = command["name"].as_str().unwrap();
        check(name, command["about"].as_str().unwrap_or_default());
        for argument in command["arguments"].as_array().unwrap() {
            let option = argument["option"].as_str().unwrap_or_default();
            let help = argument["help"].as_str().unwrap_or_default();
            check(&format!("{name} {option}"), help);
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

#[test]
fn a_long_sentence_is_found_and_code_is_one_word() {
    let words = |count: usize| "word ".repeat(count);
    assert_eq!(long_sentences(&words(25)).len(), 0);
    assert_eq!(long_sentences(&words(26)).len(), 1);
    assert_eq!(
        long_sentences(&format!("{}. {}", words(20).trim(), words(20))).len(),
        0
    );
    assert_eq!(
        long_sentences(&format!("{}`{}`", words(24), words(9))).len(),
        0
    );
    assert_eq!(
        long_sentences(&format!("{}[default: {}]", words(25), words(3))).len(),
        0
    );
}

#[test]
fn a_page_of_the_guide_has_styles_on_a_terminal() {
    let test = "a_page_of_the_guide_has_styles_on_a_terminal";
    if program("script", test).is_none() {
        return;
    }
    let out = Command::new("script")
        .args(["-qec", "\"$INTACT\" help guide", "/dev/null"])
        .env("INTACT", env!("CARGO_BIN_EXE_intact"))
        .env("TERM", "xterm")
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&out.stdout);
    assert!(shown.contains("\x1b[1mGuide\x1b[0m"), "{shown:?}");
    assert!(!shown.contains("\\u{1b}"), "{shown}");
}

#[test]
fn the_help_of_all_commands_is_one_screen_of_80_columns() {
    let out = Command::new(env!("CARGO_BIN_EXE_intact"))
        .arg("--help")
        .env("COLUMNS", "80")
        .output()
        .unwrap();
    let help = String::from_utf8(out.stdout).unwrap();
    assert!(help.lines().count() <= 40, "{help}");
    for line in help.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}
