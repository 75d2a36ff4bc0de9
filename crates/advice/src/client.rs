//! Clients and proxies: the command, the product in `User-Agent` and the idle limit by which each
//! is recognised, and its setting for each remedy.

use crate::table;
use serde::Deserialize;
use std::collections::BTreeMap;

/// What is to be done, whatever the library calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Remedy {
    /// Make one client and use it for every call.
    ShareClient,
    /// Read responses to their end.
    Drain,
    /// Keep more idle connections for a destination.
    WidenPool,
    /// Keep connections to more destinations.
    MoreDestinations,
    /// Close idle connections before the server does, or retry.
    ShortenIdle,
    /// Keep idle connections for longer.
    LengthenIdle,
    /// Leave `Connection: close` out.
    StopClosing,
    /// Notice that a connection is dead.
    CheckAlive,
}

/// A runtime, a library or a proxy.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Client {
    /// Its usual name.
    pub name: String,
    /// The row of its runtime, whose settings are its own where it has none.
    runtime: Option<String>,
    /// The rows that it can be, where what is seen does not distinguish them.
    #[serde(default)]
    either: Vec<String>,
    /// Names of processes, without a version.
    #[serde(default)]
    commands: Vec<String>,
    /// Products in `User-Agent`, without a version.
    #[serde(default)]
    products: Vec<String>,
    /// Seconds after which it closes an idle connection by default, where no other client does.
    idle_s: Option<f64>,
    /// The argument with which `intact fix` prints what was measured; empty for its list.
    pub fix: Option<String>,
    /// The documentation of its settings, or that they were measured.
    pub source: String,
    /// The option that limits idle time, with a place for the value.
    pub idle_setting: Option<IdleSetting>,
    /// Whether it ends idle connections by RST, also where it has read the last response.
    #[serde(default)]
    pub resets: bool,
    /// Whether it loads pages: what a page decides replaces what a program would set.
    #[serde(default)]
    pub is_browser: bool,
    /// The row that it is where its requests are streams of HTTP/2 or HTTP/3.
    with_streams: Option<String>,
    /// Its settings.
    #[serde(default)]
    remedy: BTreeMap<Remedy, String>,
}

/// An option that limits how long a connection is kept idle.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct IdleSetting {
    /// The option, with `{}` for the value.
    option: String,
    unit: Unit,
}

/// The unit that an option takes.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Unit {
    Milliseconds,
    WholeSeconds,
    /// With a fraction, if there is one.
    Seconds,
    /// `7 * time.Second`, or milliseconds where it is no whole second.
    Go,
}

/// An idle limit is late by up to 5 % and 0.2 s.
const LATE: (f64, f64) = (1.05, 0.2);

/// All clients, in the order of the file.
pub fn clients() -> &'static [Client] {
    &table().client
}

/// What helps with a client that is not recognised.
pub fn unrecognised(remedy: Remedy) -> Option<&'static str> {
    table().any_client.get(&remedy).map(String::as_str)
}

/// The client or proxy of this name.
pub fn named(name: &str) -> Option<&'static Client> {
    clients().iter().find(|client| client.name == name)
}

impl Client {
    /// The client of a process with this command that sends this `User-Agent` and closes
    /// connections after this idle time in seconds. A library of the command's runtime is more than
    /// the runtime. Any other `User-Agent` of a known command is not its own: proxies forward it.
    pub fn recognise(
        command: Option<&str>,
        agent: Option<&str>,
        idle_s: Option<f64>,
    ) -> Option<&'static Client> {
        let first = |is: &dyn Fn(&Client) -> bool| clients().iter().find(|client| is(client));
        let command = command.and_then(|command| first(&|one| one.has_command(command)));
        // a library's product says more than that of the runtime next to it
        let agent = agent.and_then(|agent| {
            let library = first(&|one| one.runtime.is_some() && one.has_product(agent));
            library.or_else(|| first(&|one| one.has_product(agent)))
        });
        let is_of =
            |library: &&Client, runtime: &Client| library.runtime.as_ref() == Some(&runtime.name);
        match (command, agent) {
            (Some(command), agent) => agent.filter(|one| is_of(one, command)).or(Some(command)),
            (None, Some(agent)) => Some(agent),
            (None, None) => {
                let idle = idle_s?;
                let closes = |limit: f64| (limit..limit * LATE.0 + LATE.1).contains(&idle);
                first(&|one| one.idle_s.is_some_and(closes))
            }
        }
    }

    /// The client that it is where its requests are streams: what it would gain by them is there.
    pub fn with_streams(&self) -> &Client {
        let row = self.with_streams.as_deref().and_then(named);
        row.unwrap_or(self)
    }

    /// Whether a process of this name runs it: the command itself, with a version (`python3.12`) or
    /// a title (`gunicorn: master`).
    fn has_command(&self, process: &str) -> bool {
        let process = process.rsplit('/').next().unwrap_or(process);
        self.commands.iter().any(|command| {
            let rest = process.strip_prefix(&**command);
            rest.is_some_and(|rest| {
                let is_version = rest.chars().all(|one| one.is_ascii_digit() || one == '.');
                is_version || rest.starts_with(':')
            })
        })
    }

    /// Whether a `User-Agent` names one of its products (RFC 9110 section 10.1.5), as its own or in
    /// a comment. Some name their language in place of the version: `OpenAI/Python 3.57.0`.
    fn has_product(&self, agent: &str) -> bool {
        let words = agent.split([' ', '(', ')', ';', ',']);
        let mut products =
            words.flat_map(|word| [word, word.split(['/', '#']).next().unwrap_or(word)]);
        products.any(|product| {
            let is_it = |one: &String| one.eq_ignore_ascii_case(product);
            self.products.iter().any(is_it)
        })
    }

    /// Its own settings, each with what it is for.
    pub fn settings(&self) -> impl Iterator<Item = (Remedy, &str)> {
        let remedies = self.remedy.iter();
        remedies.map(|(&remedy, setting)| (remedy, setting.as_str()))
    }

    /// Its setting for the remedy, after its name; `None` where it has none.
    pub fn advice(&self, remedy: Remedy) -> Option<String> {
        if let Some(own) = self.remedy.get(&remedy) {
            return Some(match self.is_browser {
                true => own.clone(),
                false => format!("{}: {own}", self.name),
            });
        }
        let either = self.either.iter().filter_map(|name| named(name));
        let either: Vec<String> = either.filter_map(|one| one.advice(remedy)).collect();
        if !either.is_empty() {
            return Some(either.join("; "));
        }
        named(self.runtime.as_deref()?)?.advice(remedy)
    }
}

impl Remedy {
    /// What is reached by it, as the object of *to*.
    pub fn purpose(self) -> &'static str {
        match self {
            Remedy::ShareClient => "keep connections",
            Remedy::Drain => "free a connection",
            Remedy::WidenPool => "keep more of them",
            Remedy::MoreDestinations => "keep them to more destinations",
            Remedy::ShortenIdle => "close them before the server does",
            Remedy::LengthenIdle => "keep them for longer",
            Remedy::StopClosing => "send no `Connection: close`",
            Remedy::CheckAlive => "notice a dead one",
        }
    }
}

impl IdleSetting {
    /// The option for this number of milliseconds; `None` where it takes whole seconds and that is
    /// less than one.
    pub fn with(&self, millis: u64) -> Option<String> {
        let value = match self.unit {
            Unit::Milliseconds => millis.to_string(),
            Unit::WholeSeconds if millis < 1_000 => return None,
            Unit::WholeSeconds => (millis / 1_000).to_string(),
            Unit::Seconds => (millis as f64 / 1e3).to_string(),
            Unit::Go if millis.is_multiple_of(1_000) => format!("{} * time.Second", millis / 1_000),
            Unit::Go => format!("{millis} * time.Millisecond"),
        };
        Some(self.option.replacen("{}", &value, 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recognised(
        command: Option<&str>,
        agent: Option<&str>,
        idle_s: Option<f64>,
    ) -> Option<&'static str> {
        Client::recognise(command, agent, idle_s).map(|client| &*client.name)
    }

    #[test]
    fn a_browser_that_has_streams_is_not_advised_to_use_them() {
        let browser = Client::recognise(None, Some("Chrome/120.0.0.0"), None).unwrap();
        let advice = |client: &Client| client.advice(Remedy::ShareClient).unwrap();
        assert!(advice(browser).contains("over HTTP/2"));
        assert!(!advice(browser.with_streams()).contains("HTTP/2"));
        assert_eq!(named("Python").unwrap().with_streams().name, "Python");
    }

    #[test]
    fn a_command_is_known_by_its_name_and_not_by_a_prefix() {
        let of = |command| recognised(Some(command), None, None);
        assert_eq!(of("/usr/bin/python3.12"), Some("Python"));
        assert_eq!(of("gunicorn: maste"), Some("Python"));
        assert_eq!(of("php-fpm8.2"), Some("PHP"));
        assert_eq!(of("haproxy"), Some("HAProxy"));
        assert_eq!(of("apache2"), Some("Apache httpd"));
        for other in ["node_exporter", "nginx-prometheu", "javascript", "shop"] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn a_library_refines_its_runtime_and_no_other() {
        let of = |command, agent| recognised(Some(command), Some(agent), None);
        assert_eq!(of("python3", "python-requests/2.31.0"), Some("requests"));
        assert_eq!(of("python3", "okhttp/4.12.0"), Some("Python"));
        assert_eq!(of("haproxy", "python-requests/2.31.0"), Some("HAProxy"));
        assert_eq!(of("shop", "Go-http-client/1.1"), Some("Go net/http"));
    }

    #[test]
    fn a_product_is_known_anywhere_in_the_field() {
        let of = |agent| recognised(None, Some(agent), None);
        assert_eq!(of("Python/3.11 aiohttp/3.9.1"), Some("Python aiohttp"));
        assert_eq!(of("OpenAI/Python 3.57.0"), Some("OpenAI, Python"));
        assert_eq!(of("OpenAI/JS 7.59.0"), Some("OpenAI, JavaScript"));
        assert_eq!(
            of("Apache-HttpClient/5.3 (Java/17.0)"),
            Some("Apache HttpClient")
        );
        assert_eq!(of("Java/17.0.1"), Some("Java"));
        assert_eq!(of("ReactorNetty/1.1.0"), Some("Reactor Netty"));
        assert_eq!(of("Faraday v2.7.4"), Some("Faraday"));
        assert_eq!(of("libwww-perl/6.72"), Some("Perl LWP"));
        assert_eq!(of("shop/1.0"), None);
    }

    #[test]
    fn an_idle_limit_names_a_client_where_nothing_else_does() {
        let of = |command, idle| recognised(command, None, Some(idle));
        assert_eq!(of(Some("node"), 90.0), Some("Node"));
        assert_eq!(of(Some("shop"), 90.1), Some("Go or Rust"));
        assert_eq!(of(None, 50.0), None);
        let either = named("Go or Rust").unwrap().advice(Remedy::WidenPool);
        let either = either.unwrap();
        assert!(
            either.contains("MaxIdleConnsPerHost") && either.contains("pool_max_idle_per_host")
        );
    }

    #[test]
    fn a_library_without_a_setting_has_that_of_its_runtime() {
        let requests = named("requests").unwrap();
        let own = requests.advice(Remedy::WidenPool).unwrap();
        assert!(
            own.starts_with("requests: `HTTPAdapter(pool_maxsize"),
            "{own}"
        );
        let urllib3 = named("urllib3")
            .unwrap()
            .advice(Remedy::StopClosing)
            .unwrap();
        assert!(urllib3.starts_with("Python: "), "{urllib3}");
        assert_eq!(named("curl").unwrap().advice(Remedy::Drain), None);
    }

    #[test]
    fn every_row_has_a_source_and_names_rows_that_exist() {
        for client in clients() {
            assert!(!client.source.is_empty(), "{}", client.name);
            let others = client.runtime.iter().chain(&client.either);
            for other in others {
                assert!(named(other).is_some(), "{other}");
            }
            let same = clients().iter().filter(|one| one.name == client.name);
            assert_eq!(same.count(), 1, "{}", client.name);
            let option = client.idle_setting.as_ref().map(|one| &one.option);
            assert!(
                option.is_none_or(|option| option.contains("{}")),
                "{option:?}"
            );
        }
    }

    #[test]
    fn an_option_of_whole_seconds_has_no_fraction() {
        let set = |name, millis| {
            named(name)
                .unwrap()
                .idle_setting
                .as_ref()
                .unwrap()
                .with(millis)
        };
        assert_eq!(
            set("Go net/http", 5_000).unwrap(),
            "IdleConnTimeout: 5 * time.Second"
        );
        assert_eq!(
            set("Go net/http", 500).unwrap(),
            "IdleConnTimeout: 500 * time.Millisecond"
        );
        assert_eq!(set("Python aiohttp", 500), None);
    }
}
