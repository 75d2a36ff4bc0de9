//! How traffic was observed, in words and facts.

use crate::page::environment::environment;
use crate::page::{Method, when};
use intact_ledger::{Run, Vantage};

/// How it was observed.
pub(super) fn method(run: &Run) -> Method {
    let from = match run.vantage {
        Vantage::Client => "Seen at the client: times include what it waited for.",
        Vantage::Server => {
            "Seen at the server: clients stand for destinations, and what they waited for before the connection was there cannot be seen."
        }
        Vantage::OnPath => {
            "Seen between client and server: a connection's setup is what its packets or calls show, and what waited for it is told from their order."
        }
    };
    let paragraphs = vec![
        format!(
            "{from} A connection is avoidable when it was opened beyond what the most requests at once to its destination needed. The cost of avoidable connections \
             is their measured setup; each is counted in one finding only, the most specific."
        ),
        "Observing tells what happened and what it took, not what would have happened: there are no intervals. For what a change brings, measure both ways in one \
         experiment (`intact bench`)."
            .to_owned(),
        "A request that waited for any part of its connection's setup is new, also if it did not open the connection itself. Phases and latencies are of complete \
         requests."
            .to_owned(),
    ];
    let mut facts = vec![
        ("Command", run.argv.join(" ")),
        ("Started", when(&run.started)),
    ];
    facts.extend(environment(run));
    facts.retain(|(_, words)| !words.trim().is_empty());
    Method { paragraphs, facts }
}
