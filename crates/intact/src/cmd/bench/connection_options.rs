//! The options of the axes about the life of connections: one for each row of
//! [`CONNECTION_AXES`].

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use intact_experiment::{AxisRow, CONNECTION_AXES, ConnectionAxes};
use serde::{Deserialize, Serialize};

/// The values of the axes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ConnectionOptions {
    pub(in crate::cmd) axes: ConnectionAxes,
}

fn option(axis: &'static AxisRow) -> Arg {
    let parser = match axis.choices.is_empty() {
        true => ValueParser::from(move |word: &str| check(axis, word)),
        false => PossibleValuesParser::new(axis.choices).into(),
    };
    Arg::new(axis.name())
        .long(axis.name())
        .help(axis.help)
        .value_name(axis.values)
        .value_delimiter(',')
        .value_parser(parser)
        .action(ArgAction::Append)
}

/// The same word, if it is a value of the axis.
fn check(axis: &AxisRow, word: &str) -> Result<String, String> {
    let words = |name| match name == axis.name() {
        true => vec![word],
        false => Vec::new(),
    };
    ConnectionAxes::of_words(words).map(|_| word.to_owned())
}

impl clap::Args for ConnectionOptions {
    fn augment_args(command: Command) -> Command {
        command.args(CONNECTION_AXES.iter().copied().map(option))
    }

    fn augment_args_for_update(command: Command) -> Command {
        ConnectionOptions::augment_args(command)
    }
}

impl FromArgMatches for ConnectionOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<ConnectionOptions, clap::Error> {
        let words = |axis: &str| {
            let words = matches.get_many::<String>(axis).into_iter().flatten();
            words.map(String::as_str).collect()
        };
        let axes = ConnectionAxes::of_words(words);
        let axes = axes.map_err(|words| clap::Error::raw(ErrorKind::ValueValidation, words))?;
        Ok(ConnectionOptions { axes })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = ConnectionOptions::from_arg_matches(matches)?;
        Ok(())
    }
}
