//! The axes of a bench and their product, the variants.

use crate::axis::{AxisRow, AxisValue, Reference};
use crate::connection_axes::{CONNECTION_AXES, ConnectionAxes, ConnectionSettings};
use crate::{Arrivals, CacheUse, OpenLoop, RequestRate, WhenBusy};
use intact_ledger::{Protocol, TlsVersion, Variant, kinds};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The TLS of a variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TlsChoice {
    /// Plain.
    None,
    /// Whatever is negotiated.
    Any,
    /// This version only.
    Version(TlsVersion),
}

impl TlsChoice {
    /// The word on the command line and in axes.
    pub fn as_str(self) -> &'static str {
        match self {
            TlsChoice::None => "none",
            TlsChoice::Any => "any",
            TlsChoice::Version(version) => version.as_str(),
        }
    }
}

kinds! {
    /// How the name of the server is resolved for a connection.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    pub enum NameLookup, as_str {
        /// getaddrinfo(3) for each connection, with the caches that the machine has.
        #[default]
        System = "system",
        /// Lookups query the name server and cache its answer for the TTL.
        Cached = "cached",
        /// The name server is asked for each connection.
        PerConnection = "per-connection",
    }
}

/// The values of each axis, in the order in which they were given. None is empty.
#[derive(Clone, Debug, PartialEq)]
pub struct Axes {
    /// Are connections kept?
    pub keepalive: Vec<bool>,
    /// HTTP versions.
    pub http: Vec<Protocol>,
    /// TLS.
    pub tls: Vec<TlsChoice>,
    /// May TLS sessions be resumed?
    pub resume: Vec<bool>,
    /// Is the first request of a resumed connection sent before the server responds (0-RTT)?
    pub early_data: Vec<bool>,
    /// How names are resolved.
    pub dns: Vec<NameLookup>,
    /// Connections at once.
    pub concurrency: Vec<u32>,
    /// Streams per connection.
    pub streams: Vec<u32>,
    /// The life of connections.
    pub connection: ConnectionAxes,
    /// When requests are due.
    pub load: Load,
    /// Which combinations are measured.
    pub variation: Variation,
}

impl Default for Axes {
    /// One variant: keep-alive, plain HTTP/1.1, one connection.
    fn default() -> Axes {
        Axes {
            keepalive: vec![true],
            http: vec![Protocol::Http11],
            tls: vec![TlsChoice::None],
            resume: vec![false],
            early_data: vec![false],
            dns: vec![NameLookup::System],
            concurrency: vec![1],
            streams: vec![1],
            connection: ConnectionAxes::default(),
            load: Load::default(),
            variation: Variation::default(),
        }
    }
}

/// Which combinations of the values are variants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Variation {
    /// All.
    #[default]
    Product,
    /// For each load: the first values of all axes, each other value alone with the settings that
    /// it needs, and the last values of all axes.
    OneAtATime,
}

/// When the requests of all variants are due. The default is a closed loop: each follows a
/// response.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// Rates of an open loop, an axis; empty: a closed one.
    pub rate: Vec<RequestRate>,
    /// How the requests of an open loop are spaced.
    pub arrivals: Arrivals,
    /// What they do if every connection is busy.
    pub when_busy: WhenBusy,
}

/// One value of each axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisValues {
    /// Whether connections are kept.
    pub keepalive: bool,
    /// The HTTP version.
    pub http: Protocol,
    /// TLS.
    pub tls: TlsChoice,
    /// Whether TLS sessions may be resumed.
    pub resume: bool,
    /// Whether the first request of a connection is sent before the server responds; absent where
    /// that is not possible.
    pub early_data: Option<bool>,
    /// How names are resolved; absent where only the system does it.
    pub dns: Option<NameLookup>,
    /// Connections at once.
    pub concurrency: u32,
    /// Streams per connection.
    pub streams: u32,
    /// The life of connections.
    pub connection: ConnectionSettings,
    /// The open loop; absent: a closed one.
    pub open_loop: Option<OpenLoop>,
}

/// Why the axes of a variant cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AxisError {
    /// The variant lacks an axis.
    #[error(
        "variant `{variant}` has no axis `{axis}`; the ledger is damaged, or another version of intact wrote it"
    )]
    Missing {
        /// The variant's name.
        variant: String,
        /// The axis.
        axis: &'static str,
    },
    /// An axis has a value that this version does not know.
    #[error(
        "variant `{variant}`: axis `{axis}` is {value:?}, expected {wanted}; the ledger is damaged or needs a newer intact"
    )]
    Unreadable {
        /// The variant's name.
        variant: String,
        /// The axis.
        axis: &'static str,
        /// Its value.
        value: String,
        /// The values that are known.
        wanted: &'static str,
    },
}

impl AxisValues {
    /// Connections at once. Without keep-alive a connection carries one request, so there is one
    /// for each stream: every variant has `concurrency * streams` requests at once.
    pub fn connections(&self) -> u64 {
        let of_each = if self.keepalive { 1 } else { self.streams };
        u64::from(self.concurrency) * u64::from(of_each)
    }

    /// Streams at once on each of [`AxisValues::connections`].
    pub fn streams_each(&self) -> u32 {
        if self.keepalive { self.streams } else { 1 }
    }

    /// Reads the axes of a variant of a bench. Axes that are not those of a bench are ignored.
    pub fn of(variant: &Variant) -> Result<AxisValues, AxisError> {
        AxisValues::read(&variant.name, &variant.axes)
    }

    /// Reads the axes of the variant with this name.
    pub fn read(name: &str, axes: &BTreeMap<String, String>) -> Result<AxisValues, AxisError> {
        let axes = AxisReader { name, axes };
        let connection = ConnectionSettings::read(&axes)?;
        Ok(AxisValues {
            keepalive: axes.one("keepalive")?,
            http: axes.one("http")?,
            tls: axes.one("tls")?,
            resume: axes.one("resume")?,
            early_data: axes.optional(EARLY_DATA)?,
            dns: axes.optional(DNS)?,
            concurrency: axes.one("c")?,
            streams: axes.one("streams")?,
            connection,
            open_loop: axes.open_loop()?,
        })
    }

    /// The axes as the ledger has them; [`AxisValues::read`] reads them back.
    pub fn axes(&self) -> BTreeMap<String, String> {
        let mut axes = BTreeMap::from([
            ("keepalive".to_owned(), self.keepalive.word()),
            ("http".to_owned(), self.http.word()),
            ("tls".to_owned(), self.tls.word()),
            ("resume".to_owned(), self.resume.word()),
            ("c".to_owned(), self.concurrency.word()),
            ("streams".to_owned(), self.streams.word()),
        ]);
        if let Some(early) = self.early_data {
            axes.insert(EARLY_DATA.to_owned(), early.word());
        }
        if let Some(dns) = self.dns {
            axes.insert(DNS.to_owned(), dns.word());
        }
        self.connection.write(&mut axes);
        if let Some(open) = &self.open_loop {
            axes.insert("rate".to_owned(), open.rate.word());
            axes.insert("arrivals".to_owned(), open.arrivals.word());
            axes.insert("when-busy".to_owned(), open.when_busy.word());
        }
        axes
    }
}

const EARLY_DATA: &str = "early-data";
const DNS: &str = "dns";

/// The axes of one variant, for messages that name it.
pub(crate) struct AxisReader<'a> {
    name: &'a str,
    axes: &'a BTreeMap<String, String>,
}

impl AxisReader<'_> {
    fn one<T: AxisValue>(&self, axis: &'static str) -> Result<T, AxisError> {
        let value = self.axes.get(axis).ok_or_else(|| AxisError::Missing {
            variant: self.name.to_owned(),
            axis,
        })?;
        T::read(value).map_err(|_| AxisError::Unreadable {
            variant: self.name.to_owned(),
            axis,
            value: value.clone(),
            wanted: T::WANTED,
        })
    }

    /// The axes of an open loop, which a closed one does not have.
    fn open_loop(&self) -> Result<Option<OpenLoop>, AxisError> {
        if !self.axes.contains_key("rate") {
            return Ok(None);
        }
        Ok(Some(OpenLoop {
            rate: self.one("rate")?,
            arrivals: self.one("arrivals")?,
            when_busy: self.one("when-busy")?,
        }))
    }

    /// The value; `None` where the variant does not have the axis.
    pub(crate) fn optional<T: AxisValue>(
        &self,
        axis: &'static str,
    ) -> Result<Option<T>, AxisError> {
        match self.axes.contains_key(axis) {
            true => self.one(axis).map(Some),
            false => Ok(None),
        }
    }
}

impl TlsChoice {
    /// Whether TLS 1.3 can be negotiated. QUIC contains it (RFC 9001), and only it has early data.
    fn allows_tls13(self) -> bool {
        matches!(self, TlsChoice::Any | TlsChoice::Version(TlsVersion::Tls13))
    }
}

impl Load {
    /// An open loop for each rate, or the closed one.
    fn loops(&self) -> Vec<Option<OpenLoop>> {
        let open = |&rate| OpenLoop {
            rate,
            arrivals: self.arrivals,
            when_busy: self.when_busy,
        };
        let open = self.rate.iter().map(open).map(Some);
        match self.rate.is_empty() {
            true => vec![None],
            false => open.collect(),
        }
    }
}

impl Axes {
    /// The product of all axes. Some values have no effect together, such as resumption without TLS
    /// or streams before HTTP/2. Such combinations are equal and are measured once. HTTP/3 without
    /// TLS or over TLS 1.2 does not exist and is omitted.
    pub fn choices(&self) -> Vec<AxisValues> {
        let mut choices: Vec<AxisValues> = Vec::new();
        // an A/A comparison names a value twice and wants it measured twice
        for open_loop in self.load.loops() {
            for &concurrency in &self.concurrency {
                let mut under_load = Vec::new();
                for dns in self.name_lookups() {
                    self.add_choices(open_loop, concurrency, dns, &mut under_load);
                }
                if self.variation == Variation::OneAtATime {
                    retain_one_at_a_time(&mut under_load);
                }
                choices.append(&mut under_load);
            }
        }
        choices
    }

    /// How names are resolved: not named where the system does it by default.
    fn name_lookups(&self) -> Vec<Option<NameLookup>> {
        match self.dns[..] {
            [NameLookup::System] => vec![None],
            _ => self.dns.iter().copied().map(Some).collect(),
        }
    }

    fn add_choices(
        &self,
        open_loop: Option<OpenLoop>,
        concurrency: u32,
        dns: Option<NameLookup>,
        choices: &mut Vec<AxisValues>,
    ) {
        for &http in &self.http {
            for &tls in &self.tls {
                if http == Protocol::Http3 && !tls.allows_tls13() {
                    continue;
                }
                for (nth, &resume) in self.resume.iter().enumerate() {
                    if tls == TlsChoice::None && nth > 0 {
                        continue;
                    }
                    let resume = resume && tls != TlsChoice::None;
                    for early_data in self.early_choices(tls, resume) {
                        for (nth, &streams) in self.streams.iter().enumerate() {
                            if !http.has_streams() && nth > 0 {
                                continue;
                            }
                            let streams = if http.has_streams() { streams } else { 1 };
                            for &keepalive in &self.keepalive {
                                let lives = self.connection.choices(keepalive, http);
                                // a call of gRPC is a POST: no cache stores its response, and
                                // no client may send it twice
                                let lives = lives.into_iter().filter(|one| {
                                    let is_get = one.cache == Some(CacheUse::Revalidate)
                                        || early_data == Some(true);
                                    one.as_grpc != Some(true) || !is_get
                                });
                                choices.extend(lives.map(|connection| AxisValues {
                                    keepalive,
                                    http,
                                    tls,
                                    resume,
                                    early_data,
                                    dns,
                                    concurrency,
                                    streams,
                                    connection,
                                    open_loop,
                                }));
                            }
                        }
                    }
                }
            }
        }
    }

    /// The values of early data for these settings: it needs a resumed session of TLS 1.3.
    fn early_choices(&self, tls: TlsChoice, resume: bool) -> Vec<Option<bool>> {
        let is_possible = resume && tls.allows_tls13();
        if !is_possible || self.early_data == [false] {
            return vec![None];
        }
        self.early_data.iter().copied().map(Some).collect()
    }

    /// The number of combinations, before equal ones are merged.
    pub fn product(&self) -> usize {
        let lengths = self.lengths().map(|(_, length)| length);
        lengths.fold(1, usize::saturating_mul)
    }

    /// The axes with more than one value, in the order of the command line's help.
    pub fn varied(&self) -> Vec<String> {
        let varied = self.lengths().filter(|(_, length)| *length > 1);
        varied.map(|(axis, _)| axis.to_owned()).collect()
    }

    fn lengths(&self) -> impl Iterator<Item = (&'static str, usize)> {
        let of_http = [
            ("keepalive", self.keepalive.len()),
            ("http", self.http.len()),
            ("tls", self.tls.len()),
            ("resume", self.resume.len()),
            (EARLY_DATA, self.early_data.len()),
            (DNS, self.dns.len()),
            ("c", self.concurrency.len()),
            ("streams", self.streams.len()),
        ];
        let of_load = [("rate", self.load.rate.len().max(1))];
        let of_connection = self.connection.given();
        let of_connection = of_connection.map(|(axis, given)| (axis.name(), given.max(1)));
        of_http.into_iter().chain(of_connection).chain(of_load)
    }
}

/// The settings that an axis needs: a variant with the one has the others, too.
fn needed_by(axis: &str) -> &'static [&'static str] {
    match axis {
        EARLY_DATA => &["resume"],
        axis => row_of(axis).map_or(&[], |row| row.meaning.needs()),
    }
}

/// The row of an axis of the connection's lifetime.
fn row_of(axis: &str) -> Option<&'static AxisRow> {
    let mut all = CONNECTION_AXES.iter().copied();
    all.find(|row| row.name() == axis)
}

/// What the variants that differ in an axis are compared with.
pub fn reference_of(axis: &str) -> Reference {
    match axis {
        "keepalive" => Reference::OffOf("keep-alive"),
        "resume" => Reference::OffOf("resuming TLS sessions"),
        EARLY_DATA => Reference::OffOf("sending early data (0-RTT)"),
        axis => row_of(axis).map_or(Reference::First, |row| row.reference),
    }
}

/// The axes whose values differ from a reference. The value `off` equals an absent axis: `resume`
/// without early data is the same as with `early-data=off`.
pub fn differing(axes: &BTreeMap<String, String>, from: &BTreeMap<String, String>) -> Vec<String> {
    let value = |axes: &BTreeMap<String, String>, axis: &str| {
        let value = axes.get(axis).filter(|value| *value != "off");
        value.cloned()
    };
    let all = axes.keys();
    let differing = all.filter(|axis| value(axes, axis) != value(from, axis));
    differing.cloned().collect()
}

/// Keeps the first and the last variant, those that differ from the first in one setting and the
/// settings that it needs, and those that have only what it needs: it is compared with them.
fn retain_one_at_a_time(choices: &mut Vec<AxisValues>) {
    let Some(first) = choices.first().map(AxisValues::axes) else {
        return;
    };
    let settings = |one: &AxisValues| {
        let mut axes = one.axes();
        let differing = differing(&axes, &first);
        axes.retain(|axis, _| differing.contains(axis));
        axes
    };
    let all: Vec<BTreeMap<String, String>> = choices.iter().map(settings).collect();
    let without_main = all.iter().filter_map(|all| {
        let mut rest = all.clone();
        rest.remove(main_of(all)?);
        Some(rest)
    });
    let without_main: Vec<_> = without_main.collect();
    let mut nth = 0;
    choices.retain(|_| {
        let one = &all[nth];
        nth += 1;
        let is_alone = one.is_empty() || main_of(one).is_some();
        is_alone || without_main.contains(one) || nth == all.len()
    });
}

/// The one among these settings that needs all others.
fn main_of(settings: &BTreeMap<String, String>) -> Option<&str> {
    let mut axes = settings.keys().map(String::as_str);
    axes.find(|main| {
        let needed = needed_by(main);
        let mut others = settings.keys().filter(|one| one != main);
        others.all(|one| needed.contains(&one.as_str()))
    })
}

/// Settings of a variant from which on its name does not list them.
const MOST_NAMED: usize = 3;

/// The variants with their names in the ledger: the values of the varied axes, or with
/// [`Variation::OneAtATime`] of those that differ from the first variant's; and a number for a
/// repeated variant.
pub fn variants(choices: &[AxisValues], varied: &[String], variation: Variation) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    let first = choices.first().map(AxisValues::axes).unwrap_or_default();
    for choice in choices {
        let axes = choice.axes();
        let values = |named: &[String]| {
            let named = named.iter();
            let named = named.filter_map(|axis| Some(format!("{axis}={}", axes.get(axis)?)));
            named.collect::<Vec<_>>().join(" ")
        };
        let mut name = match variation {
            Variation::Product => values(varied),
            Variation::OneAtATime => {
                let (load, settings): (Vec<String>, Vec<String>) = differing(&axes, &first)
                    .into_iter()
                    .partition(|axis| matches!(axis.as_str(), "c" | "rate"));
                let settings = match settings.len() {
                    0 => "baseline".to_owned(),
                    1..=MOST_NAMED => values(&settings),
                    _ => "all".to_owned(),
                };
                format!("{} {settings}", values(&load))
                    .trim_start()
                    .to_owned()
            }
        };
        if name.is_empty() {
            name = format!("keepalive={}", axes["keepalive"]);
        }
        let same = variants.iter().filter(|other| other.axes == axes).count();
        if same > 0 {
            name = format!("{name} ({})", same + 1);
        }
        variants.push(Variant { name, axes });
    }
    variants
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Axes {
        Axes {
            keepalive: vec![true, false],
            ..Axes::default()
        }
    }

    fn values<T: AxisValue>(words: &[&str]) -> Vec<T> {
        let words = words.iter();
        words.map(|word| T::read(word).unwrap()).collect()
    }

    fn every_connection_axis() -> ConnectionAxes {
        ConnectionAxes {
            reuse: values(&["10", "unlimited"]),
            max_age: values(&["off", "5s"]),
            idle: vec![std::time::Duration::from_millis(1_500)],
            fast_open: vec![false, true],
            congestion: vec!["cubic".into()],
            tcp_keepalive: values(&["1s"]),
            ping: values(&["off", "500ms"]),
            cache: values(&["revalidate"]),
            header_table: vec![true],
            as_grpc: vec![false],
        }
    }

    #[test]
    fn an_axis_of_connections_applies_where_it_has_a_meaning() {
        let mut axes = axes();
        axes.http = vec![Protocol::Http11, Protocol::Http2, Protocol::Http3];
        axes.tls = vec![TlsChoice::Any];
        axes.connection = every_connection_axis();
        let choices = axes.choices();
        let has = |of: fn(&ConnectionSettings) -> bool, one: &AxisValues| of(&one.connection);
        for one in &choices {
            let is_tcp = one.http != Protocol::Http3;
            assert_eq!(has(|one| one.reuse.is_some(), one), one.keepalive);
            assert_eq!(has(|one| one.fast_open.is_some(), one), is_tcp);
            assert_eq!(has(|one| one.congestion.is_some(), one), is_tcp);
            let probes = is_tcp && one.keepalive;
            assert_eq!(has(|one| one.tcp_keepalive.is_some(), one), probes);
            let pings = one.http == Protocol::Http2 && one.keepalive;
            assert_eq!(has(|one| one.ping.is_some(), one), pings);
            assert!(has(|one| one.idle.is_some(), one));
            assert!(has(|one| one.cache.is_some(), one));
        }
        // off: fast open twice for TCP; on: reuse x age (x fast open for TCP, x ping for HTTP/2)
        assert_eq!(choices.len(), (2 + 2 + 1) + (8 + 16 + 4));
        assert_eq!(
            axes.varied(),
            [
                "keepalive",
                "http",
                "reuse",
                "max-age",
                "tcp-fastopen",
                "ping"
            ]
        );
    }

    #[test]
    fn one_at_a_time_keeps_the_first_each_other_alone_and_the_last() {
        let mut axes = axes();
        axes.keepalive = vec![false, true];
        axes.http = vec![Protocol::Http11, Protocol::Http2];
        axes.tls = vec![TlsChoice::Any];
        axes.resume = vec![false, true];
        axes.early_data = vec![false, true];
        axes.concurrency = vec![1, 10];
        axes.connection.ping = values(&["off", "1s"]);
        axes.variation = Variation::OneAtATime;
        axes.connection.as_grpc = vec![false, true];
        axes.connection.cache = values(&["off", "revalidate"]);
        let names = variants(&axes.choices(), &axes.varied(), axes.variation);
        let names: Vec<&str> = names.iter().map(|one| &*one.name).collect();
        let (at_one, at_ten) = names.split_at(names.len() / 2);
        assert_eq!(
            at_one,
            [
                "baseline",
                "cache=revalidate",
                "keepalive=on",
                "resume=on",
                // it needs resumption
                "early-data=on resume=on",
                "http=2",
                // it needs HTTP/2
                "as-grpc=on http=2",
                // what the next one is compared with
                "http=2 keepalive=on",
                "http=2 keepalive=on ping=1s",
                // no cache stores a response to POST
                "all",
            ]
        );
        assert_eq!(at_ten[0], "c=10 baseline");
        let last = axes.choices().pop().unwrap().connection;
        assert_eq!(last.cache, Some(CacheUse::Revalidate));
        assert_eq!(last.as_grpc, Some(false));
    }

    #[test]
    fn variants_are_named_by_what_differs() {
        let mut axes = axes();
        axes.http.push(Protocol::Http2);
        let variants = variants(&axes.choices(), &axes.varied(), axes.variation);
        let names: Vec<_> = variants.iter().map(|variant| &*variant.name).collect();
        assert_eq!(
            names,
            [
                "keepalive=on http=1.1",
                "keepalive=off http=1.1",
                "keepalive=on http=2",
                "keepalive=off http=2"
            ]
        );
    }

    #[test]
    fn a_value_named_twice_is_an_a_a_comparison() {
        let mut axes = axes();
        axes.keepalive = vec![true, true];
        let variants = variants(&axes.choices(), &axes.varied(), axes.variation);
        assert_eq!(variants[0].name, "keepalive=on");
        assert_eq!(variants[1].name, "keepalive=on (2)");
    }

    #[test]
    fn written_axes_read_back() {
        let mut all = axes();
        all.http = vec![Protocol::Http10, Protocol::Http11, Protocol::Http2];
        let version = TlsChoice::Version(TlsVersion::Tls13);
        all.tls = vec![TlsChoice::None, TlsChoice::Any, version];
        all.resume = vec![false, true];
        all.dns = NameLookup::ALL.to_vec();
        all.early_data = vec![false, true];
        all.concurrency = vec![1, 10];
        all.streams = vec![1, 32];
        all.connection = every_connection_axis();
        let closed = all.clone();
        all.load.rate = vec!["500/s".parse().unwrap(), "1/s..2.5/s".parse().unwrap()];
        all.load.arrivals = Arrivals::Poisson;
        all.load.when_busy = WhenBusy::Open;
        for all in [closed, all] {
            let choices = all.choices();
            assert_eq!(choices.len() % all.load.rate.len().max(1), 0);
            for (choice, variant) in
                choices
                    .iter()
                    .zip(variants(&choices, &all.varied(), all.variation))
            {
                assert_eq!(AxisValues::of(&variant).as_ref(), Ok(choice));
            }
        }
    }

    #[test]
    fn each_rate_is_a_variant() {
        let mut axes = axes();
        axes.load.rate = vec!["500/s".parse().unwrap(), "800/s".parse().unwrap()];
        let variants = variants(&axes.choices(), &axes.varied(), axes.variation);
        assert_eq!(variants.len(), 4);
        assert_eq!(variants[2].name, "keepalive=on rate=800/s");
        assert_eq!(variants[2].axes["when-busy"], "queue");
    }

    #[test]
    fn an_unknown_axis_is_ignored_and_a_broken_one_is_an_error() {
        let choices = axes().choices();
        let mut variant = variants(&choices, &[], Variation::Product).remove(0);
        variant.axes.insert("colour".to_owned(), "blue".to_owned());
        assert_eq!(AxisValues::of(&variant).as_ref(), Ok(&choices[0]));
        for (axis, value) in [
            ("c", "many"),
            ("c", "0"),
            ("keepalive", "yes"),
            ("http", "4"),
            ("tls", "2"),
        ] {
            let mut broken = variant.clone();
            broken.axes.insert(axis.to_owned(), value.to_owned());
            let error = AxisValues::of(&broken).unwrap_err().to_string();
            assert!(
                error.contains(&format!("axis `{axis}` is {value:?}")),
                "{error}"
            );
        }
        variant.axes.remove("streams");
        let missing = AxisError::Missing {
            variant: variant.name.clone(),
            axis: "streams",
        };
        assert_eq!(AxisValues::of(&variant), Err(missing));
    }

    #[test]
    fn what_has_no_meaning_is_measured_once() {
        let mut axes = axes();
        axes.tls = vec![TlsChoice::None, TlsChoice::Any];
        axes.resume = vec![false, true];
        axes.streams = vec![1, 32];
        // plain: keepalive only; TLS: keepalive x resume; streams need HTTP/2
        assert_eq!(axes.choices().len(), 2 + 4);
    }
}
