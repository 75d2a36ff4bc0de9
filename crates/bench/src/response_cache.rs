//! What the clients of a variant have stored of their last response: its validator, in a request
//! that is ready to be sent.
//!
//! All threads share it, from the preflight on, so that measured requests find it filled. Must not
//! judge responses.

use intact_client::{Request, ResponseInfo};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest entity tag that is sent back: a longer value may have been cut when it was noted.
const LONGEST_TAG: usize = 1000;

/// The validator and the freshness lifetime of the last complete response.
#[derive(Debug, Default)]
pub(crate) struct ResponseCache {
    stored: Mutex<Option<Stored>>,
}

#[derive(Debug)]
struct Stored {
    etag: String,
    /// The `max-age` of `Cache-Control`, in seconds.
    max_age_s: Option<u64>,
    request: Arc<Request>,
}

impl ResponseCache {
    /// The request to send: with the stored entity tag, where there is one.
    pub(crate) fn request(&self, plain: &Arc<Request>) -> Arc<Request> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let stored = stored.as_ref();
        stored.map_or_else(|| plain.clone(), |stored| stored.request.clone())
    }

    /// Stores what a response says. Only one with the status 200 and a strong or weak entity tag is
    /// stored.
    pub(crate) fn store(&self, plain: &Request, response: &ResponseInfo) {
        let etag = response.field("etag");
        let etag = etag.filter(|tag| tag.ends_with('"') && tag.len() <= LONGEST_TAG);
        let (Some(200), Some(etag)) = (response.status, etag) else {
            return;
        };
        let mut stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        if stored.as_ref().is_some_and(|stored| stored.etag == etag) {
            return;
        }
        *stored = Some(Stored {
            etag: etag.to_owned(),
            max_age_s: max_age(response),
            request: Arc::new(plain.revalidating(etag)),
        });
    }

    /// How long a cache may use the stored response without a request, in seconds.
    pub(crate) fn fresh_for_s(&self) -> Option<u64> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        stored.as_ref()?.max_age_s.filter(|&seconds| seconds > 0)
    }

    /// What a run shows next to its figures: an id and a sentence.
    pub(crate) fn caveat(&self) -> Option<(&'static str, String)> {
        let stored = self.stored.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(stored) = stored.as_ref() else {
            let words = "--cache revalidate: no response had an ETag, so every request asked for the whole response (serve needs --etag)";
            return Some(("cache-unused", words.to_owned()));
        };
        let seconds = stored.max_age_s.filter(|&seconds| seconds > 0)?;
        Some((
            "cache-fresh",
            format!(
                "the server allows a cache to use its response for {seconds} s without a request (max-age); revalidation asks each time"
            ),
        ))
    }
}

/// The `max-age` of a response that may be used without a request (RFC 9111 section 5.2.2).
fn max_age(response: &ResponseInfo) -> Option<u64> {
    let directives = || {
        response
            .all("cache-control")
            .flat_map(|list| list.split(','))
    };
    let is = |word: &str, name: &str| word.trim().eq_ignore_ascii_case(name);
    if directives().any(|one| is(one, "no-store") || is(one, "no-cache")) {
        return None;
    }
    directives().find_map(|one| {
        let (name, seconds) = one.split_once('=')?;
        let seconds = seconds.trim().trim_matches('"').parse();
        seconds.ok().filter(|_| is(name, "max-age"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_client::{RequestSpec, ServerUrl};
    use intact_ledger::{Method, Protocol};

    fn plain() -> Arc<Request> {
        let url = ServerUrl::parse("http://h/").unwrap();
        let spec = RequestSpec::new(&url, Method::GET, "a", &[], |_| None).unwrap();
        Arc::new(spec.format(Protocol::Http11))
    }

    fn response(status: u16, fields: &[(&str, &str)]) -> ResponseInfo {
        let mut response = ResponseInfo::default();
        response.status = Some(status);
        for (name, value) in fields {
            response.note(name.as_bytes(), value.as_bytes());
        }
        response
    }

    fn sent(cache: &ResponseCache) -> Option<String> {
        let request = cache.request(&plain());
        let text = String::from_utf8(request.http1_bytes().to_vec()).unwrap();
        let field = text
            .lines()
            .find_map(|line| line.strip_prefix("If-None-Match: "));
        field.map(str::to_owned)
    }

    #[test]
    fn the_last_complete_response_is_revalidated() {
        let cache = ResponseCache::default();
        let store = |status, etag: &str| {
            cache.store(&plain(), &response(status, &[("etag", etag)]));
        };
        store(404, "\"error\"");
        store(200, "no tag");
        store(200, &format!("\"{}\"", "x".repeat(1000)));
        assert_eq!(sent(&cache), None);
        assert_eq!(cache.caveat().unwrap().0, "cache-unused");
        store(200, "\"1\"");
        assert_eq!(sent(&cache).as_deref(), Some("\"1\""));
        store(304, "\"2\"");
        assert_eq!(sent(&cache).as_deref(), Some("\"1\""));
        store(200, "W/\"3\"");
        assert_eq!(sent(&cache).as_deref(), Some("W/\"3\""));
        assert_eq!(cache.caveat(), None);
    }

    #[test]
    fn a_response_is_fresh_for_its_max_age() {
        for (fields, seconds) in [
            (&["private, Max-Age=60"][..], Some(60)),
            (&["public", "max-age=\"5\""], Some(5)),
            (&["no-cache, max-age=60"], None),
            (&["s-maxage=60"], None),
            (&["max-age=x"], None),
            (&[], None),
        ] {
            let fields: Vec<_> = fields
                .iter()
                .map(|value| ("cache-control", *value))
                .collect();
            assert_eq!(max_age(&response(200, &fields)), seconds, "{fields:?}");
        }
    }
}
