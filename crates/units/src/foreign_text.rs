//! Text that a server, a program or a file wrote, made fit for a terminal. Must not be used for HTML or Markdown, which have
//! escapes of their own.

/// The text with its control characters escaped, so that it cannot move the cursor or change colours.
pub fn escape(foreign: &str) -> String {
    let mut safe = String::with_capacity(foreign.len());
    for letter in foreign.chars() {
        if letter.is_control() {
            safe.extend(letter.escape_default());
        } else {
            safe.push(letter);
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_do_not_reach_the_terminal() {
        assert_eq!(escape("a\x1b[31mb\n"), "a\\u{1b}[31mb\\n");
    }
}
