//! Finds the client, proxy or server that words refer to: a name (`axios`, `node/axios`,
//! `axios@1.6`), a package, a language, a User-Agent, the text of an error, or a misspelt name.

use crate::catalogue::{Catalogue, Client, Language, Library, Variant};
use crate::facts::Measurement;
use crate::hops::{Hop, HopKind};
use intact_units::suggest;
use std::collections::BTreeSet;

/// The shortest part of an error's text that finds it.
const ERROR: usize = 6;

/// What was asked for.
#[derive(Debug)]
pub struct Found<'a> {
    /// The clients that it can mean.
    pub clients: Vec<&'a Client>,
    /// The proxies and servers that it can mean.
    pub hops: Vec<&'a Hop>,
    /// The library above these clients, or a driver.
    pub library: Option<&'a Library>,
    /// The version asked for, if one was.
    pub version: Option<&'a str>,
}

/// Why nothing was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FindError {
    /// No client has that name.
    #[error("the catalogue has no client, proxy or server {name:?}{}; `intact fix` lists all", suggestion(.nearest))]
    Unknown {
        /// What was asked for.
        name: String,
        /// Similar ids, the most similar first.
        nearest: Vec<String>,
    },
    /// The client is known, but this version was never measured.
    #[error("{client} {version} was never measured; measured: {}", .measured.join("; "))]
    Version {
        /// The client's id.
        client: String,
        /// What was asked for.
        version: String,
        /// What there is.
        measured: Vec<String>,
    },
}

fn suggestion(nearest: &[String]) -> String {
    if nearest.is_empty() {
        return String::new();
    }
    format!("; did you mean {}?", nearest.join(", "))
}

impl Catalogue {
    /// Finds by the name of a library above clients, by id, alias, package, language or kind, with
    /// or without `@VERSION`; else by User-Agent or `Server` field, or by the text of an error. In
    /// any case.
    ///
    /// # Errors
    /// If there is no such client, with similar names. If the version was never measured, with the
    /// measured ones.
    pub fn find<'a>(&'a self, asked: &'a str) -> Result<Found<'a>, FindError> {
        // npm names begin with an @ of their own
        let (name, version) = match asked.char_indices().skip(1).find(|&(_, one)| one == '@') {
            Some((at, _)) => (&asked[..at], Some(&asked[at + 1..])),
            None => (asked, None),
        };
        let wanted = name.trim().to_lowercase();
        let by = |is: &dyn Fn(&Client) -> bool| -> Vec<&'a Client> {
            self.clients.iter().filter(|client| is(client)).collect()
        };
        let mut libraries = self.libraries.iter();
        let named = libraries.find(|one| one.names.contains(&wanted));
        if let Some(library) = named.filter(|_| version.is_none()) {
            return Ok(Found {
                clients: by(&|client| library.clients.contains(&client.id)),
                hops: Vec::new(),
                library: Some(library),
                version,
            });
        }
        let mut clients = by(&|client| client.answers_to(&wanted));
        let mut hops = self.hops.named(&wanted);
        if clients.is_empty() && hops.is_empty() {
            clients = by(&|client| client.packages.contains_key(&wanted));
        }
        if clients.is_empty() && hops.is_empty() {
            clients = by(&|client| client.language.id() == wanted);
            let all = self.hops.hops.iter();
            hops = all.filter(|hop| hop.kind.is_called(&wanted)).collect();
        }
        if clients.is_empty() && hops.is_empty() {
            (clients, hops) = self.by_text(name.trim());
        }
        if clients.is_empty() && hops.is_empty() {
            return Err(FindError::Unknown {
                name: name.to_owned(),
                nearest: self.nearest(&wanted),
            });
        }
        if let Some(version) = version {
            let with = |client: &&Client| {
                self.measured
                    .iter()
                    .filter(|one| one.client == client.id)
                    .any(|one| has_version(client, one, version))
            };
            let matching: Vec<&Client> = clients
                .iter()
                .copied()
                .filter(|client| with(client))
                .collect();
            let has = |hop: &&Hop| {
                let mut measured = self.hops.of(hop).into_iter();
                measured.any(|(_, one)| is_part(&one.version, version))
            };
            let matching_hops: Vec<&Hop> = hops.iter().copied().filter(has).collect();
            if matching.is_empty() && matching_hops.is_empty() {
                return Err(match (clients.first(), hops.first()) {
                    (Some(client), _) => self.no_version(client, version),
                    (None, hop) => self.no_hop_version(hop, version),
                });
            }
            (clients, hops) = (matching, matching_hops);
        }
        Ok(Found {
            clients,
            hops,
            library: None,
            version,
        })
    }

    /// Those that a User-Agent or `Server` field names, else those that show this error.
    fn by_text(&self, text: &str) -> (Vec<&Client>, Vec<&Hop>) {
        let recognised = intact_advice::Client::recognise(None, Some(text), None);
        let id = recognised.and_then(|one| one.fix.as_deref());
        if let Some(found) = id.and_then(|id| self.find(id).ok()) {
            return (found.clients, found.hops);
        }
        let lower = text.to_lowercase();
        let is_of = |hop: &&Hop| hop.products.iter().any(|one| lower.starts_with(one));
        let hops: Vec<&Hop> = self.hops.hops.iter().filter(is_of).collect();
        if !hops.is_empty() {
            return (Vec::new(), hops);
        }
        let shows = |errors: &[String]| {
            let mut errors = errors.iter().map(|error| error.to_lowercase());
            errors.any(|error| {
                lower.contains(&error) || lower.len() >= ERROR && error.contains(&lower)
            })
        };
        let clients = self.clients.iter().filter(|one| shows(&one.errors));
        let hops = self.hops.hops.iter().filter(|one| shows(&one.errors));
        (clients.collect(), hops.collect())
    }

    fn no_hop_version(&self, hop: Option<&&Hop>, version: &str) -> FindError {
        let measured = hop.map_or_else(Vec::new, |hop| self.hops.of(hop));
        let mut measured: Vec<String> = measured
            .into_iter()
            .map(|(_, one)| one.version.clone())
            .collect();
        measured.dedup();
        FindError::Version {
            client: hop.map_or_else(String::new, |hop| hop.name.clone()),
            version: version.to_owned(),
            measured,
        }
    }

    fn no_version(&self, client: &Client, version: &str) -> FindError {
        let mut measured: Vec<String> = self
            .measured
            .iter()
            .filter(|one| one.client == client.id)
            .map(Measurement::versions)
            .collect();
        measured.sort();
        measured.dedup();
        FindError::Version {
            client: client.name.clone(),
            version: version.to_owned(),
            measured,
        }
    }

    /// Up to three languages or ids that a misspelt name is near to.
    fn nearest(&self, wanted: &str) -> Vec<String> {
        let languages: BTreeSet<&str> = self.clients.iter().map(|one| one.language.id()).collect();
        let languages = languages
            .into_iter()
            .filter_map(|language| Some((suggest::edits(wanted, language)?, language)));
        let clients = self.clients.iter().filter_map(|client| {
            let inside = |name: &str| wanted.len() > 2 && name.contains(wanted);
            let edits = client.names().filter_map(|name| {
                if inside(&name) {
                    Some(0)
                } else {
                    suggest::edits(wanted, &name)
                }
            });
            Some((edits.min()?, client.id.as_str()))
        });
        let hops = self.hops.hops.iter().filter_map(|hop| {
            let edits = hop.names().filter_map(|name| suggest::edits(wanted, &name));
            Some((edits.min()?, hop.id.as_str()))
        });
        let libraries = self.libraries.iter().filter_map(|library| {
            let edits = library.names.iter();
            let edits = edits.filter_map(|name| suggest::edits(wanted, name));
            Some((edits.min()?, library.names[0].as_str()))
        });
        let named = languages.chain(clients).chain(hops).chain(libraries);
        let mut near: Vec<(usize, &str)> = named.collect();
        near.sort_by_key(|&(edits, _)| edits);
        near.iter().take(3).map(|&(_, id)| id.to_owned()).collect()
    }
}

/// All names of a row, in lower case.
pub(crate) fn lower_case<'a>(
    id: &'a String,
    name: &'a String,
    aliases: &'a [String],
) -> impl Iterator<Item = String> + use<'a> {
    [id, name]
        .into_iter()
        .chain(aliases)
        .map(|name| name.to_lowercase())
}

impl Client {
    fn names(&self) -> impl Iterator<Item = String> {
        lower_case(&self.id, &self.name, &self.aliases)
    }

    fn answers_to(&self, wanted: &str) -> bool {
        self.names().any(|name| name == wanted)
            || wanted
                .strip_prefix(self.language.id())
                .and_then(|rest| rest.strip_prefix('/'))
                .is_some_and(|rest| self.names().any(|name| name == rest))
    }

    /// Its first variant with a role.
    pub fn variant(&self, role: crate::Role) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.role == role)
    }
}

impl HopKind {
    /// Whether a word is its name, or the plural of it.
    fn is_called(self, wanted: &str) -> bool {
        let plural = match self {
            HopKind::Proxy => "proxies",
            HopKind::Server => "servers",
        };
        wanted == self.id() || wanted == plural
    }
}

impl Measurement {
    /// Whether a part of it has that version, or one of it: `1` means every 1.x.
    pub fn is_of(&self, wanted: &str) -> bool {
        let mut versions = self.versions.values();
        versions.any(|version| is_part(version, wanted))
    }

    /// `axios 1.21.1, node 24.21.0`: the library first.
    pub fn versions(&self) -> String {
        let is_runtime = |name: &str| Language::ALL.iter().any(|language| language.id() == name);
        let mut versions: Vec<(bool, String)> = self
            .versions
            .iter()
            .map(|(name, version)| (is_runtime(name), format!("{name} {version}")))
            .collect();
        versions.sort_by_key(|&(runtime, _)| runtime);
        let texts: Vec<String> = versions.into_iter().map(|(_, words)| words).collect();
        texts.join(", ")
    }
}

/// Whether a measurement is of that version of the client, or of its runtime.
fn has_version(client: &Client, measurement: &Measurement, wanted: &str) -> bool {
    let is_own = |(name, _): &(&String, &String)| *name != client.language.id();
    let mut own = measurement.versions.iter().filter(is_own).peekable();
    match own.peek() {
        Some(_) => own.any(|(_, version)| is_part(version, wanted)),
        // a client that is part of the runtime has the runtime's version
        None => measurement.is_of(wanted),
    }
}

/// Whether a version is the wanted one, or one of it: `1` means every 1.x.
fn is_part(version: &str, wanted: &str) -> bool {
    let rest = version.strip_prefix(wanted);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn embedded() -> Catalogue {
        Catalogue::embedded().unwrap()
    }

    fn ids(asked: &str) -> Vec<String> {
        let catalogue = embedded();
        let found = catalogue.find(asked).unwrap();
        found
            .clients
            .iter()
            .map(|client| client.id.clone())
            .collect()
    }

    #[test]
    fn a_client_is_found_by_id_alias_and_language() {
        assert_eq!(ids("axios"), ["axios"]);
        assert_eq!(ids("node/axios"), ["axios"]);
        assert_eq!(ids("AXIOS"), ["axios"]);
        assert_eq!(ids("node-fetch"), ["node-fetch-2", "node-fetch-3"]);
        assert_eq!(ids("@upstash/redis"), ["upstash-redis"]);
        assert!(ids("python").len() > 3);
    }

    #[test]
    fn a_name_not_quite_right_gets_the_nearest() {
        for (wrong, right) in [
            ("axois", "axios"),
            ("reqests", "requests"),
            ("boto", "boto3"),
            ("pyhton", "python"),
        ] {
            match embedded().find(wrong).unwrap_err() {
                FindError::Unknown { nearest, .. } => assert_eq!(nearest[0], right, "{wrong}"),
                other => panic!("{other}"),
            }
        }
        let nothing = embedded().find("zzzzzzzzzzzz").unwrap_err();
        assert_eq!(
            nothing,
            FindError::Unknown {
                name: "zzzzzzzzzzzz".to_owned(),
                nearest: Vec::new()
            }
        );
    }

    #[test]
    fn a_user_agent_a_server_and_an_error_find_what_sends_them() {
        assert_eq!(ids("python-requests/2.31.0"), ["requests"]);
        assert_eq!(ids("Go-http-client/1.1")[0], "go-net-http");
        assert!(ids("Error: socket hang up").contains(&"node-http".to_owned()));
        assert!(ids("connection pool is full").contains(&"requests".to_owned()));
        assert_eq!(ids("@aws-sdk/client-s3"), ["aws-sdk-js-3"]);
        let catalogue = embedded();
        let hops = |asked: &str| -> Vec<String> {
            let found = catalogue.find(asked).unwrap();
            found.hops.iter().map(|hop| hop.id.clone()).collect()
        };
        assert_eq!(hops("nginx/1.22.1"), ["nginx"]);
        assert_eq!(hops("NGINX"), ["nginx"]);
        assert_eq!(hops("nginx@1.22"), ["nginx"]);
        assert_eq!(hops("upstream prematurely closed connection"), ["nginx"]);
        assert!(hops("proxies").len() > 3 && hops("servers").len() > 3);
        let message = catalogue.find("nginx@0.8").unwrap_err().to_string();
        assert!(message.contains("measured: 1."), "{message}");
        // a few letters are no text of an error
        assert!(catalogue.find("hang").is_err());
    }

    #[test]
    fn a_library_finds_the_clients_that_it_uses() {
        assert_eq!(ids("Retrofit"), ["okhttp"]);
        let catalogue = embedded();
        let of = |asked: &str| catalogue.find(asked).unwrap().library.unwrap().names[0].clone();
        assert_eq!(of("ioredis"), "ioredis");
        assert_eq!(of("webclient"), "spring");
        let message = catalogue.find("retrofti").unwrap_err().to_string();
        assert!(message.contains("did you mean retrofit?"), "{message}");
        for library in &catalogue.libraries {
            for id in &library.clients {
                assert!(catalogue.clients.iter().any(|one| one.id == *id), "{id}");
            }
            for name in &library.names {
                assert_eq!(*name, name.to_lowercase());
                let is_same = |client: &&Client| client.answers_to(name);
                assert_eq!(
                    catalogue.clients.iter().find(is_same).map(|one| &one.id),
                    None
                );
            }
        }
    }

    #[test]
    fn a_version_never_measured_names_those_that_were() {
        assert_eq!(ids("axios@1"), ["axios"]);
        let message = embedded().find("axios@0.21").unwrap_err().to_string();
        assert!(message.contains("axios 1."), "{message}");
    }
}
