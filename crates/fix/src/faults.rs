//! The behaviour of a client when its connection fails, measured under `intact watch --fault`. The
//! harness writes it, like all facts.

use crate::facts::{RequestOutcome, RequestOutcomes};
use serde::{Deserialize, Serialize};

/// Requests on connections that `intact watch --fault` failed. Each request is the second one on a
/// separate connection.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UnderFaults {
    /// A GET on a connection that went silent (`black-hole`).
    pub silent_get: Option<SilentWait>,
    /// A POST on a connection that went silent.
    pub silent_post: Option<SilentWait>,
    /// A GET on a connection of HTTP/2, over TLS, that went silent: PING can end the wait.
    pub silent_http2: Option<SilentWait>,
    /// The response is reset within its body (`reset-mid-response`): the server has processed the
    /// request.
    pub reset: Option<RequestOutcomes>,
    /// A GET whose response ends after its header section (`early-close-after-headers`).
    pub cut: Option<CutBody>,
    /// TCP_USER_TIMEOUT of its connections.
    pub user_timeout: Option<UserTimeout>,
}

/// How long a request waited on a connection that went silent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum SilentWait {
    /// The client ended the wait.
    Ended {
        /// Seconds from the request to that.
        after_s: f64,
        /// The result for the caller.
        outcome: RequestOutcome,
    },
    /// The client still waited when the measurement reset the connection.
    Endless {
        /// Seconds until then.
        for_s: f64,
        /// The result for the caller after the reset.
        outcome: RequestOutcome,
    },
}

/// What a client does with a response whose body is cut short.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CutBody {
    /// The caller gets an error.
    Error,
    /// The request is sent again, and its caller gets a response.
    SentAgain,
    /// The caller gets the part as if it were complete.
    TakenAsComplete,
    /// The request is sent again, and its caller gets an error.
    SentAgainInVain,
}

impl From<RequestOutcome> for CutBody {
    /// For a request whose first response was cut. If the server received the request once, the
    /// caller got the cut response.
    fn from(outcome: RequestOutcome) -> CutBody {
        match outcome {
            RequestOutcome::Fine => CutBody::TakenAsComplete,
            RequestOutcome::SentTwice => CutBody::SentAgain,
            RequestOutcome::Error => CutBody::Error,
            RequestOutcome::SentTwiceInVain => CutBody::SentAgainInVain,
        }
    }
}

/// The limit on sent bytes without an acknowledgement (TCP_USER_TIMEOUT).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum UserTimeout {
    /// It is not set.
    Off,
    /// It is set.
    On {
        /// The limit in seconds.
        after_s: f64,
    },
}
