//! The idle limits along a path: on which hops the side that sends requests does not have the
//! shorter one, what to set, and how many requests are lost there. From limits that were given or
//! read, not measured. Must not read files.

mod loss;
mod settings;
mod subjects;

pub use loss::{GapFacts, HopGaps, LossFacts};
pub use settings::{HopSetting, Side};

use intact_advice::{Client, Remedy};
use intact_document::finding::{Finding, Severity};
use intact_document::statement::{Statement, Value, statement, text, timer_nanos};
use intact_document::{Claim, ClaimKind, Claims};
use intact_ledger::Caveat;
use intact_reading::{Reading, Why};
use intact_timers::{Hop, Idle, Place, Product, Timer};
use intact_traffic::danger_from;
use serde::Serialize;

const RACE: &str = "idle-timeout-race";
const NOT_KEPT: &str = "connection-not-kept";
const UNKNOWN: &str = "idle-timeout-unknown";

/// The findings that a chain can have.
pub const RULES: &[&str] = &[NOT_KEPT, RACE, UNKNOWN];

/// Why no loss is computed.
const NO_LOG: Why = Why::not_measured("add --gaps LOG");
const UNKNOWN_LIMITS: Why = Why::cannot_see("not all limits are known");
const NO_LONG_GAPS: Why =
    Why::cannot_see("the log shows no idle times as long as the limit of a hop that races");
/// Why a loss is a range.
const UNKNOWN_CLIENT: Why =
    Why::cannot_see("whether the client looks at a connection before it sends is not known");

const RISK: &str = "a shorter limit in the client costs a few more connections; a longer one in the server costs memory for each silent client";
/// The most files that a caveat names.
const NAMED: usize = 3;

/// Everything that a report of a chain lays out.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ChainFacts {
    /// A summary in a few sentences, the most important one first.
    pub verdict: Claims,
    /// Hops on which a request can meet a connection that the server is closing. One with an
    /// unknown limit may be one.
    pub races: Reading,
    /// Requests that are expected to be lost on such hops, as a share of all.
    pub lost_share: Reading,
    /// The hops from the client on, each with the one that it sends requests to.
    pub hops: Vec<HopFacts>,
    /// Limits with which the side that sends requests is the shorter one on every hop; empty where
    /// that is so already, or cannot be said.
    pub settings: Vec<HopSetting>,
    /// The idle times that losses are computed from; absent without a log.
    pub gaps: Option<GapFacts>,
    /// What stands out, the worst first.
    pub findings: Vec<Finding>,
    /// What limits the figures.
    pub caveats: Vec<Caveat>,
}

/// Two neighbours: the one that sends requests, and the one that responds.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HopFacts {
    /// The name of the side that sends requests.
    pub client: String,
    /// The name of the side that responds.
    pub server: String,
    /// The longest limit of the connections that the client keeps.
    pub client_idle: IdleFacts,
    /// The shortest limit of the connections that the server accepts.
    pub server_idle: IdleFacts,
    /// Which limit ends an idle connection first.
    pub order: Order,
    /// The client's limit that would be safe below the server's, in seconds; absent where the
    /// order is right or unknown.
    pub set_client_s: Option<f64>,
    /// The server's limit that would be safe above the client's, in seconds; absent as above, and
    /// where the client has none.
    pub set_server_s: Option<f64>,
    /// The requests that are expected to be lost; absent without a log, and where no race is.
    pub loss: Option<LossFacts>,
    /// What keeps connections in the product of the client; absent where it is not known.
    #[serde(skip)]
    keep: Option<String>,
}

/// One limit.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IdleFacts {
    /// What kind of limit it is.
    pub kind: IdleKind,
    /// The limit in seconds; absent unless there is one.
    pub seconds: Option<f64>,
    /// The part of the configuration that it is for; empty for all of it.
    pub scope: String,
    /// Where it comes from: a directive with file and line, a default with its document, or the
    /// command line.
    pub source: String,
}

/// What kind of limit an idle connection has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum IdleKind {
    /// A time.
    After,
    /// None.
    Unlimited,
    /// Connections are not kept.
    NotKept,
    /// It is not known.
    Unknown,
}

/// Which side ends an idle connection first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The client, as it should be.
    ClientFirst,
    /// The client, but so shortly before the server that both timers race.
    Close,
    /// The server: requests are lost.
    ServerFirst,
    /// Neither has a limit.
    NeitherEnds,
    /// One of them does not keep connections.
    NotKept,
    /// A limit is not known.
    Unknown,
}

impl Order {
    /// Whether a request can meet a connection that the server is closing.
    pub fn is_race(self) -> bool {
        matches!(self, Order::ServerFirst | Order::Close)
    }
}

impl IdleFacts {
    fn of(timer: &Timer) -> IdleFacts {
        let (kind, seconds, why) = match timer.idle {
            Idle::After(time) => (IdleKind::After, Some(time.as_secs_f64()), None),
            Idle::Unlimited => (IdleKind::Unlimited, None, None),
            Idle::NotKept => (IdleKind::NotKept, None, None),
            Idle::Unknown(why) => (IdleKind::Unknown, None, Some(why)),
        };
        let source = match (&timer.place, why) {
            (Place::Directive { words, file, line }, None) => format!("{words} ({file}:{line})"),
            (Place::Directive { file, line, .. }, Some(why)) => format!("{why} ({file}:{line})"),
            (_, Some(why)) => why.to_owned(),
            (Place::Given, None) => "given".to_owned(),
            (Place::Default(source), None) => format!("default: {source}"),
        };
        IdleFacts {
            kind,
            seconds,
            scope: timer.scope.clone(),
            source,
        }
    }

    /// A hop about whose side nothing was found.
    fn missing(what: &str) -> IdleFacts {
        IdleFacts {
            kind: IdleKind::Unknown,
            seconds: None,
            scope: String::new(),
            source: what.to_owned(),
        }
    }

    /// The limit in words, as a person configures it.
    fn value(&self) -> Value {
        match (self.kind, self.seconds) {
            (IdleKind::After, Some(seconds)) => Value::Timer(seconds * 1e3),
            (IdleKind::Unlimited, _) => text("no limit"),
            (IdleKind::NotKept, _) => text("not kept"),
            _ => text("unknown"),
        }
    }

    fn nanos(&self) -> Option<u64> {
        self.seconds.map(|seconds| (seconds * 1e9) as u64)
    }
}

/// The limit that counts among several: the longest that a client keeps, the shortest that a server
/// accepts. Connections that are not kept race with none.
fn decisive(timers: &[Timer], is_client: bool) -> Option<&Timer> {
    let weight = |timer: &&Timer| match timer.idle {
        Idle::After(time) if is_client => (2, time.as_nanos()),
        Idle::After(time) => (2, u128::MAX - time.as_nanos()),
        Idle::Unlimited if is_client => (3, 0),
        Idle::Unlimited => (1, 0),
        Idle::NotKept | Idle::Unknown(_) => (0, 0),
    };
    timers.iter().max_by_key(weight)
}

fn unknown(timers: &[Timer]) -> Option<&Timer> {
    timers
        .iter()
        .find(|timer| matches!(timer.idle, Idle::Unknown(_)))
}

impl ChainFacts {
    /// The facts of these hops, of which the first is the client; `gaps`: idle times that a log
    /// showed.
    pub fn new(chain: &[Hop], gaps: Option<&HopGaps>) -> ChainFacts {
        let mut hops = Vec::new();
        for (nth, pair) in chain.windows(2).enumerate() {
            let mut one = neighbours(&pair[0], &pair[1]);
            one.loss = gaps.and_then(|gaps| LossFacts::of(gaps, nth, &one));
            hops.push(one);
        }
        let mut facts = ChainFacts {
            verdict: Claims::default(),
            races: Reading::default(),
            lost_share: Reading::default(),
            settings: settings::consistent(chain, &hops),
            gaps: gaps.map(|gaps| GapFacts::of(gaps, chain)),
            findings: hops.iter().filter_map(finding).collect(),
            caveats: caveats(chain, &hops),
            hops,
        };
        facts
            .findings
            .sort_by_key(|finding| std::cmp::Reverse(finding.severity));
        facts.races = facts.count_of_races();
        facts.lost_share = facts.lost();
        facts.verdict = claims(&facts);
        facts
    }

    fn racing(&self) -> impl Iterator<Item = &HopFacts> {
        self.hops.iter().filter(|hop| hop.order.is_race())
    }

    /// Why the order of a hop is not known, for each of them.
    fn unknown_limits(&self) -> Vec<String> {
        let unknown = self.hops.iter().filter(|hop| hop.order == Order::Unknown);
        let reason = |hop: &HopFacts| {
            let (client, server) = (&hop.client, &hop.server);
            format!("the limits between {client} and {server} are not all known")
        };
        unknown.map(reason).collect()
    }

    /// A hop with an unknown limit may race, and an include that was not read may change any limit.
    fn count_of_races(&self) -> Reading {
        let races = self.racing().count() as f64;
        if let Some(caveat) = self.caveats.iter().find(|one| one.incomplete) {
            return Reading::at_least(races, Why::from(caveat.message.clone()));
        }
        let unknown = self.unknown_limits();
        let most = races + unknown.len() as f64;
        let why = unknown.into_iter().next().map_or(Why::OnlyRange, Why::from);
        Reading::between(races, most, why)
    }

    /// The share of requests that are expected to be lost, from a client that notices each close
    /// at once to one that does not look.
    fn lost(&self) -> Reading {
        if self.gaps.is_none() {
            return Reading::unknown(NO_LOG);
        }
        if !self.races.is_known() {
            return Reading::unknown(UNKNOWN_LIMITS);
        }
        let (mut least, mut most) = (0.0, 0.0);
        for hop in self.racing() {
            let Some(loss) = hop.loss.as_ref().filter(|loss| !loss.is_beyond_the_log) else {
                return Reading::unknown(NO_LONG_GAPS);
            };
            least += loss.lost_share;
            most += loss.lost_share_at_most;
        }
        Reading::between(least, most, UNKNOWN_CLIENT)
    }
}

fn neighbours(client: &Hop, server: &Hop) -> HopFacts {
    let facts = |timer: Option<&Timer>, missing| {
        timer.map_or_else(|| IdleFacts::missing(missing), IdleFacts::of)
    };
    let keeps = |timer| facts(timer, "the configuration passes no requests on");
    let accepts = |timer| facts(timer, "the configuration has no server");
    let mut client_idle = keeps(decisive(&client.keeps, true));
    let mut server_idle = accepts(decisive(&server.accepts, false));
    if !order(&client_idle, &server_idle).is_race() {
        // a limit that is not known may be worse than those that are
        client_idle = unknown(&client.keeps).map_or(client_idle, IdleFacts::of);
        server_idle = unknown(&server.accepts).map_or(server_idle, IdleFacts::of);
    }
    let order = order(&client_idle, &server_idle);
    let is_wrong = order.is_race();
    HopFacts {
        client: client.name.clone(),
        server: server.name.clone(),
        set_client_s: server_idle
            .seconds
            .filter(|_| is_wrong)
            .map(settings::below_s),
        set_server_s: client_idle
            .seconds
            .filter(|_| is_wrong)
            .map(settings::above_s),
        client_idle,
        server_idle,
        order,
        loss: None,
        keep: client.product.and_then(keeping),
    }
}

/// What is set in a product that keeps no connections.
fn keeping(product: Product) -> Option<String> {
    let mut names = product.aliases().iter();
    let proxy = names.find_map(|name| Client::recognise(Some(name), None, None))?;
    proxy.advice(Remedy::StopClosing)
}

fn order(client: &IdleFacts, server: &IdleFacts) -> Order {
    use IdleKind::{NotKept, Unknown, Unlimited};
    match (client.kind, server.kind) {
        (NotKept, _) | (_, NotKept) => return Order::NotKept,
        (Unknown, _) | (_, Unknown) => return Order::Unknown,
        (Unlimited, Unlimited) => return Order::NeitherEnds,
        (Unlimited, _) => return Order::ServerFirst,
        (_, Unlimited) => return Order::ClientFirst,
        _ => {}
    }
    match (client.nanos(), server.nanos()) {
        (Some(client), Some(server)) if client >= server => Order::ServerFirst,
        (Some(client), Some(server)) if client > danger_from(server) => Order::Close,
        _ => Order::ClientFirst,
    }
}

fn finding(hop: &HopFacts) -> Option<Finding> {
    let (rule, severity) = match hop.order {
        Order::ServerFirst => (RACE, Severity::Warning),
        Order::Close => (RACE, Severity::Info),
        Order::NotKept => (NOT_KEPT, Severity::Info),
        Order::Unknown => (UNKNOWN, Severity::Info),
        Order::ClientFirst | Order::NeitherEnds => return None,
    };
    let subject = format!("{} -> {}", hop.client, hop.server);
    let mut evidence = statement!(
        "the limit of {client}: {client_source}; of {server}: {server_source}",
        client = text(&hop.client),
        client_source = text(placed(&hop.client_idle)),
        server = text(&hop.server),
        server_source = text(placed(&hop.server_idle))
    );
    if let Some(loss) = &hop.loss {
        evidence = evidence.and(loss.statement());
    }
    let found = Finding::new(rule, severity, subject, claim(hop)).evidence(evidence);
    Some(
        found
            .fix(fix(hop))
            .risk(if hop.order.is_race() { RISK } else { "" }),
    )
}

/// What is wrong with the limits of a hop, with both.
fn claim(hop: &HopFacts) -> Statement {
    let client = text(&hop.client);
    let client_idle = hop.client_idle.value();
    let server = text(&hop.server);
    let server_idle = hop.server_idle.value();
    let wrong = match hop.order {
        Order::ServerFirst => "the server may close first",
        Order::Close => "the client closes only just before the server",
        _ => {
            return statement!(
                "idle limit of {client}: {client_idle}; of {server}: {server_idle}",
                client = client,
                client_idle = client_idle,
                server = server,
                server_idle = server_idle
            );
        }
    };
    let limits = statement!(
        "idle limit of {client} {client_idle}, of {server} {server_idle}",
        client = client,
        client_idle = client_idle,
        server = server,
        server_idle = server_idle
    );
    Statement::from(wrong).then(": ", limits)
}

fn placed(idle: &IdleFacts) -> String {
    match idle.scope.as_str() {
        "" => idle.source.clone(),
        scope => format!("{scope}: {}", idle.source),
    }
}

fn fix(hop: &HopFacts) -> Statement {
    let client = text(&hop.client);
    let server = text(&hop.server);
    let timer = |seconds: f64| timer_nanos((seconds * 1e9).round() as u64);
    match (hop.order, hop.set_client_s, hop.set_server_s) {
        (Order::NotKept | Order::Unknown, ..)
            if matches!(hop.client_idle.kind, IdleKind::NotKept | IdleKind::Unknown)
                && hop.keep.is_some() =>
        {
            let keep = hop.keep.as_deref().unwrap_or_default();
            statement!("keep connections: {keep}", keep = text(keep))
        }
        (Order::NotKept, ..) => Statement::from(
            "keep connections on both sides of this hop, or accept a setup per request",
        ),
        (Order::Unknown, ..) => {
            Statement::from("write the limit into the configuration, or after the name: NAME=LIMIT")
        }
        (_, Some(set_client), Some(set_server)) => statement!(
            "set the limit of {client} towards {server} to {set_client}, or that of {server} to {set_server}",
            client = client,
            server = server,
            set_client = timer(set_client),
            set_server = timer(set_server)
        ),
        (_, Some(set_client), None) => statement!(
            "set the limit of {client} towards {server} to {set_client}",
            client = client,
            server = server,
            set_client = timer(set_client)
        ),
        _ => Statement::default(),
    }
}

fn claims(facts: &ChainFacts) -> Claims {
    let all = facts.hops.len();
    let races = facts.racing().count();
    let unknown = facts.unknown_limits().len();
    let is_unread = facts.caveats.iter().any(|one| one.incomplete);
    let main = match (races, unknown) {
        (0, 0) if is_unread => Claim::new(
            ClaimKind::Unseen,
            0.0,
            "No race was found in the part of the configuration that was read.",
        ),
        (0, 0) => Claim::new(
            ClaimKind::Well,
            0.0,
            "On every hop the side that sends requests closes first, or no connection is kept.",
        ),
        (0, unknown) => {
            let text =
                format!("No race was found; for {unknown} of {all} hops a limit is missing.");
            Claim::new(ClaimKind::Unseen, 0.0, text)
        }
        (races, _) => {
            let named = facts.racing();
            let named: Vec<String> = named
                .map(|hop| format!("{} -> {}", hop.client, hop.server))
                .collect();
            let hops = if all == 1 { "hop" } else { "hops" };
            let text = format!(
                "On {races} of {all} {hops} the server may close first, because the client's idle limit is not clearly shorter: {}.",
                named.join(", ")
            );
            Claim::new(ClaimKind::Warned, races as f64 / all as f64, text)
        }
    };
    let lost = facts.hops.iter().filter_map(|hop| hop.loss.as_ref());
    let lost = lost.max_by(|one, other| one.lost_share.total_cmp(&other.lost_share));
    let lost = lost.map(|loss| Claim::new(ClaimKind::Note, loss.lost_share, loss.sentence()));
    Claims::ranked(std::iter::once(main).chain(lost))
}

fn caveats(chain: &[Hop], hops: &[HopFacts]) -> Vec<Caveat> {
    let mut all = Vec::new();
    for hop in chain.iter().filter(|hop| !hop.not_read.is_empty()) {
        let names = hop.not_read.iter().take(NAMED);
        let names: Vec<String> = names
            .map(|one| format!("{} ({})", one.name, one.why))
            .collect();
        let more = hop.not_read.len().saturating_sub(NAMED);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        all.push(Caveat::incomplete(
            "includes-not-read",
            format!(
                "{}: not read: {}{more}; limits that are set there are not known",
                hop.name,
                names.join(", ")
            ),
        ));
    }
    if hops.iter().any(|hop| hop.loss.is_some()) {
        all.push(Caveat::new(
            "loss-is-expected",
            "lost requests are expected, not counted: a request is lost if it is sent within a round trip before the server's close arrives; repeats by the client are not seen",
        ));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use intact_document::Facts;
    use std::time::Duration;

    const S: fn(u64) -> Idle = |seconds| Idle::After(Duration::from_secs(seconds));

    fn chain(hops: &[(&str, Idle, Idle)]) -> Vec<Hop> {
        let hops = hops.iter();
        hops.map(|&(name, accepts, keeps)| Hop::given(name, accepts, keeps, accepts == keeps))
            .collect()
    }

    fn facts(hops: &[(&str, Idle, Idle)]) -> ChainFacts {
        ChainFacts::new(&chain(hops), None)
    }

    #[test]
    fn each_hop_whose_client_is_not_shorter_is_named_with_values() {
        let facts = facts(&[
            ("client", S(60), S(60)),
            ("alb", S(60), S(60)),
            ("nginx", S(75), S(75)),
            ("app", S(5), S(5)),
        ]);
        let orders: Vec<Order> = facts.hops.iter().map(|hop| hop.order).collect();
        assert_eq!(
            orders,
            [Order::ServerFirst, Order::ClientFirst, Order::ServerFirst]
        );
        assert_eq!(facts.hops[0].set_client_s, Some(54.0));
        assert_eq!(facts.hops[0].set_server_s, Some(66.0));
        assert_eq!(facts.hops[2].set_client_s, Some(4.0));
        assert_eq!(facts.hops[2].set_server_s, Some(83.0));
        assert_eq!(facts.findings.len(), 2);
        assert!(
            facts
                .findings
                .iter()
                .all(|one| one.rule == RACE && one.severity == Severity::Warning)
        );
        assert!(
            facts.verdict[0]
                .statement
                .contains("client -> alb, nginx -> app"),
            "{:?}",
            facts.verdict
        );
    }

    #[test]
    fn a_client_without_a_limit_races_with_every_server_that_has_one() {
        let facts = facts(&[
            ("a", S(1), Idle::Unlimited),
            ("b", S(5), Idle::Unlimited),
            ("c", Idle::Unlimited, S(1)),
        ]);
        assert_eq!(facts.hops[0].order, Order::ServerFirst);
        assert_eq!(
            (facts.hops[0].set_client_s, facts.hops[0].set_server_s),
            (Some(4.0), None)
        );
        assert_eq!(facts.hops[1].order, Order::NeitherEnds);
    }

    #[test]
    fn a_limit_just_below_the_servers_is_close() {
        let order =
            |client: Idle| facts(&[("a", client, client), ("b", S(60), S(60))]).hops[0].order;
        assert_eq!(
            order(Idle::After(Duration::from_millis(59_500))),
            Order::Close
        );
        assert_eq!(order(S(59)), Order::ClientFirst);
        assert_eq!(order(Idle::NotKept), Order::NotKept);
    }

    #[test]
    fn the_worst_of_several_limits_counts_and_unknown_never_passes() {
        let timer = |idle, scope: &str| Timer {
            idle,
            scope: scope.to_owned(),
            place: Place::Given,
        };
        let mut chain = chain(&[("a", S(1), S(1)), ("b", S(5), S(5))]);
        chain[0].keeps = vec![
            timer(S(2), "x"),
            timer(S(9), "y"),
            timer(Idle::NotKept, "z"),
        ];
        chain[1].accepts = vec![
            timer(S(75), ""),
            timer(S(7), "/slow"),
            timer(Idle::Unlimited, ""),
        ];
        let hop = &ChainFacts::new(&chain, None).hops[0];
        assert_eq!(
            (
                hop.client_idle.scope.as_str(),
                hop.server_idle.scope.as_str()
            ),
            ("y", "/slow")
        );
        chain[0].keeps = vec![
            timer(Idle::NotKept, ""),
            timer(Idle::Unknown("it depends"), ""),
        ];
        let facts = ChainFacts::new(&chain, None);
        assert_eq!(facts.hops[0].order, Order::Unknown);
        assert!(facts.unobserved().hides_findings().is_some());
    }
}
