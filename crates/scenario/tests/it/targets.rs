//! Files of targets in the forms of other load generators, and paths by pattern.

use intact_scenario::{Request, ScenarioError, random_paths, targets};
use proptest::prelude::*;
use std::io;

/// Reads a file whose only body is `@body`.
fn read(text: &str) -> Result<Vec<Request>, ScenarioError> {
    let body = |path: &str| match path {
        "body" => Ok(vec![0xff, 1]),
        _ => Err(io::ErrorKind::NotFound.into()),
    };
    targets("x.txt", text, &body)
}

/// Method, URL, header fields, body and line.
type Parts<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, &'a [u8], usize);

fn parts(one: &Request) -> Parts<'_> {
    let fields = one.headers.iter();
    let fields = fields.map(|(name, value)| (&**name, &**value)).collect();
    (&one.method, &one.url, fields, &one.body, one.line)
}

fn refused(text: &str, words: &str) {
    let error = read(text).map(|all| panic!("{all:?}")).unwrap_err();
    assert!(error.to_string().contains(words), "{text}: {error}");
}

#[test]
fn vegetas_text_has_fields_bodies_and_comments() {
    let text = "# two\nGET http://h:1/a?q=1\nX-A: b: c\nTE: trailers\n\n\n  POST /b\n@body\n# none\nPUT /c";
    let all = read(text).unwrap();
    let all: Vec<Parts<'_>> = all.iter().map(parts).collect();
    let fields = vec![("X-A", "b: c"), ("TE", "trailers")];
    assert_eq!(
        all,
        [
            ("GET", "http://h:1/a?q=1", fields, &b""[..], 2),
            ("POST", "/b", vec![], &[0xff, 1], 7),
            ("PUT", "/c", vec![], b"", 10),
        ]
    );
}

#[test]
fn vegetas_json_has_bodies_in_base64_and_several_values() {
    let text = "{\"method\":\"POST\",\"url\":\"http://h/\",\"body\":\"/wE=\",\"header\":{\"A\":[\"1\",\"2\"]}}\n{\"method\":\"get\",\"url\":\"/x\"}\n";
    let all = read(text).unwrap();
    let all: Vec<Parts<'_>> = all.iter().map(parts).collect();
    let fields = vec![("A", "1"), ("A", "2")];
    assert_eq!(
        all,
        [
            ("POST", "http://h/", fields, &[0xff, 1][..], 1),
            ("GET", "/x", vec![], b"", 2),
        ]
    );
}

#[test]
fn a_list_of_urls_is_read_as_for_h2load() {
    let all = read("https://h/a\n\nhttps://h/b?c\n").unwrap();
    let urls: Vec<(&str, &str)> = all.iter().map(|one| (&*one.method, &*one.url)).collect();
    assert_eq!(urls, [("GET", "https://h/a"), ("GET", "https://h/b?c")]);
    assert_eq!(all[0].target(), Some("https://h"));
    assert_eq!(all[1].tag, "GET /b");
}

#[test]
fn each_mistake_has_its_line() {
    refused("", "x.txt: no target");
    refused("# nothing\n\n", "x.txt: no target");
    refused("GET /a\n\nGET\n", "x.txt:3: \"GET\" is no target");
    refused(
        "GET /a\nfields\n",
        "x.txt:2: \"fields\" is no \"Name: value\"",
    );
    refused("GET /a\n@other\n", "x.txt:2: @other: ");
    refused("GET /a b\n", "x.txt:1: \"/a b\" is no URL");
    refused("FETCH /a\n", "x.txt:1: unknown method \"FETCH\"");
    refused(
        "GET /a\nContent-Length: 1\n",
        "x.txt:1: Content-Length follows",
    );
    refused("get http://h/a\n", "x.txt:1: \"get http://h/a\" is no URL");
    refused("{\"method\":\"GET\"}\n", "x.txt:1: missing field `url`");
    refused(
        "{\"method\":\"GET\",\"url\":\"/\"}\n{\"method\":\"GET\",\"url\":\"/\",\"boddy\":\"\"}",
        "x.txt:2: unknown key `boddy`: did you mean `body`?",
    );
    refused(
        "{\"method\":\"GET\",\"url\":\"/\",\"body\":\"!\"}",
        "x.txt:1: body: no base64",
    );
    refused("{\"method\":", "x.txt:1: EOF while parsing");
}

#[test]
fn too_many_paths_are_not_counted_each() {
    let text: String = (0..501).map(|nth| format!("/{nth}\n")).collect();
    let all = read(&text).unwrap();
    assert!(all.len() == 501 && all.iter().all(|one| one.tag.is_empty()));
    let text: String = (0..501).map(|nth| format!("/?{nth}\n")).collect();
    assert!(read(&text).unwrap().iter().all(|one| one.tag == "GET /"));
}

/// Ever the next number.
fn counting() -> impl FnMut(u64) -> u64 {
    let mut next = 0;
    move |most| {
        next += 1;
        next % most
    }
}

#[test]
fn paths_match_their_pattern_and_only_letters_of_ascii_are_drawn() {
    let all = random_paths("/item/[0-9]{1,6}(\\?q=(a|bc))?", 100, counting()).unwrap();
    let is_path = |url: &str| {
        let rest = url.strip_prefix("/item/").unwrap();
        let digits = rest.trim_end_matches("?q=a").trim_end_matches("?q=bc");
        (1..=6).contains(&digits.len()) && digits.bytes().all(|one| one.is_ascii_digit())
    };
    assert!(all.iter().all(|one| is_path(&one.url)), "{all:?}");
    assert!(all.iter().any(|one| one.url != all[0].url));
    let all = random_paths("/[^a]{3}\\w+.*", 100, counting()).unwrap();
    let is_printable = |one: &Request| one.url.bytes().all(|byte| byte.is_ascii_graphic());
    assert!(all.iter().all(is_printable), "{all:?}");
    for (pattern, words) in [
        ("/[", "is no regular expression: unclosed character class"),
        ("item", "\"item\" is no path: begin with /"),
        ("/(a{1000}){1000}", "more than 10,000 parts"),
        ("/\\x00|/[\\x01-\\x02]", "without a printable letter"),
    ] {
        let error = random_paths(pattern, 2, counting()).map(|all| panic!("{all:?}"));
        let error = error.unwrap_err();
        assert!(error.contains(words), "{pattern}: {error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_targets_or_refused_with_lines_of_its_own(text in "(GET|POST|http://h/|/a|@body|@x|A: b|\\{|\\}|\"url\":|\"/\"|,|#| |\n|\n\n|\u{e9}){0,30}") {
        let lines = text.lines().count().max(1);
        match read(&text) {
            Ok(all) => prop_assert!(all.iter().all(|one| (1..=lines).contains(&one.line))),
            Err(error) => for problem in error.problems() {
                prop_assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)), "{:?}", problem);
            }
        }
    }

    #[test]
    fn any_pattern_makes_paths_or_is_refused(pattern in "/(\\[|\\]|\\(|\\)|\\{|\\}|[0-9]|a|-|\\||\\*|\\+|\\?|\\^|\\$|\\.|\\\\){0,20}") {
        if let Ok(all) = random_paths(&pattern, 3, counting()) {
            prop_assert!(all.iter().all(|one| one.url.starts_with('/')));
        }
    }
}
