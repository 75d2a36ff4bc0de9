//! Places in Node programs: also of other threads, and of a bundle with a source map.

use super::{hold, seen};
use crate::peers::program;

const PLANTED: &str = include_str!("planted.mjs");
const CASES: [&str; 8] = [
    "http", "parallel", "name", "fetch", "timer", "arrow", "same", "worker",
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
const MAP: &str = r#"{"version":3,"sources":["source.js"],"names":[],"mappings":"AAAA;AAGA"}"#;

#[test]
fn a_bundle_is_named_at_the_line_of_its_source() {
    let Some(node) = program("node", "places of a bundle") else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("bundle.js", BUNDLE);
    write("bundle.js.map", MAP);
    let script = folder.path().join("bundle.js");
    let words = [node.to_str().unwrap(), script.to_str().unwrap(), "{port}"];
    let seen = seen(folder.path(), "source.js", &words);
    hold("node", SOURCE, "map", &seen);
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
