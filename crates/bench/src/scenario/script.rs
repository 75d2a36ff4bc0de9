//! The steps of a plan, ready to run: requests formatted once, repetitions as jumps.

use super::run::ScenarioConfigError;
use crate::config::{Config, ConfigError};
use crate::variant_plan::VariantPlan;
use intact_client::ServerUrl;
use intact_experiment::AxisValues;
use intact_scenario::{Plan, Request, Step, Wait};
use std::sync::Arc;

/// One step of a client.
pub(crate) enum Op {
    /// Sends a request.
    Request(Arc<VariantPlan>),
    /// Waits.
    Wait(Wait),
    /// Begins a loop of this many repetitions; absent: without an end.
    Repeat(Option<u64>),
    /// Ends a pass of the innermost loop, which begins at this position.
    Again(usize),
}

/// The steps of a session.
pub(crate) struct SessionScript {
    pub(crate) ops: Vec<Op>,
    /// The sum of the weights up to this one, as a share of all.
    upto: f64,
}

/// The sessions, in the order of the run's variants.
pub(crate) struct Script {
    pub(crate) sessions: Vec<SessionScript>,
}

impl Script {
    /// The session for a number from 0 to below 1.
    pub(super) fn pick(&self, unit: f64) -> usize {
        let at = self.sessions.iter().position(|one| unit < one.upto);
        at.unwrap_or(self.sessions.len() - 1)
    }
}

/// Makes scripts from plans.
pub(super) struct ScriptWriter<'a> {
    pub(super) file: &'a str,
    pub(super) config: &'a Config,
    pub(super) choice: AxisValues,
    /// What all requests share: the way to the target.
    pub(super) base: &'a VariantPlan,
    pub(super) target: &'a ServerUrl,
}

impl ScriptWriter<'_> {
    /// The sessions that clients may pick.
    pub(super) fn script(&self, plan: &Plan) -> Result<Script, ScenarioConfigError> {
        let mut sessions = Vec::new();
        let mut upto = 0.0;
        for (variant, session) in picked(plan).enumerate() {
            let mut ops = Vec::new();
            self.write(variant as u32, &session.steps, &mut ops)?;
            upto += plan.share(session);
            sessions.push(SessionScript { ops, upto });
        }
        Ok(Script { sessions })
    }

    fn write(
        &self,
        variant: u32,
        steps: &[Step],
        ops: &mut Vec<Op>,
    ) -> Result<(), ScenarioConfigError> {
        for step in steps {
            match step {
                Step::Request(request) => {
                    let variant_plan = self.variant_plan(variant, request)?;
                    ops.push(Op::Request(Arc::new(variant_plan)));
                }
                Step::Wait(wait) => ops.push(Op::Wait(*wait)),
                Step::Repeat { times, steps, .. } => {
                    ops.push(Op::Repeat(*times));
                    let start = ops.len();
                    self.write(variant, steps, ops)?;
                    ops.push(Op::Again(start));
                }
            }
        }
        Ok(())
    }

    fn variant_plan(
        &self,
        variant: u32,
        request: &Request,
    ) -> Result<VariantPlan, ScenarioConfigError> {
        let wrong = |words| ScenarioConfigError::at(self.file, request.line, words);
        let address = self.address(&request.url).map_err(wrong)?;
        let headers = request.headers.iter();
        let mut config = self.config.clone();
        config.method.clone_from(&request.method);
        config
            .headers
            .extend(headers.map(|(name, value)| format!("{name}: {value}")));
        config.body = request.body.clone().into_bytes();
        let absolute = config.proxy.is_some() && self.base.plan.tls.is_none();
        let formatted = config.request(&address, &self.choice, absolute);
        let mut formatted = formatted.map_err(|error: ConfigError| wrong(error.to_string()))?;
        formatted.tag = Some(Arc::from(&*request.tag));
        Ok(VariantPlan {
            variant,
            request: Arc::new(formatted),
            ..self.base.clone()
        })
    }

    /// The address of a request: a path at the target, or a URL of the same origin.
    fn address(&self, url: &str) -> Result<ServerUrl, String> {
        let target = self.target;
        let authority = target.authority();
        let scheme = target.scheme.as_str();
        if !url.contains("://") {
            let slash = if url.starts_with('/') { "" } else { "/" };
            let whole = format!("{scheme}://{authority}{slash}{url}");
            return ServerUrl::parse(&whole).map_err(|error| error.to_string());
        }
        let address = ServerUrl::parse(url).map_err(|error| error.to_string())?;
        if address.origin() != target.origin() {
            return Err(format!(
                "{} is outside of the plan: its target is {}; a scenario has one target",
                address.origin(),
                target.origin()
            ));
        }
        Ok(address)
    }
}

/// The sessions with a weight.
pub(super) fn picked(plan: &Plan) -> impl Iterator<Item = &intact_scenario::Session> {
    plan.sessions.iter().filter(|one| one.weight > 0.0)
}
