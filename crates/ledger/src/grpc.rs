//! Calls of gRPC: what is known of one in addition to its exchange.

use serde::{Deserialize, Serialize};

/// A call of gRPC. The exchange that carries it has a request with `Content-Type: application/grpc`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GrpcCall {
    /// `grpc-status`; absent if the response ended without one, or if it was not seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
}

/// The names of the statuses, by code (gRPC `doc/statuscodes.md`).
const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

impl GrpcCall {
    /// Whether the call succeeded: status 0.
    pub fn is_ok(self) -> bool {
        self.status == Some(0)
    }

    /// The status in words: `grpc-status 5 (NOT_FOUND)`.
    pub fn words(self) -> String {
        let Some(status) = self.status else {
            return "no grpc-status".to_owned();
        };
        match NAMES.get(usize::from(status)) {
            Some(name) => format!("grpc-status {status} ({name})"),
            None => format!("grpc-status {status}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_its_name_and_only_zero_is_ok() {
        let call = |status| GrpcCall { status };
        assert_eq!(call(Some(5)).words(), "grpc-status 5 (NOT_FOUND)");
        assert_eq!(call(Some(99)).words(), "grpc-status 99");
        assert_eq!(call(None).words(), "no grpc-status");
        assert!(call(Some(0)).is_ok());
        assert!(!call(Some(16)).is_ok() && !call(None).is_ok());
    }
}
