//! HAProxy: per frontend, `timeout http-keep-alive` or the timeout that replaces it; per backend,
//! how connections are kept.

use super::directive::{Directive, last};
use super::include::Reader;
use super::time;
use crate::hop::{Hop, Idle, Timer};
use crate::product::Product;

/// Why no time can be given for connections to servers.
const NO_TIMER: &str = "HAProxy has no fixed idle limit towards servers: every pool-purge-delay (5 s) it closes some of the unneeded connections";
/// The timeouts that limit an idle connection of a client, by priority.
const IDLE: [&str; 3] = ["http-keep-alive", "http-request", "client"];

pub(super) fn timers(sections: &[Directive], hop: &mut Hop) {
    for (nth, section) in sections.iter().enumerate() {
        let defaults = defaults_of(sections, nth);
        if is_tcp(section, defaults) {
            continue;
        }
        if ["frontend", "listen"].contains(&section.name()) {
            hop.accepts.push(accepted(section, defaults));
        }
        if ["backend", "listen"].contains(&section.name()) && has_server(section) {
            hop.keeps.push(kept(section, defaults));
        }
    }
    if hop.accepts.is_empty() {
        // a file as the package ships it has no frontend yet
        let timer = last(sections, "defaults").map(|one| accepted(one, None));
        hop.accepts.extend(timer);
    }
}

/// The `defaults` section of a section: the named one, else the last one before it.
fn defaults_of(sections: &[Directive], nth: usize) -> Option<&Directive> {
    let words = sections[nth].arguments();
    let from = words
        .iter()
        .position(|word| word == "from")
        .and_then(|at| words.get(at + 1));
    let mut before = sections[..nth]
        .iter()
        .filter(|one| one.name() == "defaults");
    match from {
        Some(name) => before.find(|one| one.argument(1) == name),
        None => before.next_back(),
    }
}

fn both<'a>(
    section: &'a Directive,
    defaults: Option<&'a Directive>,
) -> impl Iterator<Item = &'a Directive> {
    std::iter::once(section).chain(defaults)
}

fn is_tcp(section: &Directive, defaults: Option<&Directive>) -> bool {
    // without `mode` HAProxy proxies TCP
    let mode = both(section, defaults).find_map(|one| last(&one.block, "mode"));
    mode.is_none_or(|mode| mode.argument(1) != "http")
}

fn has_server(section: &Directive) -> bool {
    let names = ["server", "server-template", "default-server"];
    section.block.iter().any(|one| names.contains(&one.name()))
}

/// Whether an option is on, according to the section, else to its `defaults`.
fn option<'a>(
    section: &'a Directive,
    defaults: Option<&'a Directive>,
    name: &str,
) -> Option<&'a Directive> {
    both(section, defaults).find_map(|one| {
        let said = one.block.iter().rfind(|one| {
            one.words.iter().any(|word| word == name)
                && one.words.iter().any(|word| word == "option")
        })?;
        Some((said.name() != "no").then_some(said))
    })?
}

fn accepted(section: &Directive, defaults: Option<&Directive>) -> Timer {
    if let Some(close) = option(section, defaults, "httpclose") {
        return close.timer(Idle::NotKept, section.scope());
    }
    let timeout = |name: &&str| {
        both(section, defaults).find_map(|one| {
            one.block
                .iter()
                .rfind(|one| one.name() == "timeout" && one.argument(1) == *name)
        })
    };
    match IDLE.iter().find_map(timeout) {
        Some(one) => one.limit(time::haproxy(one.argument(2)), section.scope()),
        None => Product::Haproxy.default_accepts().of(section.scope()),
    }
}

fn kept(section: &Directive, defaults: Option<&Directive>) -> Timer {
    for name in ["httpclose", "http-server-close"] {
        if let Some(close) = option(section, defaults, name) {
            return close.timer(Idle::NotKept, section.scope());
        }
    }
    section.timer(Idle::Unknown(NO_TIMER), section.scope())
}

/// Sections with their lines.
pub(super) fn parse(reader: &mut Reader<'_>, text: &str) {
    const SECTIONS: [&str; 15] = [
        "global",
        "defaults",
        "frontend",
        "backend",
        "listen",
        "peers",
        "resolvers",
        "userlist",
        "mailers",
        "program",
        "cache",
        "http-errors",
        "ring",
        "log-forward",
        "fcgi-app",
    ];
    for (line, text) in (1..).zip(text.lines()) {
        let one = reader.directive(words(text), line);
        if SECTIONS.contains(&one.name()) {
            reader.tree.close();
            reader.tree.open(one);
        } else if !one.words.is_empty() {
            reader.tree.add(one);
        }
    }
}

/// The words of a line. Blanks outside quotes separate words, a backslash escapes, and `#` starts a
/// comment.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match (letter, quote) {
            ('\\', None | Some('"')) => word.get_or_insert_default().extend(letters.next()),
            (letter, Some(open)) if letter == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            ('#', None) => break,
            (letter, None) if letter.is_whitespace() => words.extend(word.take()),
            (letter, _) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::super::include::tests::Texts;
    use super::*;
    use crate::hop::Hop;
    use std::path::Path;
    use std::time::Duration;

    fn read(text: &str) -> Hop {
        let files = Texts::of(&[("/etc/haproxy/haproxy.cfg", text)]);
        super::super::read(
            "proxy",
            Product::Haproxy,
            None,
            Path::new("/etc/haproxy/haproxy.cfg"),
            &files,
        )
        .unwrap()
    }

    fn idles(timers: &[Timer]) -> Vec<(&str, Idle)> {
        timers.iter().map(|one| (&*one.scope, one.idle)).collect()
    }

    const S: fn(u64) -> Idle = |seconds| Idle::After(Duration::from_secs(seconds));

    #[test]
    fn the_most_specific_timeout_counts() {
        let hop = read(
            "global\n timeout x 1\ndefaults\n mode http\n timeout client 50000\nfrontend a\n bind :80\nfrontend b\n timeout http-request 10s\n\
             frontend c\n timeout http-request 10s\n timeout http-keep-alive 4s # short\nfrontend d\n option httpclose\nfrontend t\n mode tcp\n",
        );
        assert_eq!(
            idles(&hop.accepts),
            [
                ("frontend a", S(50)),
                ("frontend b", S(10)),
                ("frontend c", S(4)),
                ("frontend d", Idle::NotKept)
            ]
        );
        assert!(hop.keeps.is_empty(), "no backend");
    }

    #[test]
    fn defaults_are_those_before_the_section_or_those_that_it_names() {
        let hop = read(
            "defaults one\n mode http\n timeout client 1s\ndefaults two\n mode http\n timeout client 2s\n option httpclose\n\
             frontend a from one\n bind :1\nfrontend b\n bind :2\n no option httpclose\n",
        );
        assert_eq!(
            idles(&hop.accepts),
            [("frontend a from one", S(1)), ("frontend b", S(2))]
        );
    }

    #[test]
    fn a_backend_has_no_fixed_time_unless_it_closes() {
        let hop = read(
            "defaults\n mode http\nbackend a\n server s 1:1\nbackend b\n option http-server-close\n server s \"1:1\"\nbackend empty\n",
        );
        assert_eq!(
            idles(&hop.keeps),
            [
                ("backend a", Idle::Unknown(NO_TIMER)),
                ("backend b", Idle::NotKept)
            ]
        );
    }
}
