//! What every run begins with: its head, its id, its chance and its key.

use anyhow::Context;
use intact_ledger::{Producer, Run, Vantage};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::Read;

/// The head of a run of a command that begins now, on this machine.
pub(crate) fn head(producer: Producer, vantage: Vantage, words: &[String]) -> Run {
    let mut run = of_words(producer, vantage, jiff::Timestamp::now(), words);
    run.host = intact_bench::machine::host();
    run
}

/// The head of a run that began at another time, perhaps elsewhere.
pub(crate) fn of_words(
    producer: Producer,
    vantage: Vantage,
    started: jiff::Timestamp,
    words: &[String],
) -> Run {
    let version = env!("CARGO_PKG_VERSION");
    Run::new(producer, version, vantage, started, id(), words)
}

/// The words of the command line; what is not UTF-8 in them is marked.
pub(crate) fn words() -> Vec<String> {
    std::env::args_os()
        .map(|word| word.to_string_lossy().into_owned())
        .collect()
}

/// The words with dashes before the command, which are the last `count` of them: it begins there.
pub(crate) fn with_dashes(words: &[String], count: usize) -> Vec<String> {
    let (options, command) = words.split_at(words.len().saturating_sub(count));
    let options = options.iter().filter(|word| *word != "--").cloned();
    let dashes = (count > 0).then(|| "--".to_owned());
    options.chain(dashes).chain(command.to_vec()).collect()
}

/// A new run's id.
pub(crate) fn id() -> u128 {
    (u128::from(random()) << 64) | u128::from(random())
}

/// A seed that a person can type.
pub(crate) fn seed() -> u64 {
    random() >> 32
}

/// 64 random bits from the seed of the standard library's hash tables.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A key for a run's fingerprints; it is never stored.
pub(crate) fn fingerprint_key() -> anyhow::Result<[u8; 32]> {
    let mut key = [0; 32];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut random| random.read_exact(&mut key))
        .context("/dev/urandom")?;
    Ok(key)
}
