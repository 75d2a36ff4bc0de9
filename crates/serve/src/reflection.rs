//! Server reflection of gRPC: the descriptors of the services that the server offers.
//!
//! The reply to the requests that came first ends the stream, since a client may wait for it before
//! it ends its requests. It opens another stream for its next ones.

use intact_grpc::reflection;

/// `grpc.health.v1.Health`, without `Watch`, which the server does not have: its
/// `FileDescriptorProto` as JSON.
const HEALTH: &str = r#"{
    "name": "grpc/health/v1/health.proto",
    "package": "grpc.health.v1",
    "syntax": "proto3",
    "messageType": [
        {
            "name": "HealthCheckRequest",
            "field": [
                {"name": "service", "number": 1, "label": "LABEL_OPTIONAL", "type": "TYPE_STRING", "jsonName": "service"}
            ]
        },
        {
            "name": "HealthCheckResponse",
            "field": [
                {"name": "status", "number": 1, "label": "LABEL_OPTIONAL", "type": "TYPE_ENUM", "jsonName": "status",
                 "typeName": ".grpc.health.v1.HealthCheckResponse.ServingStatus"}
            ],
            "enumType": [{
                "name": "ServingStatus",
                "value": [
                    {"name": "UNKNOWN", "number": 0}, {"name": "SERVING", "number": 1},
                    {"name": "NOT_SERVING", "number": 2}, {"name": "SERVICE_UNKNOWN", "number": 3}
                ]
            }]
        }
    ],
    "service": [{
        "name": "Health",
        "method": [{
            "name": "Check",
            "inputType": ".grpc.health.v1.HealthCheckRequest",
            "outputType": ".grpc.health.v1.HealthCheckResponse"
        }]
    }]
}"#;

/// `intact.Test`: `Echo` sends its message back, `Get` the content of `/`.
const TEST: &str = r#"{
    "name": "intact/test.proto",
    "package": "intact",
    "syntax": "proto3",
    "messageType": [{
        "name": "EchoMessage",
        "field": [
            {"name": "text", "number": 1, "label": "LABEL_OPTIONAL", "type": "TYPE_STRING", "jsonName": "text"},
            {"name": "number", "number": 2, "label": "LABEL_OPTIONAL", "type": "TYPE_INT64", "jsonName": "number"},
            {"name": "data", "number": 3, "label": "LABEL_OPTIONAL", "type": "TYPE_BYTES", "jsonName": "data"},
            {"name": "words", "number": 4, "label": "LABEL_REPEATED", "type": "TYPE_STRING", "jsonName": "words"}
        ]
    }],
    "service": [{
        "name": "Test",
        "method": [
            {"name": "Echo", "inputType": ".intact.EchoMessage", "outputType": ".intact.EchoMessage"},
            {"name": "Get", "inputType": ".intact.EchoMessage", "outputType": ".intact.EchoMessage"}
        ]
    }]
}"#;

/// Whether this is the method of reflection, in any version.
pub(crate) fn is_reflection(path: &[u8]) -> bool {
    reflection::PATHS.iter().any(|one| one.as_bytes() == path)
}

/// The response to a body of requests; `None` if it is none.
pub(crate) fn reply(body: &[u8]) -> Option<Vec<u8>> {
    let files = [HEALTH, TEST].into_iter().map(intact_grpc::file_of_json);
    reflection::reply(&files.collect::<Option<Vec<_>>>()?, body).ok()
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
