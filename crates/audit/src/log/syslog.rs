//! Heads that a system's log puts in front of the lines of all programs: syslog (RFC 3164, RFC
//! 5424), journald, and containers' logs with times. Must not know any format of requests.

use crate::timestamp;

/// Longest name of a host or a program.
const LONGEST_WORD: usize = 255;

/// A line without its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Headed<'a> {
    /// The time of the head, if it has a date with a year.
    pub(super) time: Option<&'a str>,
    pub(super) message: &'a str,
}

/// Takes the head off; `None` if there is none.
pub(super) fn read(text: &str) -> Option<Headed<'_>> {
    let rest = match text.strip_prefix('<') {
        Some(rest) => {
            let (priority, rest) = rest.split_once('>')?;
            if priority.len() > 3 || priority.parse::<u8>().is_err() {
                return None;
            }
            if let Some(rest) = rest.strip_prefix("1 ") {
                return with_structure(rest);
            }
            rest.trim_start_matches(' ')
        }
        None => text,
    };
    let (time, rest) = time(rest)?;
    let message = match time.is_some_and(is_of_container) {
        true => rest,
        false => tagged(rest)?,
    };
    Some(Headed { time, message })
}

/// The head of RFC 5424, after its version.
fn with_structure(text: &str) -> Option<Headed<'_>> {
    let mut words = text.splitn(6, ' ');
    let time = words.next()?;
    let mut rest = words.nth(4)?;
    if let Some(message) = rest.strip_prefix('-') {
        rest = message;
    } else {
        while let Some(element) = rest.strip_prefix('[') {
            rest = &element[element.find(']')? + 1..];
        }
    }
    let message = rest.strip_prefix(' ')?;
    Some(Headed {
        time: (time != "-").then_some(time),
        message: message.strip_prefix('\u{feff}').unwrap_or(message),
    })
}

/// The time in front, if it has a year, and the text after it: `Nov 21 08:00:01`, an ISO time,
/// `Sat 2026-11-21 08:00:01 UTC`, or seconds since 1970 with a fraction.
fn time(text: &str) -> Option<(Option<&str>, &str)> {
    let (first, rest) = text.split_once(' ')?;
    let is_name = first.len() == 3 && first.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_name && rest.get(4..5) == Some("-") {
        // the zone is a name: only UTC is known
        let (time, zoned) = rest.split_at_checked(19)?;
        let (zone, rest) = zoned.strip_prefix(' ')?.split_once(' ')?;
        timestamp::read(time)?;
        return Some(((zone == "UTC").then_some(time), rest));
    }
    if is_name {
        let (day, rest) = rest.trim_start_matches(' ').split_once(' ')?;
        let (clock, rest) = rest.split_once(' ')?;
        let is_clock =
            clock.len() >= 8 && clock.as_bytes()[2] == b':' && clock.as_bytes()[5] == b':';
        return (day.parse::<u8>().is_ok() && is_clock).then_some((None, rest));
    }
    let is_iso = first.as_bytes().get(4) == Some(&b'-') && first.as_bytes().get(10) == Some(&b'T');
    let is_epoch = first.as_bytes().get(10) == Some(&b'.');
    let is_time = (is_iso || is_epoch) && timestamp::read(first).is_some();
    is_time.then_some((Some(first), rest))
}

/// The text after `HOST NAME[PID]: ` or `NAME: `.
fn tagged(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once(' ')?;
    let (tag, message) = match first.ends_with(':') {
        true => (first, rest),
        false => rest.split_once(' ')?,
    };
    let name = tag.strip_suffix(':')?;
    let is_name = |name: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./[]()@+#".contains(&byte);
        let is_word = name.starts_with(|first: char| first.is_ascii_alphanumeric());
        is_word && name.len() < LONGEST_WORD && name.bytes().all(plain)
    };
    is_name(name).then_some(message)
}

/// Whether a time is as `docker logs -t` and `kubectl logs --timestamps` print it, with nine
/// digits of a second: other logs begin with shorter ones.
fn is_of_container(time: &str) -> bool {
    let zone = time.get(29..).unwrap_or_default();
    time.as_bytes().get(19) == Some(&b'.') && (zone == "Z" || zone.len() == 6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_of_all_systems_are_taken_off() {
        for head in [
            "Nov 21 08:00:01 web1 nginx[12]: ",
            "Nov  1 08:00:01.123456 web1 nginx: ",
            "<190>Nov 21 08:00:01 nginx: ",
            "<190>1 2026-11-21T08:00:01Z web1 nginx 12 - - ",
            "<190>1 2026-11-21T08:00:01Z web1 nginx - ID47 [a@1 b=\"c\"][d e=\"f\"] \u{feff}",
            "2026-11-21T08:00:01+00:00 web1 nginx[12]: ",
            "2026-11-21T08:00:01.123456+00:00 heroku[router]: ",
            "Sat 2026-11-21 08:00:01 UTC web1 nginx[12]: ",
            "1795248001.123456 web1 nginx[12]: ",
            "2026-11-21T08:00:01.123456789Z ",
        ] {
            let text = format!("{head}192.0.2.1 - a: b");
            let headed = read(&text).unwrap_or_else(|| panic!("{head}"));
            assert_eq!(headed.message, "192.0.2.1 - a: b", "{head}");
            let has_year = head.contains("2026") || head.starts_with("1795");
            assert_eq!(headed.time.is_some(), has_year, "{head}");
        }
    }

    #[test]
    fn lines_without_a_head_are_left_as_they_are() {
        for text in [
            "",
            "192.0.2.1 - - [10/Oct/2000:13:55:36 -0700] \"GET / HTTP/1.1\" 200 5 \"-\" \"a: b\"",
            "2015-05-13T23:39:43.945958Z my-elb 192.0.2.1:2817 10.0.0.1:80 0.1 0.1 0.1 200",
            "2026/11/21 08:00:00 [error] 7#7: *1 connect() failed",
            "Sat Nov 21 08:00:00 2026",
            "<1>",
            "<html> a: b",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_line_is_trouble(head in 0..5_usize, text in ".{0,80}") {
            let heads = ["", "<1>", "<1>1 ", "Nov 21 08:00:01 ", "2026-11-21T08:00:01Z "];
            read(&format!("{}{text}", heads[head]));
        }
    }
}
