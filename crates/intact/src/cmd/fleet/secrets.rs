//! Where a worker reads the secrets that targets refer to: its environment, and its files.

use intact_fleet::{ReadSecret, Reference};
use intact_ledger::input_file;
use std::path::Path;

/// The largest file that is read as a secret, in bytes.
const LARGEST: u64 = 1 << 20;

/// The environment and the files of this process.
pub(super) struct WorkerSecrets;

impl ReadSecret for WorkerSecrets {
    fn read(&self, reference: &Reference) -> Result<String, String> {
        match reference {
            Reference::Env(name) => std::env::var(name).map_err(|_| {
                "is not set here, or is no text: set it where the worker runs".to_owned()
            }),
            Reference::File(path) => {
                let text = input_file::read_text(Path::new(path), LARGEST);
                let text = text.map_err(|error| error.to_string())?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
        }
    }
}
