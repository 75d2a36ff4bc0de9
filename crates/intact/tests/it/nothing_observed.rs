//! Gates of runs in which no request and no connection was observed.

use crate::program::intact;

const GATES: [[&str; 2]; 6] = [
    ["--fail-on", "warning"],
    ["--fail-on", "error"],
    ["--require", "findings == 0"],
    ["--require", "warnings == 0"],
    ["--require", "findings.stale-reuse == 0"],
    ["--require", "connections <= 4"],
];

/// What observes nothing.
const COMMANDS: [(&str, &[&str]); 2] = [
    ("watch", &["--", "true"]),
    ("compare", &["--rounds", "1", "--", "true", "--", "true"]),
];

#[cfg(target_os = "linux")]
#[test]
fn nothing_observed_meets_no_gate() {
    for (command, program) in COMMANDS {
        for gate in GATES {
            let words: Vec<&str> = [&[command], &gate[..], program].concat();
            let out = intact(&words);
            assert_eq!(out.status.code(), Some(1), "{words:?}: {out:?}");
            let said = String::from_utf8_lossy(&out.stderr);
            let reason = "no request and no connection was observed";
            assert!(said.contains(reason), "{words:?}: {said}");
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn nothing_observed_is_accepted_where_it_is_allowed() {
    for gate in GATES {
        let words = [&["watch", "--allow-empty"], &gate[..], &["--", "true"]].concat();
        let out = intact(&words);
        assert_eq!(out.status.code(), Some(0), "{words:?}: {out:?}");
    }
    let wanted = [
        "watch",
        "--allow-empty",
        "--require",
        "requests > 0",
        "--",
        "true",
    ];
    assert_eq!(intact(&wanted).status.code(), Some(1));
}

#[test]
fn an_empty_log_meets_no_gate() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    std::fs::write(&log, "").unwrap();
    for gate in GATES {
        let out = intact(&["audit", gate[0], gate[1], log.to_str().unwrap()]);
        assert_ne!(out.status.code(), Some(0), "{gate:?}: {out:?}");
    }
}
