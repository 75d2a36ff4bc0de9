//! Apache httpd: `KeepAlive`, `KeepAliveTimeout` per virtual host; `ttl=` and `disablereuse=` of
//! its proxies.

use super::directive::{Directive, Tree};
use super::include::Reader;
use super::time;
use crate::hop::{Idle, Place, Timer, after};
use crate::product::Product;
use std::path::PathBuf;

/// Why a proxied connection has no limit.
const NO_TTL: &str =
    "httpd.apache.org mod_proxy: without ttl a connection is kept until the server closes it";

pub(super) fn timers(text: &str, file: &str, reader: &mut Reader<'_>) -> (Vec<Timer>, Vec<Timer>) {
    let mut parser = Parser {
        tree: Tree::default(),
        server_root: None,
    };
    parser.read(text, file, reader);
    let roots = parser.tree.finish();
    let main = flat(&roots);
    let mut hosts: Vec<&Directive> = Vec::new();
    find_hosts(&roots, &mut hosts);
    let mut accepts: Vec<Timer> = hosts
        .iter()
        .map(|host| accepted(&flat(&host.block), &main, host.scope()))
        .collect();
    if accepts.is_empty() {
        accepts.push(accepted(&main, &[], String::new()));
    }
    let mut keeps: Vec<Timer> = main.iter().filter_map(|one| proxied(one)).collect();
    for host in hosts {
        keeps.extend(flat(&host.block).iter().filter_map(|one| proxied(one)));
    }
    (accepts, keeps)
}

fn is(directive: &Directive, name: &str) -> bool {
    directive.name().eq_ignore_ascii_case(name)
}

/// The directives of a block with those of inner sections, except virtual hosts.
fn flat(block: &[Directive]) -> Vec<&Directive> {
    let mut all = Vec::new();
    for one in block.iter().filter(|one| !is(one, "VirtualHost")) {
        all.push(one);
        all.extend(flat(&one.block));
    }
    all
}

fn find_hosts<'a>(block: &'a [Directive], found: &mut Vec<&'a Directive>) {
    for one in block {
        if is(one, "VirtualHost") {
            found.push(one);
        } else {
            find_hosts(&one.block, found);
        }
    }
}

fn accepted(own: &[&Directive], main: &[&Directive], scope: String) -> Timer {
    let find = |name: &str| -> Option<&Directive> {
        let mut levels = [own, main].into_iter();
        levels.find_map(|level| level.iter().rfind(|one| is(one, name)).copied())
    };
    if let Some(off) = find("KeepAlive").filter(|one| one.argument(1).eq_ignore_ascii_case("off")) {
        return off.timer(Idle::NotKept, scope);
    }
    match find("KeepAliveTimeout") {
        Some(own) => {
            let time = time::apache(own.argument(1));
            own.timer(
                time.map_or(Idle::Unknown("its value is no time"), after),
                scope,
            )
        }
        None => Timer {
            scope,
            ..Product::Apache.default_accepts()
        },
    }
}

/// The limit of connections to a proxied server.
fn proxied(directive: &Directive) -> Option<Timer> {
    let names = ["ProxyPass", "ProxyPassMatch", "BalancerMember"];
    let is_proxy = names.iter().any(|name| is(directive, name));
    let target = directive
        .arguments()
        .iter()
        .find(|word| word.contains("://"))?;
    if !is_proxy || !["http", "https", "h2", "h2c"].contains(&target.split("://").next()?) {
        return None;
    }
    let key = |name: &str| {
        let mut words = directive.arguments().iter();
        words.find_map(|word| {
            let (key, value) = word.split_once('=')?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    };
    let scope = target.clone();
    if key("disablereuse").is_some_and(|value| value.eq_ignore_ascii_case("on")) {
        return Some(directive.timer(Idle::NotKept, scope));
    }
    Some(match key("ttl") {
        Some(ttl) => {
            let time = time::apache(ttl);
            directive.timer(
                time.map_or(Idle::Unknown("its value is no time"), after),
                scope,
            )
        }
        None => Timer {
            idle: Idle::Unlimited,
            scope,
            place: Place::Default(NO_TTL),
        },
    })
}

struct Parser {
    tree: Tree,
    /// The folder that relative names start from, where the configuration says so.
    server_root: Option<PathBuf>,
}

impl Parser {
    fn read(&mut self, text: &str, file: &str, reader: &mut Reader<'_>) {
        let mut opened = 0_usize;
        let mut joined = String::new();
        let mut begin = 1;
        for (line, text) in (1..).zip(text.lines()) {
            if joined.is_empty() {
                begin = line;
            }
            if let Some(text) = text.strip_suffix('\\') {
                joined.push_str(text);
                continue;
            }
            joined.push_str(text);
            let whole = std::mem::take(&mut joined);
            let whole = whole.trim();
            if whole.is_empty() || whole.starts_with('#') {
                continue;
            }
            if whole.starts_with("</") {
                if opened > 0 {
                    opened -= 1;
                    self.tree.close();
                }
                continue;
            }
            let section = whole.strip_prefix('<');
            let one = Directive {
                words: super::words(
                    section.map_or(whole, |inside| inside.trim_end_matches('>')),
                    ['"', '\''],
                    None,
                ),
                file: file.to_owned(),
                line: begin,
                block: Vec::new(),
            };
            if section.is_some() {
                opened += 1;
                self.tree.open(one);
            } else if is(&one, "Include") || is(&one, "IncludeOptional") {
                let base = self
                    .server_root
                    .clone()
                    .unwrap_or_else(|| reader.root().to_owned());
                reader.include(one.argument(1), &base, &mut |reader, name, text| {
                    self.read(text, name, reader);
                });
            } else {
                if is(&one, "ServerRoot") {
                    self.server_root = Some(one.argument(1).into());
                }
                self.tree.add(one);
            }
        }
        for _ in 0..opened {
            self.tree.close();
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
            "web",
            Product::Apache,
            Path::new("/etc/apache2/apache2.conf"),
            &Texts::of(texts),
        )
        .unwrap()
    }

    fn idles(timers: &[Timer]) -> Vec<(&str, Idle)> {
        timers.iter().map(|one| (&*one.scope, one.idle)).collect()
    }

    const S: fn(u64) -> Idle = |seconds| Idle::After(Duration::from_secs(seconds));

    #[test]
    fn a_virtual_host_inherits_what_it_does_not_set() {
        let hop = read(&[
            (
                "/etc/apache2/apache2.conf",
                "KeepAlive On\nkeepalivetimeout 7\n<IfModule x>\nIncludeOptional sites-enabled/*.conf\n</IfModule>\nInclude ${X}/y\n",
            ),
            (
                "/etc/apache2/sites-enabled/a.conf",
                "<VirtualHost *:80>\n ServerName a\n</VirtualHost>\n</IfModule>\n<VirtualHost *:81>\n KeepAliveTimeout 500ms\n</VirtualHost>\n",
            ),
            (
                "/etc/apache2/sites-enabled/b.conf",
                "<VirtualHost *:82>\n KeepAlive \\\n  Off\n</VirtualHost>",
            ),
        ]);
        assert_eq!(
            idles(&hop.accepts),
            [
                ("VirtualHost *:80", S(7)),
                ("VirtualHost *:81", Idle::After(Duration::from_millis(500))),
                ("VirtualHost *:82", Idle::NotKept)
            ]
        );
        assert_eq!(hop.not_read.len(), 1);
    }

    #[test]
    fn a_proxy_keeps_connections_until_its_ttl() {
        let hop = read(&[(
            "/etc/apache2/apache2.conf",
            "ProxyPass /a \"http://a/\" ttl=30\nProxyPass /b http://b/\nProxyPass /c https://c/ disablereuse=On\nProxyPass /d !\nProxyPass /e ajp://e/\n\
             <Proxy balancer://x>\nBalancerMember http://m1 ttl=10\n</Proxy>\n",
        )]);
        assert_eq!(
            idles(&hop.keeps),
            [
                ("http://a/", S(30)),
                ("http://b/", Idle::Unlimited),
                ("https://c/", Idle::NotKept),
                ("http://m1", S(10))
            ]
        );
        assert_eq!(idles(&hop.accepts), [("", S(5))], "the default");
    }
}
