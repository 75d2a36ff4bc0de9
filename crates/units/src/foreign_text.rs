//! Makes foreign text safe for terminals and CI logs. Such text comes from a server, a program, a
//! file or the command line.
//!
//! HTML, Markdown and XML have escapes of their own; all of them use [`is_hidden`].

/// Whether a character must be escaped: control characters, direction marks (UAX #9), characters
/// without width, and line separators.
pub fn is_hidden(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// The text on one line, with hidden characters and line breaks written like `\u{1b}`. So they
/// cannot move the cursor, change colours or reorder letters. Commands of Azure Pipelines
/// (`##vso[`, `##[`) are disabled.
pub fn escape(foreign: &str) -> String {
    let mut safe = String::with_capacity(foreign.len());
    for letter in foreign.chars() {
        if is_hidden(letter) {
            safe.extend(letter.escape_default());
        } else if letter == '[' && (safe.ends_with("##") || safe.ends_with("##vso")) {
            safe.push_str("\\[");
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// The text with each line escaped by [`escape`]; line breaks stay. No line is a command of GitHub
/// Actions, see [`disarm`].
pub fn escape_lines(text: &str) -> String {
    let lines = text.split('\n');
    let lines = lines.map(|line| disarm(&escape(line.strip_suffix('\r').unwrap_or(line))));
    lines.collect::<Vec<String>>().join("\n")
}

/// The same JSON document with hidden letters written as `\u202e`. JSON allows most of them
/// unescaped in strings.
pub fn escape_json(document: &str) -> String {
    let mut safe = String::with_capacity(document.len());
    for letter in document.chars() {
        let is_command = letter == '[' && (safe.ends_with("##") || safe.ends_with("##vso"));
        if is_command || (is_hidden(letter) && letter != '\n') {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// An escaped line that is no command of GitHub Actions. GitHub Actions reads lines that start with
/// `::`.
pub fn disarm(line: &str) -> String {
    let rest = line.trim_start();
    match rest.strip_prefix("::") {
        Some(after) => format!("{}\\u{{3a}}:{after}", &line[..line.len() - rest.len()]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_letters_do_not_reach_the_terminal() {
        assert_eq!(escape("a\x1b[31mb\n"), "a\\u{1b}[31mb\\n");
        for letter in ['\u{9b}', '\u{202e}', '\u{2066}', '\u{200b}', '\u{2028}'] {
            assert!(is_hidden(letter), "{letter:?}");
            assert!(!escape(&format!("a{letter}b")).contains(letter));
        }
        assert_eq!(escape("naïve 日本 …µ"), "naïve 日本 …µ");
    }

    #[test]
    fn escaped_text_is_not_escaped_again() {
        let once = escape("\x1b]0;title\x07 ##vso[task.x]\u{202e}");
        assert_eq!(escape(&once), once);
    }

    #[test]
    fn a_json_document_keeps_its_content() {
        let hidden = "{\n  \"a\": \"\u{202e}\u{9b}\u{e0041}##vso[x]\"\n}\n";
        assert_eq!(
            escape_json(hidden),
            "{\n  \"a\": \"\\u202e\\u009b\\udb40\\udc41##vso\\u005bx]\"\n}\n"
        );
    }

    #[test]
    fn a_line_is_no_command_of_a_ci() {
        assert_eq!(
            escape_lines("a\r\n ::add-mask::x\n##vso[task.setvariable]y ##[error]z"),
            "a\n \\u{3a}:add-mask::x\n##vso\\[task.setvariable]y ##\\[error]z"
        );
        assert_eq!(escape_lines("[::1]:80\n"), "[::1]:80\n");
    }
}
