//! What is answered to which path, independent of the HTTP version.

use crate::config::Config;
use bytes::Bytes;
use std::time::Duration;

/// The largest body that a path may ask for.
const LARGEST: usize = 1 << 30;

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) body: Bytes,
    pub(crate) delay: Duration,
    /// The connection is closed after it.
    pub(crate) closes: bool,
}

/// Answers by path: `/bytes/N`, `/status/CODE`, `/delay/MS`, `/close`; all others alike.
pub(crate) struct Answers {
    usual: Answer,
}

impl Answers {
    pub(crate) fn new(config: &Config) -> Answers {
        Answers {
            usual: Answer {
                status: config.status,
                body: filler(config.body),
                delay: config.delay,
                closes: false,
            },
        }
    }

    /// The answer to a request target.
    pub(crate) fn to(&self, target: &[u8]) -> Answer {
        let mut answer = self.usual.clone();
        let path = target.split(|&byte| byte == b'?').next().unwrap_or(b"");
        let number = |prefix: &[u8]| -> Option<usize> {
            std::str::from_utf8(path.strip_prefix(prefix)?)
                .ok()?
                .parse()
                .ok()
        };
        if path == b"/close" {
            answer.closes = true;
        } else if let Some(bytes) = number(b"/bytes/") {
            answer.body = filler(bytes.min(LARGEST));
        } else if let Some(ms) = number(b"/delay/") {
            answer.delay += Duration::from_millis(ms as u64);
        } else if let Some(status @ 200..=999) = number(b"/status/") {
            answer.status = status as u16;
        }
        answer
    }
}

fn filler(bytes: usize) -> Bytes {
    Bytes::from(vec![b'x'; bytes])
}

/// Whether a status has no body (RFC 9110 section 6.4.1).
pub(crate) fn is_bodiless(status: u16) -> bool {
    matches!(status, 204 | 304)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_choose_the_answer() {
        let answers = Answers::new(&Config::default());
        assert_eq!(answers.to(b"/").body.len(), 100);
        assert_eq!(answers.to(b"/bytes/7?x").body.len(), 7);
        assert_eq!(answers.to(b"/status/404").status, 404);
        assert_eq!(answers.to(b"/status/7").status, 200);
        assert_eq!(answers.to(b"/delay/5").delay, Duration::from_millis(5));
        assert!(answers.to(b"/close").closes);
    }
}
