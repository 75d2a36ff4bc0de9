//! Whole checks against real servers on loopback.

mod hostile;
mod limits;
mod scripted;
