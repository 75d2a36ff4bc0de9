//! Numbers as files inside the page: `data:` links that a browser saves without asking anybody.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use intact_ledger::export::csv;
use std::fmt::Write as _;

/// A link that saves a file.
pub(crate) struct Download {
    /// The name that the browser suggests.
    pub(crate) name: String,
    /// The whole file.
    pub(crate) href: String,
    /// What the link says.
    pub(crate) words: String,
}

impl Download {
    /// A JSON document.
    pub(crate) fn json(name: &str, words: &str, document: &str) -> Download {
        Download::new(name, words, "application/json", document)
    }

    /// A CSV table (RFC 4180), its head first.
    pub(crate) fn csv(
        name: &str,
        head: &[&str],
        rows: impl Iterator<Item = Vec<String>>,
    ) -> Download {
        let mut text = head.join(",");
        text.push_str("\r\n");
        let mut count = 0;
        for row in rows {
            count += 1;
            for (nth, field) in row.iter().enumerate() {
                let comma = if nth == 0 { "" } else { "," };
                let _ = write!(text, "{comma}{}", quoted(field));
            }
            text.push_str("\r\n");
        }
        let words = format!("these numbers as CSV ({count} rows)");
        Download::new(name, &words, "text/csv;charset=utf-8", &text)
    }

    /// With other words on the link.
    pub(crate) fn called(mut self, words: &str) -> Download {
        words.clone_into(&mut self.words);
        self
    }

    fn new(name: &str, words: &str, kind: &str, content: &str) -> Download {
        Download {
            name: name.to_owned(),
            href: format!("data:{kind};base64,{}", STANDARD.encode(content)),
            words: words.to_owned(),
        }
    }
}

/// A field as RFC 4180 has it; one that a spreadsheet would take for a formula gets an apostrophe.
fn quoted(field: &str) -> String {
    let formula = field.starts_with(['=', '+', '@', '\t', '\r'])
        || (field.starts_with('-') && field.parse::<f64>().is_err());
    if formula {
        csv::quote(&format!("'{field}")).into_owned()
    } else {
        csv::quote(field).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_stays_one_field_and_is_no_formula() {
        assert_eq!(quoted("keepalive=on"), "keepalive=on");
        assert_eq!(quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
        assert_eq!(quoted("=cmd()"), "'=cmd()");
        assert_eq!(quoted("-1.5"), "-1.5");
        assert_eq!(quoted("-cmd()"), "'-cmd()");
    }
}
