//! What a function is invoked with.

/// The event of every invocation: JSON that the platform does not look into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event(pub Vec<u8>);

impl Event {
    /// The one without content.
    pub const EMPTY: &str = "{}";
    /// A GET of API Gateway's HTTP API, payload format 2.0.
    pub const API_GATEWAY: &str = r#"{"version":"2.0","routeKey":"$default","rawPath":"/","rawQueryString":"","headers":{"host":"function.test","accept":"*/*"},"requestContext":{"accountId":"000000000000","apiId":"intact","domainName":"function.test","http":{"method":"GET","path":"/","protocol":"HTTP/1.1","sourceIp":"192.0.2.1","userAgent":"intact"},"requestId":"intact","routeKey":"$default","stage":"$default","time":"01/Jan/2026:00:00:00 +0000","timeEpoch":1767225600000},"isBase64Encoded":false}"#;
    /// One message of a queue.
    pub const SQS: &str = r#"{"Records":[{"messageId":"00000000-0000-4000-8000-000000000000","receiptHandle":"intact","body":"{}","attributes":{"ApproximateReceiveCount":"1","SentTimestamp":"1767225600000","SenderId":"intact","ApproximateFirstReceiveTimestamp":"1767225600000"},"messageAttributes":{},"md5OfBody":"99914b932bd37a50b983c5e7c90ae93b","eventSource":"aws:sqs","eventSourceARN":"arn:aws:sqs:local:000000000000:intact","awsRegion":"local"}]}"#;
}

impl From<&str> for Event {
    fn from(text: &str) -> Event {
        Event(text.into())
    }
}
