//! What `findings` promises, seen from outside.

mod bench_rules;
mod compare;
mod coverage;
mod evictions;
mod evidence;
mod failed_dials;
mod full_pools;
mod golden;
mod kinds;
mod observe;
mod openings;
mod places;
mod pools;
mod server_ends;
mod streams;
mod traffic_rules;
mod verdict;
mod window;
