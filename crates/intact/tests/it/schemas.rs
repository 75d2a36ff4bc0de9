//! The files of docs/reference/schema, derived from the types of the documents.

use std::path::Path;

#[test]
fn the_schemas_are_those_of_the_types() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schema");
    let mut named = std::collections::BTreeSet::new();
    for (name, schema) in intact::schemas() {
        let file = format!("{name}.schema.json");
        let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
        let path = folder.join(&file);
        if std::env::var_os("INTACT_UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        assert!(
            std::fs::read_to_string(&path).is_ok_and(|kept| kept == text),
            "docs/reference/schema/{file} is not what the types say: INTACT_UPDATE=1 cargo test -p intact schemas"
        );
        jsonschema::validator_for(schema.as_value()).unwrap();
        named.insert(file);
    }
    let kept = std::fs::read_dir(folder).unwrap();
    let kept = kept.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(kept.collect::<std::collections::BTreeSet<_>>(), named);
}
