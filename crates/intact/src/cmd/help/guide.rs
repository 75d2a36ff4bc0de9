//! The pages of `docs/guide`, for `intact help TOPIC`. A page is printed as it is written, without
//! the targets of its links.

/// The pages of `docs/guide` by their file names, as `[(name, text)]`.
macro_rules! pages {
    ($($name:literal),* $(,)?) => {
        [$(($name, include_str!(concat!("../../../../../docs/guide/", $name, ".md")))),*]
    };
}

/// The pages, with the names that are their topics.
const PAGES: [(&str, &str); 13] = pages![
    "502-after-idle",
    "audit-a-capture-or-log",
    "cannot-assign-requested-address",
    "econnreset",
    "enotfound-under-load",
    "gate-in-ci",
    "is-my-program-reusing-connections",
    "prove-a-fix",
    "read-a-bench-page",
    "realistic-load-test",
    "second-peak",
    "slow-lambda",
    "which-timeout-where",
];

/// The list of pages.
const INDEX: &str = include_str!("../../../../../docs/guide/README.md");

/// The page of a topic; `guide` is the list of pages.
pub(super) fn page(topic: &str) -> Option<String> {
    let text = match topic {
        "guide" => INDEX,
        _ => PAGES.iter().find(|(name, _)| *name == topic)?.1,
    };
    Some(without_targets(text))
}

/// Markdown without the targets of its links: `[text](target)` becomes `text`.
fn without_targets(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, link)) = rest.split_once('[') {
        out.push_str(before);
        rest = link;
        match link.split_once("](") {
            Some((label, target)) if !label.contains(['[', '\n']) && target.contains(')') => {
                out.push_str(label);
                rest = target.split_once(')').map_or("", |(_, rest)| rest);
            }
            _ => out.push('['),
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_page_of_the_guide_is_a_topic() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide");
        let mut names: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
            .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
            .filter(|name| name != "README")
            .collect();
        names.sort();
        let topics: Vec<_> = PAGES.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, topics);
        assert!(
            topics
                .iter()
                .all(|topic| INDEX.contains(&format!("]({topic}.md)")))
        );
    }

    #[test]
    fn links_lose_their_targets_only() {
        assert_eq!(
            without_targets("see [the page](a/b.md), `destinations[]` and [x]"),
            "see the page, `destinations[]` and [x]"
        );
    }
}
