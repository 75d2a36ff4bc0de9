//! Whole checks against real servers on loopback.

mod drain;
mod errors;
mod hostile;
mod http3;
mod limits;
mod next_request;
mod outage;
mod scripted;
