//! Known remedies for steps that the system forbids.

use crate::error::LinkError;
use crate::step::LinkStep;
use std::fs;
use std::io;

/// The error of a step, with its remedy on this system.
pub(crate) fn forbidden(step: LinkStep, errno: i32) -> LinkError {
    let source = io::Error::from_raw_os_error(errno);
    let remedy = known(step, source.kind());
    LinkError::Forbidden {
        step,
        source,
        remedy,
    }
}

/// The remedy of a step on this system, if it is known.
pub(crate) fn known(step: LinkStep, kind: io::ErrorKind) -> Option<String> {
    remedy_of(step, kind, &|path| fs::read_to_string(path).ok())
}

/// Known reasons, each with its remedy. `read` gives the text of a file, where there is one.
fn remedy_of(
    step: LinkStep,
    kind: io::ErrorKind,
    read: &dyn Fn(&str) -> Option<String>,
) -> Option<String> {
    if step == LinkStep::Congestion {
        let there = read("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
        return Some(format!(
            "the kernel has {}; cc= takes one of them, or host",
            there.trim()
        ));
    }
    let value = |path: &str| read(path).map(|text| text.trim().to_owned());
    let is = |path: &str, wanted: &str| value(path).is_some_and(|value| value == wanted);
    let mut ways = Vec::new();
    if is(
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
    ) {
        ways.push("AppArmor restricts user namespaces here (Ubuntu 24.04 and later): run under sudo, or `sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0`, or install an AppArmor profile with `userns,` for this program");
    }
    if is("/proc/sys/user/max_user_namespaces", "0") {
        ways.push("user namespaces are switched off: run under sudo, or `sudo sysctl user.max_user_namespaces=10000`");
    }
    if is("/proc/sys/user/max_net_namespaces", "0") {
        ways.push(
            "network namespaces are switched off: `sudo sysctl user.max_net_namespaces=10000`",
        );
    }
    if is("/proc/sys/kernel/unprivileged_userns_clone", "0") {
        ways.push("user namespaces are for root only here: run under sudo, or `sudo sysctl kernel.unprivileged_userns_clone=1`");
    }
    if read("/.dockerenv").is_some() || read("/run/.containerenv").is_some() {
        ways.push("this is a container: start it with --privileged, or with --cap-add SYS_ADMIN --cap-add NET_ADMIN --security-opt seccomp=unconfined --security-opt apparmor=unconfined");
    }
    if ways.is_empty() && kind == io::ErrorKind::PermissionDenied {
        ways.push("run under sudo; in a container: with --privileged");
    }
    if step == LinkStep::Devices && kind == io::ErrorKind::Unsupported {
        ways.push("the kernel has no veth devices: `sudo modprobe veth`");
    }
    (!ways.is_empty()).then(|| ways.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known_remedy(step: LinkStep, path: &'static str, text: &'static str) -> Option<String> {
        remedy_of(step, io::ErrorKind::PermissionDenied, &|asked| {
            (asked == path).then(|| text.to_owned())
        })
    }

    #[test]
    fn each_known_reason_names_its_remedy() {
        for (path, text, words) in [
            (
                "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
                "1\n",
                "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            ),
            (
                "/proc/sys/user/max_user_namespaces",
                "0\n",
                "user.max_user_namespaces=10000",
            ),
            (
                "/proc/sys/user/max_net_namespaces",
                "0\n",
                "user.max_net_namespaces=10000",
            ),
            (
                "/proc/sys/kernel/unprivileged_userns_clone",
                "0\n",
                "unprivileged_userns_clone=1",
            ),
            ("/.dockerenv", "", "--cap-add SYS_ADMIN"),
            ("/none", "", "run under sudo"),
        ] {
            let text = known_remedy(LinkStep::UserNamespace, path, text).unwrap();
            assert!(text.contains(words), "{path}: {text}");
        }
        let text = known_remedy(
            LinkStep::Congestion,
            "/proc/sys/net/ipv4/tcp_available_congestion_control",
            "reno bbr\n",
        )
        .unwrap();
        assert!(text.contains("the kernel has reno bbr"), "{text}");
    }
}
