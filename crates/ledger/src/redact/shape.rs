//! Shapes of words that hold no secret: numbers, addresses, paths, names. What has none of them is
//! not known to be harmless. Must not ask which program a word belongs to.

use super::{GONE, url};

/// First letters of secrets with a well-known form: tokens of AWS, GitHub, GitLab, Slack, Stripe,
/// JSON Web Tokens, PEM.
const SECRET_FORMS: &[&str] = &[
    "AKIA",
    "ASIA",
    "Basic ",
    "Bearer ",
    "eyJ",
    "ghp_",
    "gho_",
    "ghs_",
    "ghu_",
    "github_pat_",
    "glpat-",
    "sk-",
    "sk_",
    "rk_",
    "xox",
    "-----BEGIN",
];
/// Minimum length of a secret with a well-known form, and of a run of letters and digits that may
/// be one.
const SHORTEST_SECRET: usize = 16;
/// Words that say how, and methods of HTTP.
const KNOWN: &[&str] = &[
    "on", "off", "true", "false", "yes", "no", "auto", "GET", "HEAD", "POST", "PUT", "DELETE",
    "PATCH", "OPTIONS", "AND", "OR", "&&", "||", "2>&1",
];
/// Ends of names of files.
const EXTENSIONS: &[&str] = &[
    "bash",
    "bin",
    "c",
    "cfg",
    "cjs",
    "class",
    "conf",
    "cpp",
    "crt",
    "csv",
    "exe",
    "go",
    "gz",
    "har",
    "html",
    "ini",
    "jar",
    "java",
    "js",
    "json",
    "key",
    "ledger",
    "log",
    "lua",
    "md",
    "mjs",
    "out",
    "pcap",
    "pcapng",
    "pem",
    "php",
    "proto",
    "properties",
    "py",
    "rb",
    "rs",
    "sh",
    "so",
    "sock",
    "toml",
    "ts",
    "txt",
    "war",
    "xml",
    "yaml",
    "yml",
    "zst",
];
/// The longest name of a program, an option or a setting, and the longest word of a value.
const LONGEST_NAME: usize = 40;
const LONGEST_WORD: usize = 24;

/// Whether a value has the form of a token or of a body in JSON.
pub(super) fn has_secret_form(value: &str) -> bool {
    let mut forms = SECRET_FORMS.iter();
    let is_token = value.len() >= SHORTEST_SECRET && forms.any(|start| value.starts_with(start));
    is_token || (value.starts_with(['{', '[']) && value.contains('"'))
}

/// A value that is harmless wherever it stands, without the parts of it that are not; `None` if it
/// has no such shape.
pub(super) fn exact(value: &str) -> Option<String> {
    if has_secret_form(value) {
        return None;
    }
    if value.contains("://") {
        return Some(without_tokens(&url(value)));
    }
    let bare = value.trim_end_matches([',', ':', ';']);
    let parts = || bare.split(',');
    let is_known =
        |part: &str| KNOWN.contains(&part) || is_quantity(part) || is_host(part) || is_dotted(part);
    if is_punctuation(value) || parts().all(is_known) {
        return Some(value.to_owned());
    }
    path(value, false)
}

/// The same where a value is no password: names and relative paths are harmless there too.
pub(super) fn plain(value: &str) -> Option<String> {
    if has_secret_form(value) {
        return None;
    }
    let bare = value.trim_end_matches([',', ':', ';']);
    if !bare.is_empty()
        && bare
            .split(',')
            .all(|part| is_word(part) || exact(part).as_deref() == Some(part))
    {
        return Some(value.to_owned());
    }
    exact(value).or_else(|| path(value, true))
}

/// The name of a program: a path, or letters, digits and signs.
pub(super) fn program(word: &str) -> Option<String> {
    let is_name = word
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"._+-:".contains(&byte));
    let is_short =
        word.len() <= LONGEST_NAME && word.split(['.', '_', '+', '-']).all(|run| !is_token(run));
    if is_name && is_short && !has_secret_form(word) && !word.contains(':') {
        return Some(word.to_owned());
    }
    plain(word)
}

/// Whether this can be the name of an option or of a setting.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.len() <= LONGEST_NAME
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
        && !name.split(['_', '-', '.']).any(is_token)
}

/// Whether this is a place in a module: `app:app`, `site.wsgi:application`.
pub(super) fn is_place_in_module(word: &str) -> bool {
    let parts = word.split_once(':');
    parts.is_some_and(|(module, name)| (is_word(module) || is_dotted(module)) && is_word(name))
}

/// A number with a unit: `10s`, `1.5MB`, `95%`.
pub(super) fn has_unit(value: &str) -> bool {
    is_quantity(value) && value.ends_with(|last: char| last.is_ascii_alphabetic() || last == '%')
}

/// Numbers with signs between them and at most three letters behind: `8080`, `1.2.3`, `100/s`,
/// `8080:80`. Also a letter and a number: `p99`.
pub(super) fn is_quantity(value: &str) -> bool {
    let value = value.strip_prefix(['+', ':']).unwrap_or(value);
    let number = match value.as_bytes() {
        [letter, digit, ..] if letter.is_ascii_lowercase() && digit.is_ascii_digit() => &value[1..],
        _ => value,
    };
    let is_short = number.len() == value.len() || number.len() <= 2;
    let unit = number.trim_start_matches(|one: char| one.is_ascii_digit() || "._:x".contains(one));
    let digits = number.len() - unit.len();
    number.starts_with(|first: char| first.is_ascii_digit())
        && is_short
        && digits <= 15
        && !number
            .split(|one: char| !one.is_ascii_digit())
            .any(|run| run.len() > 10)
        && unit.len() <= 3
        && unit
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || b"%/".contains(&byte))
}

fn is_punctuation(value: &str) -> bool {
    value.len() <= 3 && value.bytes().all(|byte| byte.is_ascii_punctuation())
}

/// A name with dots or `localhost`, or an address; a port and a path may follow.
fn is_host(value: &str) -> bool {
    let (host, rest) = value.split_at(value.find('/').unwrap_or(value.len()));
    let is_path = rest.is_empty() || path(rest, false).is_some_and(|kept| kept == rest);
    if host.parse::<std::net::SocketAddr>().is_ok() || host.parse::<std::net::IpAddr>().is_ok() {
        return is_path;
    }
    let (host, port) = host.split_once(':').unwrap_or((host, "80"));
    let is_label = |label: &str| {
        !label.is_empty()
            && !is_token(label)
            && label
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
    };
    let mut labels = host.split('.');
    let is_name = host == "localhost"
        || host.contains('.')
            && labels.all(is_label)
            && host.ends_with(|last: char| last.is_ascii_lowercase());
    is_path && is_name && port.parse::<u16>().is_ok()
}

/// Identifiers with dots between them: a module, a class.
fn is_dotted(value: &str) -> bool {
    let mut parts = value.split('.');
    value.contains('.') && parts.all(is_word)
}

/// Letters in lower case, or words that begin with a capital: `debug`, `Fast`, `keepAlive`,
/// `saved-share`.
fn is_word(value: &str) -> bool {
    let letters = value.as_bytes();
    let is_inner = |pair: &[u8]| match pair {
        [_, last] if last.is_ascii_uppercase() => pair[0].is_ascii_lowercase(),
        [first, last] => first.is_ascii_alphabetic() || last.is_ascii_lowercase(),
        _ => true,
    };
    let end = letters.last().copied().unwrap_or(b'-');
    letters.len() <= LONGEST_WORD
        && letters.first().is_some_and(u8::is_ascii_alphabetic)
        && letters
            .iter()
            .all(|byte| byte.is_ascii_alphabetic() || b"_-".contains(byte))
        && (end.is_ascii_lowercase())
        && letters.windows(2).all(is_inner)
}

/// A path, without segments that may be tokens: one that begins at a folder, or ends in the name of
/// a file; where `any` is set, any relative one.
fn path(value: &str, any: bool) -> Option<String> {
    let is_sign = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/~+@%*".contains(&byte);
    let (_, file) = value.rsplit_once('/').unwrap_or(("", value));
    let is_file = file
        .rsplit_once('.')
        .is_some_and(|(_, end)| EXTENSIONS.contains(&end));
    let begins = ["/", "./", "../", "~/"]
        .iter()
        .any(|start| value.starts_with(start));
    let is_relative =
        any && value.contains('/') && !value.bytes().any(|byte| byte.is_ascii_uppercase());
    let is_path = value.bytes().all(is_sign) && (begins || is_file || is_relative);
    is_path.then(|| without_tokens(value))
}

/// A path or a URL, with `…` in place of each segment that may be a token.
fn without_tokens(text: &str) -> String {
    let cut = |segment: &str| {
        let mut runs = segment.split(|one: char| !one.is_ascii_alphanumeric());
        let is_secret = runs.any(is_token) || has_secret_form(segment);
        if is_secret {
            GONE.to_owned()
        } else {
            segment.to_owned()
        }
    };
    text.split('/').map(cut).collect::<Vec<_>>().join("/")
}

/// Whether letters and digits without a sign may be a token: long, and of several kinds or all
/// capitals.
fn is_token(run: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| run.as_bytes().iter().any(kind);
    run.len() >= SHORTEST_SECRET
        && (has(u8::is_ascii_digit) || !has(u8::is_ascii_lowercase) || {
            let capitals = run.bytes().filter(u8::is_ascii_uppercase).count();
            capitals > run.len() / 4
        })
}
