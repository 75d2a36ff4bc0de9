//! The page of a model: verdict, both counting rules, calls, remedies, the sequence of packets.

use super::page::Page;
use super::table::Column;
use super::{Style, TerminalOptions, escape};
use crate::diagram;
use intact_model::{Fit, Forecast, Http, Prediction, Tls, WhatIf};
use intact_units::number::{percent, time};

/// Rows of a sequence that are printed.
const ROWS: usize = 60;

/// The page; `fit` where the chain was worked out from a ledger, `what_if` whether remedies are asked for.
pub fn model(
    forecast: &Forecast,
    subject: &str,
    fit: Option<&Fit>,
    what_if: bool,
    paper: TerminalOptions,
) -> String {
    let mut page = Page::on(paper);
    let head = page.paper.ink(Style::Strong, "intact model");
    let name = match forecast.name.as_str() {
        "" => String::new(),
        name => format!(": {}", escape(name)),
    };
    page.line(&format!("{head} {}{name}", escape(subject)));
    page.line("");
    page.wrapped(
        Some(Style::Strong),
        &crate::forecast::verdict(forecast),
        "  ",
    );
    if let Some(fit) = fit {
        for sentence in crate::forecast::fitted(forecast, fit) {
            page.wrapped(None, &escape(&sentence), "  ");
        }
    }
    page.counting(forecast);
    page.calls(forecast);
    if what_if {
        page.remedies(&forecast.what_if);
    }
    if fit.is_none() {
        page.sequence(forecast);
    }
    page.line("");
    for sentence in crate::forecast::LIMITS {
        page.wrapped(Some(Style::Faint), sentence, "  ");
    }
    if !what_if && !forecast.what_if.is_empty() {
        page.wrapped(Some(Style::Faint), "--what-if ranks the remedies", "  ");
    }
    page.text
}

impl Page {
    fn counting(&mut self, forecast: &Forecast) {
        self.title("One request");
        let rows = [
            ("as TCP does it", &forecast.tcp),
            ("packets in series, as on paper", &forecast.series),
        ];
        let column = |head, cell: &dyn Fn(&intact_model::Totals) -> Prediction| Column {
            head,
            rank: 0,
            cells: rows.map(|(_, three)| time(cell(three).total_ms)).to_vec(),
        };
        self.table(vec![
            Column {
                head: "counted",
                rank: 0,
                cells: rows.map(|(name, _)| name.to_owned()).to_vec(),
            },
            column("all new", &|three| three.new),
            column("as configured", &|three| three.configured),
            column("all reused", &|three| three.reused),
        ]);
    }

    fn calls(&mut self, forecast: &Forecast) {
        self.title("Calls (without the service behind them)");
        let column = |head, rank, cell: &dyn Fn(&intact_model::CallForecast) -> String| Column {
            head,
            rank,
            cells: forecast.calls.iter().map(cell).collect(),
        };
        self.table(vec![
            column("call", 0, &|route| {
                format!("{} -> {}", escape(&route.from), escape(&route.call.to))
            }),
            column("times", 0, &|route| match route.call.at_once {
                true => format!("{} at once", route.call.times),
                false => route.call.times.to_string(),
            }),
            column("round trip", 0, &|route| time(route.call.rtt_ms)),
            column("over", 2, &|route| {
                over(route.call.http, route.call.tls).to_owned()
            }),
            column("reused", 1, &|route| percent(route.call.reuse)),
            column("new", 0, &|route| {
                time(route.leg.setup_ms + route.leg.exchange_ms)
            }),
            column("kept", 0, &|route| time(route.leg.exchange_ms)),
        ]);
    }

    fn remedies(&mut self, all: &[WhatIf]) {
        self.title("What if");
        if all.is_empty() {
            self.line("  nothing that is known here would make it faster");
            return;
        }
        let column = |head, cell: &dyn Fn(&WhatIf) -> String| Column {
            head,
            rank: 0,
            cells: all.iter().map(cell).collect(),
        };
        self.table(vec![
            column("remedy", &|one| one.remedy.words().to_owned()),
            column("one request", &|one| time(one.total_ms)),
            column("saves", &|one| time(one.saves_ms)),
            column("once all is reused", &|one| {
                one.saves_when_reused_ms
                    .map_or_else(|| "-".to_owned(), time)
            }),
        ]);
        for one in all {
            if let Some(risk) = one.remedy.risk() {
                self.wrapped(
                    Some(Style::Faint),
                    &format!("{}: {risk}", one.remedy.words()),
                    "  ",
                );
            }
        }
    }

    fn sequence(&mut self, forecast: &Forecast) {
        let sequence = &forecast.sequence;
        self.title("Packets");
        let Some(lines) = diagram::text(sequence, self.paper.width) else {
            let told = format!(
                "{} services do not fit side by side here: --mermaid FILE draws them",
                sequence.lanes.len()
            );
            self.wrapped(Some(Style::Faint), &told, "  ");
            return;
        };
        for (nth, line) in lines.iter().take(ROWS + 1).enumerate() {
            let line = escape(line);
            let line = if nth == 0 {
                self.paper.ink(Style::Faint, &line)
            } else {
                line
            };
            self.line(&line);
        }
        if lines.len() > ROWS + 1 || sequence.cut {
            let told = format!("and {} more", lines.len().saturating_sub(ROWS + 1));
            let told = if sequence.cut {
                format!("{told}, and further ones not worked out")
            } else {
                told
            };
            self.wrapped(Some(Style::Faint), &told, "  ");
        }
    }
}

fn over(http: Http, tls: Tls) -> &'static str {
    match (http, tls) {
        (Http::Quic, Tls::Tls13EarlyData) => "QUIC, early data",
        (Http::Quic, _) => "QUIC",
        (_, Tls::None) => "TCP",
        (_, Tls::Tls12) => "TLS 1.2",
        (_, Tls::Tls12Resumed) => "TLS 1.2 resumed",
        (_, Tls::Tls13) => "TLS 1.3",
        (_, Tls::Tls13EarlyData) => "TLS 1.3 early data",
    }
}
