//! ARCHITECTURE.md shows the crates as `cargo metadata` does, and no crate sees what its layer must
//! not see.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The layers, from the ground up: a name in a manifest, the heading, and the layers below that a
/// crate may use.
const LAYERS: [(&str, &str, &[&str]); 8] = [
    ("foundation", "foundations", &["foundation"]),
    ("waist", "the waist", &["foundation", "waist"]),
    (
        "connection",
        "connections",
        &["foundation", "waist", "connection"],
    ),
    (
        "instrument",
        "instruments",
        &["foundation", "waist", "connection"],
    ),
    (
        "producer",
        "producers",
        &["foundation", "waist", "connection", "instrument"],
    ),
    ("meaning", "meaning", &["foundation", "waist", "meaning"]),
    (
        "consumer",
        "consumers",
        &["foundation", "waist", "meaning", "consumer"],
    ),
    (
        "binary",
        "binary",
        &[
            "foundation",
            "waist",
            "connection",
            "instrument",
            "producer",
            "meaning",
            "consumer",
        ],
    ),
];
/// A producer that runs other producers.
const FLEET: &str = "fleet";

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
    metadata: Option<PackageMetadata>,
}

#[derive(Deserialize)]
struct PackageMetadata {
    intact: Option<Layer>,
}

#[derive(Deserialize)]
struct Layer {
    layer: String,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// A crate: its layer, and the crates of the workspace that it uses outside of tests.
struct Crate {
    layer: String,
    uses: BTreeSet<String>,
}

fn short(name: &str) -> &str {
    name.strip_prefix("intact-").unwrap_or(name)
}

fn crates() -> BTreeMap<String, Crate> {
    let out = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--no-deps",
            "--format-version",
            "1",
            "--offline",
        ])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .unwrap();
    let metadata: Metadata = serde_json::from_slice(&out.stdout).unwrap();
    let packages = metadata.packages.into_iter();
    // these are not shipped
    let packages = packages.filter(|one| !["xtask", "intact-test-servers"].contains(&&*one.name));
    packages
        .map(|one| {
            let uses = one.dependencies.iter();
            let uses = uses
                .filter(|one| one.kind.is_none() && one.name.starts_with("intact-"))
                .map(|one| short(&one.name).to_owned())
                .collect();
            let layer = one.metadata.and_then(|metadata| metadata.intact);
            let layer = layer.unwrap_or_else(|| panic!("{} names no layer", one.name));
            let layer = layer.layer;
            (short(&one.name).to_owned(), Crate { layer, uses })
        })
        .collect()
}

#[test]
fn the_picture_of_the_crates_is_that_of_cargo_metadata() {
    let crates = crates();
    let mut picture = String::from("```text\n");
    for (layer, heading, _) in LAYERS {
        let names = crates.iter().filter(|(_, one)| one.layer == layer);
        let names: Vec<&str> = names.map(|(name, _)| name.as_str()).collect();
        picture += &format!("{heading:<12} {}\n", names.join("  "));
    }
    picture += "```\n\n| crate | uses |\n| --- | --- |\n";
    for (name, one) in &crates {
        let uses: Vec<&str> = one.uses.iter().map(String::as_str).collect();
        let others = crates.keys().filter(|other| *other != name);
        let unused: Vec<&str> = others
            .map(String::as_str)
            .filter(|other| !uses.contains(other))
            .collect();
        let uses = match uses.len() {
            0 => "-".to_owned(),
            few if few <= unused.len() => uses.join(", "),
            _ => format!("all except {}", unused.join(", ")),
        };
        picture += &format!("| `{name}` | {uses} |\n");
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../ARCHITECTURE.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (begin, end) = ("<!-- crates: begin -->\n", "<!-- crates: end -->");
    let (head, rest) = page.split_once(begin).expect("a marked part");
    let (written, tail) = rest.split_once(end).expect("the end of the marked part");
    if std::env::var_os("INTACT_UPDATE").is_some() {
        std::fs::write(path, format!("{head}{begin}{picture}{end}{tail}")).unwrap();
        return;
    }
    assert!(
        written == picture,
        "ARCHITECTURE.md is not what the manifests say: INTACT_UPDATE=1 cargo test -p intact architecture"
    );
}

#[test]
fn no_crate_uses_a_layer_that_it_must_not_see() {
    let crates = crates();
    for (name, one) in &crates {
        let (_, _, allowed) = LAYERS
            .iter()
            .find(|(layer, _, _)| *layer == one.layer)
            .unwrap_or_else(|| panic!("{name}: no layer is called {}", one.layer));
        for used in &one.uses {
            let layer = crates[used].layer.as_str();
            let runs_it = name == FLEET && layer == "producer";
            assert!(
                allowed.contains(&layer) || runs_it,
                "{name} ({}) must not use {used} ({layer})",
                one.layer
            );
        }
    }
}
