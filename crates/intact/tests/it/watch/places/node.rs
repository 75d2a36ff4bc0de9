//! Places in Node programs: also of other threads, and of a bundle with a source map.

use super::{hold, planted, seen};
use crate::peers::{program, skip};
use std::process::Command;

const PLANTED: &str = include_str!("planted.mjs");
const CASES: [&str; 10] = [
    "http", "parallel", "name", "fetch", "post", "both", "timer", "arrow", "same", "worker",
];

#[test]
fn a_node_program_is_named_at_the_line_that_opened() {
    let Some(node) = program("node", "places of Node") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("planted.mjs");
    std::fs::write(&script, PLANTED).unwrap();
    let words = [node.to_str().unwrap(), script.to_str().unwrap(), "{port}"];
    for case in CASES {
        let seen = seen(
            folder.path(),
            "planted.mjs",
            &[&words, &[case][..]].concat(),
        );
        hold("node", PLANTED, case, &seen);
    }
}

/// A line of the source of a bundle. The map leads from the call in the second line of the bundle
/// to the fourth line of the source.
const SOURCE: &str = "import net from 'node:net';

export function open() {
  net.connect(Number(process.argv[2]), '127.0.0.1').end('GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n').resume(); // map=1
}
open();
";
const BUNDLE: &str = "const net = require('net');
(() => { net.connect(Number(process.argv[2]), '127.0.0.1').end('GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n').resume(); })();
//# sourceMappingURL=bundle.js.map
";
/// The map, with a source of this name.
fn map(source: &str, more: &str) -> String {
    format!(r#"{{"version":3,"sources":["{source}"],"names":[],"mappings":"AAAA;AAGA"{more}}}"#)
}

#[test]
fn a_bundle_is_named_at_the_line_of_its_source() {
    let Some(node) = program("node", "places of a bundle") else {
        return;
    };
    let in_url = map("src/source.js", "").replace('{', "%7B");
    let in_url = in_url.replace('}', "%7D").replace('"', "%22");
    let in_url = format!("data:application/json;charset=utf-8,{in_url}");
    let root = r#","sourceRoot":"src""#;
    let external = "bundle.js.map";
    // the comment's URL, the map, the source that it leads to
    for (url, map, source) in [
        (external, map("source.js", ""), Some("source.js")),
        (
            "maps/bundle.js.map",
            map("../source.js", ""),
            Some("source.js"),
        ),
        (external, map("source.js", root), Some("src/source.js")),
        (
            external,
            map("webpack:///./src/source.js", ""),
            Some("src/source.js"),
        ),
        (
            external,
            map("webpack://app/./src/source.js?1f", ""),
            Some("src/source.js"),
        ),
        // another package's, which the bundle has too
        (external, map("webpack://other/./src/source.js", ""), None),
        // no mapping of this line
        (external, map("source.js", "").replace(";AAGA", ""), None),
        // a map that is not there: the line of the bundle
        ("elsewhere.map", map("source.js", ""), Some("bundle.js")),
        (&in_url, String::new(), Some("src/source.js")),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for name in ["src", "maps"] {
            std::fs::create_dir(path(name)).unwrap();
        }
        let text = BUNDLE.replace(external, url);
        std::fs::write(path("bundle.js"), text).unwrap();
        std::fs::write(path("src/source.js"), SOURCE).unwrap();
        std::fs::write(path("package.json"), r#"{"name":"app"}"#).unwrap();
        let at = if url.starts_with("maps") {
            url
        } else {
            external
        };
        std::fs::write(path(at), map).unwrap();
        let script = path("bundle.js");
        let words = [node.to_str().unwrap(), script.to_str().unwrap(), "{port}"];
        let seen = seen(folder.path(), source.unwrap_or_default(), &words);
        let line = match source {
            None => None,
            Some("bundle.js") => Some(2),
            Some(_) => planted(SOURCE, "map").into_keys().next(),
        };
        let lines: Vec<u32> = seen.lines.keys().copied().collect();
        assert_eq!(lines, Vec::from_iter(line), "{url} {source:?}");
    }
}

#[test]
fn a_file_that_is_made_in_memory_has_no_line() {
    let Some(node) = program("node", "places of code made in memory") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    // two lines more than in the file
    let hook = "const js = require.extensions['.js'];
require.extensions['.js'] = (module, file) => module._compile('\\n\\n' + require('fs').readFileSync(file), file);
require('./made.js');
";
    write("hook.js", hook);
    write("made.js", BUNDLE.split("//#").next().unwrap());
    let script = folder.path().join("hook.js");
    let words = [node.to_str().unwrap(), script.to_str().unwrap(), "{port}"];
    let seen = seen(folder.path(), "hook.js", &words);
    assert_eq!((seen.lines.len(), seen.not_known), (0, 1));
}

/// Other texts by the name of the file: of `vm`, of a module's own loader, of the file as it was.
const OTHER_TEXTS: &str = "const text = '\\n\\n\\n\\n' + `require('net').connect(${process.argv[2]}, '127.0.0.1').end('x').resume()`;
require('vm').runInThisContext('(function(require) {' + text + '})', __filename)(require);
new module.constructor(__filename)._compile(text, __filename);
const fs = require('fs');
fs.writeFileSync(__dirname + '/late.js', `require('fs').writeFileSync(__filename, '//\\\\n'.repeat(9)); ${text}`);
require('./late.js');
// a line
";

#[test]
fn another_text_by_the_name_of_a_file_has_no_line() {
    let Some(node) = program("node", "places of other texts") else {
        return;
    };
    let version = Command::new(&node).arg("--version").output().unwrap();
    if version.stdout.starts_with(b"v18.") {
        return skip("places of other texts", "Node 18 has no hash of what runs");
    }
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("texts.js");
    std::fs::write(&script, OTHER_TEXTS).unwrap();
    let words = [node.to_str().unwrap(), script.to_str().unwrap(), "{port}"];
    let seen = seen(folder.path(), "texts.js", &words);
    assert_eq!((seen.lines.len(), seen.not_known), (0, 3));
}
