//! Places in Java programs: of each JDK that is installed. A JVM that cannot be attached to is left
//! alone.

use super::{hold, seen};
use crate::peers::program;
use std::path::{Path, PathBuf};
use std::process::Command;

const PLANTED: &str = include_str!("Planted.java");
/// Of virtual threads, whose calls a dump has from JDK 24 on.
const VIRTUAL: &str = include_str!("Virtual.java");
const CASES: [&str; 10] = [
    "sync",
    "http",
    "constructor",
    "lambda",
    "executor",
    "future",
    "stream",
    "reflected",
    "platform",
    "helped",
];

/// The folders of the programs of each JDK with a compiler.
fn kits() -> Vec<PathBuf> {
    let all = std::fs::read_dir("/usr/lib/jvm").into_iter().flatten();
    let folders = all
        .flatten()
        .filter_map(|one| one.path().canonicalize().ok());
    let mut folders: Vec<PathBuf> = folders
        .map(|folder| folder.join("bin"))
        .filter(|folder| folder.join("javac").is_file())
        .collect();
    folders.sort();
    folders.dedup();
    folders
}

/// Compiles a program with a JDK.
fn is_compiled(kit: &Path, folder: &Path, file: &str, text: &str) -> bool {
    std::fs::write(folder.join(file), text).unwrap();
    let compiled = Command::new(kit.join("javac"))
        .current_dir(folder)
        .args(["-nowarn", "-g", file])
        .output();
    compiled.unwrap().status.success()
}

#[test]
fn a_java_program_is_named_at_the_line_that_opened() {
    if program("javac", "places of Java").is_none() {
        return;
    }
    for kit in kits() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().to_str().unwrap();
        let java = kit.join("java").display().to_string();
        let words = |class| [&*java, "-cp", root, class, "{port}"];
        assert!(is_compiled(&kit, folder.path(), "Planted.java", PLANTED));
        for case in CASES {
            let words = [&words("Planted")[..], &[case]].concat();
            let seen = seen(folder.path(), "Planted.java", &words);
            hold(&java, PLANTED, case, &seen);
        }
        // older ones have no such threads, or do not show their calls
        if is_compiled(&kit, folder.path(), "Virtual.java", VIRTUAL) {
            let seen = seen(folder.path(), "Virtual.java", &words("Virtual"));
            match seen.not_known {
                0 => hold(&java, VIRTUAL, "virtual", &seen),
                _ => assert_eq!((seen.lines.len(), seen.not_known), (0, 2), "{java}"),
            }
        }
    }
}

#[test]
fn a_jvm_that_cannot_be_attached_to_prints_nothing_and_has_no_place() {
    if program("javac", "places of a JVM that is left alone").is_none() {
        return;
    }
    let Some(kit) = kits().pop() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_str().unwrap();
    assert!(is_compiled(&kit, folder.path(), "Planted.java", PLANTED));
    let java = kit.join("java").display().to_string();
    for option in ["-XX:+DisableAttachMechanism", "-XX:-UsePerfData"] {
        let words = [&java, option, "-cp", root, "Planted", "{port}", "sync"];
        let seen = seen(folder.path(), "Planted.java", &words);
        assert_eq!((seen.lines.len(), seen.not_known), (0, 3), "{option}");
        assert_eq!(seen.output, "", "{option}");
    }
}
