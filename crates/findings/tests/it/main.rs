//! What `findings` promises, seen from outside.

mod bench_rules;
mod check_kept;
mod check_limits;
mod check_outage;
mod compare;
mod coverage;
mod evictions;
mod evidence;
mod failed_dials;
mod faults;
mod golden;
mod observe;
mod openings;
mod requirement;
mod streams;
mod traffic_rules;
mod verdict;
mod window;
