//! Output as a document shows it, compared with what the program prints. Figures, units and column
//! widths may differ, exit codes may not.

/// A line without its figures, their units and the width of its columns.
pub(crate) fn shape(line: &str) -> String {
    let mut out = String::new();
    let mut before = "";
    for word in line.split_whitespace() {
        let is_code = std::mem::replace(&mut before, word) == "code";
        // whether a percentile varies between the rounds differs from run to run
        let figure = word.trim_matches(|c: char| "(),%-~".contains(c));
        let is_figure = figure.starts_with(|c: char| c.is_ascii_digit())
            && figure
                .chars()
                .all(|c| c.is_ascii_digit() || ".,-".contains(c));
        let word = if is_figure && !is_code {
            "#"
        } else if ["µs", "ms", "s"].contains(&word) {
            "time"
        } else {
            word
        };
        out.push_str(word);
        out.push(' ');
    }
    out
}

/// The lines of `printed` that have the shapes of `shown`, in order. The error is the first line of
/// `shown` that is missing.
pub(crate) fn find<'a>(shown: &str, printed: &'a str) -> Result<Vec<&'a str>, String> {
    let mut lines = printed.lines();
    shown
        .lines()
        .map(|line| {
            if line.trim().is_empty() {
                return Ok("");
            }
            lines
                .find(|printed| shape(printed) == shape(line))
                .ok_or_else(|| line.to_owned())
        })
        .collect()
}

#[test]
fn an_exit_code_is_no_figure() {
    assert!(find("exit code 1", "exit code 1").is_ok());
    assert_eq!(
        find("exit code 1", "exit code 0"),
        Err("exit code 1".to_owned())
    );
}

#[test]
fn a_line_of_another_shape_is_not_found() {
    let printed = "  one     1,234  5.6 µs\n  -> raise the limit";
    assert!(find("one 7 3 ms\n-> raise the limit", printed).is_ok());
    assert_eq!(
        find("one 7 3 ms\n-> raise a limit", printed),
        Err("-> raise a limit".to_owned())
    );
    assert_eq!(
        find("-> raise the limit\none 7 3 ms", printed),
        Err("one 7 3 ms".to_owned())
    );
}
