//! The binary as a person meets it.

#[cfg(target_os = "linux")]
mod action;
// reads `cargo metadata`, which is the same on every system
#[cfg(unix)]
mod architecture;
mod audit;
mod audit_gates;
mod audit_tiers;
mod audit_words;
#[cfg(target_os = "linux")]
mod bench_io;
mod bench_like;
#[cfg(target_os = "linux")]
mod bench_remedies;
#[cfg(target_os = "linux")]
mod bench_service;
// the live view draws on Unix terminals
#[cfg(unix)]
mod bench_targets;
mod bench_view;
mod capacity;
mod captured;
mod check;
mod check_chain;
#[cfg(unix)]
mod check_drain;
mod check_live;
mod check_peers;
mod check_real;
mod cli;
mod compare;
#[cfg(target_os = "linux")]
mod compare_commits;
mod error_pages;
mod fix;
#[cfg(target_os = "linux")]
mod fix_pool;
mod fleet;
mod fleet_aws;
#[cfg(target_os = "linux")]
mod foreign_runs;
#[cfg(unix)]
mod foreign_text;
#[cfg(target_os = "linux")]
mod full_disk;
mod grpc;
#[cfg(target_os = "linux")]
mod guide;
mod help;
#[cfg(target_os = "linux")]
mod hostile_input;
mod http3;
#[cfg(target_os = "linux")]
mod lambda;
mod ledgers;
#[cfg(target_os = "linux")]
mod link;
mod metrics;
mod model;
mod nothing_observed;
mod observed;
mod on_call;
#[cfg(target_os = "linux")]
mod one_truth;
mod options;
mod pages;
mod peers;
mod program;
mod promises;
mod readme;
#[cfg(target_os = "linux")]
mod rule_pairs;
mod scenario;
mod schemas;
#[cfg(target_os = "linux")]
mod secrets;
mod serve;
#[cfg(unix)]
mod serve_signals;
#[path = "../../../../fixtures/tests/skip.rs"]
mod skip;
mod transcript;
mod watch;
