//! Tests of `collector`.

use super::*;

#[test]
fn a_base_gets_the_path_for_metrics_and_a_whole_url_keeps_its_own() {
    for (given, expected) in [
        ("http://a:4318", "http://a:4318/v1/metrics"),
        ("http://a:4318/", "http://a:4318/v1/metrics"),
        ("https://a/otlp", "https://a/otlp/v1/metrics"),
        ("https://a/otlp/v1/metrics", "https://a/otlp/v1/metrics"),
        ("https://a/x/?key=1", "https://a/x/v1/metrics?key=1"),
    ] {
        assert_eq!(endpoint(given).as_deref(), Ok(expected));
    }
    for wrong in ["a:4317", "grpc://a:4317", "/v1/metrics", "http://u:p@a/"] {
        let error = endpoint(wrong).unwrap_err();
        assert!(!error.contains("u:p"), "{error}");
    }
}

#[test]
fn headers_of_the_environment_go_only_where_the_environment_points_to() {
    let environment = |name: &str| {
        let value = match name {
            ENDPOINT => "http://there:1",
            HEADERS => "api-key=a%20b, x=y=z",
            TIMEOUT => "250",
            _ => return None,
        };
        Some(value.to_owned())
    };
    let own = Collector::parse("", environment).ok().unwrap();
    assert_eq!(own.url, "http://there:1/v1/metrics");
    assert_eq!(own.patience, Duration::from_millis(250));
    let headers: Vec<(&str, &str)> = own
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.to_str().unwrap()))
        .collect();
    assert_eq!(headers, [("api-key", "a b"), ("x", "y=z")]);
    let named = Collector::parse("http://here:2", environment).ok().unwrap();
    assert_eq!(named.url, "http://here:2/v1/metrics");
    assert!(named.headers.is_empty());
}

#[test]
fn a_key_in_the_query_is_in_no_message() {
    let collector = Collector::parse("http://a:1/?key=secret", |_| None)
        .ok()
        .unwrap();
    assert_eq!(collector.url, "http://a:1/v1/metrics?key=secret");
    let answer = |status: u16, body: &str| {
        let answer = Response::builder().status(status);
        answer.body(Body::builder().data(body)).unwrap()
    };
    let away = collector.away(&ureq::Error::HostNotFound);
    let refused = collector.judge(answer(403, "no")).unwrap_err();
    let other = collector.judge(answer(200, "hello")).unwrap_err();
    for error in [away, refused, other] {
        let error = error.to_string();
        assert!(
            error.starts_with("http://a:1/v1/metrics?… ")
                || error.starts_with("http://a:1/v1/metrics?…:"),
            "{error}"
        );
        assert!(!error.contains("secret"), "{error}");
    }
}

#[test]
fn a_wrong_header_is_reported_without_its_value() {
    for text in ["secret", "a b=secret", "key=sec%0Aret"] {
        let error = headers(text).unwrap_err();
        assert!(!error.contains("sec"), "{error}");
    }
}

proptest::proptest! {
    #[test]
    fn any_response_of_a_collector_is_reported_on_one_line(
        body in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
        is_protobuf: bool,
    ) {
        let words = one_line(&refusal(&body, is_protobuf));
        proptest::prop_assert!(!words.contains(['\n', '\r']));
        let _ = ExportMetricsServiceResponse::decode(&body[..]);
    }
}
