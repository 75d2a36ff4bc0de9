//! All results about a chain, ready to be printed.

use crate::chain::{Call, Chain};
use crate::predict::{CallPrediction, Counting, Prediction, Reuse, legs, predict};
use crate::remedy::{WhatIf, what_if};
use crate::sequence::{Sequence, sequence};
use serde::Serialize;

/// The predictions with one counting rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Totals {
    /// With new connections only.
    pub new: Prediction,
    /// With the reuse of the chain.
    pub configured: Prediction,
    /// With reused connections only.
    pub reused: Prediction,
}

/// One call and its prediction, without the work of the called service.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CallForecast {
    /// Name of the caller.
    pub from: String,
    /// The call.
    #[serde(flatten)]
    pub call: Call,
    /// The prediction, with the selected counting rule.
    #[serde(flatten)]
    pub leg: CallPrediction,
}

/// All results about a chain.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Forecast {
    /// Its name.
    pub name: String,
    /// Packets as TCP sends them.
    pub tcp: Totals,
    /// Packets in series.
    pub series: Totals,
    /// The selected counting rule, which applies to the fields below.
    pub counting: Counting,
    /// The calls, the client's first.
    pub calls: Vec<CallForecast>,
    /// The work of each service, in milliseconds.
    pub work_ms: Vec<(String, f64)>,
    /// The savings of each remedy.
    pub what_if: Vec<WhatIf>,
    /// The packets of one request.
    pub sequence: Sequence,
}

impl Forecast {
    /// Computes all results.
    pub fn new(chain: &Chain, counting: Counting, drawn: Reuse) -> Forecast {
        let three = |counting| Totals {
            new: predict(chain, counting, Reuse::Never),
            configured: predict(chain, counting, Reuse::Configured),
            reused: predict(chain, counting, Reuse::Always),
        };
        let routes = |from: &str, calls: &[Call]| -> Vec<CallForecast> {
            let route = |call: &Call| CallForecast {
                from: from.to_owned(),
                call: call.clone(),
                leg: legs(call, counting),
            };
            calls.iter().map(route).collect()
        };
        let mut calls = routes(&chain.client, &chain.calls);
        for (name, service) in &chain.services {
            calls.extend(routes(name, &service.calls));
        }
        let services = chain.services.iter();
        Forecast {
            name: chain.name.clone(),
            tcp: three(Counting::Tcp),
            series: three(Counting::Series),
            counting,
            calls,
            work_ms: services
                .map(|(name, service)| (name.clone(), service.work_ms))
                .collect(),
            what_if: what_if(chain, counting),
            sequence: sequence(chain, counting, drawn),
        }
    }

    /// The predictions with the selected counting rule.
    pub fn chosen(&self) -> &Totals {
        match self.counting {
            Counting::Tcp => &self.tcp,
            Counting::Series => &self.series,
        }
    }
}
