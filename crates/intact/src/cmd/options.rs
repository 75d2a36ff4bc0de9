//! Options without a command line: how one command builds the options of another. Defaults are
//! defined once, with the options.

use clap::{Args, Command};

/// The options that clap makes of these words.
pub(crate) fn parse<A: Args>(words: &[&str]) -> Result<A, clap::Error> {
    let command = A::augment_args(Command::new("intact").no_binary_name(true));
    A::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// The default of every option. `required`: arguments that have no default.
pub(crate) fn defaults<A: Args>(required: &[&str]) -> A {
    parse(required).unwrap_or_else(|error| error.exit())
}
