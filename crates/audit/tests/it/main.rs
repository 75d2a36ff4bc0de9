//! Real inputs and hostile ones, held against what others say of them.

mod captures;
mod clients;
mod hars;
mod hostile;
mod logs;
mod reading;
mod tshark;
mod zeek;
