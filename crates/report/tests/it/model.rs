//! The page of a model: the chain of docs/reference/model.md, and one that follows from a ledger.

use crate::{observed, written};
use intact_model::{Chain, Counting, Fit, Forecast, Reuse};
use intact_report::documents::{model, sequence_of};
use intact_report::page::Page;

fn documented() -> Chain {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/model.md");
    let page = std::fs::read_to_string(path).unwrap();
    let chain = page.split("```toml\n").nth(1).unwrap();
    intact_model::parse(chain.split("```").next().unwrap()).unwrap()
}

fn page<'a>(forecast: &'a Forecast, fit: Option<&Fit>) -> Page<'a> {
    model(forecast, "shop.toml", fit)
}

#[test]
fn the_prediction_of_a_chain() {
    let forecast = Forecast::new(&documented(), Counting::Tcp, Reuse::Configured);
    insta::assert_snapshot!(written::terminal(&[page(&forecast, None)]));
    let (markdown, html) = written::files("model", &[page(&forecast, None)]);
    for words in ["as configured", "no bandwidth", "once all is reused"] {
        assert!(markdown.contains(words) && html.contains(words), "{words}");
    }
    // one line for each packet
    assert!(
        html.contains("\n     0.0") && html.contains("│ work "),
        "{html}"
    );
    assert!(markdown.contains("```mermaid\nsequenceDiagram\n    participant p0 as browser\n"));
}

#[test]
fn a_prediction_from_a_ledger_is_compared_with_it_and_has_no_packets() {
    let (_, facts) = observed::facts();
    let fit = intact_model::fit("node", &facts).unwrap();
    let forecast = Forecast::new(&fit.chain, Counting::Tcp, Reuse::Configured);
    let page = written::terminal(&[page(&forecast, Some(&fit))]);
    assert!(
        page.contains("requests of the ledger, one after the other: "),
        "{page}"
    );
    assert!(
        page.contains("Left out: ") && !page.contains("\nPackets\n"),
        "{page}"
    );
}

#[test]
fn packets_keep_their_lanes() {
    let forecast = Forecast::new(&documented(), Counting::Tcp, Reuse::Configured);
    let drawn = sequence_of(&forecast.sequence);
    for (arrow, drawn) in forecast.sequence.arrows.iter().zip(&drawn.arrows) {
        assert_eq!(arrow.from, forecast.sequence.lanes[drawn.from]);
        assert_eq!(arrow.to, forecast.sequence.lanes[drawn.to]);
    }
    assert_eq!(drawn.more, (!forecast.sequence.cut).then_some(0));
}
