use super::SHOP;
use intact_grpc::{MOST_DESCRIPTOR_BYTES, Types, TypesError};
use prost::Message;
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorProto, FileDescriptorSet, MessageOptions,
};

fn add(json: &str) -> Result<Vec<u8>, TypesError> {
    let types = Types::of_set(SHOP).unwrap();
    types.method("shop.Cart", "Add").unwrap().message(json)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn json_becomes_the_bytes_that_google_s_library_writes() {
    let json = r#"{"name":"café","count":"-5","picture":"AP8=","colour":"RED","size":{"width":1.5},
        "prices":{"a":7},"shelves":[-1,300],"addedAt":"2026-11-26T17:00:00.5Z",
        "code":"18446744073709551615","gift":false}"#;
    // json_format.Parse and SerializeToString of Python's protobuf 7.36.2
    let expected = "0a05636166c3a910fbffffffffffffffff011a0200ff20012a0909000000000000f83f\
        32050a016110073a0301d804420c0890cba1d8061080cab5ee0150ffffffffffffffffff015800";
    assert_eq!(hex(&add(json).unwrap()), expected);
    assert_eq!(add("{}").unwrap(), b"");
    // the name of the .proto file is accepted, too
    let moment = add(r#"{"added_at":"1970-01-01T00:00:01Z"}"#).unwrap();
    assert_eq!(moment, b"\x42\x02\x08\x01");
}

#[test]
fn wrong_json_is_refused_with_the_reason_and_the_fields() {
    for (json, reason) in [
        (r#"{"nam":"x"}"#, "unrecognized field name 'nam'"),
        (r#"{"count":"x"}"#, "invalid digit"),
        (r#"{"size":{"depth":1}}"#, "unrecognized field name 'depth'"),
        (r#"{"city":"a","code":1}"#, "oneof"),
        (r#"{"name":"x"} {}"#, "trailing characters"),
        (r#"{"name":"x""#, "EOF while parsing"),
        ("[]", "invalid type"),
        ("", "EOF while parsing"),
    ] {
        let error = add(json).unwrap_err().to_string();
        assert!(error.contains(reason), "{json}: {error}");
        let fields = "shop.Item has name, count, picture, colour, size, prices";
        assert!(error.contains(fields), "{error}");
    }
}

#[test]
fn a_method_that_is_not_there_or_streams_is_refused() {
    let types = Types::of_set(SHOP).unwrap();
    for (service, method, expected) in [
        (
            "shop.Card",
            "Add",
            "no service shop.Card; the types have shop.Cart",
        ),
        (
            "shop.Cart",
            "add",
            "shop.Cart has no method add; it has Add, Watch, Upload, Talk",
        ),
        (
            "shop.Cart",
            "Watch",
            "shop.Cart/Watch streams its responses; only unary methods can be called",
        ),
        (
            "shop.Cart",
            "Upload",
            "shop.Cart/Upload streams its requests; only unary methods can be called",
        ),
        (
            "shop.Cart",
            "Talk",
            "shop.Cart/Talk streams its requests and responses; only unary methods can be called",
        ),
    ] {
        let error = types.method(service, method).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }
}

#[test]
fn a_file_that_is_no_descriptor_set_is_refused_with_the_command() {
    for bytes in [&b""[..], b"syntax = \"proto3\";", b"\x0a\x05", b"{}"] {
        let error = Types::of_set(bytes).unwrap_err().to_string();
        assert!(error.starts_with("no descriptor set ("), "{error}");
        assert!(error.contains("--descriptor_set_out=FILE"), "{error}");
    }
    let large = vec![0; MOST_DESCRIPTOR_BYTES + 1];
    assert_eq!(Types::of_set(&large).unwrap_err(), TypesError::TooLarge);
}

/// A set with one file of this syntax, whose message `Entry` is marked as an entry of a map with
/// fields of these numbers and types.
fn set_of(syntax: &str, fields: &[(i32, Type, Label)]) -> Vec<u8> {
    let field = |&(number, of, label): &(i32, Type, Label)| FieldDescriptorProto {
        name: Some(format!("field{number}")),
        number: Some(number),
        label: Some(label as i32),
        r#type: Some(of as i32),
        ..FieldDescriptorProto::default()
    };
    let entry = DescriptorProto {
        name: Some("Entry".to_owned()),
        field: fields.iter().map(field).collect(),
        options: Some(MessageOptions {
            map_entry: Some(true),
            ..MessageOptions::default()
        }),
        ..DescriptorProto::default()
    };
    let file = FileDescriptorProto {
        name: Some("a.proto".to_owned()),
        syntax: Some(syntax.to_owned()),
        message_type: vec![entry],
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet { file: vec![file] }.encode_to_vec()
}

/// Each of these made `prost-reflect` 0.16.5 panic.
#[test]
fn descriptors_that_the_library_does_not_expect_are_refused() {
    let (one, many) = (Label::Optional, Label::Repeated);
    let key = (1, Type::String, one);
    let value = (2, Type::Int32, one);
    for syntax in ["proto3", "proto2", ""] {
        assert!(
            Types::of_set(&set_of(syntax, &[key, value])).is_ok(),
            "{syntax}"
        );
    }
    for (syntax, fields, reason) in [
        ("proto9", &[key, value][..], "unknown syntax 'proto9'"),
        ("editions", &[key, value], "a.proto is in an edition"),
        ("proto3", &[], "Entry is a map entry without"),
        ("proto3", &[key], "Entry is a map entry without"),
        (
            "proto3",
            &[(1, Type::Double, one), value],
            "Entry is a map entry without",
        ),
        (
            "proto3",
            &[key, (2, Type::Int32, many)],
            "Entry is a map entry without",
        ),
        (
            "proto3",
            &[key, (3, Type::Int32, one)],
            "Entry is a map entry without",
        ),
    ] {
        let error = Types::of_set(&set_of(syntax, fields))
            .unwrap_err()
            .to_string();
        assert!(error.contains(reason), "{error}");
    }
}

/// A set of files, each with the names of those that it imports publicly.
fn importing(files: &[(String, Vec<String>)]) -> Vec<u8> {
    let file = |(name, imports): &(String, Vec<String>)| FileDescriptorProto {
        name: Some(name.clone()),
        dependency: imports.clone(),
        public_dependency: (0..imports.len() as i32).collect(),
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    FileDescriptorSet {
        file: files.iter().map(file).collect(),
    }
    .encode_to_vec()
}

/// `prost-reflect` 0.16.5 followed the first without end, and the second 3^30 times.
#[test]
fn public_imports_that_go_round_or_share_many_are_read_once() {
    let around = [
        ("a".to_owned(), vec!["b".to_owned()]),
        ("b".to_owned(), vec!["a".to_owned()]),
    ];
    assert!(Types::of_set(&importing(&around)).is_ok());
    let itself = [("a".to_owned(), vec!["a".to_owned()])];
    assert!(Types::of_set(&importing(&itself)).is_ok());
    let layer = |depth: i32| (0..3).map(move |nth| format!("f{depth}-{nth}"));
    let layers = (0..30).flat_map(|depth| {
        let next = match depth {
            29 => Vec::new(),
            _ => layer(depth + 1).collect(),
        };
        layer(depth).map(move |name| (name, next.clone()))
    });
    let layers: Vec<_> = layers.collect();
    assert!(Types::of_set(&importing(&layers)).is_ok());
}

#[test]
fn a_type_behind_public_imports_is_found() {
    let method = prost_types::MethodDescriptorProto {
        name: Some("Get".to_owned()),
        input_type: Some(".Message".to_owned()),
        output_type: Some(".Message".to_owned()),
        ..Default::default()
    };
    let service = prost_types::ServiceDescriptorProto {
        name: Some("Service".to_owned()),
        method: vec![method],
        options: None,
    };
    let file = |name: &str, import: Option<&str>| FileDescriptorProto {
        name: Some(name.to_owned()),
        dependency: import.iter().map(|&one| one.to_owned()).collect(),
        public_dependency: import.iter().map(|_| 0).collect(),
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    };
    let message = DescriptorProto {
        name: Some("Message".to_owned()),
        ..DescriptorProto::default()
    };
    let last = FileDescriptorProto {
        message_type: vec![message],
        ..file("c", None)
    };
    let first = FileDescriptorProto {
        service: vec![service],
        ..file("a", Some("b"))
    };
    let set = FileDescriptorSet {
        file: vec![first, file("b", Some("c")), last],
    };
    let types = Types::of_set(&set.encode_to_vec()).unwrap();
    assert!(types.method("Service", "Get").is_ok());
}
