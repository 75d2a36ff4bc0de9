//! `intact help [COMMAND|TOPIC]`, and `intact help --json`: the command line as data, for scripts
//! and agents. All of it comes from the tables that the commands use, and from the pages of
//! `docs/guide`. None of it is written here.

pub(super) mod guide;

use super::json::{self, JsonTarget};
use crate::console;
use crate::exit::{self, Failed, refuse};
use intact_document::finding::RuleDoc;
use intact_document::requirement::{Better, DocumentKind, FIGURES, SELECTORS};
use intact_findings::rules_of;
use intact_ledger::Failure;
use intact_report::catalogue;
use intact_report::page::{Block, Section, Text};
use intact_report::terminal::{self, Length};
use intact_traffic::rules;
use intact_units::suggest;
use serde::Serialize;
use std::ffi::OsString;
use std::process::ExitCode;

/// The id of the document.
pub(crate) const SCHEMA: &str = "intact.help/1";

/// Prints the help of a command, a page of the guide, or everything as JSON
#[derive(clap::Args)]
#[command(after_help = "Examples:
  intact help bench
  # the pages of the guide
  intact help guide
  intact help econnreset
  # what an error is about
  intact help socket hang up
  # a file that a page of the guide names
  intact help calls.js > calls.js
  intact help --json | jq -r '.rules[].id'
  intact help --json | jq '.commands[] | select(.name == \"watch\")'")]
pub(crate) struct Args {
    /// The command, or a page of the guide; without it the help of all commands
    #[arg(value_name = "COMMAND|TOPIC")]
    command: Vec<String>,
    /// Print commands, options, rules, metrics and exit codes as JSON, or write them to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    #[arg(conflicts_with = "command")]
    json: Option<JsonTarget>,
}

/// The help as data.
pub(crate) fn as_json() -> serde_json::Result<String> {
    serde_json::to_string_pretty(&HelpDocument::collect())
}

/// Prints the help.
pub(crate) fn run(args: Args) -> Result<ExitCode, Failed> {
    if args.json.is_some() {
        json::deliver(args.json.as_ref(), as_json)?;
        return Ok(ExitCode::from(exit::FINE));
    }
    if let Some(option) = args.command.iter().find(|word| word.starts_with('-')) {
        refuse!("{option} is no command");
    }
    if let [name] = &args.command[..]
        && let Some(text) = guide::file(name)
    {
        console::print_written(text);
        return Ok(ExitCode::from(exit::FINE));
    }
    if let [topic] = &args.command[..]
        && let Some(page) = guide::page(topic)
    {
        let paper = console::paper(Length::Full);
        console::print_written(&terminal::write_sections(&page, paper));
        return Ok(ExitCode::from(exit::FINE));
    }
    if !is_command(&args.command) {
        return about(&args.command.join(" "));
    }
    let mut words = vec![OsString::from("intact")];
    words.extend(args.command.into_iter().map(OsString::from));
    words.push("--help".into());
    crate::run_words(words)
}

/// Whether these words name a command, as `fleet plan` does.
fn is_command(words: &[String]) -> bool {
    let mut command = crate::command();
    words.iter().all(|word| {
        let below = command.find_subcommand(word).cloned();
        below.map(|below| command = below).is_some()
    })
}

/// Prints what the guide and the rules say about words that somebody saw, such as `socket hang
/// up`: the page, if there is one, else which pages and rules have them.
fn about(words: &str) -> Result<ExitCode, Failed> {
    let pages = guide::about(words);
    let wanted = words.to_lowercase();
    let rules = rules::all();
    let rules = rules.iter().map(|rule| rule.doc());
    let failure = Failure::ALL.into_iter().find(|kind| kind.id() == wanted);
    let is_about = |doc: &&RuleDoc| {
        let has_words = pages.is_empty() && doc.what.to_lowercase().contains(&wanted);
        doc.id == wanted || failure.is_none() && has_words
    };
    let rule = rules.clone().find(is_about);
    let section = |name: &str, texts: &[&str]| {
        let texts = texts.iter().filter(|words| !words.is_empty());
        texts.fold(Section::new("about", name), |section, words| {
            section.summary(Block::from(Text::prose(words)))
        })
    };
    let sections = match (rule, failure, &pages[..]) {
        (Some(doc), ..) => vec![section(doc.id, &[doc.what, doc.fix, doc.risk])],
        (None, Some(kind), []) => {
            let words = format!("`{}`: {}", kind.id(), kind.words());
            vec![section("How a request fails", &[&words])]
        }
        (None, _, [topic]) => guide::page(topic).unwrap_or_default(),
        (None, None, []) => {
            let command = crate::command();
            let names = command.get_subcommands().map(clap::Command::get_name);
            let nearest = suggest::nearest(&wanted, names);
            let advice = match nearest {
                Some(name) => format!("did you mean `{name}`?"),
                None => "`intact help guide` lists the pages, `intact fix` the clients".to_owned(),
            };
            refuse!("no command and no page of the guide has {words:?}; {advice}");
        }
        (None, _, topics) => {
            let section = Section::new("guide", format!("{} pages have {words:?}", topics.len()));
            let items = topics.iter().map(|topic| {
                Text::prose(&format!("`intact help {topic}`: {}", guide::title(topic)))
            });
            vec![section.summary(Block::List(items.collect()))]
        }
    };
    let paper = console::paper(Length::Full);
    console::print_written(&terminal::write_sections(&sections, paper));
    Ok(ExitCode::from(exit::FINE))
}

/// The command line as data.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct HelpDocument {
    schema: &'static str,
    version: &'static str,
    /// Commands, each before those below it. Features that the build lacks have none.
    commands: Vec<Command>,
    /// What `--fail-on` and `findings.RULE` are about.
    rules: Vec<Rule>,
    /// What `--require` can ask for.
    metrics: Vec<Metric>,
    /// What comes before the colon of a requirement.
    selectors: Vec<Selector>,
    exit_codes: &'static [exit::Meaning],
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Command {
    /// As it is typed after `intact`; empty for `intact` alone.
    name: String,
    about: String,
    /// How it is called.
    usage: String,
    /// Options, and words without one.
    arguments: Vec<Argument>,
    /// Examples, and what else its help says at the end.
    notes: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Argument {
    /// `--require`; null for a word without an option.
    option: Option<String>,
    /// `-q`.
    short: Option<String>,
    /// What its value is called; null for a switch.
    value: Option<String>,
    /// The values that it accepts; empty where there are too many to list.
    accepted: Vec<String>,
    /// Without it.
    default: Option<String>,
    repeatable: bool,
    required: bool,
    /// The part of the help that lists it.
    group: Option<String>,
    help: String,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Rule {
    id: &'static str,
    /// The commands that apply it.
    commands: Vec<&'static str>,
    /// What is wrong; null for findings of `check` and `bench` alone, which explain themselves.
    what: Option<&'static str>,
    fix: Option<&'static str>,
    risk: Option<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Metric {
    name: &'static str,
    commands: Vec<&'static str>,
    meaning: &'static str,
    /// The units that a value may have.
    units: &'static str,
    /// Where the JSON of a subject has it: keys between dots; empty where it has no single place.
    json: &'static str,
    /// Whether more of it is better, or less; null where neither is.
    better: Option<&'static str>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Selector {
    key: &'static str,
    commands: Vec<&'static str>,
    meaning: &'static str,
}

impl HelpDocument {
    fn collect() -> HelpDocument {
        let mut all = crate::command();
        // fills in the whole names, and what a command inherits
        all.build();
        let mut commands = Vec::new();
        Command::collect(&all, "", &mut commands);
        HelpDocument {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            commands,
            rules: Rule::collect(),
            metrics: FIGURES
                .iter()
                .map(|entry| Metric {
                    name: entry.name,
                    commands: names(entry.documents),
                    meaning: entry.meaning,
                    units: catalogue::units(entry.dimension),
                    json: entry.json,
                    better: entry.better.map(|better| match better {
                        Better::More => "more",
                        Better::Less => "less",
                    }),
                })
                .collect(),
            selectors: SELECTORS
                .iter()
                .map(|entry| Selector {
                    key: entry.key,
                    commands: names(entry.documents),
                    meaning: entry.meaning,
                })
                .collect(),
            exit_codes: exit::MEANINGS,
        }
    }
}

/// The commands of documents.
fn names(documents: &[DocumentKind]) -> Vec<&'static str> {
    documents.iter().map(|one| one.command()).collect()
}

impl Command {
    fn collect(command: &clap::Command, name: &str, into: &mut Vec<Command>) {
        let text = |styled: Option<&clap::builder::StyledStr>| {
            styled.map(ToString::to_string).unwrap_or_default()
        };
        let usage = command.clone().render_usage().to_string();
        into.push(Command {
            name: name.to_owned(),
            about: text(command.get_about()),
            usage: usage.trim_start_matches("Usage: ").to_owned(),
            arguments: command
                .get_arguments()
                .filter(|one| !one.is_hide_set())
                .map(Argument::of)
                .collect(),
            notes: text(command.get_after_help()),
        });
        for below in command.get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = format!("{name} {}", below.get_name());
            Command::collect(below, name.trim_start(), into);
        }
    }
}

impl Argument {
    fn of(argument: &clap::Arg) -> Argument {
        let takes_value = argument.get_action().takes_values();
        let value = argument.get_value_names().unwrap_or_default();
        let accepted = argument.get_possible_values();
        let default = argument.get_default_values().first();
        let many = argument.get_num_args().is_some_and(|n| n.max_values() > 1);
        Argument {
            option: argument.get_long().map(|name| format!("--{name}")),
            short: argument.get_short().map(|letter| format!("-{letter}")),
            value: (takes_value && !value.is_empty()).then(|| value.join(" ")),
            accepted: (accepted.iter().filter(|_| takes_value))
                .map(|one| one.get_name().to_owned())
                .collect(),
            default: default
                .filter(|_| takes_value)
                .map(|value| value.to_string_lossy().into_owned()),
            repeatable: many || matches!(argument.get_action(), clap::ArgAction::Append),
            required: argument.is_required_set(),
            group: argument.get_help_heading().map(str::to_owned),
            help: argument
                .get_help()
                .map(ToString::to_string)
                .unwrap_or_default(),
        }
    }
}

impl Rule {
    fn collect() -> Vec<Rule> {
        let documented = rules::all();
        let mut ids: Vec<_> = documented.iter().map(|rule| rule.doc().id).collect();
        for id in DocumentKind::ALL
            .iter()
            .flat_map(|document| rules_of(*document))
        {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
        let rule = |id| {
            let mut docs = documented.iter().map(|rule| rule.doc());
            let doc = docs.find(|doc| doc.id == id);
            let applies = |document: &&DocumentKind| rules_of(**document).contains(&id);
            Rule {
                id,
                commands: DocumentKind::ALL
                    .iter()
                    .filter(applies)
                    .map(|one| one.command())
                    .collect(),
                what: doc.map(|doc| doc.what),
                fix: doc.map(|doc| doc.fix),
                risk: doc.map(|doc| doc.risk),
            }
        };
        ids.into_iter().map(rule).collect()
    }
}
