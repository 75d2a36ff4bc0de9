//! What the server reports about itself: `/.intact/ledger` and `/.intact/health`, to this machine
//! only.

use crate::response::Response;
use crate::server_tally::ServerTally;
use std::net::IpAddr;

const JSON: &str = "application/json";
const TEXT: &str = "text/plain";

/// The answer to a path below `/.intact/`. `asked_for_us`: the request names this server as its
/// host, so that it comes from no page of another site whose name leads here (DNS rebinding).
pub(crate) fn answer(
    target: &[u8],
    peer: IpAddr,
    asked_for_us: bool,
    tally: &ServerTally,
) -> Response {
    if !peer.to_canonical().is_loopback() {
        return Response::ours(
            403,
            TEXT,
            "available on the server's own machine only\n".into(),
        );
    }
    if !asked_for_us {
        let words = "only for Host: localhost, the server's address, or a name of --name\n";
        return Response::ours(403, TEXT, words.into());
    }
    match target.split(|&byte| byte == b'?').next().unwrap_or(b"") {
        b"/.intact/health" => Response::ours(200, TEXT, "ok\n".into()),
        b"/.intact/ledger" => match serde_json::to_string(&tally.totals()) {
            Ok(json) => Response::ours(200, JSON, json + "\n"),
            Err(error) => Response::ours(500, TEXT, format!("{error}\n")),
        },
        _ => Response::ours(
            404,
            TEXT,
            "there are /.intact/ledger and /.intact/health\n".into(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_ledger::{Producer, Run, Vantage};

    #[test]
    fn only_this_machine_gets_a_response() {
        let now = jiff::Timestamp::UNIX_EPOCH;
        let run = Run::new(Producer::Serve, "0", Vantage::Server, now, 0, &[]);
        let tally = ServerTally::new(run, 1, &crate::Config::default(), None);
        let status =
            |peer: &str, target: &[u8]| answer(target, peer.parse().unwrap(), true, &tally).status;
        for here in ["127.0.0.1", "::1", "::ffff:127.0.0.1", "127.8.8.8"] {
            assert_eq!(status(here, b"/.intact/ledger"), 200, "{here}");
        }
        for there in ["10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1"] {
            assert_eq!(status(there, b"/.intact/ledger"), 403, "{there}");
            assert_eq!(status(there, b"/.intact/health"), 403, "{there}");
        }
        assert_eq!(status("127.0.0.1", b"/.intact/"), 404);
        let here = "127.0.0.1".parse().unwrap();
        for path in [&b"/.intact/ledger"[..], b"/.intact/health", b"/.intact/"] {
            assert_eq!(answer(path, here, false, &tally).status, 403);
        }
    }
}
