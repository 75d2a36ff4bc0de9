//! The outcome of a complete response: which statuses the user accepts, and whether the port was
//! the right one.

use intact_ledger::{Exchange, ExpectedStatus, Failure, Outcome};

/// Texts of servers in a 400 to plain HTTP on their TLS port: nginx, Go (and Caddy), Apache,
/// Tomcat.
const SAID_BY_TLS_PORTS: [&[u8]; 4] = [
    b"plain HTTP request was sent to HTTPS port",
    b"Client sent an HTTP request to an HTTPS server",
    b"speaking plain HTTP to an SSL-enabled server port",
    b"This combination of host and port requires TLS",
];

/// Whether a piece of the body of a 400 shows a TLS port.
pub(crate) fn names_tls_port(body: &[u8]) -> bool {
    SAID_BY_TLS_PORTS
        .iter()
        .any(|words| body.windows(words.len()).any(|part| part == *words))
}

/// Sets the outcome of a complete response. A status that `expect` does not allow is a failure. So
/// is a 400 whose body shows a TLS port (`is_tls_port`), unless `expect` allows it.
#[inline]
pub(crate) fn judge(exchange: &mut Exchange, expect: Option<ExpectedStatus>, is_tls_port: bool) {
    let Some(status) = exchange.status else {
        return;
    };
    let allowed = expect.map(|expect| expect.allows(status));
    if is_tls_port && allowed != Some(true) {
        exchange.outcome = Outcome::Failed(Failure::NotPlain);
    } else if allowed == Some(false) {
        exchange.outcome = Outcome::Failed(Failure::UnexpectedStatus);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::Nanos;

    #[test]
    fn the_words_of_servers_show_a_tls_port() {
        let nginx = b"<center>The plain HTTP request was sent to HTTPS port</center>";
        assert!(names_tls_port(nginx));
        assert!(names_tls_port(
            b"Client sent an HTTP request to an HTTPS server.\n"
        ));
        assert!(!names_tls_port(b"<title>400 Bad Request</title>"));
        assert!(!names_tls_port(b""));
    }

    #[test]
    fn what_the_user_named_is_ok_and_nothing_else() {
        let outcome = |status, expect: Option<&str>, is_tls_port| {
            let mut exchange = Exchange::new(1, Nanos(0));
            exchange.status = Some(status);
            let expect = expect.map(|text| text.parse().unwrap());
            judge(&mut exchange, expect, is_tls_port);
            exchange.outcome
        };
        assert_eq!(outcome(404, None, false), Outcome::Ok);
        assert_eq!(outcome(404, Some("404"), false), Outcome::Ok);
        let unexpected = Outcome::Failed(Failure::UnexpectedStatus);
        assert_eq!(outcome(404, Some("2xx"), false), unexpected);
        assert_eq!(outcome(200, Some("404"), false), unexpected);
        let not_plain = Outcome::Failed(Failure::NotPlain);
        assert_eq!(outcome(400, None, true), not_plain);
        assert_eq!(outcome(400, Some("2xx"), true), not_plain);
        assert_eq!(outcome(400, Some("4xx"), true), Outcome::Ok);
    }
}
