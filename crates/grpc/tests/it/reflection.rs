use intact_grpc::Types;
use intact_grpc::reflection::{PATHS, Query, ReflectionError, Reply, reply};
use prost_types::{
    DescriptorProto, FileDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto,
};

/// A file with a message of its own name, and with the service `a.Service` if it is named `a`.
fn file(name: &str, imports: &[&str]) -> FileDescriptorProto {
    let message = |name: &str| DescriptorProto {
        name: Some(name.to_owned()),
        ..DescriptorProto::default()
    };
    let method = MethodDescriptorProto {
        name: Some("Method".to_owned()),
        input_type: Some(".a.Message".to_owned()),
        output_type: Some(".a.Message".to_owned()),
        ..MethodDescriptorProto::default()
    };
    let service = ServiceDescriptorProto {
        name: Some("Service".to_owned()),
        method: vec![method],
        options: None,
    };
    FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some(name.to_owned()),
        dependency: imports.iter().map(|&one| one.to_owned()).collect(),
        message_type: vec![message("Message")],
        service: if name == "a" {
            vec![service]
        } else {
            Vec::new()
        },
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}

/// The result of a query against a server with these files, and the number of its calls.
fn ask(files: &[FileDescriptorProto]) -> (Result<Types, ReflectionError>, u32) {
    let mut query = Query::new("a.Service");
    let mut calls = 0;
    let mut run = || {
        while let Some((_, body)) = query.request()? {
            calls += 1;
            query.take(Reply {
                grpc_status: Some(0),
                words: "",
                body: &reply(files, &body)?,
            })?;
        }
        query.clone().finish()
    };
    (run(), calls)
}

#[test]
fn imports_are_asked_for_until_all_are_there() {
    let well_known = "google/protobuf/timestamp.proto";
    let files = [
        file("a", &["b", "c", well_known]),
        file("b", &["c"]),
        file("c", &["d"]),
        file("d", &[]),
    ];
    let (types, calls) = ask(&files);
    let method = types.unwrap().method("a.Service", "Method").unwrap();
    assert_eq!(method.message("{}").unwrap(), b"");
    // the service; b and c; d
    assert_eq!(calls, 3);
}

#[test]
fn an_import_that_the_server_lacks_is_named() {
    let (types, calls) = ask(&[file("a", &["b"])]);
    let error = types.unwrap_err().to_string();
    assert_eq!(error, "reflection has no b: not found (code 5)");
    assert_eq!(calls, 2);
}

#[test]
fn imports_without_end_are_given_up() {
    let names: Vec<String> = (0..100).map(|number| format!("f{number}")).collect();
    let mut files = vec![file("a", &["f0"])];
    for (name, next) in names.iter().zip(&names[1..]) {
        files.push(file(name, &[next]));
    }
    let (types, calls) = ask(&files);
    assert_eq!(types.unwrap_err(), ReflectionError::Endless);
    assert_eq!(calls, 32);
}

#[test]
fn the_older_version_is_tried_where_the_newer_one_is_missing() {
    let mut query = Query::new("a.Service");
    let refused = |status| Reply {
        grpc_status: status,
        words: "grpc-status 12 (UNIMPLEMENTED)",
        body: b"",
    };
    let (path, body) = query.request().unwrap().unwrap();
    assert_eq!(path, PATHS[0]);
    query.take(refused(Some(12))).unwrap();
    let (path, again) = query.request().unwrap().unwrap();
    assert_eq!(path, PATHS[1]);
    assert_eq!(body, again);
    let error = query.take(refused(None)).unwrap_err().to_string();
    assert!(
        error.contains("the server has no reflection (grpc-status 12"),
        "{error}"
    );
    assert!(error.contains("--descriptors FILE"), "{error}");
    let mut query = Query::new("a.Service");
    query.request().unwrap();
    let error = query.take(refused(Some(16))).unwrap_err();
    assert!(matches!(error, ReflectionError::Refused { .. }), "{error}");
}

#[test]
fn a_response_without_a_descriptor_ends_the_query() {
    for body in [&b""[..], b"\0\0\0\0\0", b"\0\0\0\0\x02\x22\x00"] {
        let mut query = Query::new("a.Service");
        query.request().unwrap();
        let words = "";
        let grpc_status = Some(0);
        let error = query
            .take(Reply {
                grpc_status,
                words,
                body,
            })
            .unwrap_err();
        assert!(
            matches!(error, ReflectionError::Malformed { .. }),
            "{error}"
        );
    }
}
