//! Real inputs and hostile ones, held against what others say of them.

mod captures;
mod hars;
mod hostile;
mod logs;
mod reading;
mod tshark;
