//! Removes secrets from command lines, URLs and settings. For all recorded texts, this module
//! decides what a secret is.
//!
//! Three signs identify a secret: the option before a value, the name of a setting, and the form of
//! a value. A secret without such a sign, as in `MODE=hunter2`, is not removed.
//! docs/reference/ledger.md has the list.

/// Options whose value is a header field.
const HEADERS: &[&str] = &["-H", "--header"];
/// Options whose value is a secret, a body, or a list of settings.
const SECRETS: &[&str] = &[
    "-d",
    "--data",
    "--data-raw",
    "--data-binary",
    "--data-urlencode",
    "--grpc-json",
    "--body",
    "--post-data",
    "--event",
    "-u",
    "--user",
    "-a",
    "-b",
    "--cookie",
];
/// Words in a name that mark its value as a secret.
const SECRET_NAMES: &[&str] = &[
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "key",
    "pass",
    "passphrase",
    "passwd",
    "password",
    "pwd",
    "secret",
    "sig",
    "signature",
    "token",
];
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
/// Minimum length of a secret with a well-known form, in letters.
const SHORTEST_SECRET: usize = 16;
/// Replaces a removed value.
const GONE: &str = "…";

/// A command line without header values, bodies, credentials, query strings and userinfo.
pub fn argv(words: &[String]) -> Vec<String> {
    let mut redacted = Vec::with_capacity(words.len());
    let mut words = words.iter().peekable();
    while let Some(word) = words.next() {
        if is_listed(word) {
            redacted.push(word.clone());
            if let Some(value) = words.next() {
                redacted.push(option_value(word, value));
            }
            continue;
        }
        if let Some((name, value)) = word.split_once('=')
            && is_listed(name)
        {
            redacted.push(format!("{name}={}", option_value(name, value)));
            continue;
        }
        let is_secret_option = word.strip_prefix("--").is_some_and(is_secret_name);
        if is_secret_option && words.next_if(|value| !value.starts_with('-')).is_some() {
            redacted.extend([word.clone(), GONE.to_owned()]);
            continue;
        }
        let glued = HEADERS
            .iter()
            .chain(SECRETS)
            .find(|name| name.len() == 2 && word.starts_with(**name) && word.len() > 2);
        redacted.push(match glued {
            Some(name) => format!("{name}{}", option_value(name, &word[2..])),
            None if word.contains(char::is_whitespace) => line(word),
            None => self::word(word),
        });
    }
    redacted
}

/// A shell line, or several settings, up to the first word that may be a secret. Quotes are not
/// parsed, so the text after that word may belong to the secret.
pub fn line(line: &str) -> String {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let mut shown = Vec::new();
    for (word, redacted) in words.iter().zip(argv(&words)) {
        if *word != redacted {
            shown.push(GONE.to_owned());
            return shown.join(" ");
        }
        shown.push(redacted);
    }
    line.to_owned()
}

/// A word of a command line, or a setting (`NAME=value`), without the value if its name or its form
/// shows a secret.
pub fn word(word: &str) -> String {
    if let Some((name, _)) = word.split_once('=')
        && is_secret_name(name.trim_start_matches('-'))
    {
        return format!("{name}={GONE}");
    }
    if word.contains("://") {
        return url(word);
    }
    if let Some((path, query)) = word.split_once('?')
        && query.contains('=')
    {
        return format!("{path}?{GONE}");
    }
    if let Some((name, _)) = word.split_once(':')
        && !name.contains('.')
        && is_secret_name(name)
    {
        return format!("{name}:{GONE}");
    }
    if let Some((userinfo, host)) = word.rsplit_once('@')
        && userinfo.contains(':')
    {
        return format!("{GONE}@{host}");
    }
    let (name, value) = word.split_once('=').unwrap_or(("", word));
    match value {
        _ if !has_secret_form(value) => word.to_owned(),
        _ if name.is_empty() => GONE.to_owned(),
        _ => format!("{name}={GONE}"),
    }
}

/// Whether a value has the form of a token or of a body in JSON.
fn has_secret_form(value: &str) -> bool {
    let mut forms = SECRET_FORMS.iter();
    let is_token = value.len() >= SHORTEST_SECRET && forms.any(|start| value.starts_with(start));
    is_token || (value.starts_with(['{', '[']) && value.contains('"'))
}

/// Whether one of the words of a name marks a secret: `API_TOKEN`, `--api-key`, `accessToken`.
fn is_secret_name(name: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_name) {
        return false;
    }
    let mut words = String::with_capacity(name.len() + 4);
    let mut was_lower = false;
    for letter in name.chars() {
        if letter.is_ascii_uppercase() && was_lower {
            words.push('_');
        }
        was_lower = letter.is_ascii_lowercase();
        words.push(letter.to_ascii_lowercase());
    }
    let mut words = words.split(['_', '-', '.']);
    words.any(|word| {
        let mut ends = ["apikey", "password", "secret", "token"].iter();
        SECRET_NAMES.contains(&word) || ends.any(|end| word.ends_with(end))
    })
}

fn is_listed(name: &str) -> bool {
    HEADERS.contains(&name) || SECRETS.contains(&name)
}

/// A URL without userinfo and query values; other words unchanged.
pub fn url(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let bare = path.split(['?', '#']).next().unwrap_or("");
    let query = if path.contains('?') { "?…" } else { "" };
    format!("{scheme}://{host}{bare}{query}")
}

/// A header keeps its name; other values are removed completely.
fn option_value(name: &str, value: &str) -> String {
    match value.split_once(':') {
        Some((field, _)) if HEADERS.contains(&name) => format!("{field}: {GONE}"),
        _ => GONE.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_leave_the_command_line() {
        let words: Vec<String> = [
            "intact",
            "bench",
            "-H",
            "Authorization: Bearer s3cret",
            "--header=Cookie: s3cret",
            "-d",
            "s3cret",
            "-ds3cret",
            "-HX-Key: s3cret",
            "--data=s3cret",
            "https://me:s3cret@host/p?token=s3cret",
            "-c",
            "10",
        ]
        .map(String::from)
        .to_vec();
        let line = argv(&words).join(" ");
        assert!(!line.contains("s3cret"), "{line}");
        assert_eq!(
            line,
            "intact bench -H Authorization: … --header=Cookie: … -d … -d… -HX-Key: … --data=… https://host/p?… -c 10"
        );
    }

    #[test]
    fn a_name_or_a_form_shows_a_secret() {
        for (given, shown) in [
            ("/p?token=s3cret", "/p?…"),
            ("--try=/p?a=s3cret", "--try=/p?…"),
            ("TOKEN=s3cret", "TOKEN=…"),
            ("AWS_SECRET_ACCESS_KEY=s3cret", "AWS_SECRET_ACCESS_KEY=…"),
            ("accessToken=s3cret", "accessToken=…"),
            ("--api-key=s3cret", "--api-key=…"),
            ("Authorization:s3cret", "Authorization:…"),
            ("me:s3cret@host:80", "…@host:80"),
            ("MODE=eyJhbGciOiJIUzI1NiJ9.s3cret", "MODE=…"),
            (r#"{"a":"s3cret"}"#, "…"),
            ("--proxy=http://me:s3cret@host", "--proxy=http://host"),
            ("curl -H 'Cookie: s3cret' a", "curl -H …"),
            ("POST /p?a=s3cret", "POST …"),
        ] {
            assert_eq!(argv(&[given.to_owned()]), [shown], "{given}");
        }
        let words = ["--password", "s3cret", "--token", "--key"].map(String::from);
        assert_eq!(argv(&words), ["--password", "…", "--token", "--key"]);
    }

    #[test]
    fn words_without_a_secret_stay() {
        for word in [
            "KEEPALIVE=0",
            "--keepalive=on,off",
            "SSLKEYLOGFILE=/tmp/keys",
            "auth.example.com:443",
            "what?",
            "git@github.com:a/b",
            "::10.0.0.7:8443",
            "two words, no secret",
            "keepalive=on: p99 < 50ms",
            "a  b",
        ] {
            assert_eq!(argv(&[word.to_owned()]), [word]);
        }
    }

    #[test]
    fn an_option_without_its_value_is_kept() {
        assert_eq!(argv(&["-H".to_owned()]), ["-H"]);
    }
}
