//! Removes secrets from command lines, URLs and settings. For all recorded texts, this module
//! decides what may be one.
//!
//! What is not known to be harmless is removed. A value stays if it has a harmless shape (a number,
//! an address, a path, a name). Neither the option before it nor its own name may mark a secret.
//! No program is known here. docs/reference/ledger.md has the rules.

mod shape;

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Options whose value is a header field.
const HEADERS: &[&str] = &["-H", "--header", "--headers", "-header"];
/// Letters of short options whose value is often a secret, a body or a user.
const SECRET_LETTERS: &str = "abdeuAEU";
/// Letters of short options whose glued value may be a password.
const PASSWORD_LETTERS: &str = "pPuUAE";
/// Letters of short options whose value is a name.
const NAME_LETTERS: &str = "mX";
/// Words in a name that mark its value as a secret.
const SECRET_NAMES: &[&str] = &[
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "cred",
    "credential",
    "credentials",
    "creds",
    "jwt",
    "key",
    "login",
    "otp",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "pin",
    "pw",
    "pwd",
    "secret",
    "session",
    "sessionid",
    "sid",
    "sig",
    "signature",
    "token",
];
/// Words in a name whose value is a body, a user or a list of settings: only a file or a quantity
/// stays.
const DATA_NAMES: &[&str] = &[
    "body", "conn", "data", "dsn", "event", "form", "json", "payload", "user", "username",
    "userpwd",
];
/// Names of options that programs write with one dash. Others of that form may be a password behind
/// a letter.
const SINGLE_DASHED: &[&str] = &[
    "agent",
    "alive",
    "bench",
    "classpath",
    "clients",
    "config",
    "connections",
    "count",
    "cpus",
    "debug",
    "duration",
    "file",
    "format",
    "header",
    "host",
    "http",
    "http2",
    "jar",
    "keepalive",
    "listen",
    "method",
    "module",
    "name",
    "output",
    "parallel",
    "path",
    "port",
    "proxy",
    "quiet",
    "rate",
    "requests",
    "server",
    "targets",
    "test",
    "threads",
    "timeout",
    "verbose",
    "version",
    "workers",
];
/// The longest group of short options.
const LONGEST_GROUP: usize = 5;
/// Replaces a removed value.
pub const GONE: &str = "…";

/// Whether the user asked for whole command lines.
static SHOWS_ALL: AtomicBool = AtomicBool::new(false);

/// From now on command lines are recorded as they are: the user asked for that.
pub fn show_command_lines() {
    SHOWS_ALL.store(true, Ordering::Relaxed);
}

/// What a word of a command line is.
#[derive(Clone, Copy)]
enum Place<'a> {
    /// The program, or a setting before it.
    Program,
    /// One of the first words after it: a subcommand, a script.
    Lead(u8),
    /// Behind a short option of this letter.
    Short(char),
    /// Behind a long option of this name.
    Long(&'a str),
    /// Any other.
    Free,
}

/// Words in the lead that may be subcommands.
const LEAD: u8 = 2;

/// A command line without what is not known to be harmless: header values, bodies, credentials,
/// query strings and userinfo among it.
pub fn argv(words: &[String]) -> Vec<String> {
    if SHOWS_ALL.load(Ordering::Relaxed) {
        return words.to_vec();
    }
    cut(words.iter().map(String::as_str), Place::Program)
}

/// A word of a command line that no option takes, for a message.
pub fn stray(word: &str) -> String {
    at(word, Place::Lead(0)).0
}

/// The value of an option, for a message, without what may be a secret.
pub fn value_of(option: &str, value: &str) -> String {
    let mut words = cut([option, value].into_iter(), Place::Free);
    words.pop().unwrap_or_default()
}

/// Whether each value of this option may be a secret.
pub fn hides_values(option: &str) -> bool {
    let name = option.trim_start_matches('-');
    HEADERS.contains(&option)
        || is_secret_name(name)
        || has_word(name, DATA_NAMES)
        || name.len() == 1 && name.contains(|letter| SECRET_LETTERS.contains(letter))
}

fn cut<'a>(words: impl Iterator<Item = &'a str>, mut place: Place<'a>) -> Vec<String> {
    let mut shown = Vec::new();
    for word in words {
        let (text, next) = at(word, place);
        shown.push(text);
        place = next;
    }
    shown
}

/// A word at a place as it is shown, and the place of the next.
fn at<'a>(word: &'a str, place: Place<'a>) -> (String, Place<'a>) {
    if word == "--" {
        return (word.to_owned(), Place::Program);
    }
    if word.len() > 1
        && word.starts_with('-')
        && !word[1..].starts_with(|first: char| first.is_ascii_digit())
    {
        return option(word);
    }
    let is_script = !word.contains("://")
        && word
            .rsplit('/')
            .next()
            .is_some_and(|file| file.contains('.'));
    let next = match place {
        Place::Program if word.contains('=') || word == "env" => Place::Program,
        Place::Program | Place::Short('m') => Place::Lead(0),
        Place::Lead(_) if is_secret_name(word) => Place::Long("password"),
        Place::Lead(nth) if word.contains(char::is_alphabetic) && !shape::is_quantity(word) => {
            Place::Lead((nth + 1).min(LEAD))
        }
        Place::Lead(nth) => Place::Lead(nth),
        Place::Short(_) | Place::Long(_) if is_script => Place::Lead(1),
        _ => Place::Free,
    };
    let shown = match place {
        _ if word.is_empty() => Some(String::new()),
        Place::Short(letter) if SECRET_LETTERS.contains(letter) => {
            shape::has_unit(word).then(|| word.to_owned())
        }
        Place::Short('H') => Some(header(word)),
        Place::Long(name) => named(name, word),
        _ if word.contains(char::is_whitespace) => Some(header_or_line(word)),
        Place::Program => setting(word, true).or_else(|| shape::program(word)),
        Place::Lead(nth) if nth < LEAD => setting(word, true)
            .or_else(|| shape::plain(word))
            .or_else(|| (nth == 0 && shape::is_place_in_module(word)).then(|| word.to_owned())),
        Place::Short(letter) if NAME_LETTERS.contains(letter) => shape::plain(word),
        Place::Lead(_) | Place::Short(_) | Place::Free => {
            setting(word, false).or_else(|| shape::exact(word))
        }
    };
    (shown.unwrap_or_else(|| removed(word)), next)
}

/// An option as it is shown, with a value that is glued to it, and the place of the next word.
fn option(word: &str) -> (String, Place<'_>) {
    let dashed = word.trim_start_matches('-');
    let dashes = &word[..word.len() - dashed.len()];
    let is_long = dashes.len() > 1;
    if let Some((name, value)) = dashed.split_once('=')
        && shape::is_name(name)
    {
        let shown = named(name, value).unwrap_or_else(|| GONE.to_owned());
        return (format!("{dashes}{name}={shown}"), Place::Free);
    }
    let mut letters = dashed.chars();
    let first = letters.next().unwrap_or('-');
    let glued = letters.as_str();
    let is_group = glued.len() < LONGEST_GROUP
        && dashed.bytes().all(|byte| byte.is_ascii_alphabetic())
        && (glued.is_empty() || !PASSWORD_LETTERS.contains(first));
    if is_long && shape::is_name(dashed) || SINGLE_DASHED.contains(&dashed) {
        return (word.to_owned(), Place::Long(dashed));
    }
    if !is_long && is_group {
        let last = dashed.chars().last().unwrap_or(first);
        return (word.to_owned(), Place::Short(last));
    }
    let start = format!("{dashes}{first}");
    let rest = match first {
        _ if is_long => None,
        'H' => Some(header(glued)),
        first if PASSWORD_LETTERS.contains(first) => None,
        _ => Some(glued.trim_start_matches(|one: char| one.is_ascii_alphabetic()))
            .filter(|number| shape::is_quantity(number) && glued.len() <= number.len() + 3)
            .map(|_| glued.to_owned()),
    };
    (
        format!("{start}{}", rest.unwrap_or_else(|| GONE.to_owned())),
        Place::Free,
    )
}

/// The value of an option or a setting of this name; `None`: it is removed.
fn named(name: &str, value: &str) -> Option<String> {
    if HEADERS
        .iter()
        .any(|header| header.trim_start_matches('-') == name)
    {
        return Some(header(value));
    }
    if is_secret_name(name) {
        return None;
    }
    if has_word(name, DATA_NAMES) {
        let is_file = value.contains(['/', '.']) && !value.contains("://");
        return shape::exact(value).filter(|_| is_file || shape::has_unit(value));
    }
    if value.contains(char::is_whitespace) {
        return Some(header_or_line(value));
    }
    setting(value, true).or_else(|| shape::plain(value))
}

/// `NAME=VALUE`, with the value if that is harmless and `keeps` is set; `None` for any other word.
fn setting(word: &str, keeps: bool) -> Option<String> {
    let (name, value) = word
        .split_once('=')
        .filter(|(name, _)| shape::is_name(name))?;
    if !keeps {
        return Some(format!("{name}={GONE}"));
    }
    // several settings: `rtt=30ms,loss=1%`
    let (value, rest) = match value.split_once(',') {
        Some((value, rest)) if rest.contains('=') => (value, Some(setting(rest, true))),
        _ => (value, None),
    };
    let shown = if value.is_empty() {
        Some(String::new())
    } else {
        named(name, value)
    };
    let shown = format!("{name}={}", shown.unwrap_or_else(|| GONE.to_owned()));
    Some(match rest {
        Some(rest) => format!("{shown},{}", rest.unwrap_or_else(|| GONE.to_owned())),
        None => shown,
    })
}

/// A header field keeps its name.
fn header(field: &str) -> String {
    match field.split_once(':') {
        Some((name, _)) if shape::is_name(name) => format!("{name}: {GONE}"),
        _ => GONE.to_owned(),
    }
}

/// The name of a header field that the user gave, for a message; its value may be a secret.
pub fn field_name(field: &str) -> &str {
    match field.split_once([':', ' ', '\t', '=']) {
        Some((name, _)) if shape::is_name(name) => name,
        _ => GONE,
    }
}

fn header_or_line(text: &str) -> String {
    match text.split_once(": ") {
        Some((name, _)) if shape::is_name(name) && !name.contains('=') => header(text),
        _ => line(text),
    }
}

/// What is left of a word: where a path, an address or a name begins it, that.
fn removed(word: &str) -> String {
    let known = |start: &str| shape::exact(start).or_else(|| shape::plain(start));
    if let Some((path, _)) = word.split_once('?')
        && path.contains('/')
        && let Some(path) = known(path)
    {
        return format!("{path}?{GONE}");
    }
    if let Some((name, _)) = word.split_once(':')
        && shape::is_name(name)
        && is_secret_name(name)
    {
        return format!("{name}:{GONE}");
    }
    if let Some((_, host)) = word.rsplit_once('@')
        && let Some(host) =
            shape::exact(host).or_else(|| word.contains(':').then(|| shape::plain(host)).flatten())
    {
        return format!("{GONE}@{host}");
    }
    GONE.to_owned()
}

/// A shell line, or several settings, up to the first word that is removed. Quotes are not parsed,
/// so the text after that word may belong to a secret.
pub fn line(line: &str) -> String {
    if SHOWS_ALL.load(Ordering::Relaxed) {
        return line.to_owned();
    }
    let mut shown = Vec::new();
    let words: Vec<&str> = line.split_whitespace().collect();
    for (word, redacted) in words.iter().zip(cut(words.iter().copied(), Place::Program)) {
        if *word != redacted {
            shown.push(GONE.to_owned());
            return shown.join(" ");
        }
        shown.push(redacted);
    }
    line.to_owned()
}

/// A setting (`NAME=value`), without the value unless that is harmless.
pub fn word(word: &str) -> String {
    at(word, Place::Program).0
}

/// Whether one of the words of a name marks a secret: `API_TOKEN`, `--api-key`, `accessToken`.
fn is_secret_name(name: &str) -> bool {
    let ends = ["apikey", "password", "secret", "token", "sessionid"];
    has_word(name, SECRET_NAMES)
        || words_of(name).any(|word| ends.iter().any(|end| word.ends_with(end)))
}

fn has_word(name: &str, list: &[&str]) -> bool {
    words_of(name).any(|word| list.contains(&word.as_str()))
}

/// The words of a name in lower case.
fn words_of(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for letter in name.chars() {
        if !letter.is_ascii_alphanumeric() || letter.is_ascii_uppercase() && was_lower {
            words.push(String::new());
        }
        was_lower = letter.is_ascii_lowercase();
        if letter.is_ascii_alphanumeric()
            && let Some(last) = words.last_mut()
        {
            last.push(letter.to_ascii_lowercase());
        }
    }
    words.into_iter()
}

/// A URL without userinfo, query values and parameters of its path (`;jsessionid=`); other words
/// unchanged.
pub fn url(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let bare = path.split(['?', '#']).next().unwrap_or("");
    let query = if path.contains('?') { "?…" } else { "" };
    format!("{scheme}://{host}{}{query}", self::path(bare))
}

/// A path without the parameters of its segments, which may name a session (`;jsessionid=`).
pub fn path(path: &str) -> Cow<'_, str> {
    if !path.contains(';') {
        return path.into();
    }
    let segments = path
        .split('/')
        .map(|segment| match segment.split_once(';') {
            Some((name, _)) => format!("{name};{GONE}"),
            None => segment.to_owned(),
        });
    segments.collect::<Vec<_>>().join("/").into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A line of words without quotes, redacted; `_` stands for a blank in a word.
    fn shown(line: &str) -> String {
        let words: Vec<String> = line
            .split(' ')
            .map(|word| word.replace('_', " ").replace('~', "_"))
            .collect();
        argv(&words).join(" ")
    }

    #[test]
    fn secrets_leave_the_command_line() {
        for (given, expected) in [
            (
                "intact bench -H Authorization:_Bearer_s3cret --header=Cookie:_s3cret -d s3cret -ds3cret -HX-Key:_s3cret --data=s3cret https://me:s3cret@host/p?token=s3cret -c 10",
                "intact bench -H Authorization: … --header=Cookie: … -d … -d… -HX-Key: … --data=… https://host/p?… -c 10",
            ),
            ("curl -sSu me:s3cret http://h/p", "curl -sSu … http://h/p"),
            ("curl -sd s3cret http://h/p", "curl -sd … http://h/p"),
            (
                "curl -U me:s3cret -E cert.pem:s3cret http://h",
                "curl -U … -E … http://h",
            ),
            (
                "curl -ume:s3cret -Ume:s3cret -Ecert:s3cret http://h",
                "curl -u… -U… -E… http://h",
            ),
            ("curl --json s3cret http://h", "curl --json … http://h"),
            (
                "curl --json {\"a\":\"s3cret\"} http://h",
                "curl --json … http://h",
            ),
            (
                "curl --proxy-user me:s3cret http://h",
                "curl --proxy-user … http://h",
            ),
            (
                "curl --oauth2-bearer s3cret http://h",
                "curl --oauth2-bearer … http://h",
            ),
            (
                "curl -b sid=s3cret -F a=s3cret http://h",
                "curl -b … -F a=… http://h",
            ),
            (
                "curl -HAuthorization:_s3cret http://h",
                "curl -HAuthorization: … http://h",
            ),
            (
                "curl -sSH Cookie:_s3cret http://h",
                "curl -sSH Cookie: … http://h",
            ),
            ("curl http://h/p;jsessionid=s3cret", "curl http://h/p;…"),
            (
                "curl https://h.example/services/T0/s3cretS3CRETs3cretS3CRET",
                "curl https://h.example/services/T0/…",
            ),
            (
                "ab -A me:s3cret -P me:s3cret -C sid=s3cret http://h/",
                "ab -A … -P … -C sid=… http://h/",
            ),
            ("ab -C sid=secret http://h/", "ab -C sid=… http://h/"),
            (
                "vegeta attack -header Authorization:_s3cret",
                "vegeta attack -header Authorization: …",
            ),
            (
                "vegeta attack -header=Authorization:_s3cret",
                "vegeta attack -header=Authorization: …",
            ),
            (
                "wget --body-data=secret http://h",
                "wget --body-data=… http://h",
            ),
            (
                "wget --http-password=s3cret http://h",
                "wget --http-password=… http://h",
            ),
            ("app --conn=Server=db;Password=s3cret;", "app --conn=…"),
            ("psql host=db_password=s3cret", "psql host=db …"),
            (
                "npm publish //registry.example/:~authToken=s3cret",
                "npm publish …",
            ),
            (
                "mysql -uroot -psecret -h db.example",
                "mysql -u… -p… -h db.example",
            ),
            ("mysql --password secret shop", "mysql --password … …"),
            ("sshpass -p secret ssh", "sshpass -p … …"),
            ("redis-cli auth secret", "redis-cli auth …"),
            ("redis-cli -a secret ping", "redis-cli -a … …"),
            ("htpasswd -b users me secret", "htpasswd -b … … …"),
            ("PGPASSWORD=s3cret psql -U me", "PGPASSWORD=… psql -U …"),
            ("MODE=hunter2 app", "MODE=… app"),
            ("env TOKEN=s3cret FOO=1 app", "env TOKEN=… FOO=1 app"),
            (
                "java -Djavax.net.ssl.keyStorePassword=secret -jar app.jar",
                "java -Djavax.net.ssl.keyStorePassword=… -jar app.jar",
            ),
            (
                "docker run -e TOKEN=secret -e A=b image",
                "docker run -e … -e … …",
            ),
            ("vault login hvs.s3cretS3CRETs3cret", "vault login …"),
            (
                "aws configure set aws~secret~access~key s3cret",
                "aws configure set … …",
            ),
            (
                "app --dsn postgres://me:s3cret@db.example/shop",
                "app --dsn …@db.example/shop",
            ),
            (
                "app --database postgres://me:s3cret@db.example/shop",
                "app --database postgres://db.example/shop",
            ),
            (
                "app --connect me:s3cret@db.example:5432",
                "app --connect …@db.example:5432",
            ),
            ("sh -c curl_-u_me:s3cret_http://h", "sh -c curl -u …"),
            (
                "http --auth me:s3cret GET http://h",
                "http --auth … GET http://h",
            ),
            (
                "http GET http://h X-Api-Key:s3cret",
                "http GET http://h X-Api-Key:…",
            ),
            (
                "http GET h.example/p?token=s3cret",
                "http GET h.example/p?…",
            ),
            ("s3cretS3CRETs3cret", "…"),
        ] {
            assert_eq!(shown(given), expected, "{given}");
        }
    }

    #[test]
    fn command_lines_stay_legible() {
        for line in [
            "python app.py",
            "python3.11 -m http.server 8000 --bind 127.0.0.1",
            "python -m pytest tests/unit -x",
            "uvicorn app:app --port 8080 --workers 4",
            "node server.js --port 8080",
            "npm run start",
            "npx next start",
            "curl -s http://host/path",
            "curl -sSL -o out.txt -X POST https://host.example:8443/a/b.json",
            "java -Xmx512m -Dserver.port=8080 -jar app.jar server config.yml",
            "java -cp lib/app.jar com.example.Main",
            "go run ./cmd/server -addr=:8080",
            "wrk -t4 -c100 -d10s http://127.0.0.1:8080/",
            "ab -n 200 -c 10 -k http://127.0.0.1:8080/",
            "hey -z 10s -q 100 http://localhost:8080/",
            "k6 run script.js",
            "cargo run --release",
            "/usr/bin/env KEEPALIVE=0 ./client.sh",
            "KEEPALIVE=0 ./client.sh",
            "SSLKEYLOGFILE=/tmp/keys.log app",
            "intact bench --keepalive=on,off --rounds 5 https://host.example/",
            "intact watch -- python app.py",
            "intact bench --require p99_<_50ms --try pipelining=on http://h",
            "intact watch --require keepalive=on:_p99_<_50ms -- app",
            "intact link rtt=30ms,loss=1% -- curl -s http://10.0.0.1:8443/",
            "intact audit capture.pcapng --json=out.json",
            "intact check auth.example.com:443",
            "intact watch --pid 4711 --side server --mode passthrough",
        ] {
            let words: Vec<String> = line.split(' ').map(|word| word.replace('_', " ")).collect();
            assert_eq!(argv(&words).join(" "), line.replace('_', " "), "{line}");
        }
    }

    #[test]
    fn lines_and_settings_end_before_what_is_not_known() {
        assert_eq!(line("curl -H 'Cookie: s3cret' a"), "curl -H …");
        assert_eq!(line("POST /p?a=s3cret"), "POST …");
        assert_eq!(line("a  b"), "a  b");
        for (given, expected) in [
            ("KEEPALIVE=0", "KEEPALIVE=0"),
            ("POOL=small", "POOL=small"),
            ("TOKEN=small", "TOKEN=…"),
            ("AWS_SECRET_ACCESS_KEY=a", "AWS_SECRET_ACCESS_KEY=…"),
            ("accessToken=a", "accessToken=…"),
            ("MODE=eyJhbGciOiJIUzI1NiJ9.s3cret", "MODE=…"),
        ] {
            assert_eq!(word(given), expected);
        }
    }

    #[test]
    fn parameters_of_a_path_are_removed() {
        assert_eq!(path("/a;jsessionid=s3cret/b;v=1"), "/a;…/b;…");
        assert_eq!(path("/a/b"), "/a/b");
        assert_eq!(url("http://h/a;jsessionid=s3cret?b=1"), "http://h/a;…?…");
    }

    #[test]
    fn an_option_without_its_value_is_kept() {
        assert_eq!(argv(&["-H".to_owned()]), ["-H"]);
        let words = ["--password", "s3cret", "--token", "--key"].map(String::from);
        assert_eq!(argv(&words), ["--password", "…", "--token", "--key"]);
    }

    proptest! {
        /// Letters of both cases with digits among them, as generated passwords have.
        #[test]
        fn a_generated_password_stays_nowhere(
            secret in "[A-Z][a-z]{2,6}[0-9]{2}[A-Za-z0-9!#%_+]{6,20}",
            before in "(-[a-zA-Z]|--[a-z]{2,8}|[a-z]{2,8}|-[a-z]{2,9}) ?=?",
            between in "( me:| [a-z]{1,5}=|:|@| \"| )",
        ) {
            let line = format!("app {before}{between}{secret}");
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let shown = argv(&words).join(" ");
            prop_assert!(!shown.contains(&secret), "{line}: {shown}");
            prop_assert!(!super::line(&line).contains(&secret));
        }

        #[test]
        fn arbitrary_words_never_panic(words in prop::collection::vec(".{0,40}", 0..8)) {
            prop_assert_eq!(argv(&words).len(), words.len());
            for word in &words {
                super::word(word);
                line(word);
                path(word);
            }
        }
    }
}
