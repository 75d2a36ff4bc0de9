//! Both directions of an observed connection: exchanges, their times, and the effect of gaps.

mod h2;
mod http1;

use intact_wire::exchange::{Event, Exchange, Outcome};

/// One line per exchange: request, response, sizes, outcome.
fn line(exchange: &Exchange, outcome: Outcome) -> String {
    let stream = exchange
        .stream
        .map_or(String::new(), |stream| format!("{stream}: "));
    let request = exchange.request.as_ref().map_or("?".to_owned(), |request| {
        let (method, target) = (request.method.escape_ascii(), request.target.escape_ascii());
        let close = if request.close && exchange.stream.is_none() {
            " close"
        } else {
            ""
        };
        format!("{method} {target}+{}{close}", request.body_len)
    });
    let response = exchange
        .response
        .as_ref()
        .map_or("-".to_owned(), |response| {
            let close = if response.close && exchange.stream.is_none() {
                " close"
            } else {
                ""
            };
            let unsolicited = if response.solicited {
                ""
            } else {
                " unsolicited"
            };
            format!(
                "{}+{}{close}{unsolicited}",
                response.status, response.body_len
            )
        });
    let pipelined = if exchange.pipelined { " pipelined" } else { "" };
    let interims = if exchange.interims > 0 {
        format!(" interims {}", exchange.interims)
    } else {
        String::new()
    };
    format!("{stream}{request} -> {response}{interims}{pipelined} {outcome:?}")
}

/// The ended exchanges, one line each.
#[derive(Default)]
struct Log(Vec<String>);

impl Log {
    fn take(&mut self, event: Event<'_>) {
        if let Event::Done(exchange, outcome) = event {
            self.0.push(line(exchange, outcome));
        }
    }
}
