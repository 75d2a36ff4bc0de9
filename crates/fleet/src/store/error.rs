//! Why a store refused, from the words of folders and of S3.

/// Why the store could not do it. Each message names the way out.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It is named in a way that means nothing here.
    #[error("--store {name}: {words}")]
    Name {
        /// What was given.
        name: String,
        /// What would do.
        words: String,
    },
    /// We may not use it.
    #[error("store {name}: not permitted: {words}")]
    Forbidden {
        /// The store.
        name: String,
        /// What it said.
        words: String,
    },
    /// There is no such bucket.
    #[error("store {name}: not there: {words}: make it, or name another")]
    Absent {
        /// The store.
        name: String,
        /// What it said.
        words: String,
    },
    /// It is asked too much.
    #[error(
        "store {name}: throttled: {words}: fewer workers at once; nothing that was finished is lost"
    )]
    Throttled {
        /// The store.
        name: String,
        /// What it said.
        words: String,
    },
    /// There is no room left.
    #[error("store {name}: full: {words}: make room; nothing that was finished is lost")]
    Full {
        /// The store.
        name: String,
        /// What happened.
        words: String,
    },
    /// The object is not there.
    #[error("store {name}: {words}: is this the store of a campaign?")]
    Missing {
        /// The store.
        name: String,
        /// What it said.
        words: String,
    },
    /// An object is not what it should be.
    #[error("store {name}: {key}: {words}")]
    Unreadable {
        /// The store.
        name: String,
        /// The object.
        key: String,
        /// What is wrong.
        words: String,
    },
    /// It failed in another way: no network.
    #[error("store {name}: {words}")]
    Failed {
        /// The store.
        name: String,
        /// What happened.
        words: String,
    },
}

impl StoreError {
    /// The failure of a call on the store of this name.
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

/// What S3 calls the ways in which credentials do not do. A clock that is off is one of them: it is part of the signature.
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

/// Code and words of a refusal in S3's form, which `object_store` passes on as text inside of its own.
fn refusal(text: &str) -> Option<(String, String)> {
    let of = |tag: &str| {
        let after = text.split_once(&format!("<{tag}>"))?.1;
        Some(after.split_once(&format!("</{tag}>"))?.0.to_owned())
    };
    let code = of("Code")?;
    let words = of("Message").map_or_else(|| code.clone(), |words| format!("{code}: {words}"));
    Some((code, words))
}

/// Whether a folder's file system has no room left.
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
    fn a_refusal_is_read_out_of_what_surrounds_it() {
        let text = "Generic S3 error: Error performing PUT http://x/ in 1ms - Server returned non-2xx status code: 404 Not Found: \
             <?xml version=\"1.0\"?>\n<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>";
        let (code, words) = refusal(text).unwrap();
        assert_eq!(code, "NoSuchBucket");
        assert_eq!(words, "NoSuchBucket: The specified bucket does not exist");
        assert_eq!(refusal("</Code><Code>").map(|(code, _)| code), None);
        assert_eq!(refusal("<Code>Slow").map(|(code, _)| code), None);
    }

    #[test]
    fn no_room_is_told_from_other_failures_however_deep_it_lies() {
        let error = |kind: std::io::ErrorKind| object_store::Error::Generic {
            store: "LocalFileSystem",
            source: Box::new(std::io::Error::from(kind)),
        };
        assert!(is_full(&error(std::io::ErrorKind::StorageFull)));
        assert!(!is_full(&error(std::io::ErrorKind::NotFound)));
    }
}
