//! `cargo xtask dependencies`: checks licences, sources and duplicates of all dependencies. The
//! policy is `deny.toml`, as for `cargo deny check`. This part needs no network. Advisories need
//! cargo-deny and its database; without them they are skipped.

use crate::metadata::{Metadata, Package};
use crate::tool;
use anyhow::Context;
use serde::Deserialize;
use spdx::expression::{ExprNode, Operator};
use spdx::{Expression, ParseMode};
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// The part of `deny.toml` that is checked here.
#[derive(Deserialize)]
struct Policy {
    licenses: Licences,
    sources: Sources,
    bans: Bans,
}

#[derive(Deserialize)]
struct Licences {
    allow: BTreeSet<String>,
    exceptions: Vec<Exception>,
}

#[derive(Deserialize)]
struct Exception {
    #[serde(rename = "crate")]
    name: String,
    allow: BTreeSet<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Sources {
    allow_registry: Vec<String>,
}

#[derive(Deserialize)]
struct Bans {
    skip: Vec<Skip>,
}

#[derive(Deserialize)]
struct Skip {
    #[serde(rename = "crate")]
    name: String,
}

/// Checks all dependencies. `Ok(false)`: some break the policy.
pub(crate) fn check() -> anyhow::Result<bool> {
    let policy = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../deny.toml"))
        .context("deny.toml")?;
    let policy: Policy = toml::from_str(&policy).context("deny.toml")?;
    let packages = packages()?;
    let broken = broken(&policy, &packages);
    for line in &broken {
        println!("{line}");
    }
    match advisories()? {
        Advisories::None => println!("no advisory applies"),
        Advisories::Skipped(why) => println!("SKIPPED advisories: {why}"),
        Advisories::Found => return Ok(false),
    }
    let (all, wrong) = (packages.len(), broken.len());
    println!("{all} dependencies against deny.toml: {wrong} problems");
    Ok(broken.is_empty())
}

/// Every dependency from outside of the workspace that a build with all features has, on any
/// platform.
fn packages() -> anyhow::Result<Vec<Package>> {
    let metadata = Metadata::read(&["--all-features"])?;
    // metadata has optional dependencies that no feature enables, and cargo-deny does not count
    // them either
    let words = "tree --workspace --locked --all-features -e all --target all --prefix none";
    let tree = tool::output(tool::cargo().args(words.split(' ')))?;
    let built = built(&tree);
    let is_foreign = |package: &Package| package.source.is_some();
    let is_built = |package: &Package| built.contains(&(&*package.name, &*package.version));
    let packages = metadata.packages.into_iter();
    Ok(packages
        .filter(|package| is_foreign(package) && is_built(package))
        .collect())
}

/// Names and versions of the packages in the output of `cargo tree --prefix none`.
fn built(tree: &str) -> BTreeSet<(&str, &str)> {
    let package = |line| {
        let (name, rest) = str::split_once(line, " v")?;
        Some((name, rest.split(' ').next()?))
    };
    tree.lines().filter_map(package).collect()
}

/// One line per violation of the policy, and per entry of the policy without use.
fn broken(policy: &Policy, packages: &[Package]) -> Vec<String> {
    let mut lines = Vec::new();
    let mut used = BTreeSet::new();
    let mut versions: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for package in packages {
        let Package { name, version, .. } = package;
        versions.entry(name).or_default().insert(version);
        let exception = policy
            .licenses
            .exceptions
            .iter()
            .find(|one| one.name == *name);
        let is_allowed = |id: &str| {
            policy.licenses.allow.contains(id)
                || exception.is_some_and(|one| one.allow.contains(id))
        };
        let licence = package.license.as_deref().unwrap_or_default();
        match needed(licence, &is_allowed) {
            Some(needed) => used.extend(needed.into_iter().map(str::to_owned)),
            None => lines.push(format!(
                "licence of {name} {version}: {licence:?} is not allowed"
            )),
        }
        let source = package.source.as_deref().unwrap_or_default();
        let is_known = |registry: &String| source.strip_prefix("registry+") == Some(registry);
        if !policy.sources.allow_registry.iter().any(is_known) {
            lines.push(format!(
                "source of {name} {version}: {source} is not allowed"
            ));
        }
    }
    let skipped: BTreeSet<&str> = policy
        .bans
        .skip
        .iter()
        .map(|skip| skip.name.as_str())
        .collect();
    for (name, versions) in &versions {
        let is_twice = versions.len() > 1;
        if is_twice && !skipped.contains(name) {
            let versions: Vec<&str> = versions.iter().copied().collect();
            lines.push(format!(
                "{name} is there in several versions: {}",
                versions.join(", ")
            ));
        }
    }
    for name in skipped {
        if versions.get(name).is_none_or(|versions| versions.len() < 2) {
            lines.push(format!(
                "[bans] skip: {name} is there in one version, or not at all"
            ));
        }
    }
    for id in policy.licenses.allow.difference(&used) {
        lines.push(format!("[licenses] allow: nothing needs {id}"));
    }
    lines
}

/// The allowed licences that satisfy an SPDX expression, or one with the `/` of older manifests; of
/// alternatives, all allowed ones. `None` if no choice is allowed or the text is no expression.
fn needed(text: &str, is_allowed: &dyn Fn(&str) -> bool) -> Option<Vec<&'static str>> {
    let mut operands = Vec::new();
    for node in Expression::parse_mode(text, ParseMode::LAX).ok()?.iter() {
        let needed = match node {
            // an exception to a licence only adds rights
            ExprNode::Req(one) => one
                .req
                .license
                .id()
                .map(|id| id.name)
                .filter(|id| is_allowed(id))
                .map(|id| vec![id]),
            ExprNode::Op(operator) => match (operator, operands.pop()?, operands.pop()?) {
                (_, Some(right), Some(left)) => Some([left, right].concat()),
                (Operator::Or, right, left) => left.or(right),
                (Operator::And, ..) => None,
            },
        };
        operands.push(needed);
    }
    operands.pop()?
}

enum Advisories {
    None,
    Found,
    Skipped(&'static str),
}

/// Advisories of RustSec, where cargo-deny and its database are there.
fn advisories() -> anyhow::Result<Advisories> {
    let deny = |arguments: &[&str]| Command::new("cargo-deny").args(arguments).output();
    if deny(&["--version"]).is_err() {
        return Ok(Advisories::Skipped("cargo-deny is not installed"));
    }
    if !deny(&["fetch", "db"])
        .context("cargo-deny")?
        .status
        .success()
    {
        return Ok(Advisories::Skipped("the database cannot be fetched"));
    }
    let out = deny(&["check", "advisories"]).context("cargo-deny")?;
    if out.status.success() {
        return Ok(Advisories::None);
    }
    println!("{}", String::from_utf8_lossy(&out.stderr));
    Ok(Advisories::Found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: &str = r#"
        [licenses]
        allow = ["MIT", "ISC"]
        exceptions = [{ crate = "roots", allow = ["CDLA-Permissive-2.0"] }]
        [sources]
        allow-registry = ["https://index.example"]
        [bans]
        skip = [{ crate = "old", reason = "r" }]
    "#;

    fn package(name: &str, version: &str, license: &str, source: &str) -> Package {
        Package {
            id: String::new(),
            name: name.to_owned(),
            version: version.to_owned(),
            license: Some(license.to_owned()),
            source: Some(source.to_owned()),
        }
    }

    #[test]
    fn an_expression_is_satisfied_by_one_alternative_and_by_all_that_go_together() {
        let is_allowed = |id: &str| ["MIT", "ISC", "Apache-2.0"].contains(&id);
        let needed = |text| needed(text, &is_allowed);
        assert_eq!(needed("MIT"), Some(vec!["MIT"]));
        assert_eq!(needed("GPL-3.0 OR MIT"), Some(vec!["MIT"]));
        assert_eq!(needed("MIT/Apache-2.0"), Some(vec!["MIT", "Apache-2.0"]));
        assert_eq!(
            needed("ISC AND (CDDL-1.0 OR MIT)"),
            Some(vec!["ISC", "MIT"])
        );
        assert_eq!(
            needed("Apache-2.0 WITH LLVM-exception"),
            Some(vec!["Apache-2.0"])
        );
        for bad in [
            "CDDL-1.0",
            "MIT AND CDDL-1.0",
            "",
            "MIT OR",
            "(MIT",
            "MIT MIT",
            "AND MIT",
        ] {
            assert_eq!(needed(bad), None, "{bad:?}");
        }
        // OR binds less than AND
        assert_eq!(needed("MIT OR ISC AND CDDL-1.0"), Some(vec!["MIT"]));
    }

    #[test]
    fn packages_of_a_tree_have_a_name_and_a_version() {
        let tree = "intact v0.1.0 (/work)\n├── odd\nserde v1.0.2\nserde feature \"std\"\n\n[dev-dependencies]\nserde_derive v1.0.3 (proc-macro) (*)\n";
        let expected = [
            ("intact", "0.1.0"),
            ("serde", "1.0.2"),
            ("serde_derive", "1.0.3"),
        ];
        assert_eq!(built(tree), expected.into());
    }

    #[test]
    fn what_breaks_the_policy_has_a_line_each() {
        let policy: Policy = toml::from_str(POLICY).unwrap();
        let ours = "registry+https://index.example";
        let packages = [
            package("fine", "1.0.0", "MIT OR CDDL-1.0", ours),
            package("roots", "1.0.0", "CDLA-Permissive-2.0", ours),
            package("flames", "1.0.0", "CDDL-1.0", ours),
            package("data", "1.0.0", "CDLA-Permissive-2.0", ours),
            package("fork", "1.0.0", "MIT", "git+https://git.example/fork"),
            package("twice", "1.0.0", "MIT", ours),
            package("twice", "2.0.0", "MIT", ours),
        ];
        assert_eq!(
            broken(&policy, &packages),
            [
                "licence of flames 1.0.0: \"CDDL-1.0\" is not allowed",
                "licence of data 1.0.0: \"CDLA-Permissive-2.0\" is not allowed",
                "source of fork 1.0.0: git+https://git.example/fork is not allowed",
                "twice is there in several versions: 1.0.0, 2.0.0",
                "[bans] skip: old is there in one version, or not at all",
                "[licenses] allow: nothing needs ISC",
            ]
        );
    }
}
