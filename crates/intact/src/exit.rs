//! What `intact` exits with. Wrappers (`watch`, `compare`, `link`, `lambda`) pass the program's own
//! code on instead.

use crate::console;
use anyhow::anyhow;
use intact_ledger::store::StoreError;
use intact_watch::Ended;
use serde::Serialize;
use std::process::ExitCode;

/// Fine, failures with at least one success included unless a requirement says otherwise.
pub(crate) const FINE: u8 = 0;
/// A requirement failed.
pub(crate) const REQUIREMENT: u8 = 1;
/// The command line makes no sense.
pub(crate) const USAGE: u8 = 2;
/// No success at all: the target could not be reached, nothing was answered, or every response was
/// 4xx or 5xx and `--expect` does not allow it.
pub(crate) const UNREACHABLE: u8 = 3;
/// The input could not be read.
pub(crate) const UNREADABLE: u8 = 5;
/// Not permitted here.
pub(crate) const NOT_PERMITTED: u8 = 4;
/// Of a wrapper: our own failure, so that it cannot be taken for the program's.
pub(crate) const WRAPPER_FAILURE: u8 = 125;
/// Of a wrapper: the program cannot be run.
pub(crate) const NOT_RUNNABLE: u8 = 126;
/// Of a wrapper: there is no such program.
pub(crate) const NOT_FOUND: u8 = 127;
/// We could not observe: our own error.
pub(crate) const INTERNAL_ERROR: u8 = 70;

/// What an exit code means, as data.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub(crate) struct Meaning {
    code: u8,
    /// Only of `watch`, `compare`, `link` and `lambda`, which otherwise exit with the program's
    /// own code.
    of_wrappers: bool,
    meaning: &'static str,
}

const fn meaning(code: u8, of_wrappers: bool, meaning: &'static str) -> Meaning {
    Meaning {
        code,
        of_wrappers,
        meaning,
    }
}

/// Every code, for `intact help --json`.
#[rustfmt::skip] // a table is read by its rows
pub(crate) static MEANINGS: &[Meaning] = &[
    meaning(FINE, false, "fine"),
    meaning(REQUIREMENT, false, "a requirement failed"),
    meaning(USAGE, false, "the command line makes no sense"),
    meaning(UNREACHABLE, false, "nothing succeeded"),
    meaning(NOT_PERMITTED, false, "not permitted here"),
    meaning(UNREADABLE, false, "the input could not be read"),
    meaning(INTERNAL_ERROR, false, "an error of intact, or an output could not be written"),
    meaning(WRAPPER_FAILURE, true, "an error of intact, or an output could not be written"),
    meaning(NOT_RUNNABLE, true, "the program cannot be run"),
    meaning(NOT_FOUND, true, "there is no such program"),
    meaning(129, false, "SIGHUP; what was measured is printed and written first"),
    meaning(130, false, "Ctrl-C; what was measured is printed and written first"),
    meaning(131, false, "SIGQUIT; what was measured is printed and written first"),
    meaning(143, false, "SIGTERM; what was measured is printed and written first"),
];

/// An error that knows its exit code. It prints its causes, each once: the messages of some
/// libraries have their cause inside.
#[derive(Debug, thiserror::Error)]
#[error("{}", chain(error))]
pub(crate) struct Failed {
    /// Absent for our own failure, whose code depends on the command.
    code: Option<u8>,
    error: anyhow::Error,
}

/// Returns from the function: the command line makes no sense, for the reason in these words.
macro_rules! refuse {
    ($($words:tt)+) => {
        return Err($crate::exit::Failed::usage(anyhow::anyhow!($($words)+)))
    };
}
pub(crate) use refuse;

impl Failed {
    /// The command line makes no sense.
    pub(crate) fn usage(error: impl Into<anyhow::Error>) -> Failed {
        Failed::with_code(USAGE, error)
    }

    /// The target cannot be reached.
    pub(crate) fn unreachable(error: impl Into<anyhow::Error>) -> Failed {
        Failed::with_code(UNREACHABLE, error)
    }

    /// The input could not be read.
    pub(crate) fn unreadable(error: impl Into<anyhow::Error>) -> Failed {
        Failed::with_code(UNREADABLE, error)
    }

    /// Not permitted here.
    pub(crate) fn forbidden(error: impl Into<anyhow::Error>) -> Failed {
        Failed::with_code(NOT_PERMITTED, error)
    }

    /// An error with this exit code.
    pub(crate) fn with_code(code: u8, error: impl Into<anyhow::Error>) -> Failed {
        Failed {
            code: Some(code),
            error: error.into(),
        }
    }

    /// The help that was asked for is printed: the end of the command, as with `--help`, and no
    /// failure.
    pub(crate) fn helped() -> Failed {
        Failed::with_code(FINE, anyhow!("help was printed"))
    }

    /// The same failure of a wrapper, whose own failures have a code that programs do not use.
    pub(crate) fn of_wrapper(self) -> Failed {
        Failed {
            code: self.code.or(Some(WRAPPER_FAILURE)),
            ..self
        }
    }

    /// Prints why the command failed, and returns its exit code.
    pub(crate) fn report(&self) -> ExitCode {
        let is_used = |cause: &(dyn std::error::Error + 'static)| {
            matches!(cause.downcast_ref(), Some(StoreError::Exists(_)))
        };
        let code = match self.code {
            Some(code) => code,
            // another folder is needed, which is for the command line to name
            None if self.error.chain().any(is_used) => USAGE,
            None => INTERNAL_ERROR,
        };
        if code != FINE {
            console::fail(&self.to_string());
        }
        ExitCode::from(code)
    }
}

/// The exit code of a command, of a wrapper of programs perhaps, in view of what could not be
/// written. The codes of a signal, of a program and of errors stay.
pub(crate) fn with_outputs(code: ExitCode, is_wrapper: bool) -> ExitCode {
    let (failure, replaced): (u8, &[u8]) = if is_wrapper {
        (WRAPPER_FAILURE, &[FINE])
    } else {
        let replaced = &[FINE, REQUIREMENT, UNREACHABLE];
        (INTERNAL_ERROR, replaced)
    };
    let is_replaced = replaced.iter().any(|one| code == ExitCode::from(*one));
    if console::is_incomplete() && is_replaced {
        ExitCode::from(failure)
    } else {
        code
    }
}

impl From<anyhow::Error> for Failed {
    fn from(error: anyhow::Error) -> Failed {
        Failed { code: None, error }
    }
}

/// The messages of an error and of its causes.
fn chain(error: &anyhow::Error) -> String {
    let causes = error.chain().map(ToString::to_string);
    causes.fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        before if before.ends_with(&cause) => said,
        _ => format!("{said}: {cause}"),
    })
}

/// The code of a wrapper whose program ended like this.
pub(crate) fn of_program(ended: Ended) -> u8 {
    match ended {
        Ended::Code(code) => code as u8,
        Ended::Signal(number) => by_signal(number as usize),
    }
}

/// The code after a signal: 128 + its number.
pub(crate) fn by_signal(signal: usize) -> u8 {
    128u8.saturating_add(u8::try_from(signal).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn a_cause_that_a_message_has_inside_is_printed_once() {
        let error = Err::<(), _>(std::io::Error::other("no room"))
            .context("run.json: no room")
            .context("--ledger")
            .unwrap_err();
        assert_eq!(
            Failed::usage(error).to_string(),
            "--ledger: run.json: no room"
        );
    }
}
