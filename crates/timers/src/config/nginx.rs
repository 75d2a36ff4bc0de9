//! nginx: `keepalive_timeout` of http, server and location, and of `upstream` blocks that keep
//! connections.

use super::directive::{Directive, last};
use super::include::Reader;
use super::time;
use crate::hop::{Hop, Idle, Timer};
use crate::product::{Product, Version};

/// Why the limit of an upstream without `keepalive` is not known.
const BY_VERSION: &str = "without `keepalive` in the upstream, nginx before 1.29.7 opens a connection per request, later ones keep 60 s; give its version, nginx@1.22=FILE";
/// Why the limit of an upstream whose passes do not ask for kept connections is not known.
const BY_DEFAULTS: &str = "without `proxy_http_version 1.1` and `proxy_set_header Connection \"\"`, nginx before 1.29.7 opens a connection per request in spite of `keepalive`; give its version, nginx@1.22=FILE";
/// Why the limit of an upstream is not known whose passes have a variable there.
const BY_VARIABLE: &str = "the `Connection` field of its requests is a variable";
/// Directives that pass requests on over HTTP.
const PASSES: [&str; 2] = ["proxy_pass", "grpc_pass"];

/// The version from which on an upstream keeps connections by default.
const KEEPS_BY_DEFAULT: [u32; 3] = [1, 29, 7];

pub(super) fn timers(roots: &[Directive], version: Option<&Version>, hop: &mut Hop) {
    let by_default = version.and_then(|version| version.is_from(KEEPS_BY_DEFAULT));
    // an included file, such as a site, has no `http` of its own
    let mut blocks: Vec<&[Directive]> = roots
        .iter()
        .filter(|one| one.name() == "http")
        .map(|one| &*one.block)
        .collect();
    if blocks.is_empty() {
        blocks.push(roots);
    }
    for http in blocks {
        let inherited = last(http, "keepalive_timeout");
        let servers = http.iter().filter(|one| one.name() == "server");
        for server in servers {
            served(server, inherited, &mut hop.accepts);
        }
        let upstreams: Vec<&Directive> =
            http.iter().filter(|one| one.name() == "upstream").collect();
        let mut passes = Vec::new();
        find_passes(http, Sent::default(), &mut passes);
        hop.keeps
            .extend(upstreams.iter().map(|one| kept(one, &passes, by_default)));
        let direct = passes.iter().filter_map(|one| direct(one, &upstreams));
        hop.keeps.extend(direct);
        if hop.accepts.is_empty() {
            let timer = inherited.map(|one| limit(one, String::new()));
            hop.accepts.extend(timer);
        }
    }
}

/// The limits of a server and of its locations that set their own.
fn served(server: &Directive, inherited: Option<&Directive>, accepts: &mut Vec<Timer>) {
    let name = last(&server.block, "server_name").or_else(|| last(&server.block, "listen"));
    let scope = name.map_or_else(
        || "server".to_owned(),
        |name| format!("server {}", name.argument(1)),
    );
    accepts.push(
        match last(&server.block, "keepalive_timeout").or(inherited) {
            Some(own) => limit(own, scope.clone()),
            None => Product::Nginx.default_accepts().of(scope.clone()),
        },
    );
    let mut open: Vec<&Directive> = server.block.iter().collect();
    while let Some(one) = open.pop() {
        if one.name() == "location" {
            let own = last(&one.block, "keepalive_timeout");
            accepts.extend(own.map(|own| limit(own, format!("{scope}, {}", one.scope()))));
        }
        open.extend(&one.block);
    }
}

fn limit(directive: &Directive, scope: String) -> Timer {
    directive.limit(time::nginx(directive.argument(1)), scope)
}

/// What a block sends to upstreams, inherited where it sets nothing.
#[derive(Clone, Copy, Default)]
struct Sent<'a> {
    version: Option<&'a str>,
    connection: Option<&'a str>,
}

impl<'a> Sent<'a> {
    fn inside(self, block: &'a [Directive]) -> Sent<'a> {
        let version = last(block, "proxy_http_version").map(|one| one.argument(1));
        // one field that is set replaces all inherited ones
        let mut fields = block.iter().filter(|one| one.name() == "proxy_set_header");
        let is_connection = |one: &&Directive| one.argument(1).eq_ignore_ascii_case("connection");
        let connection = match fields.clone().next() {
            Some(_) => fields.rfind(is_connection).map(|one| one.argument(2)),
            None => self.connection,
        };
        Sent {
            version: version.or(self.version),
            connection,
        }
    }

    /// Whether the upstream's connections are kept; else why that is not known. Before 1.29.7 the
    /// defaults are HTTP/1.0 and `Connection: close`, later HTTP/1.1 without the field.
    fn is_kept(self, by_default: Option<bool>) -> Result<bool, &'static str> {
        let is = |value: &str| {
            self.connection
                .is_some_and(|one| one.eq_ignore_ascii_case(value))
        };
        match self.version {
            _ if self.connection.is_some_and(|one| one.contains('$')) => Err(BY_VARIABLE),
            _ if is("close") => Ok(false),
            _ if is("keep-alive") => Ok(true),
            Some("1.0") => Ok(false),
            Some(_) if self.connection.is_some() => Ok(true),
            _ => by_default.ok_or(BY_DEFAULTS),
        }
    }
}

/// A directive that passes requests on.
struct Pass<'a> {
    directive: &'a Directive,
    sent: Sent<'a>,
}

impl Pass<'_> {
    fn host(&self) -> &str {
        let target = self.directive.argument(1);
        let host = target.split_once("://").map_or(target, |(_, rest)| rest);
        host.split('/').next().unwrap_or(host)
    }

    fn is_kept(&self, by_default: Option<bool>) -> Result<bool, &'static str> {
        match self.directive.name() {
            "grpc_pass" => Ok(true),
            _ => self.sent.is_kept(by_default),
        }
    }
}

fn find_passes<'a>(block: &'a [Directive], sent: Sent<'a>, passes: &mut Vec<Pass<'a>>) {
    let sent = sent.inside(block);
    for directive in block {
        if PASSES.contains(&directive.name()) {
            passes.push(Pass { directive, sent });
        }
        find_passes(&directive.block, sent, passes);
    }
}

/// The limit of an upstream's connections: kept where its block and one pass to it keep them.
fn kept(upstream: &Directive, passes: &[Pass<'_>], by_default: Option<bool>) -> Timer {
    let scope = upstream.scope();
    let keepalive = last(&upstream.block, "keepalive");
    let place = keepalive.unwrap_or(upstream);
    let by_block = match keepalive {
        Some(keepalive) => Ok(keepalive.argument(1) != "0"),
        None => by_default.ok_or(BY_VERSION),
    };
    let own = passes
        .iter()
        .filter(|one| one.host() == upstream.argument(1));
    let by_pass: Vec<_> = own.map(|one| one.is_kept(by_default)).collect();
    let is_by_pass = match by_pass.is_empty() || by_pass.contains(&Ok(true)) {
        true => Ok(true),
        false => by_pass
            .into_iter()
            .find(Result::is_err)
            .unwrap_or(Ok(false)),
    };
    match (by_block, is_by_pass) {
        (Ok(false), _) | (_, Ok(false)) => place.timer(Idle::NotKept, scope),
        (Err(why), _) | (_, Err(why)) => place.timer(Idle::Unknown(why), scope),
        (Ok(true), Ok(true)) => match last(&upstream.block, "keepalive_timeout") {
            Some(own) => limit(own, scope),
            None => Product::Nginx.default_keeps().of(scope),
        },
    }
}

/// A pass to an address without an `upstream` block keeps no connection, in any version.
fn direct(pass: &Pass<'_>, upstreams: &[&Directive]) -> Option<Timer> {
    let target = pass.directive.argument(1);
    let is_upstream = upstreams.iter().any(|one| one.argument(1) == pass.host());
    let idle = if target.contains('$') {
        Idle::Unknown("its target is a variable")
    } else {
        Idle::NotKept
    };
    (!is_upstream).then(|| pass.directive.timer(idle, target.to_owned()))
}

/// What stands between blanks.
enum Token {
    Word(String),
    Open,
    Close,
    End,
}

pub(super) fn parse(reader: &mut Reader<'_>, text: &str) {
    let mut words = Vec::new();
    let (mut line, mut begin) = (1, 1);
    let mut rest = text;
    while let Some(token) = next(&mut rest, &mut line) {
        match token {
            Token::Word(word) => {
                if words.is_empty() {
                    begin = line;
                }
                words.push(word);
            }
            Token::Open => {
                let block = reader.directive(std::mem::take(&mut words), begin);
                if block.name().ends_with("_by_lua_block") {
                    skip_code(&mut rest, &mut line);
                } else {
                    reader.tree.open(block);
                }
            }
            Token::Close => {
                words.clear();
                reader.tree.close();
            }
            Token::End => {
                let one = reader.directive(std::mem::take(&mut words), begin);
                if one.name() == "include" {
                    reader.include(one.argument(1));
                } else if !one.words.is_empty() {
                    reader.tree.add(one);
                }
            }
        }
    }
}

fn next(rest: &mut &str, line: &mut u32) -> Option<Token> {
    loop {
        let first = rest.chars().next()?;
        match first {
            '\n' => *line += 1,
            '#' => {
                *rest = rest.find('\n').map_or("", |end| &rest[end..]);
                continue;
            }
            ';' | '{' | '}' => {
                *rest = &rest[1..];
                return Some(match first {
                    ';' => Token::End,
                    '{' => Token::Open,
                    _ => Token::Close,
                });
            }
            letter if letter.is_whitespace() => {}
            _ => return Some(Token::Word(word(rest, line))),
        }
        *rest = &rest[first.len_utf8()..];
    }
}

/// Takes a word: up to a blank, `;` or `{`, or a quoted one. `${name}` stays in the word.
fn word(rest: &mut &str, line: &mut u32) -> String {
    let quote = rest
        .chars()
        .next()
        .filter(|first| ['"', '\''].contains(first));
    let mut letters = rest.char_indices();
    if quote.is_some() {
        letters.next();
    }
    let mut word = String::new();
    let mut end = rest.len();
    while let Some((at, letter)) = letters.next() {
        if letter == '\n' {
            *line += u32::from(quote.is_some());
        }
        match (letter, quote) {
            ('\\', _) => word.extend(letters.next().map(|(_, escaped)| escaped)),
            (letter, Some(quote)) if letter == quote => {
                end = at + 1;
                break;
            }
            ('{', None) if word.ends_with('$') => {
                word.push('{');
                for (_, inside) in letters.by_ref() {
                    word.push(inside);
                    if inside == '}' || inside == '\n' {
                        break;
                    }
                }
            }
            (letter, None) if letter.is_whitespace() || [';', '{', '}'].contains(&letter) => {
                end = at;
                break;
            }
            (letter, _) => word.push(letter),
        }
    }
    *rest = &rest[end..];
    word
}

/// Skips a block of another language, by its braces.
fn skip_code(rest: &mut &str, line: &mut u32) {
    let mut depth = 1_usize;
    for (at, letter) in rest.char_indices() {
        match letter {
            '\n' => *line += 1,
            '{' => depth += 1,
            '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            *rest = &rest[at + 1..];
            return;
        }
    }
    *rest = "";
}

#[cfg(test)]
mod tests {
    use super::super::include::tests::Texts;
    use super::*;
    use crate::hop::{Hop, Place};
    use std::path::Path;
    use std::time::Duration;

    fn read(texts: &[(&str, &str)]) -> Hop {
        read_as(texts, None)
    }

    fn read_as(texts: &[(&str, &str)], version: Option<&str>) -> Hop {
        let version: Option<Version> = version.map(|version| version.parse().unwrap());
        super::super::read(
            "nginx",
            Product::Nginx,
            version.as_ref(),
            Path::new("/etc/nginx/nginx.conf"),
            &Texts::of(texts),
        )
        .unwrap()
    }

    fn idles(timers: &[Timer]) -> Vec<(&str, Idle)> {
        timers.iter().map(|one| (&*one.scope, one.idle)).collect()
    }

    const S: fn(u64) -> Idle = |seconds| Idle::After(Duration::from_secs(seconds));

    #[test]
    fn a_limit_is_inherited_and_overridden() {
        let hop = read(&[(
            "/etc/nginx/nginx.conf",
            "events {}\nhttp {\n  keepalive_timeout 65 60; # both\n  server { listen 80; }\n  server { server_name \"b.example\";\n    keepalive_timeout 0;\n    location /slow { keepalive_timeout 2m; }\n  }\n}\n",
        )]);
        assert_eq!(
            idles(&hop.accepts),
            [
                ("server 80", S(65)),
                ("server b.example", Idle::NotKept),
                ("server b.example, location /slow", S(120))
            ]
        );
        let Place::Directive { words, file, line } = &hop.accepts[0].place else {
            panic!("{:?}", hop.accepts[0].place)
        };
        assert_eq!(
            (&**words, &**file, *line),
            ("keepalive_timeout 65 60", "nginx.conf", 3)
        );
    }

    #[test]
    fn an_upstream_keeps_what_its_version_and_its_directives_say() {
        let hop = read(&[(
            "/etc/nginx/nginx.conf",
            "http { proxy_http_version 1.1; proxy_set_header Connection ''; upstream a { server x; keepalive 16; } upstream b { server x; keepalive 8; keepalive_timeout 30s; } upstream c { server x; } \
             upstream d { server x; keepalive 0; } server { location / { proxy_pass http://a; } location /d { proxy_pass http://10.0.0.1:80/x; } \
             location /v { proxy_pass $where; } } }",
        )]);
        let kept = idles(&hop.keeps);
        assert_eq!(kept[0], ("upstream a", S(60)));
        assert_eq!(kept[1], ("upstream b", S(30)));
        assert_eq!(kept[2], ("upstream c", Idle::Unknown(BY_VERSION)));
        assert_eq!(kept[3], ("upstream d", Idle::NotKept));
        assert_eq!(kept[4], ("http://10.0.0.1:80/x", Idle::NotKept));
        assert!(matches!(kept[5], ("$where", Idle::Unknown(_))));
        assert_eq!(hop.accepts[0].idle, S(75), "the default");
    }

    #[test]
    fn keepalive_alone_keeps_nothing_that_is_known() {
        let of = |http: &str, location: &str| {
            let text = format!(
                "http {{ {http} upstream a {{ server x; keepalive 16; }} server {{ location / {{ {location} }} }} }}"
            );
            let hop = read(&[("/etc/nginx/nginx.conf", &text)]);
            hop.keeps[0].idle
        };
        let pass = "proxy_pass http://a/x;";
        let v11 = "proxy_http_version 1.1;";
        let cleared = "proxy_set_header Connection '';";
        assert_eq!(of("", pass), Idle::Unknown(BY_DEFAULTS));
        assert_eq!(of(v11, pass), Idle::Unknown(BY_DEFAULTS));
        assert_eq!(of(cleared, pass), Idle::Unknown(BY_DEFAULTS));
        assert_eq!(of(&format!("{v11} {cleared}"), pass), S(60));
        // one field of the location replaces those of http
        let host = format!("proxy_set_header Host x; {pass}");
        let both = format!("{v11} {cleared}");
        assert_eq!(of(&both, &host), Idle::Unknown(BY_DEFAULTS));
        assert_eq!(
            of(&both, &format!("proxy_set_header connection Close; {pass}")),
            Idle::NotKept
        );
        assert_eq!(
            of(&both, &format!("proxy_http_version 1.0; {pass}")),
            Idle::NotKept
        );
        let upgrade = format!("proxy_set_header Connection $connection_upgrade; {pass}");
        assert_eq!(of(&both, &upgrade), Idle::Unknown(BY_VARIABLE));
        assert_eq!(
            of(
                "",
                "proxy_set_header Connection Keep-Alive; proxy_pass http://a;"
            ),
            S(60)
        );
        assert_eq!(of("", "grpc_pass grpc://a;"), S(60));
        assert_eq!(of("", "return 204;"), S(60), "its passes are elsewhere");
    }

    #[test]
    fn a_version_decides_what_the_defaults_keep() {
        let of = |version, upstream: &str, location: &str| {
            let text = format!(
                "http {{ upstream a {{ server x; {upstream} }} server {{ location / {{ proxy_pass http://a; {location} }} }} }}"
            );
            read_as(&[("/etc/nginx/nginx.conf", &text)], Some(version)).keeps[0].idle
        };
        let set = "proxy_http_version 1.1; proxy_set_header Connection '';";
        for upstream in ["", "keepalive 16;"] {
            assert_eq!(of("1.22.1", upstream, ""), Idle::NotKept);
            assert_eq!(of("1.31.3", upstream, ""), S(60));
            assert_eq!(of("1.31", upstream, "proxy_set_header Host x;"), S(60));
            assert_eq!(
                of("1.31", upstream, "proxy_set_header Connection close;"),
                Idle::NotKept
            );
        }
        assert_eq!(of("1.22", "keepalive 16;", set), S(60));
        assert_eq!(of("1.22", "", set), Idle::NotKept);
        assert_eq!(of("1.31", "keepalive 0;", set), Idle::NotKept);
        assert_eq!(of("1.29", "keepalive 16;", ""), Idle::Unknown(BY_DEFAULTS));
    }

    #[test]
    fn includes_are_read_where_they_stand() {
        let hop = read(&[
            (
                "/etc/nginx/nginx.conf",
                "http { include /etc/nginx/conf.d/*.conf; include /usr/share/x.conf; }",
            ),
            (
                "/etc/nginx/conf.d/a.conf",
                "server { listen 81; keepalive_timeout 7s; } }",
            ),
            (
                "/etc/nginx/conf.d/b.conf",
                "server { listen 82; content_by_lua_block { if x then y = {} end -- don't\n } keepalive_timeout 8s; }",
            ),
        ]);
        assert_eq!(
            idles(&hop.accepts),
            [("server 81", S(7)), ("server 82", S(8))]
        );
        assert_eq!(hop.not_read.len(), 1);
        assert_eq!(hop.not_read[0].name, "/usr/share/x.conf");
    }
}
