//! The requests of a bench: one, or those that a file describes, which are the targets of a bench
//! and the steps of a scenario. Formats them once, before anything is sent.

use crate::config::{Config, ConfigError};
use intact_client::{BodyCheck, Request, RequestSpec, ServerUrl};
use intact_experiment::AxisValues;
use intact_ledger::{ExpectedStatus, Method, Protocol};
use intact_scenario::{Check, Problem, ScenarioError};
use std::sync::Arc;

impl Config {
    /// The request of a variant. `absolute`: to a proxy, in absolute form.
    pub(crate) fn request(
        &self,
        address: &ServerUrl,
        choice: &AxisValues,
        absolute: bool,
    ) -> Result<Request, ConfigError> {
        let call = self.call.as_ref();
        let call = call.filter(|_| choice.connection.as_grpc == Some(true));
        let (address, method, headers, body) = match call {
            Some(call) => {
                let path = call.path.clone();
                let address = ServerUrl {
                    path,
                    ..address.clone()
                };
                (address, "POST", &call.headers, &call.body)
            }
            None => (address.clone(), &*self.method, &self.headers, &self.body),
        };
        let method = Method::new(method);
        let refuse = |name: &str| {
            matches!(name, "content-length" | "transfer-encoding")
                .then_some("the length of the body is ours to say: use -d")
        };
        let mut spec = RequestSpec::new(&address, method, &self.user_agent, headers, refuse)?;
        spec.body = body.as_slice().into();
        spec.expect = self.expect;
        spec.absolute = absolute.then(|| format!("http://{}", address.authority()));
        spec.connection = match (choice.http, choice.keepalive) {
            (Protocol::Http10, true) => Some("keep-alive"),
            (Protocol::Http11, false) => Some("close"),
            _ => None,
        };
        let mut request = spec.format(choice.http);
        request.closes |= !choice.keepalive && !choice.http.has_streams();
        Ok(request)
    }
}

/// Formats the requests of a file.
pub(crate) struct RequestWriter<'a> {
    pub(crate) source: &'a str,
    /// The configuration without targets.
    pub(crate) config: &'a Config,
    pub(crate) choice: &'a AxisValues,
    /// The destination as the file or the command line names it.
    pub(crate) target: &'a ServerUrl,
    /// The same as a variant reaches it: with another scheme, or another port.
    pub(crate) address: &'a ServerUrl,
    /// To a proxy, in absolute form.
    pub(crate) is_absolute: bool,
}

impl RequestWriter<'_> {
    /// Formats a request.
    pub(crate) fn write(
        &self,
        source: &intact_scenario::Request,
    ) -> Result<Request, ScenarioError> {
        let line = (source.line > 0).then_some(source.line);
        let wrong = |words| ScenarioError::new(self.source, vec![Problem { line, words }]);
        let address = self.address(&source.url).map_err(wrong)?;
        let mut config = self.config.clone();
        config.method.clone_from(&source.method);
        let fields = source.headers.iter();
        let fields = fields.map(|(name, value)| format!("{name}: {value}"));
        config.headers.extend(fields);
        config.body.clone_from(&source.body);
        if let Some(check) = &source.check {
            config.expect = self.expected(check).map_err(wrong)?;
        }
        let formatted = config.request(&address, self.choice, self.is_absolute);
        let mut request = formatted.map_err(|error| wrong(error.to_string()))?;
        request.tag = (!source.tag.is_empty()).then(|| Arc::from(&*source.tag));
        request.check = source.check.as_ref().and_then(body_check);
        Ok(request)
    }

    /// The statuses that count as ok: those of the run, unless the check names others.
    fn expected(&self, check: &Check) -> Result<Option<ExpectedStatus>, String> {
        let of_run = self.config.expect;
        let Some(text) = &check.status else {
            return Ok(of_run);
        };
        let named = text.parse::<ExpectedStatus>();
        let named = named.map_err(|error| format!("check: status {text:?}: {error}"))?;
        // the findings about error responses know what the run expects, and not of which request
        let is_error = |status| named.allows(status) && ExpectedStatus::is_error(of_run, status);
        match (400..600).any(is_error) {
            true => Err(format!(
                "check: status {text}: name error statuses for the whole run too, with --expect"
            )),
            false => Ok(Some(named)),
        }
    }

    /// The address of a request: a path at the target, or a URL of the same origin.
    fn address(&self, url: &str) -> Result<ServerUrl, String> {
        let target = self.target;
        let (scheme, authority) = (target.scheme.as_str(), target.authority());
        let slash = if url.starts_with('/') { "" } else { "/" };
        let whole = match url.contains("://") {
            true => url.to_owned(),
            false => format!("{scheme}://{authority}{slash}{url}"),
        };
        let named = ServerUrl::parse(&whole).map_err(|error| error.to_string())?;
        if named.origin() != target.origin() {
            return Err(format!(
                "{} is outside of the plan: its target is {}; a run has one target, so give each host a file and a run",
                named.origin(),
                target.origin()
            ));
        }
        Ok(ServerUrl {
            path: named.path,
            ..self.address.clone()
        })
    }
}

/// What of a check is about the body.
fn body_check(check: &Check) -> Option<Arc<BodyCheck>> {
    let values = check.json.iter();
    let check = BodyCheck {
        contains: check.contains.clone(),
        json: values
            .map(|one| (one.path.clone(), one.pointer.clone(), one.value.clone()))
            .collect(),
    };
    (check != BodyCheck::default()).then(|| Arc::new(check))
}
