//! SPDX licence expressions (ISO/IEC 5962, annex D), and the `/` of older manifests, which means
//! OR.

/// The allowed licences that satisfy an expression; of alternatives, all allowed ones. `None` if no
/// choice is allowed or the text is no expression.
pub(super) fn needed<'a>(text: &'a str, is_allowed: &dyn Fn(&str) -> bool) -> Option<Vec<&'a str>> {
    let mut words = words(text);
    words.reverse();
    let needed = either(&mut words, is_allowed)?;
    words.is_empty().then_some(needed?)
}

/// Names, operators and parentheses.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '(' | ')' | '/');
        let len = match first {
            '(' | ')' | '/' => 1,
            _ => rest.find(is_end).unwrap_or(rest.len()),
        };
        words.push(&rest[..len]);
        rest = rest[len..].trim_start();
    }
    words
}

/// The licences that an expression needs. Outer `None`: the text cannot be parsed. Inner `None`: no
/// choice is allowed.
type Needed<'a> = Option<Option<Vec<&'a str>>>;

fn either<'a>(words: &mut Vec<&'a str>, is_allowed: &dyn Fn(&str) -> bool) -> Needed<'a> {
    let mut needed = both(words, is_allowed)?;
    while matches!(words.last(), Some(&("OR" | "/"))) {
        words.pop();
        needed = match (needed, both(words, is_allowed)?) {
            (Some(left), Some(right)) => Some([left, right].concat()),
            (left, right) => left.or(right),
        };
    }
    Some(needed)
}

fn both<'a>(words: &mut Vec<&'a str>, is_allowed: &dyn Fn(&str) -> bool) -> Needed<'a> {
    let mut needed = one(words, is_allowed)?;
    while words.last() == Some(&"AND") {
        words.pop();
        let right = one(words, is_allowed)?;
        needed = needed
            .zip(right)
            .map(|(left, right)| [left, right].concat());
    }
    Some(needed)
}

fn one<'a>(words: &mut Vec<&'a str>, is_allowed: &dyn Fn(&str) -> bool) -> Needed<'a> {
    match words.pop()? {
        "(" => {
            let inner = either(words, is_allowed)?;
            (words.pop() == Some(")")).then_some(inner)
        }
        ")" | "/" | "AND" | "OR" | "WITH" => None,
        id => {
            let mut is_fine = is_allowed(id);
            if words.last() == Some(&"WITH") {
                words.pop();
                // an exception to a licence only adds rights
                is_fine &= words.pop().is_some();
            }
            Some(is_fine.then(|| vec![id]))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_is_satisfied_by_one_alternative_and_by_all_that_go_together() {
        let is_allowed = |id: &str| ["MIT", "ISC", "Apache-2.0"].contains(&id);
        let needed = |text| needed(text, &is_allowed);
        assert_eq!(needed("MIT"), Some(vec!["MIT"]));
        assert_eq!(needed("GPL-3.0 OR MIT"), Some(vec!["MIT"]));
        assert_eq!(needed("MIT/Apache-2.0"), Some(vec!["MIT", "Apache-2.0"]));
        assert_eq!(
            needed("ISC AND (CDDL-1.0 OR MIT)"),
            Some(vec!["ISC", "MIT"])
        );
        assert_eq!(
            needed("Apache-2.0 WITH LLVM-exception"),
            Some(vec!["Apache-2.0"])
        );
        for bad in [
            "CDDL-1.0",
            "MIT AND CDDL-1.0",
            "",
            "MIT OR",
            "(MIT",
            "MIT MIT",
            "AND MIT",
        ] {
            assert_eq!(needed(bad), None, "{bad:?}");
        }
        // OR binds less than AND
        assert_eq!(needed("MIT OR ISC AND CDDL-1.0"), Some(vec!["MIT"]));
    }
}
