//! Maps the errors of folders and of S3 to what the caller can do.

use std::io::{self, ErrorKind};

/// A queue or a store that did not do what was asked of it.
#[derive(Debug)]
pub struct FailedPlace {
    /// Its name.
    pub name: String,
    /// The problem, in its own words where it has any.
    pub words: String,
}

impl FailedPlace {
    pub(crate) fn new(name: &str, words: impl Into<String>) -> FailedPlace {
        FailedPlace {
            name: name.to_owned(),
            words: words.into(),
        }
    }
}

/// Why an operation of the store failed. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The name is no folder and no URL of a known scheme.
    #[error("--store {}: {}", .0.name, .0.words)]
    Name(FailedPlace),
    /// Permission denied.
    #[error("store {}: not permitted: {}", .0.name, .0.words)]
    Forbidden(FailedPlace),
    /// The bucket does not exist.
    #[error("store {}: not there: {}; create it or name another one", .0.name, .0.words)]
    Absent(FailedPlace),
    /// Throttled.
    #[error("store {}: throttled: {}; use fewer workers. Finished results are kept", .0.name, .0.words)]
    Throttled(FailedPlace),
    /// No space is left.
    #[error("store {}: full: {}; free some space. Finished results are kept", .0.name, .0.words)]
    Full(FailedPlace),
    /// The object does not exist.
    #[error("store {}: {}: is this the store of a campaign?", .0.name, .0.words)]
    Missing(FailedPlace),
    /// An object has other content than expected.
    #[error("store {name}: {key}: {words}")]
    Unreadable {
        /// The store.
        name: String,
        /// The key of the object.
        key: String,
        /// The problem.
        words: String,
    },
    /// Another failure, such as no network.
    #[error("store {}: {}", .0.name, .0.words)]
    Failed(FailedPlace),
}

impl StoreError {
    /// Converts an error of the store with this name.
    pub(super) fn of(name: &str, error: &object_store::Error) -> StoreError {
        use object_store::Error;
        let words = error.to_string();
        if let Some((code, words)) = refusal(&words) {
            let failed = FailedPlace::new(name, words);
            return match code.as_str() {
                "NoSuchBucket" => StoreError::Absent(failed),
                "NoSuchKey" => StoreError::Missing(failed),
                "SlowDown" | "ServiceUnavailable" | "TooManyRequests" | "RequestLimitExceeded" => {
                    StoreError::Throttled(failed)
                }
                code if FORBIDDEN.contains(&code) => StoreError::Forbidden(failed),
                _ => StoreError::Failed(failed),
            };
        }
        let failed = FailedPlace::new(name, words);
        match error {
            _ if is_full(error) => StoreError::Full(failed),
            Error::NotFound { .. } => StoreError::Missing(failed),
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                StoreError::Forbidden(failed)
            }
            _ => StoreError::Failed(failed),
        }
    }
}

/// Error codes of S3 for credentials that are refused. A wrong clock is one of them, because the
/// time is signed.
const FORBIDDEN: [&str; 9] = [
    "AccessDenied",
    "AllAccessDisabled",
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
    "UnauthorizedAccess",
];

/// Code and message of an S3 error, which `object_store` passes on inside its own text.
fn refusal(text: &str) -> Option<(String, String)> {
    let of = |tag: &str| {
        let after = text.split_once(&format!("<{tag}>"))?.1;
        Some(after.split_once(&format!("</{tag}>"))?.0.to_owned())
    };
    let code = of("Code")?;
    let words = of("Message").map_or_else(|| code.clone(), |words| format!("{code}: {words}"));
    Some((code, words))
}

/// Whether a folder's file system is full.
fn is_full(error: &(dyn std::error::Error + 'static)) -> bool {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| {
            matches!(
                error.kind(),
                ErrorKind::StorageFull | ErrorKind::QuotaExceeded
            )
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_s3_error_is_read_out_of_the_text_around_it() {
        let text = "Generic S3 error: Error performing PUT http://x/ in 1ms - Server returned non-2xx status code: 404 Not Found: \
             <?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>";
        let (code, words) = refusal(text).unwrap();
        assert_eq!(code, "NoSuchBucket");
        assert_eq!(words, "NoSuchBucket: The specified bucket does not exist");
        assert_eq!(refusal("</Code><Code>").map(|(code, _)| code), None);
        assert_eq!(refusal("<Code>Slow").map(|(code, _)| code), None);
    }

    #[test]
    fn a_full_disk_is_detected_at_any_depth_of_the_error() {
        let error = |kind: ErrorKind| object_store::Error::Generic {
            store: "LocalFileSystem",
            source: Box::new(io::Error::from(kind)),
        };
        assert!(is_full(&error(ErrorKind::StorageFull)));
        assert!(!is_full(&error(ErrorKind::NotFound)));
    }
}
