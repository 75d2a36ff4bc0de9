//! Reads a HAR document as a stream: entries are converted one by one, bodies are never stored.

use super::entries::{Part, Splitter};
use super::raw::RawEntry;
use super::runs::PageRuns;
use crate::client::{Recording, cut, syntax};
use crate::lenient::Lenient;
use crate::log::Name;
use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::collections::HashSet;
use std::fmt;
use std::io::Read;
use std::sync::Arc;

/// What browsers and the tools that drive them call themselves in a HAR.
const BROWSERS: [&str; 10] = [
    "Browsertime",
    "Chrome",
    "Chromium",
    "Edge",
    "Firefox",
    "Internet Explorer",
    "Safari",
    "WebInspector",
    "WebKit",
    "WebPagetest",
];

/// The content of a file.
#[derive(Debug, Default)]
pub(super) struct Document {
    pub(super) recording: Recording,
    /// The browser that loaded the pages, by the file.
    browser: String,
    runs: PageRuns,
    /// Indexes of the entries with Chrome's socket id.
    with_socket: HashSet<usize>,
    /// At least one time has a part of a millisecond, so that 0 is not a rounded time.
    has_fine_times: bool,
}

impl Document {
    /// Names the client of entries without a `User-Agent`, where the file is one of a browser.
    fn name_browser(&mut self) {
        let known = |name: &String| {
            let mut browsers = BROWSERS.into_iter();
            browsers.find(|browser| name.eq_ignore_ascii_case(browser))
        };
        let name = known(&self.browser).or_else(|| known(&self.recording.program));
        let Some(agent) = name.map(Arc::<str>::from) else {
            return;
        };
        for entry in self
            .recording
            .entries
            .iter_mut()
            .filter(|entry| entry.agent.is_none())
        {
            entry.agent = Some(agent.clone());
        }
    }

    /// Whether WebPageTest wrote the file: the start of an entry is the time at which its request
    /// was sent, after the setup.
    pub(super) fn is_by_webpagetest(&self) -> bool {
        self.recording.program.eq_ignore_ascii_case("WebPageTest")
    }

    /// Reads to the end, or to the first syntax error; what is before it is kept.
    ///
    /// # Errors
    /// The reason, if the file is not whole.
    pub(super) fn read(&mut self, input: impl Read) -> Result<(), String> {
        let end = Splitter::new().read(input, |entry| self.take(entry));
        let end = match end {
            Ok((mut rest, part)) => {
                let is_in_list = matches!(part, Part::List | Part::Entry);
                if is_in_list {
                    rest.extend(b"]}}");
                }
                let names = self.read_names(&rest);
                match part {
                    Part::Entry => Err(cut(&format!("within entry {}", self.recording.seen + 1))),
                    Part::List => Err(cut("in the list of entries")),
                    Part::Rest | Part::Skipped => names.map_err(|error| syntax(&error)),
                }
            }
            Err(error) => Err(syntax(&error)),
        };
        self.name_browser();
        if self.is_by_webpagetest() {
            for entry in self.recording.entries.iter_mut() {
                entry.at = entry.begin_of_setup();
            }
        }
        if self.has_fine_times {
            for entry in self.recording.entries.iter_mut() {
                entry.hides_setup_below = None;
            }
        }
        // in the other entries, `connection` is a port
        if !self.with_socket.is_empty() {
            let entries = self.recording.entries.iter_mut().enumerate();
            for (_, entry) in entries.filter(|(at, _)| !self.with_socket.contains(at)) {
                entry.id = None;
            }
        }
        end
    }
}

impl Document {
    /// Reads the document without its entries.
    fn read_names(&mut self, rest: &[u8]) -> serde_json::Result<()> {
        let outer = Outer {
            document: self,
            is_log: false,
        };
        outer.deserialize(&mut serde_json::Deserializer::from_slice(rest))
    }

    /// Reads an entry.
    fn take(&mut self, text: &[u8]) -> serde_json::Result<()> {
        if self.recording.entries.are_full() {
            self.recording.seen += 1;
            return Ok(());
        }
        let raw: RawEntry = serde_json::from_slice(text)?;
        let mut entry = raw.read();
        self.has_fine_times |= !raw.has_whole_times();
        if let Some(entry) = &mut entry {
            let page = raw.pageref.text();
            entry.run = page.map_or(0, |page| self.runs.of(&page));
            if raw.has_socket_id() {
                self.with_socket.insert(self.recording.entries.len());
            }
        }
        self.recording.unread += u64::from(entry.is_none() && raw.is_damaged());
        self.recording.take(entry);
        Ok(())
    }
}

/// An object on the way to the names: the outermost one, or the value of its `log`.
struct Outer<'a> {
    document: &'a mut Document,
    is_log: bool,
}
#[derive(Debug, Default, Deserialize)]
struct Named {
    #[serde(default)]
    name: Lenient,
}

impl<'de> DeserializeSeed<'de> for Outer<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Outer<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.is_log {
            true => "the object `log` of a HAR",
            false => "an object with the key `log`",
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Outer { document, is_log } = self;
        while let Some(Name(key)) = object.next_key()? {
            match (is_log, &*key) {
                (false, "log") => object.next_value_seed(Outer {
                    document,
                    is_log: true,
                })?,
                (true, "creator") => {
                    let named: Option<Named> = object.next_value()?;
                    let name = named.and_then(|named| named.name.text());
                    document.recording.program = name.unwrap_or_default();
                }
                (true, "browser") => {
                    let named: Option<Named> = object.next_value()?;
                    let name = named.and_then(|named| named.name.text());
                    document.browser = name.unwrap_or_default();
                }
                // empty, because the entries were taken out
                (true, "entries") => {
                    object.next_value::<Vec<IgnoredAny>>()?;
                }
                _ => {
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}
