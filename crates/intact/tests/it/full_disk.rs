//! An output that cannot be written is named, the others are saved, and the exit code says so:
//! every command with every output on /dev/full.

use crate::observed::store;
use crate::program::Server;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Runs `intact` with standard output on a file.
fn run_to(out: impl Into<Stdio>, words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(words)
        .env("NO_COLOR", "1")
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::piped())
        .output()
        .unwrap()
}

fn full() -> File {
    File::options().write(true).open("/dev/full").unwrap()
}

fn code_of(out: &Output) -> i32 {
    out.status.code().unwrap()
}

/// A command, the outputs that it has, and the exit code of an output that failed.
struct Row<'a> {
    words: Vec<&'a str>,
    prints: bool,
    files: &'a [&'a str],
    code: i32,
}

/// Runs each output of a row alone on /dev/full, the others next to it; all failures.
fn failures(row: &Row<'_>, folder: &Path) -> Vec<String> {
    let mut failures = Vec::new();
    let mut fail = |failed: bool, words: String| {
        if failed {
            failures.push(words);
        }
    };
    let mut outputs = vec![""; usize::from(row.prints)];
    outputs.extend(row.files);
    for bad in outputs {
        let mut words: Vec<String> = Vec::new();
        let mut good = Vec::new();
        for option in row.files {
            let end = option.trim_start_matches('-');
            let _ = fs::remove_file(folder.join(end));
            let file = if *option == bad {
                "/dev/full".to_owned()
            } else {
                let file = folder.join(end).to_str().unwrap().to_owned();
                good.push(file.clone());
                file
            };
            let (option, _) = option.split_once('.').unwrap_or((option, ""));
            let (option, file) = match option {
                // the name's end is the format, so that the file is a link
                "--report" if file == "/dev/full" => {
                    let link = folder.join("full.md");
                    let _ = std::os::unix::fs::symlink("/dev/full", &link);
                    (option, link.to_str().unwrap().to_owned())
                }
                option => (option, file),
            };
            words.extend([format!("{option}={file}")]);
        }
        // the options of `fleet` follow its own command
        let (first, rest) = row.words.split_at(1 + usize::from(row.words[0] == "fleet"));
        let mut all = first.to_vec();
        all.extend(words.iter().map(String::as_str));
        all.extend(rest);
        let out = match bad {
            "" => run_to(full(), &all),
            _ => run_to(Stdio::null(), &all),
        };
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        let name = format!("{all:?} with {bad:?} on /dev/full");
        let option = bad.split('.').next().unwrap();
        let named = if bad.is_empty() {
            "standard output"
        } else {
            option
        };
        fail(
            code_of(&out) != row.code,
            format!("{name}: {} {said}", code_of(&out)),
        );
        let is_named = said
            .lines()
            .any(|line| line.contains(named) && line.contains("No space left"));
        fail(!is_named, format!("{name} is not named: {said}"));
        for file in good {
            let length = fs::metadata(&file).map_or(0, |about| about.len());
            fail(length == 0, format!("{name}: {file} is empty"));
        }
    }
    failures
}

#[test]
fn every_output_of_every_command_on_a_full_disk_fails_the_command_and_keeps_the_rest() {
    let server = Server::start(&["--idle-timeout", "200ms"]);
    let url = server.plain();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ledger = store(&folder.path().join("ledger"), "tls-never-resumed/fires");
    let model = at("model.toml");
    fs::write(
        &model,
        "[client]\ncalls = [{ to = \"a\", rtt = \"30ms\" }]\n[service.a]\nwork = \"1ms\"\n",
    )
    .unwrap();
    let document = &["--json", "--report.md", "--junit"][..];
    let recorded = &["--json", "--report.md", "--junit", "--csv", "--har"][..];
    // prints, and has no file
    let printer = |words: &[&'static str]| Row {
        words: words.to_vec(),
        prints: true,
        files: &[],
        code: 70,
    };
    let rows = [
        Row {
            words: vec!["bench", &url, "-n", "20", "--rounds", "1"],
            prints: true,
            files: &["--json", "--report.md", "--junit", "--csv"],
            code: 70,
        },
        Row {
            words: vec!["check", &url, "--no-idle"],
            prints: true,
            files: document,
            code: 70,
        },
        Row {
            words: vec!["audit", &ledger],
            prints: true,
            files: recorded,
            code: 70,
        },
        Row {
            words: vec!["report", &ledger],
            prints: true,
            files: &["--report.md", "--junit"],
            code: 70,
        },
        Row {
            words: vec!["compare", &ledger, &ledger],
            prints: true,
            files: document,
            code: 125,
        },
        Row {
            words: vec!["model", &model],
            prints: true,
            files: &["--json", "--mermaid"],
            code: 70,
        },
        Row {
            words: vec!["fix"],
            prints: true,
            files: &["--json"],
            code: 70,
        },
        Row {
            words: vec!["report", "--json", &ledger],
            prints: true,
            files: &[],
            code: 70,
        },
        printer(&["man"]),
        printer(&["completions", "bash"]),
        printer(&["bench", "--require", "help"]),
        printer(&["bench", "--help"]),
    ];
    let failures: Vec<String> = rows
        .iter()
        .flat_map(|row| failures(row, folder.path()))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Responds to every event with the event.
const FUNCTION: &str = concat!(
    include_str!("runtime.py"),
    r#"run(lambda event, id: None)
"#
);

#[test]
fn every_output_of_a_campaign_and_of_a_function_on_a_full_disk_fails_the_command() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (plan, store) = (at("plan.toml"), at("store"));
    let text = format!(
        "name = \"t\"\nrepetitions = 1\nduration = \"20ms\"\n[limits]\nrequests = 10000\nrate = 400\nworkers = 1\n\
         [[target]]\nname = \"own\"\nurl = \"{}\"\ni-own-this = \"127.0.0.1\"\n[axes]\nkeepalive = [\"on\"]\n",
        server.plain()
    );
    fs::write(&plan, text).unwrap();
    let row = |words: &[&'static str], more: &[&'static str], files, code| Row {
        words: [words, more].concat(),
        prints: true,
        files,
        code,
    };
    let page = &["--report.md"][..];
    let none = &[][..];
    let leak = |text: &str| -> &'static str { Box::leak(text.to_owned().into_boxed_str()) };
    let [plan, store] = [&plan, &store].map(|text| leak(text));
    let called = ["-n", "2", "--rounds", "1", "--", "python3", "-c", FUNCTION];
    let rows = [
        row(&["fleet", "plan", plan], &[], none, 70),
        row(&["fleet", "plan", plan], &["--json"], none, 70),
        row(&["fleet", "run", plan, "--store", store], &[], page, 70),
        row(
            &["fleet", "run", plan, "--store", store],
            &["--json"],
            page,
            70,
        ),
        row(&["fleet", "report", store], &[], page, 70),
        row(&["fleet", "report", store], &["--json"], page, 70),
        row(&["fleet", "status", store], &[], none, 70),
        row(
            &["lambda"],
            &called,
            &["--json", "--report.md", "--junit", "--csv"],
            125,
        ),
    ];
    let failures: Vec<String> = rows
        .iter()
        .flat_map(|row| failures(row, folder.path()))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Runs `serve` until it listens, then ends it, with standard output on a file.
fn serve_to(out: impl Into<Stdio>) -> (Option<i32>, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_intact"))
        .args(["serve", "--json"])
        .args(["--listen", "127.0.0.1:0", "--tls-listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // with --json it says on standard error where it listens
    let mut lines = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    while !said.contains("Ctrl-C ends it") {
        assert!(lines.read_line(&mut said).unwrap() > 0, "{said}");
    }
    // it waits for signals once it serves
    let mut stream = TcpStream::connect(said.split('/').nth(2).unwrap()).unwrap();
    stream
        .write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        .unwrap();
    stream.read_to_string(&mut String::new()).unwrap();
    crate::program::signal(child.id(), "-TERM");
    lines.read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

#[test]
fn the_counts_of_serve_on_a_full_disk_fail_it() {
    assert_eq!(serve_to(Stdio::null()).0, Some(143));
    let (code, said) = serve_to(full());
    assert_eq!(code, Some(70), "{said}");
    assert!(
        said.contains("standard output cannot be written: No space left"),
        "{said}"
    );
}

#[test]
fn a_capture_and_a_flame_graph_on_a_full_disk_fail_the_command() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let url = server.plain();
    let file = folder.path().join("probe").to_str().unwrap().to_owned();
    let busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done";
    let capture = ["check", &url, "--no-idle"];
    let flames = ["watch", "--", "bash", "-c", busy];
    for (words, option, code) in [
        (&capture[..], "--pcapng", 70),
        (&flames, "--flamegraph", 125),
    ] {
        let mut probe = vec![words[0], option, &file];
        probe.extend(&words[1..]);
        let out = run_to(Stdio::null(), &probe);
        if code_of(&out) != 0 || fs::metadata(&file).is_err() {
            crate::skip::skip(option, &String::from_utf8_lossy(&out.stderr));
            continue;
        }
        let row = Row {
            words: words.to_vec(),
            prints: false,
            files: &[],
            code,
        };
        let files: &[&str] = &["--json", "--report.md"];
        let files = [files, &[option]].concat();
        let failures = failures(
            &Row {
                files: &files,
                ..row
            },
            folder.path(),
        );
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }
}

/// Runs the commands of a shell where the folders for temporary files are full. The first argument
/// is the folder of the build, which may be in one of them: it is at [`BUILD`].
const FULL: &str = r#"
mount --bind "$1" /mnt && shift
for folder in /tmp /dev/shm /run; do
    [ -d $folder ] && mount -t tmpfs -o size=4k,nr_inodes=3 tmpfs $folder
    head -c 100000 /dev/zero > $folder/full 2>/dev/null
done
echo full > /tmp/more 2>/dev/null && [ -s /tmp/more ] && exit 99
export TMPDIR=/tmp
echo begins >&2
exec "$@"
"#;

/// The folder of the build while the folders for temporary files are full.
const BUILD: &str = "/mnt";

#[test]
fn full_folders_for_temporary_files_fail_what_needs_them_and_nothing_else() {
    let build = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let build = build.to_str().unwrap();
    let inside = |path: &str| path.replacen(build, BUILD, 1);
    let server = Server::start(&[]);
    // not in the folder that is full
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let ledger = store(&folder.path().join("ledger"), "tls-never-resumed/fires");
    let url = server.plain();
    let (store, plan) = (at("store"), at("plan.toml"));
    let text = format!(
        "name = \"t\"\nrepetitions = 1\nduration = \"20ms\"\n[limits]\nrequests = 10000\nrate = 400\nworkers = 1\n\
         [[target]]\nname = \"own\"\nurl = \"{url}\"\ni-own-this = \"127.0.0.1\"\n[axes]\nkeepalive = [\"on\"]\n",
    );
    fs::write(&plan, text).unwrap();
    let json = format!("--json={}", inside(&at("out.json")));
    let page = at("page.html");
    for (words, code, said) in [
        (&["bench", &url, "-n", "20", "--rounds", "1"][..], 0, ""),
        (&["check", &url, "--no-idle"], 0, ""),
        (&["audit", &ledger], 0, ""),
        (&["watch", "--", "true"], 0, ""),
        (&["fleet", "run", &plan, "--store", &store], 70, "TMPDIR"),
    ] {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "--mount"]);
        command.args(["sh", "-c", FULL, "sh", build]);
        command.args([&inside(env!("CARGO_BIN_EXE_intact")), words[0]]);
        if words[0] != "fleet" {
            command.args(["--report", &inside(&page), &json]);
        }
        command.args(words[1..].iter().map(|word| inside(word)));
        let out = command.output().unwrap();
        let printed = String::from_utf8_lossy(&out.stderr).into_owned();
        if !printed.contains("begins") {
            return crate::skip::skip("full folders for temporary files", &printed);
        }
        assert_eq!(code_of(&out), code, "{words:?}: {printed}");
        assert!(printed.contains(said), "{words:?}: {printed}");
        if words[0] != "fleet" {
            for file in [&at("out.json"), &page] {
                assert!(fs::metadata(file).unwrap().len() > 0, "{words:?} {file}");
                fs::remove_file(file).unwrap();
            }
        }
    }
}

#[test]
fn every_output_of_a_wrapper_on_a_full_disk_fails_it() {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let program = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3",
        server.plain_port()
    );
    let probe = run_to(Stdio::null(), &["watch", "--", "bash", "-c", &program]);
    if code_of(&probe) != 0 {
        return crate::skip::skip(
            "outputs of wrappers",
            &String::from_utf8_lossy(&probe.stderr),
        );
    }
    let recorded = &["--json", "--report.md", "--junit", "--csv", "--har"][..];
    let rows = [
        Row {
            words: vec!["watch", "--", "bash", "-c", &program],
            prints: false,
            files: recorded,
            code: 125,
        },
        Row {
            words: vec![
                "compare",
                "--rounds",
                "1",
                "--warm-up",
                "0",
                "--",
                "bash",
                "-c",
                &program,
                "--",
                "bash",
                "-c",
                &program,
                "x",
            ],
            prints: true,
            files: recorded,
            code: 125,
        },
    ];
    let failures: Vec<String> = rows
        .iter()
        .flat_map(|row| failures(row, folder.path()))
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    // the page goes to standard error, and a program's own code stays
    for (last, expected) in [("true", 125), ("exit 3", 3)] {
        let program = format!("{program}; {last}");
        let status = Command::new(env!("CARGO_BIN_EXE_intact"))
            .args(["watch", "--", "bash", "-c", &program])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(full())
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(expected), "{last}");
    }
}

#[test]
fn a_ledger_on_a_full_disk_is_named_and_the_page_is_printed() {
    // a limit of a file's size (RLIMIT_FSIZE) is a full disk for one file: SIGXFSZ does not end the
    // command
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let command = format!(
        "ulimit -f 4; exec \"$0\" bench {} -n 3000 --rounds 1 --ledger {} --csv {}",
        server.plain(),
        at("ledger"),
        at("rows.csv")
    );
    let out = Command::new("bash")
        .args(["-c", &command, env!("CARGO_BIN_EXE_intact")])
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(code_of(&out), 70, "{out:?}");
    assert!(said.contains("--csv: File too large"), "{said}");
    let page = String::from_utf8_lossy(&out.stdout);
    assert!(
        page.contains("not written") || page.contains("File too large"),
        "{page}"
    );
    assert!(page.contains("3,000 requests"), "{page}");
}

#[test]
fn a_closed_standard_output_fails_and_a_reader_that_goes_away_does_not() {
    let run = |line: &str| {
        let out = Command::new("bash")
            .args(["-c", line, env!("CARGO_BIN_EXE_intact")])
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        (code_of(&out), said)
    };
    let (status, said) = run("\"$0\" fix >&-");
    assert_eq!(status, 70, "{said}");
    assert!(said.contains("standard output is closed"), "{said}");
    for line in [
        "\"$0\" fix | true; exit ${PIPESTATUS[0]}",
        "\"$0\" man bench | head -n 1; exit ${PIPESTATUS[0]}",
        "\"$0\" fix > /dev/null",
    ] {
        let (status, said) = run(line);
        assert_eq!((status, said.as_str()), (0, ""), "{line}");
    }
}
