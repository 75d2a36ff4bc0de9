//! Messages that servers and their containers write between the lines of an access log: lines that
//! are known to be no requests. Must not accept a line that may be a cut request.

use std::net::{IpAddr, SocketAddr};

/// Levels of messages, as programs write them.
const LEVELS: [&str; 22] = [
    "alert",
    "crit",
    "critical",
    "debug",
    "emerg",
    "emergency",
    "err",
    "error",
    "fatal",
    "fine",
    "info",
    "information",
    "informational",
    "log",
    "note",
    "notice",
    "panic",
    "severe",
    "trace",
    "warn",
    "warning",
    "err!",
];

/// What HAProxy says of itself, without the time and the process.
const HAPROXY: [&str; 22] = [
    "Proxy ",
    "Server ",
    "Backup Server ",
    "Health check ",
    "Connect from ",
    "Stopping ",
    "Pausing ",
    "Resuming ",
    "Starting ",
    "Loading ",
    "Loaded ",
    "New worker",
    "Former worker",
    "Current worker",
    "Exiting ",
    "Reexecuting ",
    "Initializing ",
    "Listener ",
    "All workers ",
    "backend ",
    "proxy ",
    "haproxy version",
];

/// Whether a line is a message and no request.
pub(super) fn is_notice(text: &str) -> bool {
    let is_named = is_message_of_haproxy(text) || is_of_nginx(text) || is_pairs(text);
    let is_like_one = || is_next_or_title(text) || is_error_line(text) || is_prose(text);
    is_named || !may_be_request(text.trim_start()) && is_like_one()
}

/// Whether a text has what no message has, but a request that was cut at either end: a protocol, an
/// object, an address as its first or second word, or a status behind a quote.
fn may_be_request(text: &str) -> bool {
    let is_address =
        |word: &str| word.parse::<IpAddr>().is_ok() || word.parse::<SocketAddr>().is_ok();
    let is_status = |after: &str| {
        let status = after.split(' ').next().unwrap_or_default();
        status.len() == 3 && status.bytes().all(|byte| byte.is_ascii_digit())
    };
    text.contains("HTTP/")
        || text.starts_with('{')
        || text.split(' ').take(2).any(is_address)
        || text.split("\" ").skip(1).any(is_status)
}

/// The next line of a message, such as a stack; or a title.
fn is_next_or_title(text: &str) -> bool {
    let rest = text.trim();
    let is_record = rest.contains('\t') || rest.starts_with('[') || after_process(rest).is_some();
    let is_next = text.starts_with([' ', '\t']) && !is_record;
    is_next || text.starts_with("*** ") || text.starts_with("-- ")
}

/// A message of nginx's error log, which may name a request: `2026/11/21 08:00:00 [error] 7#7: `.
fn is_of_nginx(text: &str) -> bool {
    let level = text.split_once(" [").and_then(|(time, rest)| {
        let is_time = time.len() == 19 && time.bytes().all(|byte| b"0123456789/: ".contains(&byte));
        is_time.then(|| rest.split_once("] ")).flatten()
    });
    level.is_some_and(|(level, rest)| {
        let process = rest.split_once(": ").map(|(process, _)| process);
        let is_process = |process: &str| process.bytes().all(|b| b.is_ascii_digit() || b == b'#');
        LEVELS.contains(&level) && process.is_some_and(is_process)
    })
}

/// A message of HAProxy, or a session that failed before a request: those have no request in
/// quotes, and end with what happened.
fn is_message_of_haproxy(text: &str) -> bool {
    let (name, message) = after_process(text).unwrap_or(("", text));
    let is_named = name == "haproxy"
        && (HAPROXY.iter().any(|start| message.starts_with(start))
            || message.contains(" backend ")
            || message.starts_with('['));
    !message.contains('"') && (is_named || is_failed_session(message))
}

/// `CLIENT:PORT [DATE] FRONTEND/BIND: what happened`.
fn is_failed_session(message: &str) -> bool {
    let Some((client, rest)) = message.split_once(" [") else {
        return false;
    };
    let failed = rest
        .split_once("] ")
        .and_then(|(_, rest)| rest.split_once(": "));
    client.parse::<SocketAddr>().is_ok()
        && failed.is_some_and(|(place, what)| {
            let is_place = !place.contains(' ') && place.contains('/');
            is_place && what.ends_with(|last: char| last.is_ascii_alphabetic() || last == ')')
        })
}

/// The name of the process and the message of a line in syslog's format: `NAME[PID]: MESSAGE`.
fn after_process(text: &str) -> Option<(&str, &str)> {
    let (head, message) = text.split_once("]: ")?;
    let (before, pid) = head.rsplit_once('[')?;
    let is_pid = !pid.is_empty() && pid.bytes().all(|byte| byte.is_ascii_digit());
    let name = before.rsplit([' ', '/']).next()?;
    is_pid.then_some((name, message))
}

/// A line with a time first, then a level in brackets or after it: the error log of nginx, Apache
/// and Envoy. The message of another process in syslog's format is one as well.
fn is_error_line(text: &str) -> bool {
    if let Some((name, _)) = after_process(text) {
        return name != "haproxy" && !text.contains('"');
    }
    let head = text.get(..text.len().min(80)).unwrap_or_default();
    let mut groups = head.split(['[', ']', ' ', ':', '|', '\t']);
    let has_level = groups.any(|word| LEVELS.contains(&word.to_ascii_lowercase().as_str()));
    let begins_with_time = text
        .trim_start_matches('[')
        .starts_with(|first: char| first.is_ascii_digit() || first.is_ascii_uppercase());
    has_level && begins_with_time
}

/// `key=value` pairs with a level, as many programs in Go write.
fn is_pairs(text: &str) -> bool {
    let mut words = text.split(' ');
    let begins = words
        .next()
        .is_some_and(|word| word.split_once('=').is_some_and(|(key, _)| is_key(key)));
    begins && text.contains("level=")
}

fn is_key(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Text that no access log begins with: a script's path or name with a colon, a continuation of a
/// message, or words without any quote, bracket or address.
fn is_prose(text: &str) -> bool {
    let first = text.split(' ').next().unwrap_or_default();
    let is_label = first.ends_with(':')
        && first.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/' || c.is_ascii_digit())
        && first.bytes().any(|byte| byte.is_ascii_alphabetic());
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphabetic());
    // a date has a number after the month
    let mut words = text.split(' ');
    let has_numbers = text.bytes().any(|byte| byte.is_ascii_digit());
    let is_plain = words.next().is_some_and(is_word)
        && words
            .next()
            .is_some_and(|word| is_word(word) || !has_numbers)
        && !text.contains(['"', '[', '{', '\t']);
    is_label || is_plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_no_requests() {
        for text in [
            "Feb  6 12:12:09 localhost haproxy[14385]: Proxy http-in started.",
            "<134>Feb  6 12:12:09 haproxy[14385]: Server static/srv1 is DOWN, reason: Layer4 timeout, check duration: 1002ms.",
            "Feb  6 12:12:56 localhost haproxy[17989]: 127.0.0.1:34550 [15/Oct/2012:08:31:57.130] fe/1: SSL handshake failure",
            "Feb  6 12:12:56 localhost haproxy[17989]: 127.0.0.1:34550 [15/Oct/2012:08:31:57.130] fe/1: Connection error during SSL handshake (Success)",
            "192.0.2.1:34550 [15/Oct/2012:08:31:57.130] fe/1: SSL handshake failure",
            "Feb  6 12:12:09 localhost sshd[14385]: Accepted publickey for root",
            "2026/11/21 08:00:00 [error] 7#7: *1 connect() failed (111: Connection refused)",
            "2026/11/21 08:00:00 [error] 7#7: *1 open() \"/a\" failed, client: 192.0.2.1, request: \"GET /a HTTP/1.1\", host: \"a\"",
            "  File \"/app/x.py\", line 3, in f",
            "\tat a.example.Client.send(Client.java:10)",
            "[Sat Nov 21 08:00:00.123456 2026] [mpm_event:notice] [pid 1:tid 1] AH00489: Apache configured",
            "[2026-11-21 08:00:00.123][1][info][main] [source/server/server.cc:381] initializing epoch 0",
            "time=\"2026-11-21T08:00:00Z\" level=info msg=\"Configuration loaded\"",
            "/docker-entrypoint.sh: Configuration complete; ready for start up",
            "10-listen-on-ipv6-by-default.sh: info: Enabled listen on IPv6",
            "Listening on port http",
            "Press CTRL+C to quit",
            " * Running on http://127.0.0.1:5000",
            "*** uWSGI is running in multiple interpreter mode ***",
            "-- Journal begins at Sat 2026-11-21 08:00:00 UTC. --",
        ] {
            assert!(is_notice(text), "{text}");
        }
    }

    #[test]
    fn requests_and_parts_of_them_are_no_messages() {
        let combined = "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET /error HTTP/1.1\" 500 5 \"-\" \"curl/8\"";
        let haproxy = "Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 [06/Feb/2009:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {1wt.eu} {} \"GET /index.html HTTP/1.1\"";
        for text in [combined, haproxy] {
            for end in 1..=text.len() {
                // a last line without an end is unread, whatever it looks like
                if end > 60 {
                    assert!(!is_notice(&text[..end]), "{}", &text[..end]);
                }
            }
        }
        for text in [
            "{\"status\":200",
            "a.example:80 192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200",
            "[2016-04-15T20:17:00.310Z] \"POST /api HTTP/2\" 204 -",
            " {\"log\":\"192.0.2.1 - -",
            "  192.0.2.1 - - [10/Oct/2000:13:55:36",
            " 1\" 200 5 \"-\" \"curl/8\"",
            "\treferer:-\tua:curl/8\treqtime:0.000",
            "\0\0\0\0",
            "7f 00 01",
            "GET / HTTP/1.1",
        ] {
            assert!(!is_notice(text), "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_trouble(text in ".{0,200}") {
            is_notice(&text);
        }
    }
}
