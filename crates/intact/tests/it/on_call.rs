//! What an engineer on call asks has an answer two clicks from README.md, on the first screen of a
//! page.

use std::path::{Path, PathBuf};

/// Lines of the first screen of a page.
const SCREEN: usize = 30;
/// Words of the paragraph that a page of the guide begins with.
const OPENING: usize = 80;

/// A question, the page that README.md links, the page that this links (or the same), and the
/// answer.
const QUESTIONS: [(&str, &str, &str, &str); 15] = [
    (
        "502s at low traffic",
        GUIDE,
        "docs/guide/502-after-idle.md",
        "make the proxy's idle timeout shorter than the server's",
    ),
    (
        "socket hang up, ECONNRESET",
        GUIDE,
        "docs/guide/econnreset.md",
        "Set the client's idle timeout below the server's",
    ),
    (
        "cannot assign requested address",
        GUIDE,
        "docs/guide/cannot-assign-requested-address.md",
        "Reuse connections",
    ),
    (
        "it runs in production, and may not be restarted",
        GUIDE,
        "docs/guide/it-runs-in-production.md",
        "`intact watch --pid` reads its packets",
    ),
    (
        "ENOTFOUND under load",
        GUIDE,
        "docs/guide/enotfound-under-load.md",
        "Reuse connections",
    ),
    (
        "the function is slow or fails after a pause",
        GUIDE,
        "docs/guide/slow-lambda.md",
        "Create the client outside of the handler",
    ),
    (
        "p99 is ten times p50",
        GUIDE,
        "docs/guide/second-peak.md",
        "Find the side that ends connections",
    ),
    (
        "which timeout do I set where",
        GUIDE,
        "docs/guide/which-timeout-where.md",
        "give the side that sends requests the shorter idle timeout",
    ),
    (
        "does this program reuse connections",
        GUIDE,
        "docs/guide/is-my-program-reusing-connections.md",
        "Run the program under `intact watch`",
    ),
    (
        "does this proxy reuse connections",
        GUIDE,
        "docs/guide/is-my-proxy-reusing-connections.md",
        "Run the proxy under `intact watch`",
    ),
    (
        "what do last night's capture and log show",
        GUIDE,
        "docs/guide/audit-a-capture-or-log.md",
        "`intact audit FILE` reads captures",
    ),
    (
        "how do I stop this from coming back",
        GUIDE,
        "docs/guide/gate-in-ci.md",
        "Put `intact watch --require 'avoidable == 0' --` in front of the test command",
    ),
    (
        "how do I prove a fix in a pull request",
        GUIDE,
        "docs/guide/prove-a-fix.md",
        "`intact compare -- ./before -- ./after` runs both programs",
    ),
    (
        "how is reuse turned on in my client",
        "docs/reference/fix.md",
        "docs/reference/fix.md",
        "`intact fix CLIENT` shows how to turn on connection reuse",
    ),
    (
        "does a dead connection hang my program",
        "docs/reference/fault.md",
        "docs/reference/fault.md",
        "intact watch --fault black-hole",
    ),
];

const GUIDE: &str = "docs/guide/README.md";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(page: &str) -> String {
    std::fs::read_to_string(root().join(page)).unwrap_or_else(|error| panic!("{page}: {error}"))
}

/// The files that a page links, from the root of the tree.
fn links(page: &str) -> Vec<PathBuf> {
    let folder = root().join(page);
    let folder = folder.parent().unwrap();
    let text = read(page);
    let links = text.split("](").skip(1);
    let targets = links.filter_map(|rest| rest.split_once(')').map(|(target, _)| target));
    let files = targets.filter(|target| !target.contains("://") && !target.starts_with('#'));
    let files = files.map(|target| target.split('#').next().unwrap_or_default().to_owned());
    files.map(|file| folder.join(file)).collect()
}

fn has_link(page: &str, target: &str) -> bool {
    let target = root().join(target).canonicalize().unwrap();
    let mut files = links(page).into_iter();
    files.any(|file| file.canonicalize().is_ok_and(|file| file == target))
}

#[test]
fn answers_are_two_clicks_from_the_readme_and_on_the_first_screen() {
    for (question, first, second, answer) in QUESTIONS {
        assert!(has_link("README.md", first), "{question}: {first}");
        assert!(
            first == second || has_link(first, second),
            "{question}: {second}"
        );
        let page = read(second);
        let screen: Vec<&str> = page.lines().take(SCREEN).collect();
        let has_command = screen.iter().any(|line| line.contains("intact "));
        assert!(has_command, "{question}: {second} has no command to type");
        // a sentence goes over the ends of lines, and may be bold
        let screen = screen.join(" ").replace("**", "");
        assert!(screen.contains(answer), "{question}: {second}");
    }
}

#[test]
fn each_page_of_the_guide_begins_with_the_answer() {
    let entries = std::fs::read_dir(root().join("docs/guide")).unwrap();
    let mut seen = 0;
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.extension() != Some("md".as_ref()) {
            continue;
        }
        let name = path.display();
        let page = std::fs::read_to_string(&path).unwrap();
        let mut blocks = page.split("\n\n");
        let title = blocks.next().unwrap();
        assert!(
            title.starts_with("# ") && title.lines().count() == 1,
            "{name}"
        );
        let opening = blocks.next().unwrap();
        let is_prose =
            opening.starts_with(|first: char| first.is_alphanumeric() || "`*".contains(first));
        assert!(is_prose && !opening.starts_with("```"), "{name}: {opening}");
        assert!(
            opening.ends_with('.') && opening.split_whitespace().count() <= OPENING,
            "{name}: {opening}"
        );
        seen += 1;
    }
    assert!(seen > 10, "{seen}");
}

#[test]
fn links_of_the_documentation_lead_to_files() {
    let mut pages = vec!["README.md".to_owned(), "docs/README.md".to_owned()];
    for folder in ["docs/guide", "docs/reference", "docs/internals"] {
        let entries = std::fs::read_dir(root().join(folder)).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let names = names.filter(|name| name.ends_with(".md"));
        pages.extend(names.map(|name| format!("{folder}/{name}")));
    }
    let mut checked = 0;
    for page in &pages {
        for file in links(page) {
            assert!(file.exists(), "{page} links {}", file.display());
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}
