//! A table that gives up its least important columns when the paper is narrow.

/// A column: its head, how readily it is given up (0: never), and its cells.
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) rank: u8,
    pub(crate) cells: Vec<String>,
}

/// Lays the columns out: the first left-aligned, the others right. Returns the lines and the heads of what had to go.
pub(crate) fn lay_out(mut columns: Vec<Column>, width: usize) -> (Vec<String>, Vec<&'static str>) {
    let mut gone = Vec::new();
    let wide = |column: &Column| {
        let cells = column.cells.iter().map(|cell| cell.chars().count());
        cells.max().unwrap_or(0).max(column.head.chars().count())
    };
    let total = |columns: &[Column]| columns.iter().map(wide).sum::<usize>() + 2 * columns.len();
    while total(&columns) > width {
        let Some(at) = (0..columns.len())
            .filter(|&at| columns[at].rank > 0)
            .max_by_key(|&at| columns[at].rank)
        else {
            break;
        };
        gone.push(columns.remove(at).head);
    }
    let rows = columns
        .iter()
        .map(|column| column.cells.len())
        .max()
        .unwrap_or(0);
    let widths: Vec<usize> = columns.iter().map(wide).collect();
    let line = |cell: &dyn Fn(&Column) -> String| {
        let mut text = String::new();
        for (at, column) in columns.iter().enumerate() {
            let cell = cell(column);
            let gap = " ".repeat(widths[at].saturating_sub(cell.chars().count()));
            if at == 0 {
                text.push_str(&format!("  {cell}{gap}"));
            } else {
                text.push_str(&format!("  {gap}{cell}"));
            }
        }
        text.trim_end().to_owned()
    };
    let mut lines = vec![line(&|column| column.head.to_owned())];
    for row in 0..rows {
        lines.push(line(&|column| {
            column.cells.get(row).cloned().unwrap_or_default()
        }));
    }
    (lines, gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_paper_costs_the_least_important_columns() {
        let columns = || {
            vec![
                Column {
                    head: "name",
                    rank: 0,
                    cells: vec!["a".to_owned()],
                },
                Column {
                    head: "p99",
                    rank: 9,
                    cells: vec!["100 ms".to_owned()],
                },
                Column {
                    head: "mean",
                    rank: 1,
                    cells: vec!["1 ms".to_owned()],
                },
            ]
        };
        let (lines, gone) = lay_out(columns(), 80);
        assert_eq!((lines.len(), gone.len()), (2, 0));
        let (lines, gone) = lay_out(columns(), 14);
        assert_eq!(gone, ["p99"]);
        assert_eq!(lines[1], "  a     1 ms");
    }
}
