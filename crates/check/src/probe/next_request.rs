//! The request after an idle time: it shows whether a connection without an end is still open. A
//! NAT or a firewall that forgets a connection sends nothing, and neither does a server that hangs.

use crate::context::ProbeContext;
use crate::line::Line;
use crate::prober::Probed;
use intact_ledger::Side;
use intact_ledger::server_profile::NextRequest;

/// Sends one request on each connection that seems open, and waits for all responses together: a
/// timeout each would take too long. Returns the result by connection.
pub(super) fn ask_all(
    context: &mut ProbeContext<'_>,
    lines: &mut [Line],
) -> Probed<Vec<Option<NextRequest>>> {
    let request = context.keeping_request();
    let prober = &mut context.prober;
    let mut due = vec![None; lines.len()];
    let mut begun = Ok(());
    for (line, due) in lines.iter_mut().zip(&mut due) {
        if !line.is_usable() || line.ended().is_some() {
            continue;
        }
        match prober.begin(line, &request, true) {
            Ok(sent_at) => *due = Some(prober.deadline(sent_at)),
            Err(stopped) => {
                begun = Err(stopped);
                break;
            }
        }
    }
    let answers = prober.finish(lines, due, None)?;
    begun?;
    let next = lines.iter().zip(answers).map(|(line, answered)| {
        Some(NextRequest {
            outcome: answered?.exchange.outcome,
            is_last: line.http.life().announced_by == Some(Side::Server),
        })
    });
    Ok(next.collect())
}
