//! Reads the inputs of one audit, in order, into one stream of events.

use crate::capture;
use crate::client;
use crate::counters;
use crate::error::AuditError;
use crate::event_writer::{EventWriter, RunState};
use crate::format::Format;
use crate::input::Input;
use crate::input_summary::{InputSummary, Unit};
use crate::load_generator;
use crate::log::{self, LogConnections};
use crate::netlog;
use crate::replay;
use crate::zeek::{self, Joiner};
use intact_ledger::{FingerprintKey, Sink};
use intact_observe::{KnownServers, LowerBounds};
use intact_packets::{ConnectionTable, Ladder, LadderSelection};
use intact_wire::tls::decrypt::KeyLog;
use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;

/// What an audit needs in addition to its inputs.
pub struct Options {
    /// TLS secrets (`--keylog`). Secrets that a pcapng file holds are added while it is read.
    pub keys: KeyLog,
    /// 32 random bytes that the key of the fingerprints is derived from. It is never written.
    pub random: [u8; 32],
    /// The connection whose packets are recorded one by one (`--ladder`).
    pub ladder: Option<LadderSelection>,
    /// Nanosecond 0 of the run, in nanoseconds since 1970.
    pub base: u64,
}

/// Reads inputs into ledger events. All captures are read as one, because a connection may continue
/// in the next file.
pub struct Audit {
    run: RunState,
    network: ConnectionTable,
    pools: LogConnections,
    weave: Joiner,
    /// How much was read, by unit.
    read: BTreeMap<Unit, u64>,
    /// The first bytes of the text inputs so far, as their hash, with the path.
    begun: HashMap<u64, PathBuf>,
    hasher: RandomState,
}

impl Audit {
    /// An audit that has read nothing yet.
    pub fn new(options: Options) -> Audit {
        Audit {
            run: RunState {
                connections: 0,
                exchanges: 0,
                any_recorded: false,
                servers: KnownServers::default(),
                key: FingerprintKey::new(&options.random),
                keys: options.keys,
                secrets: None,
                lower_bounds: LowerBounds::default(),
                base: options.base,
            },
            network: ConnectionTable::new(options.ladder),
            pools: LogConnections::default(),
            weave: Joiner::default(),
            read: BTreeMap::new(),
            begun: HashMap::new(),
            hasher: RandomState::new(),
        }
    }

    /// Reads one input to its end, or until `go_on` returns false. `go_on` is called about once per
    /// megabyte.
    pub fn read(
        &mut self,
        mut input: Input,
        sink: &mut dyn Sink,
        go_on: &mut dyn FnMut() -> bool,
    ) -> Result<InputSummary, AuditError> {
        self.note_content(&input)?;
        let mut writer = EventWriter {
            sink,
            run: &mut self.run,
        };
        let account = match input.format {
            Format::Pcap | Format::Pcapng | Format::Snoop => {
                capture::read(&mut input, &mut self.network, &mut writer, go_on)
            }
            Format::Client(format) => client::read(&mut input, format, &mut writer),
            Format::NetLog => netlog::read(&mut input, &mut writer, go_on),
            Format::Tool(tool) => load_generator::read(&mut input, tool, &mut writer, go_on),
            Format::Zeek(log) => zeek::read(&mut input, log, &mut self.weave, &mut writer, go_on),
            Format::Counters(syntax) => counters::read(&mut input, syntax, &mut writer, go_on),
            Format::Ledger => {
                let Some(reader) = input.ledger.take() else {
                    return Err(AuditError::Folder(input.path));
                };
                replay::read(&input, &reader, &mut writer, go_on)
            }
            Format::AccessLog => {
                let Some(mut dialect) = input.dialect.take() else {
                    return Err(AuditError::Empty(input.path));
                };
                log::read(
                    &mut input,
                    &mut dialect,
                    &mut self.pools,
                    &mut writer,
                    go_on,
                )
            }
        }?;
        if let Some(why) = input.trouble.borrow().as_deref() {
            writer.incomplete(
                "input-damaged",
                format!("{}{why}; what came before was read", input.prefix()),
            );
        }
        // a ledger holds its own caveats
        if account.format != Format::Ledger {
            *self.read.entry(account.unit).or_default() += account.read;
        }
        Ok(account)
    }

    /// Notes the content of an input by its first bytes. The same one again would count all of it
    /// twice. Copies of packets are recognised one by one.
    fn note_content(&mut self, input: &Input) -> Result<(), AuditError> {
        if matches!(
            input.format,
            Format::Pcap | Format::Pcapng | Format::Snoop | Format::Ledger
        ) {
            return Ok(());
        }
        let content = self.hasher.hash_one(input.window.available());
        match self.begun.entry(content) {
            Entry::Occupied(first) => Err(AuditError::Again {
                path: input.path.clone(),
                first: first.get().clone(),
            }),
            Entry::Vacant(place) => {
                place.insert(input.path.clone());
                Ok(())
            }
        }
    }

    /// The packets of the selected connection, if the captures hold it. Call it after
    /// [`Audit::finish`].
    pub fn ladder(&mut self) -> Option<Ladder> {
        self.network.ladder.take().map(|ladder| *ladder)
    }

    /// Ends the connections of the captures that are still open. Call it once, after the last
    /// input.
    pub fn finish(&mut self, sink: &mut dyn Sink) {
        let mut writer = EventWriter {
            sink,
            run: &mut self.run,
        };
        self.network.finish(&mut writer);
        self.pools.finish(&mut writer);
        self.weave.finish(&mut writer);
        if !writer.run.any_recorded
            && let Some(words) = nothing_in(&self.read, self.network.has_transport())
        {
            // the traffic that the user expects took another path
            writer.incomplete(NO_CONNECTIONS, words);
        }
    }
}

/// Id of the caveat for inputs that hold neither a connection nor a request.
pub const NO_CONNECTIONS: &str = "no-connections";

/// What the inputs do not hold; `None` if all of them are ledgers.
fn nothing_in(read: &BTreeMap<Unit, u64>, has_transport: bool) -> Option<String> {
    let each: Vec<String> = read.iter().map(|(unit, count)| unit.many(*count)).collect();
    if read.contains_key(&Unit::Counters) {
        let words = "counters hold sums, and no single connection or request: reuse over time, causes and costs are not known";
        return Some(words.to_owned());
    }
    let what = match (read.contains_key(&Unit::Packets), has_transport) {
        (true, false) => "no TCP or QUIC connection",
        (true, true) => "no TCP or QUIC connection that can be counted",
        (false, _) => "no request and no connection",
    };
    (!each.is_empty()).then(|| format!("{what} in {}", each.join(" and ")))
}
