//! Real inputs, compared with what other programs report about them, and hostile inputs.

mod captures;
mod clients;
mod copies;
mod coverage;
mod encapsulations;
mod formats;
mod har_entries;
mod hars;
mod hostile;
mod lines;
mod logs;
mod openings;
mod packets;
mod partial;
mod reading;
mod rule_breakers;
#[path = "../../../../fixtures/tests/skip.rs"]
mod skip;
mod suites;
mod tshark;
mod unanswered;
mod zeek;
