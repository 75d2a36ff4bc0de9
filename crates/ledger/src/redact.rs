//! Command lines and URLs without their secrets.

/// Options whose value is a header field.
const HEADERS: &[&str] = &["-H", "--header"];
/// Options whose value is a secret or a body.
const SECRETS: &[&str] = &[
    "-d", "--data", "--body", "-u", "--user", "-a", "-b", "--cookie",
];
/// What stands for a removed value.
const GONE: &str = "…";

/// A command line with header values, bodies, credentials, query strings and userinfo taken out.
pub fn argv(words: &[String]) -> Vec<String> {
    let mut redacted = Vec::with_capacity(words.len());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if HEADERS.contains(&word.as_str()) || SECRETS.contains(&word.as_str()) {
            redacted.push(word.clone());
            if let Some(value) = words.next() {
                redacted.push(option_value(word, value));
            }
            continue;
        }
        if let Some((name, value)) = word.split_once('=')
            && (HEADERS.contains(&name) || SECRETS.contains(&name))
        {
            redacted.push(format!("{name}={}", option_value(name, value)));
            continue;
        }
        let glued = HEADERS
            .iter()
            .chain(SECRETS)
            .find(|name| name.len() == 2 && word.starts_with(**name) && word.len() > 2);
        redacted.push(match glued {
            Some(name) => format!("{name}{}", option_value(name, &word[2..])),
            None => url(word),
        });
    }
    redacted
}

/// A URL without userinfo and query values; other words as they are.
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

/// A header keeps its name; anything else is removed whole.
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
    fn an_option_without_its_value_is_kept() {
        assert_eq!(argv(&["-H".to_owned()]), ["-H"]);
    }
}
