//! Options of curl, wrk, k6 and others that people type out of habit, and what does it here.

/// An option of other tools.
struct ForeignOption {
    /// Its spellings.
    names: &'static [&'static str],
    /// The commands that lack it; none: all.
    commands: &'static [&'static str],
    tip: &'static str,
}

const CREDENTIALS: &str =
    "credentials are a header field: -H 'Authorization: Basic BASE64', of USER:PASSWORD";

const FOREIGN_OPTIONS: [ForeignOption; 20] = [
    row(
        &["-t"],
        &["bench"],
        "--threads N sets the client's threads, --timeout TIME limits a request",
    ),
    row(
        &["--duration", "--time"],
        &["bench"],
        "-z TIME sets how long a variant is measured: -z 10s",
    ),
    row(
        &["--for", "--duration", "-z", "-n", "-c"],
        &["check"],
        "check sends few requests; intact bench sends many",
    ),
    row(
        &["--requests", "--iterations", "-i"],
        &["bench"],
        "-n N sets how many requests a variant makes",
    ),
    row(
        &["--connections", "--concurrency", "--clients", "--vus", "-u"],
        &["bench"],
        "-c N sets the connections; for credentials use -H 'Authorization: ...'",
    ),
    row(
        &["--rtt"],
        &["bench"],
        "--link rtt=TIME puts the server that far away: --link rtt=30ms",
    ),
    row(&["-u", "--user"], &["check", ""], CREDENTIALS),
    row(&["--user", "-A"], &["bench"], CREDENTIALS),
    row(
        &["-R", "-q", "--qps", "--rps"],
        &["bench"],
        "--rate N/s sends at a rate: --rate 100/s",
    ),
    row(&["-I", "--head"], &[], "-X HEAD sends HEAD requests"),
    row(
        &["--http2", "--http2-prior-knowledge", "--h2"],
        &[],
        "--http 2 speaks HTTP/2",
    ),
    row(&["--http3", "--h3"], &[], "--http 3 speaks HTTP/3"),
    row(&["--http1.1", "--h1"], &[], "--http 1.1 speaks HTTP/1.1"),
    row(&["--http1.0", "-0"], &[], "--http 1.0 speaks HTTP/1.0"),
    row(
        &[
            "--disable-keepalive",
            "--no-keepalive",
            "--no-vu-connection-reuse",
        ],
        &["bench"],
        "--keepalive off opens a connection for each request; without it both are measured",
    ),
    row(
        &["--latency", "--percentiles"],
        &["bench"],
        "the page has the percentiles without an option",
    ),
    row(
        &["-v", "--verbose", "-i"],
        &[],
        "--full prints the whole page, --json all that is known",
    ),
    row(
        &["-b", "--cookie", "--user-agent", "-e", "--referer"],
        &[],
        "it is a header field: -H 'NAME: VALUE'",
    ),
    row(
        &["-m", "--max-time", "--connect-timeout"],
        &[],
        "--timeout TIME sets how long a request may take",
    ),
    row(
        &["-o", "--output", "--out"],
        &[],
        "--report FILE writes the page, --json=FILE the figures",
    ),
];

const fn row(
    names: &'static [&'static str],
    commands: &'static [&'static str],
    tip: &'static str,
) -> ForeignOption {
    ForeignOption {
        names,
        commands,
        tip,
    }
}

/// What does here what an option of other tools does there. `command` is empty for `intact URL`.
pub(crate) fn tip(command: &str, option: &str) -> Option<&'static str> {
    FOREIGN_OPTIONS
        .iter()
        .filter(|row| row.commands.is_empty() || row.commands.contains(&command))
        .find(|row| row.names.contains(&option))
        .map(|row| row.tip)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tip for an option that exists is never printed; one that names an option which its
    /// command lacks misleads.
    #[test]
    fn a_foreign_option_is_none_of_its_command_and_its_tip_is() {
        let mut all = crate::command();
        all.build();
        let with_url = ["bench", "check"];
        for row in &FOREIGN_OPTIONS {
            let named = match row.commands.is_empty() {
                true => &with_url[..],
                false => row.commands,
            };
            for command in named.iter().filter_map(|name| all.find_subcommand(name)) {
                let spellings: Vec<String> = command
                    .get_arguments()
                    .flat_map(|one| {
                        let long = one.get_long().map(|name| format!("--{name}"));
                        long.into_iter()
                            .chain(one.get_short().map(|one| format!("-{one}")))
                    })
                    .collect();
                let is_there = |name: &str| spellings.iter().any(|one| one == name);
                for name in row.names.iter().filter(|_| !row.commands.is_empty()) {
                    assert!(!is_there(name), "{} has {name}", command.get_name());
                }
                let words = row.tip.split([' ', ',', '=']);
                for word in words.filter(|word| word.starts_with('-')) {
                    assert!(
                        is_there(word),
                        "{} has no {word}: {}",
                        command.get_name(),
                        row.tip
                    );
                }
            }
        }
    }
}
