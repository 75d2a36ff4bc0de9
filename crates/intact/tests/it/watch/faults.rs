//! `watch --fault`: the card of a real program, and what the server counted of its requests.

use crate::peers::program;
use crate::program::{Server, exchanges, intact};
use serde::Deserialize;
use std::path::Path;
use std::process::Output;

/// Every kind, with times that a short program reaches.
const EACH: [&str; 2] = ["--fault", "each,nat-idle=100ms,max-age=100ms"];

#[derive(Debug, Deserialize)]
struct Card {
    is_safe: bool,
    verdict: Vec<String>,
    cells: Vec<Cell>,
}

#[derive(Debug, Deserialize)]
#[serde(from = "Written")]
struct Cell {
    name: String,
    outcome: String,
    not_applied: Option<String>,
    sent: u64,
    reached: Bounds,
    recovered: Bounds,
    failed: Bounds,
    duplicated: Bounds,
    truncated: Bounds,
    leaked: Bounds,
    hung_ms: Option<f64>,
    hung_at_least: bool,
}

/// The ends of a count; one without an upper end has the largest number.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Bounds {
    least: u64,
    most: u64,
}

/// A cell as JSON has it: what is not known is null, with its ends in `bounds`.
#[derive(Deserialize)]
struct Written {
    #[serde(flatten)]
    fields: serde_json::Map<String, serde_json::Value>,
}

impl Written {
    /// The ends of a figure, of those that it has.
    fn ends(&self, key: &str) -> [Option<f64>; 2] {
        let value = &self.fields[key];
        match self.fields.get("bounds").and_then(|all| all.get(key)) {
            None => [value.as_f64(); 2],
            Some(bounds) => {
                assert!(value.is_null() && bounds["why"].is_string(), "{bounds}");
                ["low", "high"].map(|end| bounds[end].as_f64())
            }
        }
    }

    fn count(&self, key: &str) -> Bounds {
        let [least, most] = self.ends(key);
        Bounds {
            least: least.map_or(0, |value| value as u64),
            most: most.map_or(u64::MAX, |value| value as u64),
        }
    }

    fn text(&self, key: &str) -> Option<String> {
        self.fields[key].as_str().map(str::to_owned)
    }
}

impl From<Written> for Cell {
    fn from(written: Written) -> Cell {
        let [hung_ms, longest] = written.ends("hung_ms");
        Cell {
            name: written.text("name").unwrap(),
            outcome: written.text("outcome").unwrap(),
            not_applied: written.text("not_applied"),
            sent: written.fields["sent"].as_u64().unwrap(),
            reached: written.count("reached"),
            recovered: written.count("recovered"),
            failed: written.count("failed"),
            duplicated: written.count("duplicated"),
            truncated: written.count("truncated"),
            leaked: written.count("leaked"),
            hung_ms,
            hung_at_least: hung_ms.is_some() && longest.is_none(),
        }
    }
}

const NONE: Bounds = Bounds { least: 0, most: 0 };
const ONE: Bounds = Bounds { least: 1, most: 1 };

/// What a client did under faults.
struct Faulted {
    out: Output,
    card: Card,
    /// Requests that the server counted.
    served: u64,
}

impl Faulted {
    fn cell(&self) -> &Cell {
        assert_eq!(self.card.cells.len(), 1, "{:?}", self.card);
        &self.card.cells[0]
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.out.stderr).into_owned()
    }
}

fn run(options: &[&str], client: &[&str]) -> Option<Faulted> {
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.json");
    let json = format!("--json={}", path.display());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/watch/faults.py");
    program("python3", "watch Python under faults")?;
    let host = format!("127.0.0.1:{}", server.plain_port());
    let mut words = vec!["watch", &json];
    words.extend_from_slice(options);
    words.extend(["--", "python3", script, &*host]);
    words.extend_from_slice(client);
    let out = intact(&words);
    let tally = server.end();
    let cells = tally["cells"].as_array().unwrap();
    Some(Faulted {
        card: read(&path, &out),
        served: cells.iter().map(exchanges).sum(),
        out,
    })
}

fn read(path: &Path, out: &Output) -> Card {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{error}: {out:?}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_request_that_is_sent_again_in_time_is_recovered_and_reaches_the_server_once() {
    let options = [
        "--fault",
        "none,black-hole",
        "--require",
        "fault: duplicated == 0",
    ];
    let Some(faulted) = run(&options, &["3", "POST", "retry", "timeout=0.5"]) else {
        return;
    };
    let cell = faulted.cell();
    assert_eq!(cell.outcome, "recovered", "{:?}", faulted.card);
    assert_eq!(
        (cell.recovered, cell.failed, cell.duplicated),
        (ONE, NONE, NONE)
    );
    assert!(
        cell.hung_ms.unwrap() >= 400.0 && !cell.hung_at_least,
        "{cell:?}"
    );
    // three without the fault, and three of the four with it
    assert_eq!((cell.sent, faulted.served), (4, 3 + 3), "{cell:?}");
    assert_eq!(cell.reached, Bounds { least: 3, most: 3 });
    assert_eq!(faulted.out.status.code(), Some(0), "{}", faulted.text());
    let verdict = &faulted.card.verdict[0];
    assert!(
        verdict.starts_with("The program coped with black-hole"),
        "{verdict}"
    );
    assert!(
        !faulted.card.is_safe,
        "one kind does not show that reuse is safe"
    );
}

#[test]
fn a_request_without_a_further_attempt_failed_to_the_caller() {
    let Some(faulted) = run(&["--fault", "fin-race"], &["3", "POST"]) else {
        return;
    };
    let cell = faulted.cell();
    assert_eq!(
        (&*cell.outcome, cell.failed),
        ("failed", ONE),
        "{:?}",
        faulted.card
    );
    assert_eq!((cell.sent, faulted.served), (2, 1), "{cell:?}");
    assert_eq!(cell.reached, ONE, "the server received the first one only");
    // the program's own code
    assert_eq!(faulted.out.status.code(), Some(1), "{}", faulted.text());
}

#[test]
fn a_hang_that_no_timeout_ends_is_a_lower_bound_and_opens_no_gate() {
    let gate = ["--require", "fault.black-hole: hung < 10s"];
    let options = ["--fault", "black-hole", "--fault-wait", "1500ms"];
    let Some(faulted) = run(
        &[&options[..], &gate[..]].concat(),
        &["2", "GET", "keep-going"],
    ) else {
        return;
    };
    let cell = faulted.cell();
    assert_eq!(cell.outcome, "hung", "{:?}", faulted.card);
    assert!(
        cell.hung_at_least && cell.hung_ms.unwrap() >= 1_400.0,
        "{cell:?}"
    );
    assert_eq!(faulted.out.status.code(), Some(1), "{}", faulted.text());
    assert!(faulted.text().contains("at least"), "{}", faulted.text());
    let verdict = &faulted.card.verdict[0];
    assert!(
        verdict.contains("GET /1") && verdict.contains("no timeout of the program ended the wait"),
        "{verdict}"
    );
}

#[test]
fn a_post_whose_response_was_cut_and_that_is_sent_again_reaches_the_server_twice() {
    let options = [
        "--fault",
        "none,reset-mid-response",
        "--require",
        "fault: duplicated == 0",
    ];
    let Some(faulted) = run(&options, &["3", "POST", "retry"]) else {
        return;
    };
    let cell = faulted.cell();
    assert_eq!(
        (&*cell.outcome, cell.duplicated),
        ("duplicated", ONE),
        "{:?}",
        faulted.card
    );
    // both attempts are in the server's own count, after three requests without the fault
    assert_eq!((cell.sent, faulted.served), (4, 3 + 4), "{cell:?}");
    assert_eq!(cell.reached, Bounds { least: 4, most: 4 });
    assert_eq!(faulted.out.status.code(), Some(1), "{}", faulted.text());
    let verdict = &faulted.card.verdict[0];
    assert!(verdict.starts_with("The program sent POST /"), "{verdict}");
    let Some(get) = run(&options, &["3", "GET", "retry"]) else {
        return;
    };
    let cell = get.cell();
    assert_eq!(
        (&*cell.outcome, cell.duplicated),
        ("recovered", NONE),
        "a GET may be repeated"
    );
}

#[test]
fn the_second_of_two_equal_requests_is_no_retry() {
    let client = ["3", "POST", "keep-going", "equal"];
    let kind = "early-close-after-headers";
    let Some(compared) = run(&["--fault", &format!("none,{kind}")], &client) else {
        return;
    };
    let cell = compared.cell();
    assert_eq!(
        (&*cell.outcome, cell.failed, cell.duplicated),
        ("truncated", ONE, NONE),
        "{:?}",
        compared.card
    );
    let Some(alone) = run(&["--fault", kind], &client) else {
        return;
    };
    let cell = alone.cell();
    let either = Bounds { least: 0, most: 1 };
    assert_eq!(
        (&*cell.outcome, cell.failed, cell.duplicated),
        ("possibly-duplicated", either, either),
        "{:?}",
        alone.card
    );
    assert!(
        alone.text().contains("--fault none,KIND"),
        "{}",
        alone.text()
    );
}

#[test]
fn a_cut_body_that_the_program_swallows_may_count_as_complete() {
    let cut = ["--fault", "early-close-after-headers"];
    let Some(faulted) = run(&cut, &["3", "GET", "swallow"]) else {
        return;
    };
    let cell = faulted.cell();
    assert_eq!(cell.outcome, "truncated", "{:?}", faulted.card);
    assert_eq!(cell.truncated, Bounds { least: 0, most: 1 });
    let Some(noticed) = run(&cut, &["3", "GET"]) else {
        return;
    };
    let cell = noticed.cell();
    assert_eq!(
        (&*cell.outcome, cell.truncated),
        ("failed", NONE),
        "{:?}",
        noticed.card
    );
    // a reset is an error of the read
    let reset = run(
        &["--fault", "none,reset-mid-response"],
        &["3", "GET", "keep-going"],
    );
    let Some(reset) = reset else { return };
    let cell = reset.cell();
    let seen = (&*cell.outcome, cell.failed, cell.truncated);
    assert_eq!(seen, ("failed", ONE, NONE), "{:?}", reset.card);
}

#[test]
fn a_connection_that_the_server_closed_and_the_program_keeps_is_left_open() {
    let Some(faulted) = run(&["--fault", "stale"], &["4", "GET", "leak", "idle=0.1"]) else {
        return;
    };
    let cell = faulted.cell();
    assert_eq!(
        (&*cell.outcome, cell.leaked),
        ("leaked", ONE),
        "{:?}",
        faulted.card
    );
    let options = ["--fault", "none,stale"];
    let Some(closed) = run(&options, &["4", "GET", "retry", "idle=0.1"]) else {
        return;
    };
    let cell = closed.cell();
    assert_eq!(
        (&*cell.outcome, cell.leaked),
        ("recovered", NONE),
        "{:?}",
        closed.card
    );
}

#[test]
fn a_kind_that_could_not_be_applied_fails_each_gate_on_it() {
    let gates = ["--require", "fault.stale: failed == 0"];
    let Some(faulted) = run(
        &[&["--fault", "stale"], &gates[..]].concat(),
        &["3", "GET", "fresh"],
    ) else {
        return;
    };
    let cell = faulted.cell();
    assert_eq!(cell.outcome, "not-applied", "{:?}", faulted.card);
    assert!(cell.not_applied.is_some() && !faulted.card.is_safe);
    assert_eq!(faulted.out.status.code(), Some(1), "{}", faulted.text());
}

/// What the card holds, without times.
fn outcomes(card: &Card) -> Vec<String> {
    let one = |cell: &Cell| {
        let Cell {
            name,
            outcome,
            not_applied,
            sent,
            reached,
            recovered,
            failed,
            duplicated,
            ..
        } = cell;
        format!(
            "{name}: {outcome} {not_applied:?} {sent} {reached:?} {recovered:?} {failed:?} {duplicated:?}"
        )
    };
    card.cells.iter().map(one).collect()
}

#[test]
fn a_run_without_a_fault_decides_whether_a_reset_while_idle_failed_a_request() {
    let client = ["5", "GET", "retry", "idle=0.3"];
    for (kinds, code, failed) in [
        ("rst", 1, Bounds { least: 0, most: 1 }),
        ("none,rst", 0, NONE),
    ] {
        let gate = ["--fault", kinds, "--require", "fault: failed == 0"];
        let Some(faulted) = run(&gate, &client) else {
            return;
        };
        assert_eq!(faulted.cell().failed, failed, "{kinds}");
        assert_eq!(faulted.out.status.code(), Some(code), "{}", faulted.text());
        let is_remedy_named = faulted.text().contains("`--fault none,KIND`");
        assert_eq!(is_remedy_named, code == 1, "{}", faulted.text());
    }
}

#[test]
fn a_client_that_repeats_its_requests_in_time_is_safe_under_each_kind() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name).display().to_string();
    let (ledger, junit, html) = (place("ledger"), place("junit.xml"), place("card.html"));
    let options = [
        "--ledger",
        &ledger,
        "--junit",
        &junit,
        "--report",
        &html,
        "--fail-on",
        "warning",
        "--require",
        "fault: failed == 0",
        "--require",
        "fault: hung < 10s",
    ];
    let client = ["5", "GET", "retry", "timeout=0.5", "idle=0.3"];
    let Some(faulted) = run(&[&EACH[..], &options[..]].concat(), &client) else {
        return;
    };
    let card = &faulted.card;
    assert!(card.is_safe, "{}", faulted.text());
    assert!(
        card.verdict[0].starts_with("Safe to reuse: 11 kinds"),
        "{:?}",
        card.verdict
    );
    assert_eq!(card.cells.len(), 15);
    // the connections speak HTTP/1, and the program dials an address
    let unsuited = card.cells.iter().filter(|cell| cell.outcome == "unsuited");
    let unsuited: Vec<&str> = unsuited.map(|cell| &*cell.name).collect();
    let none = ["goaway", "moved", "other-server", "partial-goaway"];
    assert_eq!(unsuited, none);
    assert_eq!(faulted.out.status.code(), Some(0), "{}", faulted.text());
    // the run without a fault, and what reached the server in the others
    let reached: u64 = card.cells.iter().map(|cell| cell.reached.least).sum();
    assert_eq!(faulted.served, 5 + reached, "{:?}", card.cells);
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(
        xml.contains("failures=\"0\"") && xml.contains("duplicate-request"),
        "{xml}"
    );
    assert!(
        std::fs::read_to_string(&html)
            .unwrap()
            .contains("Safe to reuse")
    );
    let again = intact(&["report", &ledger, "--require", "fault.goaway: failed == 0"]);
    let page = String::from_utf8_lossy(&again.stdout);
    assert!(
        page.contains("Safe to reuse") && page.contains("black-hole"),
        "{page}"
    );
    assert_eq!(again.status.code(), Some(1), "goaway was not applied");
}

#[test]
fn the_same_seed_gives_the_same_card_and_a_retried_post_fails_the_gate() {
    let gate = ["--fault-seed", "7", "--require", "fault: duplicated == 0"];
    let client = ["5", "POST", "retry", "timeout=0.5", "idle=0.3"];
    let cards = [(); 2].map(|()| run(&[&EACH[..], &gate[..]].concat(), &client));
    let [Some(first), Some(second)] = cards else {
        return;
    };
    assert_eq!(outcomes(&first.card), outcomes(&second.card));
    assert_eq!(first.out.status.code(), Some(1), "{}", first.text());
    let twice = first
        .card
        .cells
        .iter()
        .filter(|cell| cell.outcome == "duplicated");
    let twice: Vec<&str> = twice.map(|cell| &*cell.name).collect();
    assert_eq!(
        twice,
        ["reset-mid-response", "early-close-after-headers"],
        "{:?}",
        first.card
    );
}

#[test]
fn a_program_that_fails_without_a_fault_gets_no_verdict() {
    let faulted = run(
        &["--fault", "stale,rst", "--require", "fault: failed == 0"],
        &["no"],
    );
    let Some(faulted) = faulted else { return };
    // its own code, not that of the gate
    assert_eq!(faulted.out.status.code(), Some(1), "{}", faulted.text());
    assert!(
        faulted.card.verdict[0].starts_with("no verdict"),
        "{:?}",
        faulted.card
    );
    assert!(
        faulted
            .card
            .cells
            .iter()
            .all(|cell| cell.not_applied.is_some())
    );
    let cause = faulted.card.cells[0].not_applied.as_deref();
    assert_eq!(cause, Some("baseline-failed"));
}

/// Five connections that are kept, then requests in turn, each sent again once: Node takes the next
/// connection of its pool.
const POOL: &str = r"
const http = require('http');
const [host, port] = process.argv[1].split(':');
const agent = new http.Agent({ keepAlive: true, maxSockets: 5 });
const get = path => new Promise((resolve, reject) => {
  const request = http.get({ host, port, path, agent }, response => {
    response.resume();
    response.on('end', () => resolve(response.statusCode));
    response.on('error', reject);
  });
  request.on('error', reject);
  request.setTimeout(1500, () => request.destroy(new Error('timeout')));
});
const twice = path => get(path).catch(() => get(path));
(async () => {
  await Promise.all([1, 2, 3, 4, 5].map(n => twice(`/delay/100?${n}`)));
  for (const n of [1, 2]) {
    await new Promise(resolve => setTimeout(resolve, 300));
    await twice(`/?${n}`).then(console.log, error => console.log(error.message));
  }
})();
";

/// What the pool printed under `--fault`, and its card.
fn pool(options: &[&str]) -> Option<(String, Card, String)> {
    program("node", "watch a pool of Node under faults")?;
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.json");
    let json = format!("--json={}", path.display());
    let host = format!("127.0.0.1:{}", server.plain_port());
    let mut words = vec!["watch", &json, "--show-output"];
    words.extend_from_slice(options);
    words.extend(["--", "node", "-e", POOL, &*host]);
    let out = intact(&words);
    let page = String::from_utf8_lossy(&out.stderr);
    let page: Vec<&str> = page.split_whitespace().collect();
    let printed = String::from_utf8_lossy(&out.stdout).into_owned();
    Some((printed, read(&path, &out), page.join(" ")))
}

#[test]
fn a_retry_that_takes_the_next_dead_connection_of_the_pool_fails() {
    let options = ["--fault", "fin-race", "--fault-scope"];
    let Some((printed, one, _)) = pool(&[&options[..], &["one"]].concat()) else {
        return;
    };
    // one connection of five: the retry meets a live one
    assert!(!printed.contains("hang up"), "{printed}: {one:?}");
    let (printed, all, page) = pool(&[&options[..], &["all"]].concat()).unwrap();
    assert_eq!(
        printed.matches("socket hang up").count(),
        2,
        "{printed}: {all:?}"
    );
    let cell = &all.cells[0];
    assert_eq!(
        (&*cell.outcome, cell.failed.least),
        ("failed", 2),
        "{all:?}"
    );
    assert!(page.contains("retry on a new connection"), "{page}");
    assert!(
        page.contains("Let the client send the request again on a new connection"),
        "{page}"
    );
}

#[test]
fn both_scopes_are_tried_and_the_whole_pool_decides() {
    let Some((_, card, page)) = pool(&["--fault", "none,fin-race,recycled"]) else {
        return;
    };
    let failed = |name: &str| {
        let cell = card.cells.iter().find(|cell| cell.name == name);
        cell.map(|cell| (&*cell.outcome, cell.failed))
    };
    let two = Bounds { least: 2, most: 2 };
    for kind in ["fin-race", "recycled"] {
        assert_eq!(failed(kind), Some(("failed", two)), "{page}");
        // a request that one dead connection does not fail shows nothing more, or that
        let one = failed(&format!("{kind}/one"));
        assert!(one.is_none_or(|(_, failed)| failed == NONE), "{page}");
    }
    assert!(!card.is_safe);
}

/// Requests by name, each tried twice. With `once` the name is looked up for the first one alone.
const NAMED: &str = r"
import http.client, socket, sys, time

class Client(http.client.HTTPConnection):
    address = None
    def connect(self):
        if Client.address is None or sys.argv[1] == 'each':
            Client.address = socket.getaddrinfo('api.test', 8080, socket.AF_INET)[0][4]
        self.sock = socket.create_connection(Client.address)
        print(self.sock.getpeername() == Client.address)

client = Client('api.test', 8080)
for n in range(4):
    for _ in range(2):
        try:
            client.request('GET', '/?%d' % n)
            response = client.getresponse()
            print(response.status, response.read() and 'ok')
            break
        except OSError as error:
            print(type(error).__name__)
            client.close()
    time.sleep(0.3)
";

/// The card of [`NAMED`] under a fault of its address, and what it printed.
fn named(lookups: &str, kind: &str) -> (Card, String) {
    let folder = tempfile::tempdir().unwrap();
    let words = [
        env!("CARGO_BIN_EXE_intact"),
        "watch",
        "--quiet",
        "--show-output",
        "--json=card.json",
        "--fault",
        kind,
        "--resolver",
        "127.0.0.9",
        "--",
        "python3",
        "-c",
        NAMED,
        lookups,
    ];
    let server = "--dns-name api.test=127.0.0.1";
    let out = super::resolver::stage(folder.path(), server, &words, &[]);
    let printed = String::from_utf8_lossy(&out.stdout).into_owned();
    (read(&folder.path().join("card.json"), &out), printed)
}

#[test]
fn a_client_that_looks_a_moved_name_up_again_recovers_and_one_that_does_not_fails() {
    for name in ["python3", "unshare", "ip"] {
        if program(name, "a name that moves").is_none() {
            return;
        }
    }
    for (lookups, outcome, failed) in [("each", "recovered", NONE), ("once", "failed", ONE)] {
        let (card, printed) = named(lookups, "none,moved");
        let cell = &card.cells[0];
        assert_eq!(&*cell.outcome, outcome, "{card:?} {printed}");
        assert!(cell.failed.least >= failed.least, "{card:?}");
        assert_eq!(cell.failed.most == 0, failed == NONE, "{card:?}");
        let is_refused = printed.contains("ConnectionRefusedError");
        assert_eq!(is_refused, lookups == "once", "{printed}");
    }
}

#[test]
fn a_response_of_another_server_at_the_address_is_no_success() {
    for name in ["python3", "unshare", "ip"] {
        if program(name, "another server at an address").is_none() {
            return;
        }
    }
    let three = Bounds { least: 3, most: 3 };
    for (lookups, outcome, failed) in [("each", "recovered", NONE), ("once", "misled", three)] {
        let (card, printed) = named(lookups, "none,other-server");
        let cell = &card.cells[0];
        assert_eq!(
            (&*cell.outcome, cell.failed),
            (outcome, failed),
            "{card:?} {printed}"
        );
        // the program sees the address that it asked for, and the other server's status
        assert!(!printed.contains("False"), "{printed}");
        let others = printed.lines().filter(|line| *line == "404 ok").count() as u64;
        assert_eq!(others, failed.most, "{printed}");
        assert_eq!(cell.reached.most, cell.sent - 1 - failed.most, "{card:?}");
    }
}

/// A connection that a thread opens, which has ended by the second request.
const ENDED_THREAD: &str = r"
import http.client, sys, threading

client = http.client.HTTPConnection(sys.argv[1], timeout=1.5)
def get():
    client.request('GET', '/')
    print(client.getresponse().read() and 'ok')
thread = threading.Thread(target=get)
thread.start()
thread.join()
threading.Event().wait(0.3)
try:
    get()
except OSError as error:
    print(type(error).__name__)
";

#[test]
fn a_silent_connection_stays_silent_when_the_thread_that_opened_it_has_ended() {
    if program("python3", "a thread that ends").is_none() {
        return;
    }
    let server = Server::start(&[]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("card.json");
    let json = format!("--json={}", path.display());
    let host = format!("127.0.0.1:{}", server.plain_port());
    let words = [
        "watch",
        "--quiet",
        &json,
        "--fault",
        "black-hole",
        "--",
        "python3",
        "-c",
    ];
    let out = intact(&[&words[..], &[ENDED_THREAD, &host]].concat());
    let card = read(&path, &out);
    let printed = String::from_utf8_lossy(&out.stdout);
    assert_eq!(
        printed.lines().collect::<Vec<_>>(),
        ["ok", "TimeoutError"],
        "{card:?}"
    );
    let cell = &card.cells[0];
    assert_eq!((&*cell.outcome, cell.failed), ("hung", ONE), "{card:?}");
}
