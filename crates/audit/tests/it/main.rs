//! Real inputs and hostile ones, held against what others say of them.

mod captures;
mod clients;
mod coverage;
mod hars;
mod hostile;
mod logs;
mod packets;
mod partial;
mod reading;
#[path = "../../../../fixtures/tests/skip.rs"]
mod skip;
mod suites;
mod tshark;
mod unanswered;
mod zeek;
