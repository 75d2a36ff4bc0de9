//! Finds install commands in texts of the tree that name a package of other people. The name
//! `intact` on npm and on the Rust registry is theirs, so "npx" with that name would run their
//! code.

use super::PACKAGE;

/// Commands that run a program of a package: the first positional word names the package, unless an
/// option does.
const RUNNERS: &[&str] = &[
    "npx",
    "npm exec",
    "bunx",
    "pnpm dlx",
    "yarn dlx",
    "uvx",
    "uv tool run",
    "pipx run",
];

/// Commands that install packages: every positional word names one.
const INSTALLERS: &[&str] = &[
    "npm install",
    "npm i",
    "npm add",
    "pnpm add",
    "yarn add",
    "bun add",
    "pip install",
    "pip3 install",
    "uv add",
    "uv tool install",
    "pipx install",
    "cargo install",
    "cargo binstall",
    "cargo add",
    "apt install",
    "apt-get install",
    "dnf install",
    "brew install",
];

/// Options whose value names the package.
const PACKAGE_OPTIONS: &[&str] = &["-p", "--package", "--from", "--spec"];

/// Options after which positional words name no package of a registry.
const SOURCE_OPTIONS: &[&str] = &["--path", "--git"];

/// The packages with our program's name, but not ours, that a text installs: line and name.
fn foreign(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        if !line.contains("intact") {
            continue;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        for start in 0..words.len() {
            let names = packages(&words[start..]).into_iter();
            found.extend(
                names
                    .filter(|name| is_foreign(name))
                    .map(|name| (at + 1, name)),
            );
        }
    }
    found
}

/// The packages that these words install, if they begin with a command that installs.
fn packages(words: &[&str]) -> Vec<String> {
    let length = |commands: &[&str]| {
        let lengths = commands.iter().filter_map(|command| {
            let command: Vec<&str> = command.split(' ').collect();
            let begins = words.len() > command.len()
                && words
                    .iter()
                    .zip(&command)
                    .all(|(word, part)| bare(word) == *part);
            begins.then_some(command.len())
        });
        lengths.max()
    };
    let (length, is_runner) = match (length(RUNNERS), length(INSTALLERS)) {
        (Some(length), _) => (length, true),
        (None, Some(length)) => (length, false),
        (None, None) => return Vec::new(),
    };
    let ends = |word: &str| word.ends_with(['`', ')', ';', '|', '&']);
    if ends(words[length - 1]) {
        return Vec::new();
    }
    let (mut named, mut positional) = (Vec::new(), Vec::new());
    let mut is_option_value = false;
    for word in &words[length..] {
        let (option, value) = bare(word).split_once('=').unwrap_or((bare(word), ""));
        if is_option_value || (PACKAGE_OPTIONS.contains(&option) && !value.is_empty()) {
            named.push(if is_option_value { bare(word) } else { value });
        } else if SOURCE_OPTIONS.contains(&option) {
            return named.into_iter().map(registry_name).collect();
        } else if !option.starts_with('-') && !option.is_empty() {
            positional.push(bare(word));
        }
        is_option_value = PACKAGE_OPTIONS.contains(&option) && value.is_empty() && is_runner;
        if ends(word) {
            break;
        }
    }
    if is_runner {
        positional.truncate(usize::from(named.is_empty()));
    }
    named
        .into_iter()
        .chain(positional)
        .map(registry_name)
        .collect()
}

/// A word without quotes, brackets and commas.
fn bare(word: &str) -> &str {
    word.trim_matches(|c: char| !c.is_alphanumeric() && !"-./@_".contains(c))
}

/// The name without its version and extras.
fn registry_name(word: &str) -> String {
    let scope = usize::from(word.starts_with('@'));
    let end = word[scope..].find(['@', '=', '<', '>', '~', '[']);
    word[..end.map_or(word.len(), |end| scope + end)].to_lowercase()
}

/// Whether a package has our program's name and is not ours. Paths and files are no packages of a
/// registry.
fn is_foreign(name: &str) -> bool {
    let is_file = name.starts_with(['.', '/']) || name.ends_with(['/']) || name.contains(".whl");
    let is_file = is_file
        || [".tgz", ".deb", ".rpm"]
            .iter()
            .any(|end| name.ends_with(end));
    let own = name == PACKAGE || name.starts_with(&format!("{PACKAGE}-"));
    name.trim_start_matches('@').starts_with("intact") && !own && !is_file
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::{Path, PathBuf};

    /// Every text of the tree but this file, whose tests need wrong names.
    fn texts(folder: &Path, all: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let is_made = ["target", ".git", "node_modules", "corpus"].contains(&&*name);
            if path.is_dir() && !is_made {
                texts(&path, all);
            } else if path.is_file() && name != "package_names.rs" && name != "Cargo.lock" {
                all.push(path);
            }
        }
    }

    #[test]
    fn no_text_names_a_package_that_is_not_ours() {
        let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
        let mut all = Vec::new();
        texts(root, &mut all);
        let mut wrong = Vec::new();
        let mut read = 0;
        for path in all {
            let Ok(text) = fs::read_to_string(&path) else {
                continue; // a capture
            };
            read += 1;
            let found = foreign(&text).into_iter();
            wrong.extend(found.map(|(line, name)| format!("{}:{line}: {name}", path.display())));
        }
        assert!(read > 500, "the tree has more texts: {read}");
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn a_package_of_somebody_else_is_found_however_it_is_installed() {
        for line in [
            "$ npx intact watch -- node x.js",
            "run `uvx intact` first",
            "    run: cargo install intact --locked",
            "pip install -q intact==1.0 requests",
            "[\"npx\", \"intact@3\"]",
            "npm install --save-dev intact-cli",
            "npx -p intact intact --version",
            "uvx --from=intact intact",
            "npm i @intact/http",
            "python3 -m pip install intact",
        ] {
            assert_eq!(foreign(line).len(), 1, "{line}: {:?}", foreign(line));
        }
    }

    #[test]
    fn our_package_paths_and_other_programs_are_fine() {
        for line in [
            "npx -p intact-http intact watch -- node x.js",
            "uvx --from intact-http==0.1.0 intact watch",
            "pipx run --spec intact-http intact",
            "cargo install --path crates/intact",
            "cargo install --git https://git.example/intact intact",
            "pip install 'intact-http[x]' intact-http-pytest",
            "npm install ./intact-http-0.1.0.tgz",
            "apt install ./intact-http_0.1.0_amd64.deb",
            "npx vitest",
            "`npm install` leaves node_modules intact",
        ] {
            assert_eq!(foreign(line), [], "{line}");
        }
    }
}
