//! The supported systems: one row each, with its name in every channel.

/// A system, in the words of each channel.
pub(super) struct Platform {
    /// Our name, in the names of archives and of npm's packages.
    pub(super) name: &'static str,
    /// Rust's name.
    pub(super) triple: &'static str,
    /// The oldest glibc that the program starts on.
    pub(super) glibc: Option<&'static str>,
    /// The tags of the wheel's platform, sorted: `wheel` writes them into the name of the file in
    /// this order.
    pub(super) wheel: &'static str,
    /// `os`, `cpu` and `libc` of npm.
    pub(super) npm: [&'static str; 3],
    /// The machine in the words of nfpm, where there is a .deb and a .rpm.
    pub(super) linux_package: Option<&'static str>,
    /// The machine in the words of images, where there is one.
    pub(super) image: Option<&'static str>,
    /// What runs a program of another machine or system.
    pub(super) emulator: Option<Emulator>,
}

/// Runs programs of another machine or system.
pub(super) struct Emulator {
    /// The words in front of the program.
    pub(super) words: &'static [&'static str],
    /// A file that it needs, by its path.
    pub(super) file: Option<&'static str>,
    /// Debian's packages of both.
    pub(super) packages: &'static str,
}

const QEMU: Emulator = Emulator {
    words: &["qemu-aarch64-static"],
    file: None,
    packages: "qemu-user-static",
};
/// With the libraries of a glibc system.
const QEMU_GLIBC: Emulator = Emulator {
    words: &["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"],
    file: Some("/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1"),
    packages: "qemu-user-static libc6-arm64-cross libgcc-s1-arm64-cross",
};
const WINE: Emulator = Emulator {
    words: &["wine"],
    file: None,
    packages: "wine wine64",
};

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
        emulator: Some(QEMU_GLIBC),
    },
    Platform {
        name: "linux-arm64-musl",
        triple: "aarch64-unknown-linux-musl",
        glibc: None,
        wheel: "musllinux_1_1_aarch64",
        npm: ["linux", "arm64", "musl"],
        linux_package: None,
        image: Some("arm64"),
        emulator: Some(QEMU),
    },
    Platform {
        name: "win32-x64",
        triple: "x86_64-pc-windows-gnu",
        glibc: None,
        wheel: "win_amd64",
        npm: ["win32", "x64", ""],
        linux_package: None,
        image: None,
        emulator: Some(WINE),
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

    /// Whether npm installs it here: a program of musl runs on glibc, but npm refuses it.
    pub(super) fn suits_npm(&self) -> bool {
        self.npm[2] != "musl" || cfg!(target_env = "musl")
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
