//! What `servers` promises, seen from outside.

mod check_kept;
mod check_limits;
mod check_outage;
mod faults;
