//! `channel-per-call`: a gRPC client opens a connection for each call.

use super::{Attribution, RuleRow};
use intact_document::finding::{Finding, RuleDoc};
use intact_document::statement::{Value, connections, statement};
use intact_ledger::Evidence;

/// Avoidable connections from which on it speaks: a client may open a second one by design.
const LEAST: u64 = 2;

pub(super) static RULE: RuleRow = RuleRow {
    doc: RuleDoc {
        id: "channel-per-call",
        what: "A gRPC client makes a channel for each call. A channel is a connection that carries any number of calls at the same time; each new one pays for lookup, TCP, TLS and HTTP/2 settings again.",
        evidence: "Requests with `Content-Type: application/grpc` that were the first on their connection, against all of them; connections opened beyond those that the peak overlap needs.",
        threshold: "Two avoidable connections to a destination where at least half of the gRPC calls were the first on their connection. A warning from 3 connections on, or from 2 on that are half of all.",
        false_positives: "Programs that make one call and end: each start needs a connection. Channels of different credentials or options are separate on purpose.",
        fix: "Make one channel for each server when the program starts, and give it to every stub. The channel is `grpc.insecure_channel` (Python), `grpc.NewClient` (Go), `ManagedChannel` (Java), `GrpcChannel` (.NET), the client object (Node)",
        risk: "Behind a balancer of connections one channel stays with one server. Let the server end connections at an age (`MAX_CONNECTION_AGE`), or balance in the client (`round_robin`)",
        needs: &[Evidence::Calls],
    },
    fold: || Box::new(findings),
};

fn findings(attribution: &mut Attribution<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (destination, name, counts) in attribution.destinations() {
        let left = attribution.left(destination);
        if left < LEAST || counts.grpc_calls == 0 || counts.grpc_first * 2 < counts.grpc_calls {
            continue;
        }
        let claim = attribution.claim(destination, left);
        attribution.explain_all(destination);
        let said = statement!(
            "{first} of {calls} were the first on their connection",
            first = Value::Number(counts.grpc_first),
            calls = Value::Count(counts.grpc_calls, "gRPC call")
        );
        let evidence = claim.statement().and(statement!(
            "{opened} opened, {needed} needed",
            opened = connections(counts.opened),
            needed = Value::Number(attribution.needed(destination))
        ));
        let finding = Finding::by(&RULE.doc, claim.severity(), name, said, evidence)
            .costing(claim.cost_ms, claim.share);
        findings.push(finding);
    }
    findings
}
