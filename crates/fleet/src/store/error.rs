//! Maps the errors of folders and of S3 to what the caller can do.

/// Why an operation of the store failed. Each message names the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The name is no folder and no URL of a known scheme.
    #[error("--store {name}: {words}")]
    Name {
        /// The given name.
        name: String,
        /// The valid names.
        words: String,
    },
    /// Permission denied.
    #[error("store {name}: not permitted: {words}")]
    Forbidden {
        /// The store.
        name: String,
        /// The error of the store.
        words: String,
    },
    /// The bucket does not exist.
    #[error("store {name}: not there: {words}; create it or name another one")]
    Absent {
        /// The store.
        name: String,
        /// The error of the store.
        words: String,
    },
    /// Throttled.
    #[error("store {name}: throttled: {words}; use fewer workers. Finished results are kept")]
    Throttled {
        /// The store.
        name: String,
        /// The error of the store.
        words: String,
    },
    /// No space is left.
    #[error("store {name}: full: {words}; free some space. Finished results are kept")]
    Full {
        /// The store.
        name: String,
        /// The error.
        words: String,
    },
    /// The object does not exist.
    #[error("store {name}: {words}: is this the store of a campaign?")]
    Missing {
        /// The store.
        name: String,
        /// The error of the store.
        words: String,
    },
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
    #[error("store {name}: {words}")]
    Failed {
        /// The store.
        name: String,
        /// The error.
        words: String,
    },
}

impl StoreError {
    /// Converts an error of the store with this name.
    pub(super) fn of(name: &str, error: &object_store::Error) -> StoreError {
        use object_store::Error;
        let name = name.to_owned();
        let words = error.to_string();
        if is_full(error) {
            return StoreError::Full { name, words };
        }
        if let Some((code, words)) = refusal(&words) {
            return match code.as_str() {
                "NoSuchBucket" => StoreError::Absent { name, words },
                "NoSuchKey" => StoreError::Missing { name, words },
                "SlowDown" | "ServiceUnavailable" | "TooManyRequests" | "RequestLimitExceeded" => {
                    StoreError::Throttled { name, words }
                }
                code if FORBIDDEN.contains(&code) => StoreError::Forbidden { name, words },
                _ => StoreError::Failed { name, words },
            };
        }
        match error {
            Error::NotFound { .. } => StoreError::Missing { name, words },
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                StoreError::Forbidden { name, words }
            }
            _ => StoreError::Failed { name, words },
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
    use std::io::ErrorKind;
    let mut cause = Some(error);
    while let Some(error) = cause {
        let kind = error
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind);
        if matches!(
            kind,
            Some(ErrorKind::StorageFull | ErrorKind::QuotaExceeded)
        ) {
            return true;
        }
        cause = error.source();
    }
    false
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
        let error = |kind: std::io::ErrorKind| object_store::Error::Generic {
            store: "LocalFileSystem",
            source: Box::new(std::io::Error::from(kind)),
        };
        assert!(is_full(&error(std::io::ErrorKind::StorageFull)));
        assert!(!is_full(&error(std::io::ErrorKind::NotFound)));
    }
}
