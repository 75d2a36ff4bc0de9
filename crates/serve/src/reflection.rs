//! Server reflection of gRPC: the descriptors of the services that the server offers.
//!
//! The reply to the requests that came first ends the stream, since a client may wait for it before
//! it ends its requests. It opens another stream for its next ones.

use intact_grpc::field_descriptor_proto::{Label, Type};
use intact_grpc::{
    DescriptorProto, EnumDescriptorProto, EnumValueDescriptorProto, FieldDescriptorProto,
    FileDescriptorProto, MethodDescriptorProto, ServiceDescriptorProto, reflection,
};

/// Whether this is the method of reflection, in any version.
pub(crate) fn is_reflection(path: &[u8]) -> bool {
    reflection::PATHS.iter().any(|one| one.as_bytes() == path)
}

/// The response to a body of requests; `None` if it is none.
pub(crate) fn reply(body: &[u8]) -> Option<Vec<u8>> {
    reflection::reply(&[health(), test()], body).ok()
}

/// `grpc.health.v1.Health`, without `Watch`, which the server does not have.
fn health() -> FileDescriptorProto {
    let statuses = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"];
    let values = (0..)
        .zip(statuses)
        .map(|(number, name)| EnumValueDescriptorProto {
            name: Some(name.to_owned()),
            number: Some(number),
            options: None,
        });
    let status = EnumDescriptorProto {
        name: Some("ServingStatus".to_owned()),
        value: values.collect(),
        ..EnumDescriptorProto::default()
    };
    let status_field = FieldDescriptorProto {
        r#type: Some(Type::Enum as i32),
        type_name: Some(".grpc.health.v1.HealthCheckResponse.ServingStatus".to_owned()),
        ..field("status", 1, Type::Enum, Label::Optional)
    };
    let response = DescriptorProto {
        enum_type: vec![status],
        ..message("HealthCheckResponse", vec![status_field])
    };
    let service = field("service", 1, Type::String, Label::Optional);
    FileDescriptorProto {
        message_type: vec![message("HealthCheckRequest", vec![service]), response],
        service: vec![service_with(
            "Health",
            "Check",
            ".grpc.health.v1.HealthCheckRequest",
            ".grpc.health.v1.HealthCheckResponse",
        )],
        ..file("grpc/health/v1/health.proto", "grpc.health.v1")
    }
}

/// `intact.Test`, whose `Echo` sends its message back.
fn test() -> FileDescriptorProto {
    let fields = vec![
        field("text", 1, Type::String, Label::Optional),
        field("number", 2, Type::Int64, Label::Optional),
        field("data", 3, Type::Bytes, Label::Optional),
        field("words", 4, Type::String, Label::Repeated),
    ];
    let name = ".intact.EchoMessage";
    FileDescriptorProto {
        message_type: vec![message("EchoMessage", fields)],
        service: vec![service_with("Test", "Echo", name, name)],
        ..file("intact/test.proto", "intact")
    }
}

fn file(name: &str, package: &str) -> FileDescriptorProto {
    FileDescriptorProto {
        name: Some(name.to_owned()),
        package: Some(package.to_owned()),
        syntax: Some("proto3".to_owned()),
        ..FileDescriptorProto::default()
    }
}

fn message(name: &str, field: Vec<FieldDescriptorProto>) -> DescriptorProto {
    DescriptorProto {
        name: Some(name.to_owned()),
        field,
        ..DescriptorProto::default()
    }
}

fn field(name: &str, number: i32, of: Type, label: Label) -> FieldDescriptorProto {
    FieldDescriptorProto {
        name: Some(name.to_owned()),
        number: Some(number),
        label: Some(label as i32),
        r#type: Some(of as i32),
        json_name: Some(name.to_owned()),
        ..FieldDescriptorProto::default()
    }
}

fn service_with(name: &str, method: &str, input: &str, output: &str) -> ServiceDescriptorProto {
    ServiceDescriptorProto {
        name: Some(name.to_owned()),
        method: vec![MethodDescriptorProto {
            name: Some(method.to_owned()),
            input_type: Some(input.to_owned()),
            output_type: Some(output.to_owned()),
            ..MethodDescriptorProto::default()
        }],
        options: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_grpc::reflection::{Query, Reply};

    fn types_of(service: &str) -> Result<intact_grpc::Types, reflection::ReflectionError> {
        let mut query = Query::new(service);
        while let Some((path, body)) = query.request()? {
            assert!(is_reflection(path.as_bytes()));
            query.take(Reply {
                grpc_status: Some(0),
                words: "",
                body: &reply(&body).unwrap(),
            })?;
        }
        query.finish()
    }

    #[test]
    fn the_services_of_the_server_are_described() {
        let health = types_of("grpc.health.v1.Health").unwrap();
        let check = health.method("grpc.health.v1.Health", "Check").unwrap();
        // field 1, length-delimited
        assert_eq!(check.message(r#"{"service":"x"}"#).unwrap(), b"\x0a\x01x");
        let test = types_of("intact.Test").unwrap();
        let echo = test.method("intact.Test", "Echo").unwrap();
        let message = echo.message(r#"{"number":"7","words":["a"]}"#).unwrap();
        assert_eq!(message, b"\x10\x07\x22\x01a");
    }

    #[test]
    fn another_service_is_refused_with_those_that_exist() {
        let error = types_of("shop.Cart").unwrap_err().to_string();
        let known = "no service shop.Cart; the types have grpc.health.v1.Health, intact.Test";
        assert_eq!(error, known);
    }

    #[test]
    fn a_body_that_is_no_request_has_no_reply() {
        assert_eq!(reply(b"\0\0\0\0"), None);
        assert_eq!(reply(b"\0\0\0\0\x01\xff"), None);
    }
}
