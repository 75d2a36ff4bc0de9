//! Whole checks against real servers on loopback.

mod drain;
mod hostile;
mod limits;
mod scripted;
