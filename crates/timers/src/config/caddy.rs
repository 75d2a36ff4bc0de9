//! Caddy: `timeouts idle` of the global option `servers`, and `keepalive` of `transport http` in
//! `reverse_proxy`.

use super::directive::{Directive, Tree, last};
use super::include::Reader;
use super::time;
use crate::hop::{Idle, Timer, after};
use crate::product::Product;

pub(super) fn timers(text: &str, file: &str, reader: &mut Reader<'_>) -> (Vec<Timer>, Vec<Timer>) {
    let mut tree = Tree::default();
    parse_into(&mut tree, text, file, reader);
    let roots = tree.finish();
    let mut accepts = Vec::new();
    // the block of global options has no name, and is the first
    let global = roots.first().filter(|one| one.words.is_empty());
    let servers = global.into_iter().flat_map(|one| &one.block);
    for server in servers.filter(|one| one.name() == "servers") {
        let idle = last(&server.block, "timeouts").and_then(|one| last(&one.block, "idle"));
        accepts.extend(idle.map(|one| one.timer(limit(one), server.scope())));
    }
    if accepts.iter().all(|one| one.scope != "servers") {
        // an option for one address leaves the others at the default
        accepts.push(Product::Caddy.default_accepts());
    }
    let mut keeps = Vec::new();
    proxies(&roots, &mut keeps);
    (accepts, keeps)
}

fn limit(directive: &Directive) -> Idle {
    let time = time::caddy(directive.argument(1));
    time.map_or(Idle::Unknown("its value is no time"), after)
}

fn proxies(block: &[Directive], keeps: &mut Vec<Timer>) {
    for one in block {
        if one.name() != "reverse_proxy" {
            proxies(&one.block, keeps);
            continue;
        }
        let transport = last(&one.block, "transport");
        if transport.is_some_and(|transport| transport.argument(1) != "http") {
            continue;
        }
        let keepalive = transport.and_then(|transport| last(&transport.block, "keepalive"));
        keeps.push(match keepalive {
            Some(off) if off.argument(1) == "off" => off.timer(Idle::NotKept, one.scope()),
            Some(own) => own.timer(limit(own), one.scope()),
            None => Timer {
                scope: one.scope(),
                ..Product::Caddy.default_keeps()
            },
        });
    }
}

fn parse_into(tree: &mut Tree, text: &str, file: &str, reader: &mut Reader<'_>) {
    let mut opened = 0_usize;
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
            if opened > 0 {
                opened -= 1;
                tree.close();
            }
            continue;
        }
        let opens = words.last().is_some_and(|word| word == "{");
        if opens {
            words.pop();
        }
        let one = Directive {
            words,
            file: file.to_owned(),
            line,
            block: Vec::new(),
        };
        if opens {
            opened += 1;
            tree.open(one);
        } else if one.name() == "import" && one.argument(1).contains(['/', '.', '*']) {
            let base = reader.root().to_owned();
            reader.include(one.argument(1), &base, &mut |reader, name, text| {
                parse_into(tree, text, name, reader);
            });
        } else if !one.words.is_empty() {
            tree.add(one);
        }
    }
    for _ in 0..opened {
        tree.close();
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
