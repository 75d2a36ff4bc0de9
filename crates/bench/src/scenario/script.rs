//! The steps of a plan, ready to run: requests formatted once, repetitions as jumps.

use super::error::ScenarioConfigError;
use crate::config::Config;
use crate::targets::RequestWriter;
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
        let writer = RequestWriter {
            source: self.file,
            config: self.config,
            choice: &self.choice,
            target: self.target,
            address: self.target,
            is_absolute: self.config.proxy.is_some() && self.base.plan.tls.is_none(),
        };
        Ok(VariantPlan {
            variant,
            request: Arc::new(writer.write(request)?),
            ..self.base.clone()
        })
    }
}

/// The sessions with a weight.
pub(super) fn picked(plan: &Plan) -> impl Iterator<Item = &intact_scenario::Session> {
    plan.sessions.iter().filter(|one| one.weight > 0.0)
}
