//! `intact help`, and the same as data.

use super::program::intact;
use serde_json::Value;

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
