//! A table of phases: a row for each kind of request, a column for each phase that any of them had.

use super::table::Column;
use crate::number::maybe_time;
use intact_ledger::Phase;

/// The columns; `names` under `head` first, then what `time_of` tells of a phase in a row, in milliseconds.
pub(super) fn columns(
    head: &'static str,
    names: Vec<String>,
    time_of: impl Fn(usize, Phase) -> Option<f64>,
) -> Vec<Column> {
    let rows = names.len();
    let mut columns = vec![Column {
        head,
        rank: 0,
        cells: names,
    }];
    for phase in Phase::ALL {
        let times: Vec<Option<f64>> = (0..rows).map(|row| time_of(row, phase)).collect();
        if times.iter().any(Option::is_some) {
            columns.push(Column {
                head: match phase {
                    Phase::HeadersToBody => "head-body",
                    phase => phase.id(),
                },
                rank: 0,
                cells: times.into_iter().map(maybe_time).collect(),
            });
        }
    }
    columns
}
