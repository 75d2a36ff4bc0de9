//! The responses that the user accepts, as `--expect` names them. Must not decide what a command
//! does with the others.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The statuses that count as ok, written `any`, `2xx` or `204`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub enum ExpectedStatus {
    /// Every status.
    Any,
    /// The statuses of one class: 2 for 2xx.
    Class(u16),
    /// One status.
    Status(u16),
}

/// A text that names no status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("write any, a class such as 2xx, or a status such as 204")]
pub struct NoStatus;

impl ExpectedStatus {
    /// Whether a complete response with this status is ok.
    pub fn allows(self, status: u16) -> bool {
        match self {
            ExpectedStatus::Any => true,
            ExpectedStatus::Class(class) => status / 100 == class,
            ExpectedStatus::Status(wanted) => status == wanted,
        }
    }

    /// Whether a response is an error: its status is 4xx or 5xx, and the user did not name it.
    pub fn is_error(expected: Option<ExpectedStatus>, status: u16) -> bool {
        status >= 400 && !expected.is_some_and(|one| one.allows(status))
    }
}

impl FromStr for ExpectedStatus {
    type Err = NoStatus;

    fn from_str(text: &str) -> Result<ExpectedStatus, NoStatus> {
        let class = text.strip_suffix("xx").and_then(|digit| digit.parse().ok());
        match (text, class, text.parse()) {
            ("any", _, _) => Ok(ExpectedStatus::Any),
            (_, Some(class @ 1..=5), _) => Ok(ExpectedStatus::Class(class)),
            (_, _, Ok(status @ 100..=999)) => Ok(ExpectedStatus::Status(status)),
            _ => Err(NoStatus),
        }
    }
}

impl fmt::Display for ExpectedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectedStatus::Any => f.write_str("any"),
            ExpectedStatus::Class(class) => write!(f, "{class}xx"),
            ExpectedStatus::Status(status) => write!(f, "{status}"),
        }
    }
}

impl TryFrom<String> for ExpectedStatus {
    type Error = NoStatus;

    fn try_from(text: String) -> Result<ExpectedStatus, NoStatus> {
        text.parse()
    }
}

impl From<ExpectedStatus> for String {
    fn from(expected: ExpectedStatus) -> String {
        expected.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_names_statuses_and_reads_back() {
        for (text, allowed, refused) in [
            ("any", 503, None),
            ("2xx", 204, Some(304)),
            ("404", 404, Some(400)),
        ] {
            let expected: ExpectedStatus = text.parse().unwrap();
            assert_eq!(expected.to_string(), text);
            assert!(expected.allows(allowed), "{text}");
            assert!(!refused.is_some_and(|status| expected.allows(status)));
            let json = serde_json::to_string(&expected).unwrap();
            assert_eq!(
                serde_json::from_str::<ExpectedStatus>(&json).unwrap(),
                expected
            );
        }
        for wrong in ["", "6xx", "xx", "99", "2XX", "-1", "ok"] {
            assert_eq!(wrong.parse::<ExpectedStatus>(), Err(NoStatus), "{wrong}");
        }
    }

    #[test]
    fn an_error_that_the_user_named_is_not_an_error() {
        let error = ExpectedStatus::is_error;
        assert!(error(None, 404) && error(None, 500));
        assert!(!error(None, 200) && !error(None, 302));
        assert!(!error(Some(ExpectedStatus::Status(404)), 404));
        assert!(error(Some(ExpectedStatus::Status(404)), 500));
        assert!(!error(Some(ExpectedStatus::Any), 500));
    }
}
