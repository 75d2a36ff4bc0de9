//! What a link leaves behind: nothing, however its owner ended. And who may have one: everybody.

use crate::stage::{self, PEER};
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The network namespaces that the processes of this machine are in.
fn networks() -> BTreeSet<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter_map(|process| fs::read_link(process.path().join("ns/net")).ok())
        .map(|namespace| namespace.display().to_string())
        .collect()
}

/// The processes in any of these network namespaces.
fn residents(of: &BTreeSet<String>) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    processes
        .filter(|process| {
            fs::read_link(process.path().join("ns/net"))
                .is_ok_and(|namespace| of.contains(&namespace.display().to_string()))
        })
        .map(|process| {
            let words = fs::read(process.path().join("cmdline")).unwrap_or_default();
            format!(
                "{:?}: {}",
                process.file_name(),
                String::from_utf8_lossy(&words)
            )
        })
        .collect()
}

/// A process that owns a link, its standard output, and the first line of it.
fn owner(unprivileged: bool) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut command = Command::new(PEER);
    command
        .args(["own", "rtt=30ms"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    if unprivileged {
        command.uid(65534).gid(65534);
    }
    let mut child = command.spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut printed = Vec::new();
    // two programs on each side, and the owner itself
    while printed.iter().filter(|line| *line == "held").count() < 4 || printed.len() < 5 {
        let mut line = String::new();
        if out.read_line(&mut line).unwrap() == 0 {
            break;
        }
        printed.push(line.trim_end().to_owned());
        if printed
            .last()
            .is_some_and(|line| line.starts_with("no link"))
        {
            break;
        }
    }
    printed.retain(|line| line != "held");
    (child, out, printed.remove(0))
}

#[test]
fn kill_9_of_the_owner_leaves_no_process_namespace_or_mount() {
    if stage::link("rtt=0", "kill -9").is_none() {
        return;
    }
    // others may mount things of their own meanwhile
    let mounts = || -> Vec<String> {
        let all = fs::read_to_string("/proc/self/mountinfo").unwrap();
        all.lines()
            .filter(|line| {
                ["intact", "/etc/hosts", "/etc/resolv.conf"]
                    .iter()
                    .any(|word| line.contains(word))
            })
            .map(str::to_owned)
            .collect()
    };
    let (networks_before, mounts_before) = (networks(), mounts());
    let (mut owner, _out, _) = owner(false);
    // tests in parallel have links of their own: only what our owner's family is in counts
    let mut family = vec![owner.id()];
    let mut at = 0;
    while at < family.len() {
        let path = format!("/proc/{0}/task/{0}/children", family[at]);
        let children = fs::read_to_string(path).unwrap_or_default();
        family.extend(
            children
                .split_whitespace()
                .filter_map(|pid| pid.parse::<u32>().ok()),
        );
        at += 1;
    }
    let ours: BTreeSet<String> = family
        .iter()
        .filter_map(|pid| fs::read_link(format!("/proc/{pid}/ns/net")).ok())
        .map(|namespace| namespace.display().to_string())
        .filter(|namespace| !networks_before.contains(namespace))
        .collect();
    assert_eq!(ours.len(), 3, "client, server, middle: {ours:?}");
    assert_eq!(mounts(), mounts_before, "nothing shows outside");
    assert!(residents(&ours).len() >= 6, "{:?}", residents(&ours));
    owner.kill().unwrap();
    owner.wait().unwrap();
    let mut left = residents(&ours);
    for _ in 0..500 {
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
        left = residents(&ours);
    }
    assert!(left.is_empty(), "{left:?}");
    assert_eq!(mounts(), mounts_before);
}

#[test]
fn an_unprivileged_user_gets_the_same_link() {
    if !rustix::process::geteuid().is_root() {
        // then all other tests run unprivileged
        return;
    }
    if stage::link("rtt=0", "unprivileged").is_none() {
        return;
    }
    let (mut owner, _out, printed) = owner(true);
    owner.kill().unwrap();
    owner.wait().unwrap();
    if printed.starts_with("no link") {
        stage::skip("unprivileged", &printed);
        return;
    }
    let p50_us: u64 = printed.parse().unwrap();
    assert!(p50_us >= 30_000, "{printed}");
}

#[test]
fn the_error_names_what_forbids_a_link_and_the_remedy() {
    // in a user namespace of its own the limit is its own
    let script = format!("echo 0 > /proc/sys/user/max_net_namespaces && exec {PEER} own rtt=1ms");
    let out = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", &script])
        .output();
    let Ok(out) = out else {
        stage::skip("forbidden", "there is no unshare(1)");
        return;
    };
    let printed = String::from_utf8_lossy(&out.stdout);
    if !out.status.success() {
        stage::skip("forbidden", &String::from_utf8_lossy(&out.stderr));
        return;
    }
    assert!(printed.contains("making network namespaces"), "{printed}");
    assert!(printed.contains("user.max_net_namespaces"), "{printed}");
}
