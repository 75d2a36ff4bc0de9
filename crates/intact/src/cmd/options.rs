//! What options of several commands have in common: words that stand for values, and options
//! without a command line, as one command builds those of another. Defaults are defined once, with
//! the options.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Command};

/// The words of a switch.
pub(crate) const SWITCH: &[(&str, bool)] = &[("on", true), ("off", false)];

/// Takes one of these words for the value next to it, and lists the words in the help.
pub(crate) fn words<T: Copy + Send + Sync>(
    all: &'static [(&'static str, T)],
) -> impl TypedValueParser<Value = T> {
    let names = all.iter().map(|(name, _)| *name);
    PossibleValuesParser::new(names).try_map(|word| {
        let found = all.iter().find(|(name, _)| *name == word);
        found
            .map(|(_, value)| *value)
            .ok_or("no word of this option")
    })
}

/// The options that clap makes of these words.
pub(crate) fn parse<A: Args>(words: &[&str]) -> Result<A, clap::Error> {
    let command = A::augment_args(Command::new("intact").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// The default of every option. `required`: arguments that have no default.
pub(crate) fn defaults<A: Args>(required: &[&str]) -> A {
    parse(required).unwrap_or_else(|error| error.exit())
}
