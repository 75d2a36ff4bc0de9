//! Where a worker reads the secrets that targets refer to: its environment, and its files.

use intact_fleet::{ReadSecret, Reference};
use std::fs::File;
use std::io::Read;

/// The largest file that is read as a secret, in bytes.
const LARGEST: u64 = 64 * 1024;

/// The environment and the files of this process.
pub(super) struct WorkerSecrets;

impl ReadSecret for WorkerSecrets {
    fn read(&self, reference: &Reference) -> Result<String, String> {
        match reference {
            Reference::Env(name) => std::env::var(name).map_err(|_| {
                "is not set here, or is no text: set it where the worker runs".to_owned()
            }),
            Reference::File(path) => {
                let text = read(path).map_err(|error| error.to_string())?;
                Ok(text.trim_end_matches(['\r', '\n']).to_owned())
            }
        }
    }
}

fn read(path: &str) -> std::io::Result<String> {
    let is_file = std::fs::metadata(path)?.is_file();
    if !is_file {
        return Err(std::io::Error::other("is no regular file"));
    }
    let mut text = String::new();
    let size = File::open(path)?
        .take(LARGEST + 1)
        .read_to_string(&mut text)?;
    if size as u64 > LARGEST {
        return Err(std::io::Error::other(format!(
            "holds more than {LARGEST} bytes"
        )));
    }
    Ok(text)
}
