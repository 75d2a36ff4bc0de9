//! Apache httpd: `KeepAlive`, `KeepAliveTimeout` per virtual host; `ttl=` and `disablereuse=` of
//! its proxies.

use super::directive::{Directive, walk};
use super::include::Reader;
use super::time;
use crate::hop::{Hop, Idle, Place, Timer};
use crate::product::Product;

/// Why a proxied connection has no limit.
const NO_TTL: &str =
    "httpd.apache.org mod_proxy: without ttl a connection is kept until the server closes it";

pub(super) fn timers(roots: &[Directive], hop: &mut Hop) {
    let main = outside_of_hosts(roots);
    let all = walk(roots, is_host).into_iter();
    let hosts: Vec<&Directive> = all.filter(|one| is_host(one)).collect();
    hop.keeps.extend(main.iter().filter_map(|one| proxied(one)));
    for host in &hosts {
        let own = outside_of_hosts(&host.block);
        hop.accepts.push(accepted(&own, &main, host.scope()));
        hop.keeps.extend(own.iter().filter_map(|one| proxied(one)));
    }
    if hosts.is_empty() {
        hop.accepts.push(accepted(&main, &[], String::new()));
    }
}

fn is_host(directive: &Directive) -> bool {
    directive.is("VirtualHost")
}

/// The directives of a block with those of inner sections, except virtual hosts.
fn outside_of_hosts(block: &[Directive]) -> Vec<&Directive> {
    let all = walk(block, is_host).into_iter();
    all.filter(|one| !is_host(one)).collect()
}

fn accepted(own: &[&Directive], main: &[&Directive], scope: String) -> Timer {
    let find = |name: &str| -> Option<&Directive> {
        let mut levels = [own, main].into_iter();
        levels.find_map(|level| level.iter().rfind(|one| one.is(name)).copied())
    };
    if let Some(off) = find("KeepAlive").filter(|one| one.argument(1).eq_ignore_ascii_case("off")) {
        return off.timer(Idle::NotKept, scope);
    }
    match find("KeepAliveTimeout") {
        Some(own) => own.limit(time::apache(own.argument(1)), scope),
        None => Product::Apache.default_accepts().of(scope),
    }
}

/// The limit of connections to a proxied server.
fn proxied(directive: &Directive) -> Option<Timer> {
    let names = ["ProxyPass", "ProxyPassMatch", "BalancerMember"];
    let is_proxy = names.iter().any(|name| directive.is(name));
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
        Some(ttl) => directive.limit(time::apache(ttl), scope),
        None => Timer::new(Idle::Unlimited, Place::Default(NO_TTL)).of(scope),
    })
}

pub(super) fn parse(reader: &mut Reader<'_>, text: &str) {
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
            reader.tree.close();
            continue;
        }
        let section = whole.strip_prefix('<');
        let text = section.map_or(whole, |inside| inside.trim_end_matches('>'));
        let one = reader.directive(super::words(text, ['"', '\''], None), begin);
        if section.is_some() {
            reader.tree.open(one);
        } else if one.is("Include") || one.is("IncludeOptional") {
            reader.include(one.argument(1));
        } else {
            if one.is("ServerRoot") {
                reader.base = one.argument(1).into();
            }
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
            "web",
            Product::Apache,
            None,
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
