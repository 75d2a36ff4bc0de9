//! `intact`: a shell around the libraries. Everything else lives in a crate of its own.

use std::process::ExitCode;

fn main() -> ExitCode {
    intact::main()
}
