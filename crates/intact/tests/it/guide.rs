//! The transcripts in `docs/guide` are what the programs print, except for their figures.
//!
//! Each page is one script: the lines that begin with `$ ` in its blocks marked `console`, in one
//! shell, in a network namespace of its own: the ports of the page are free there, and no other
//! program takes one between two commands. A command that ends in ` &` is `intact serve`: the
//! script waits until its port accepts connections. The output of the others is compared: each line
//! that the page shows must be printed, in order. `INTACT_UPDATE=1` writes today's figures, and the
//! whole output of a command that has none.

use crate::peers::{is_root, program, skip};
use crate::transcript::find;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

const GUIDE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide");
/// Pages that run at the same time: most of their time is waiting.
const AT_ONCE: usize = 3;
/// Columns of the output: `intact help TOPIC` indents it by four, and a terminal has 80.
const COLUMNS: &str = "76";
/// Precedes the output of a command; its number follows.
const MARK: &str = "@@guide ";
/// Proxies that a page starts.
const PROXIES: [&str; 4] = ["nginx", "haproxy", "apache2", "caddy"];

/// A command of a page, with the output that the page shows.
struct Shown {
    command: String,
    output: String,
}

/// A piece of a page: text, or a block of commands.
enum Piece {
    Text(String),
    Console(Vec<Shown>),
}

/// Splits a page into text and blocks of commands.
fn pieces(page: &str) -> Vec<Piece> {
    let mut pieces = vec![Piece::Text(String::new())];
    for line in page.split_inclusive('\n') {
        match (pieces.last_mut(), line.trim_end()) {
            (Some(Piece::Text(text)), "```console") => {
                text.push_str(line);
                pieces.push(Piece::Console(Vec::new()));
            }
            (Some(Piece::Text(text)), _) => text.push_str(line),
            (_, "```") => pieces.push(Piece::Text(line.to_owned())),
            (Some(Piece::Console(commands)), shown) => match shown.strip_prefix("$ ") {
                Some(command) => commands.push(Shown {
                    command: command.to_owned(),
                    output: String::new(),
                }),
                None => {
                    let last = commands.last_mut().expect("a block begins with a command");
                    if last.output.is_empty() && last.command.ends_with('\\') {
                        last.command = format!("{}\n{shown}", last.command);
                    } else {
                        last.output.push_str(line);
                    }
                }
            },
            (None, _) => unreachable!("a page has a piece"),
        }
    }
    pieces
}

/// The commands of a page as a script. A mark precedes the output of each, and `$?` is that of the
/// command before.
fn script<'a>(commands: impl Iterator<Item = &'a Shown>) -> String {
    let mut script = "mark() { local status=$?; echo; echo \"$1\"; return $status; }\n\
        listens() { until (exec 3<>\"/dev/tcp/127.0.0.1/$1\") 2>/dev/null; do sleep 0.05; done; }\n\
        trap 'kill $(jobs -p) 2>/dev/null' EXIT\nexec 2>&1\n"
        .to_owned();
    for (number, shown) in commands.enumerate() {
        let command = &shown.command;
        let _ = writeln!(script, "mark '{MARK}{number}'");
        let _ = match command.strip_suffix(" &") {
            None => writeln!(script, "{command}"),
            Some(server) => writeln!(script, "{server} > /dev/null 2>&1 &\nlistens 8080"),
        };
    }
    script
}

/// Runs a script in a folder with the programs of the guide. Returns what it printed.
fn run(script: &str, folder: &Path) -> String {
    for entry in fs::read_dir(Path::new(GUIDE).join("programs")).unwrap() {
        let path = entry.unwrap().path();
        fs::copy(&path, folder.join(path.file_name().unwrap())).unwrap();
    }
    let log = Path::new(GUIDE).join("../../fixtures/logs/nginx-intact.log");
    fs::copy(log, folder.join("access.log")).unwrap();
    let namespace: &[&str] = match is_root() {
        true => &["unshare", "--net"],
        false => &[
            "unshare",
            "--user",
            "--map-current-user",
            "--keep-caps",
            "--net",
        ],
    };
    let binary = Path::new(env!("CARGO_BIN_EXE_intact")).parent().unwrap();
    let path = std::env::var("PATH").unwrap_or_default();
    let out = Command::new("timeout")
        .args(["-k", "5", "240"])
        .args(namespace)
        .args(["bash", "-c", &format!("ip link set lo up\n{script}")])
        .current_dir(folder)
        .env("PATH", format!("{}:{path}", binary.display()))
        .env("NO_COLOR", "1")
        .env("COLUMNS", COLUMNS)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    String::from_utf8(out.stdout).unwrap()
}

/// Runs a page and compares its transcripts. Returns the differences.
fn differences(path: &Path) -> Vec<String> {
    let page = fs::read_to_string(path).unwrap();
    let mut pieces = pieces(&page);
    let of = |pieces: &[Piece]| pieces.iter().any(|one| matches!(one, Piece::Console(_)));
    if !of(&pieces) {
        return Vec::new();
    }
    if page.contains("\n$ intact watch --pid") && !is_root() {
        skip("the guide's page on running programs", "packets need root");
        return Vec::new();
    }
    let missing = PROXIES.iter().find(|name| {
        page.contains(&format!("through.sh {name} ")) && program(name, "the guide").is_none()
    });
    if missing.is_some() {
        return Vec::new();
    }
    let commands = pieces.iter().filter_map(|piece| match piece {
        Piece::Console(commands) => Some(commands),
        Piece::Text(_) => None,
    });
    let script = script(commands.flatten());
    let folder = tempfile::tempdir().unwrap();
    let printed = run(&script, folder.path());
    let mark = format!("\n{MARK}");
    let mut outputs = printed.split(&mark).skip(1);
    let mut wrong = Vec::new();
    for piece in &mut pieces {
        let Piece::Console(commands) = piece else {
            continue;
        };
        for shown in commands {
            let output = outputs.next().unwrap_or_default();
            let output = output.split_once('\n').map_or("", |(_, output)| output);
            match find(&shown.output, output) {
                Err(line) => wrong.push(format!(
                    "{}: `{}` does not print the line\n{line}\nbut:\n{output}",
                    path.display(),
                    shown.command
                )),
                Ok(_) if shown.output.is_empty() => shown.output = trimmed(output),
                Ok(lines) => shown.output = lines.join("\n") + "\n",
            }
        }
    }
    if wrong.is_empty() && std::env::var_os("INTACT_UPDATE").is_some() {
        fs::write(path, pieces.iter().map(written).collect::<String>()).unwrap();
    }
    wrong
}

/// An output without blank lines at its ends.
fn trimmed(output: &str) -> String {
    let text = output.trim_matches('\n');
    if text.is_empty() {
        String::new()
    } else {
        format!("{text}\n")
    }
}

/// A piece as it stands in the page.
fn written(piece: &Piece) -> String {
    match piece {
        Piece::Text(text) => text.clone(),
        Piece::Console(commands) => commands
            .iter()
            .map(|one| format!("$ {}\n{}", one.command, one.output))
            .collect(),
    }
}

/// The pages, in the order of their names.
fn pages() -> Vec<PathBuf> {
    let entries = fs::read_dir(GUIDE)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> = entries
        .filter(|path| path.extension() == Some("md".as_ref()))
        .collect();
    pages.sort();
    pages
}

#[test]
fn the_transcripts_in_the_guide_are_what_the_programs_print() {
    for name in ["node", "python3", "bash", "curl", "unshare", "ip"] {
        if program(name, "guide").is_none() {
            return;
        }
    }
    let pages = Mutex::new(pages());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(page) = { pages.lock().unwrap().pop() } {
                    wrong.lock().unwrap().extend(differences(&page));
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

#[test]
fn a_page_is_written_as_it_was_read() {
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let again: String = pieces(&page).iter().map(written).collect();
        assert_eq!(again, page, "{}", path.display());
    }
}
