//! The bill of materials: every crate that the shipped program is built from, as CycloneDX 1.5,
//! from `cargo metadata` and Cargo.lock.

use super::{PACKAGE, ROOT, VERSION};
use crate::metadata::{Dependency, Metadata, Node, Package};
use anyhow::Context;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
struct Locked {
    name: String,
    version: String,
    checksum: Option<String>,
}

/// Writes the document and returns its file.
pub(super) fn write(out: &Path) -> anyhow::Result<PathBuf> {
    let manifest = format!("{ROOT}/crates/intact/Cargo.toml");
    let metadata = Metadata::read(&["--manifest-path", &manifest])?;
    let lock = std::fs::read_to_string(Path::new(ROOT).join("Cargo.lock"))?;
    let document = document(&metadata, &toml::from_str(&lock).context("Cargo.lock")?)?;
    let file = out.join(format!("{PACKAGE}-{VERSION}.cdx.json"));
    std::fs::write(&file, serde_json::to_string_pretty(&document)?)?;
    Ok(file)
}

/// The document: what `intact` needs to be built or to run, on any system, without what only tests
/// need.
fn document(metadata: &Metadata, lock: &Lock) -> anyhow::Result<Value> {
    let packages: BTreeMap<&str, &Package> = metadata
        .packages
        .iter()
        .map(|one| (one.id.as_str(), one))
        .collect();
    let nodes: BTreeMap<&str, &Node> = metadata
        .resolve
        .nodes
        .iter()
        .map(|one| (one.id.as_str(), one))
        .collect();
    let root = metadata.packages.iter().find(|one| one.name == "intact");
    let root = root.context("cargo metadata does not have the package intact")?;
    let sums: BTreeMap<_, _> = lock
        .package
        .iter()
        .map(|one| ((&*one.name, &*one.version), &one.checksum))
        .collect();
    let mut seen = BTreeSet::from([root.id.as_str()]);
    let mut open = vec![root.id.as_str()];
    let mut dependencies = Vec::new();
    while let Some(id) = open.pop() {
        let node = nodes
            .get(id)
            .with_context(|| format!("cargo metadata does not resolve {id}"))?;
        let is_shipped = |one: &&Dependency| {
            one.dep_kinds
                .iter()
                .any(|one| one.kind.as_deref() != Some("dev"))
        };
        let shipped: BTreeSet<&str> = node
            .deps
            .iter()
            .filter(is_shipped)
            .map(|one| &*one.pkg)
            .collect();
        open.extend(shipped.iter().filter(|id| seen.insert(id)));
        let depends: Vec<String> = shipped.iter().map(|id| reference(packages[id])).collect();
        dependencies.push(json!({ "ref": reference(packages[id]), "dependsOn": depends }));
    }
    seen.remove(root.id.as_str());
    let components: Vec<Value> = seen
        .iter()
        .map(|id| component(packages[id], &sums))
        .collect();
    let mut main = component(root, &sums);
    main["type"] = json!("application");
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": main },
        "components": components,
        "dependencies": dependencies,
    }))
}

fn component(package: &Package, sums: &BTreeMap<(&str, &str), &Option<String>>) -> Value {
    let mut component = json!({
        "type": "library",
        "bom-ref": reference(package),
        "name": package.name,
        "version": package.version,
        "purl": reference(package),
    });
    if let Some(licence) = &package.license {
        // older manifests separate alternatives with a slash
        let licence = licence.replace('/', " OR ").replace("  ", " ");
        component["licenses"] = json!([{ "expression": licence }]);
    }
    let sum = sums.get(&(&*package.name, &*package.version)).copied();
    if let Some(Some(sum)) = sum.filter(|_| package.source.is_some()) {
        component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
    }
    component
}

fn reference(package: &Package) -> String {
    format!("pkg:cargo/{}@{}", package.name, package.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str) -> Value {
        json!({ "id": name, "name": name, "version": "1.0.0", "license": "MIT/ISC", "source": "registry" })
    }

    fn needs(id: &str, others: &[(&str, Option<&str>)]) -> Value {
        let deps = others
            .iter()
            .map(|(name, kind)| json!({ "pkg": name, "dep_kinds": [{ "kind": kind }] }));
        json!({ "id": id, "deps": deps.collect::<Vec<_>>() })
    }

    #[test]
    fn the_sbom_has_what_is_shipped_and_not_what_tests_need() {
        let packages = ["intact", "direct", "inner", "maker", "tester"].map(package);
        let metadata = json!({
            "packages": packages,
            "resolve": { "nodes": [
                needs("intact", &[("direct", None), ("tester", Some("dev"))]),
                needs("direct", &[("inner", None), ("maker", Some("build"))]),
                needs("inner", &[]),
                needs("maker", &[]),
                needs("tester", &[]),
            ] },
        });
        let lock = Lock {
            package: vec![Locked {
                name: "inner".into(),
                version: "1.0.0".into(),
                checksum: Some("ab".into()),
            }],
        };
        let document = document(&serde_json::from_value(metadata).unwrap(), &lock).unwrap();
        let all = document["components"].as_array().unwrap();
        let names: Vec<&str> = all.iter().filter_map(|one| one["name"].as_str()).collect();
        assert_eq!(names, ["direct", "inner", "maker"]);
        assert_eq!(all[1]["hashes"][0]["content"], "ab");
        assert_eq!(all[1]["licenses"][0]["expression"], "MIT OR ISC");
        let of_direct = document["dependencies"].as_array().unwrap();
        let of_direct = of_direct
            .iter()
            .find(|one| one["ref"] == "pkg:cargo/direct@1.0.0")
            .unwrap();
        assert_eq!(
            of_direct["dependsOn"],
            json!(["pkg:cargo/inner@1.0.0", "pkg:cargo/maker@1.0.0"])
        );
    }
}
