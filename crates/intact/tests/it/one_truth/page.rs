//! The tables and the line of facts of a report, read from the terminal page, Markdown and HTML
//! into one form.

/// One table: heads, and rows of as many cells; the first cell of a row is its label.
#[derive(Debug)]
pub(crate) struct Table {
    pub(crate) heads: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// What a report shows of figures.
#[derive(Debug)]
pub(crate) struct Page {
    /// `15 requests`, `2 to 8 needed`, ...: the parts of the line of facts.
    pub(crate) facts: Vec<String>,
    pub(crate) tables: Vec<Table>,
}

impl Table {
    fn of(mut rows: Vec<Vec<String>>) -> Table {
        let heads = rows.remove(0);
        rows.retain(|row| row.len() == heads.len());
        Table { heads, rows }
    }
}

impl Page {
    /// A terminal page: columns have two spaces or more between them, and sections an empty line.
    pub(crate) fn terminal(text: &str) -> Page {
        let facts = text.lines().nth(1).unwrap_or_default();
        let blocks = text.split("\n\n").map(|block| {
            let rows = block.lines().filter(|line| line.starts_with("  "));
            // a table may have a heading of its own
            let rows = rows.map(columns).skip_while(|cells| cells.len() == 1);
            rows.collect::<Vec<_>>()
        });
        let tables = blocks.filter(|rows| rows.len() > 1);
        Page {
            facts: facts.trim().split(", ").map(str::to_owned).collect(),
            tables: tables.map(Table::of).collect(),
        }
    }

    pub(crate) fn markdown(text: &str) -> Page {
        let facts = text.lines().find(|line| line.contains(" · "));
        let facts = facts.unwrap_or_default().split(" · ").map(unmarked);
        let mut tables = Vec::new();
        let mut rows = Vec::new();
        for line in text.lines().chain([""]) {
            if let Some(cells) = line.strip_prefix("| ") {
                if !cells.starts_with("---") {
                    rows.push(
                        cells
                            .trim_end_matches(" |")
                            .split(" | ")
                            .map(unmarked)
                            .collect(),
                    );
                }
            } else if !rows.is_empty() {
                tables.push(Table::of(std::mem::take(&mut rows)));
            }
        }
        Page {
            facts: facts.collect(),
            tables,
        }
    }

    pub(crate) fn html(text: &str) -> Page {
        let sums = elements(text, "dl").into_iter();
        let sums = sums.filter(|list| list.starts_with("<dl class=\"sum\""));
        let facts = sums.flat_map(|list| elements(list, "div")).map(|fact| {
            let of = |name| unescaped(&elements(fact, name).concat());
            format!("{} {}", of("dd"), of("dt"))
        });
        let tables = elements(text, "table").into_iter().map(|table| {
            let rows = elements(table, "tr").into_iter().map(|row| {
                let cells = row.split("</t").filter_map(|cell| {
                    let from = cell.rfind("<th ").or_else(|| cell.rfind("<td"))?;
                    Some(unescaped(&cell[from..]))
                });
                cells.collect()
            });
            rows.collect::<Vec<Vec<String>>>()
        });
        Page {
            facts: facts.collect(),
            tables: tables
                .filter(|rows| !rows.is_empty())
                .map(Table::of)
                .collect(),
        }
    }
}

/// The cells of a line of the terminal page.
fn columns(line: &str) -> Vec<String> {
    let cells = line.split("  ").map(str::trim);
    cells
        .filter(|cell| !cell.is_empty())
        .map(str::to_owned)
        .collect()
}

/// The elements of a name, each from its start tag to its end tag, which is left out.
fn elements<'a>(text: &'a str, name: &str) -> Vec<&'a str> {
    let starts = [format!("<{name} "), format!("<{name}>")];
    let parts = text.split(&format!("</{name}>")).collect::<Vec<_>>();
    let parts = parts.into_iter().filter_map(|part| {
        let from = starts.iter().filter_map(|start| part.rfind(start)).max()?;
        Some(&part[from..])
    });
    parts.collect()
}

/// Markdown without emphasis and escapes.
fn unmarked(cell: &str) -> String {
    unescaped(&cell.replace("**", "").replace('\\', ""))
}

/// HTML without tags and entities.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut is_tag = false;
    for c in text.chars() {
        match c {
            '<' => is_tag = true,
            '>' => is_tag = false,
            _ if !is_tag => plain.push(c),
            _ => {}
        }
    }
    let entities = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&amp;", "&"),
    ];
    for (entity, c) in entities {
        plain = plain.replace(entity, c);
    }
    plain.trim().to_owned()
}

#[test]
fn the_three_forms_of_a_page_are_read_alike() {
    let terminal = Page::terminal(
        "intact audit a\n  ~3 requests, 2 to 8 needed\n\nDestinations\n  destination  needed  reused\n  http://a b   2 to 8   0.1 %\n",
    );
    let markdown = Page::markdown(
        "## intact audit a\n\n\\~3 requests · **2 to 8** needed\n\n| destination | needed | reused |\n| --- | ---: | ---: |\n| http://a b | 2 to 8 | **0.1 %** |\n",
    );
    let html = Page::html(
        "<dl class=\"sum\">\n<div><dt>requests</dt><dd>~3</dd></div>\n<div><dt>needed</dt><dd>2 to 8</dd></div>\n</dl><table class=\"sortable\"><thead><tr><th scope=\"col\">destination</th><th scope=\"col\" title=\"x\">needed</th><th scope=\"col\">reused</th></tr></thead><tbody><tr><th scope=\"row\">http://a b</th><td class=\"number\">2 to 8</td><td data-key=\"0.001\">0.1 %</td></tr></tbody></table>",
    );
    for page in [terminal, markdown, html] {
        assert_eq!(page.facts, ["~3 requests", "2 to 8 needed"]);
        assert_eq!(page.tables.len(), 1, "{page:?}");
        assert_eq!(page.tables[0].heads, ["destination", "needed", "reused"]);
        assert_eq!(page.tables[0].rows, [["http://a b", "2 to 8", "0.1 %"]]);
    }
}
