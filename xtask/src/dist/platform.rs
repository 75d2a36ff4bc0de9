//! The systems that the program is shipped for: one row each, with the names that every channel has for it.

/// A system, in the words of each channel.
pub(super) struct Platform {
    /// Our name, in the names of archives and of npm's packages.
    pub(super) name: &'static str,
    /// Rust's name.
    pub(super) triple: &'static str,
    /// The oldest glibc that the program starts on.
    pub(super) glibc: Option<&'static str>,
    /// The tags of the wheel's platform, sorted: `wheel` writes them into the name of the file in this order.
    pub(super) wheel: &'static str,
    /// `os`, `cpu` and `libc` of npm.
    pub(super) npm: [&'static str; 3],
    /// The machine in the words of nfpm, where there is a .deb and a .rpm.
    pub(super) linux_package: Option<&'static str>,
    /// The machine in the words of images, where there is one.
    pub(super) image: Option<&'static str>,
    /// What runs a program of another machine or system, and how it comes on Debian.
    pub(super) emulator: Option<[&'static str; 2]>,
}

const QEMU: Option<[&str; 2]> = Some(["qemu-aarch64-static", "qemu-user-static"]);

/// All of them. The first is always built.
pub(super) const PLATFORMS: &[Platform] = &[
    Platform {
        name: "linux-x64",
        triple: "x86_64-unknown-linux-gnu",
        glibc: Some("2.17"),
        wheel: "manylinux2014_x86_64.manylinux_2_17_x86_64",
        npm: ["linux", "x64", "glibc"],
        linux_package: Some("amd64"),
        image: None,
        emulator: None,
    },
    Platform {
        name: "linux-x64-musl",
        triple: "x86_64-unknown-linux-musl",
        glibc: None,
        wheel: "musllinux_1_1_x86_64",
        npm: ["linux", "x64", "musl"],
        linux_package: None,
        image: Some("amd64"),
        emulator: None,
    },
    Platform {
        name: "linux-arm64",
        triple: "aarch64-unknown-linux-gnu",
        glibc: Some("2.17"),
        wheel: "manylinux2014_aarch64.manylinux_2_17_aarch64",
        npm: ["linux", "arm64", "glibc"],
        linux_package: Some("arm64"),
        image: None,
        emulator: QEMU,
    },
    Platform {
        name: "linux-arm64-musl",
        triple: "aarch64-unknown-linux-musl",
        glibc: None,
        wheel: "musllinux_1_1_aarch64",
        npm: ["linux", "arm64", "musl"],
        linux_package: None,
        image: Some("arm64"),
        emulator: QEMU,
    },
    Platform {
        name: "win32-x64",
        triple: "x86_64-pc-windows-gnu",
        glibc: None,
        wheel: "win_amd64",
        npm: ["win32", "x64", ""],
        linux_package: None,
        image: None,
        emulator: Some(["wine", "wine64"]),
    },
    Platform {
        name: "darwin-arm64",
        triple: "aarch64-apple-darwin",
        glibc: None,
        wheel: "macosx_11_0_arm64",
        npm: ["darwin", "arm64", ""],
        linux_package: None,
        image: None,
        emulator: None,
    },
    Platform {
        name: "darwin-x64",
        triple: "x86_64-apple-darwin",
        glibc: None,
        wheel: "macosx_10_12_x86_64",
        npm: ["darwin", "x64", ""],
        linux_package: None,
        image: None,
        emulator: None,
    },
];

impl Platform {
    /// The file name of the program.
    pub(super) fn program(&self) -> &'static str {
        if self.is_windows() {
            "intact.exe"
        } else {
            "intact"
        }
    }

    pub(super) fn is_windows(&self) -> bool {
        self.npm[0] == "win32"
    }

    pub(super) fn is_mac(&self) -> bool {
        self.npm[0] == "darwin"
    }

    /// Whether programs of it need no emulator on this machine.
    pub(super) fn runs_here(&self) -> bool {
        let system = match std::env::consts::OS {
            "macos" => "darwin",
            "windows" => "win32",
            other => other,
        };
        let machine = match std::env::consts::ARCH {
            "x86_64" => "x64",
            "aarch64" => "arm64",
            other => other,
        };
        self.npm[..2] == [system, machine]
    }
}
