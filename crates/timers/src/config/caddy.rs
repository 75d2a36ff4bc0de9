//! Caddy: `timeouts idle` of the global option `servers`, and `keepalive` of `transport http` in
//! `reverse_proxy`.

use super::directive::{Directive, last, walk};
use super::include::Reader;
use super::time;
use crate::hop::{Hop, Idle, Timer};
use crate::product::Product;

pub(super) fn timers(roots: &[Directive], hop: &mut Hop) {
    // the block of global options has no name, and is the first
    let global = roots.first().filter(|one| one.words.is_empty());
    let servers = global.into_iter().flat_map(|one| &one.block);
    for server in servers.filter(|one| one.name() == "servers") {
        let idle = last(&server.block, "timeouts").and_then(|one| last(&one.block, "idle"));
        let timer = idle.map(|one| limit(one, server.scope()));
        hop.accepts.extend(timer);
    }
    if hop.accepts.iter().all(|one| one.scope != "servers") {
        // an option for one address leaves the others at the default
        hop.accepts.push(Product::Caddy.default_accepts());
    }
    let is_proxy = |one: &Directive| one.name() == "reverse_proxy";
    let proxies = walk(roots, is_proxy)
        .into_iter()
        .filter(|one| is_proxy(one));
    hop.keeps.extend(proxies.filter_map(kept));
}

fn limit(directive: &Directive, scope: String) -> Timer {
    directive.limit(time::caddy(directive.argument(1)), scope)
}

/// The limit of a proxy's connections; `None` if they do not carry HTTP.
fn kept(proxy: &Directive) -> Option<Timer> {
    let transport = last(&proxy.block, "transport");
    if transport.is_some_and(|transport| transport.argument(1) != "http") {
        return None;
    }
    let keepalive = transport.and_then(|transport| last(&transport.block, "keepalive"));
    Some(match keepalive {
        Some(off) if off.argument(1) == "off" => off.timer(Idle::NotKept, proxy.scope()),
        Some(own) => limit(own, proxy.scope()),
        None => Product::Caddy.default_keeps().of(proxy.scope()),
    })
}

pub(super) fn parse(reader: &mut Reader<'_>, text: &str) {
    let mut lines = (1..).zip(text.lines());
    while let Some((line, text)) = lines.next() {
        let mut words = super::words(text, ['"', '`'], Some('#'));
        if let Some(mark) = words.last().and_then(|word| word.strip_prefix("<<")) {
            // a heredoc is the argument of its directive
            let mark = mark.to_owned();
            words.pop();
            lines.by_ref().find(|(_, text)| text.trim() == mark);
        }
        let closes = words.first().is_some_and(|word| word == "}");
        if closes {
            reader.tree.close();
            continue;
        }
        let opens = words.last().is_some_and(|word| word == "{");
        if opens {
            words.pop();
        }
        let one = reader.directive(words, line);
        if opens {
            reader.tree.open(one);
        } else if one.name() == "import" && one.argument(1).contains(['/', '.', '*']) {
            reader.include(one.argument(1));
        } else if !one.words.is_empty() {
            reader.tree.add(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::include::tests::Texts;
    use super::*;
    use crate::hop::Hop;
    use std::path::Path;
    use std::time::Duration;

    fn read(texts: &[(&str, &str)]) -> Hop {
        super::super::read(
            "edge",
            Product::Caddy,
            None,
            Path::new("/etc/caddy/Caddyfile"),
            &Texts::of(texts),
        )
        .unwrap()
    }

    fn idles(timers: &[Timer]) -> Vec<(&str, Idle)> {
        timers.iter().map(|one| (&*one.scope, one.idle)).collect()
    }

    const S: fn(u64) -> Idle = |seconds| Idle::After(Duration::from_secs(seconds));

    #[test]
    fn global_options_and_transports_are_read() {
        let hop = read(&[
            (
                "/etc/caddy/Caddyfile",
                "# comment\n{\n  servers {\n    timeouts {\n      idle 2m # short\n    }\n  }\n}\nimport sites/*\nexample.com {\n  reverse_proxy app:80 {\n    transport http {\n      keepalive 30s\n    }\n  }\n  handle /x {\n    reverse_proxy b:80\n  }\n}\n",
            ),
            (
                "/etc/caddy/sites/a",
                "a.example {\n respond <<E\n } }\n E\n reverse_proxy c {\n transport http {\n keepalive off\n }\n }\n}\n",
            ),
        ]);
        assert_eq!(idles(&hop.accepts), [("servers", S(120))]);
        assert_eq!(
            idles(&hop.keeps),
            [
                ("reverse_proxy c", Idle::NotKept),
                ("reverse_proxy app:80", S(30)),
                ("reverse_proxy b:80", S(120))
            ]
        );
    }

    #[test]
    fn without_options_the_defaults_count() {
        let hop = read(&[(
            "/etc/caddy/Caddyfile",
            ":80 {\n  root * /usr/share/caddy\n  file_server\n}\n",
        )]);
        assert_eq!(idles(&hop.accepts), [("", S(300))]);
        assert!(hop.keeps.is_empty());
    }
}
