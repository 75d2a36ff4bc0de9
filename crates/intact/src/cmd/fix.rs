//! `intact fix`: what an HTTP client, proxy or server does with its connections, and what to set.

use super::conclusion::print;
use super::config::Config;
use super::help::guide;
use super::json::{self, JsonTarget};
use crate::console;
use crate::exit::{self, Failed, refuse};
use intact_fix::{Catalogue, Client, Egress, FindError};
use intact_ledger::store::Reader;
use intact_ledger::{Origin, Row, Scheme};
use intact_report::documents::{self, FixRequest};
use intact_report::terminal::Length;
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// How is connection reuse turned on in my client library, proxy or server?
#[derive(clap::Args)]
#[command(
    after_help = "Each claim about a client was measured, in the versions that are printed: docs/reference/fix.md has the method.

Examples:
  intact fix
  intact fix axios
  intact fix axios --full
  intact fix node/fetch --server-idle 60s
  intact fix python
  intact fix nginx
  intact fix 'socket hang up'
  intact fix nginx --pool-for run/ > pool.conf
  intact fix --articles
  intact fix axios@1 --json | jq .clients[0].advice"
)]
pub(crate) struct Args {
    /// A client, library, proxy or server, with @VERSION or without; a language, a package, a
    /// User-Agent, or the text of an error; none: all of them
    #[arg(value_name = "CLIENT")]
    client: Option<String>,
    /// Print what articles recommend, what it does today, and what to use instead
    #[arg(long, conflicts_with_all = ["client", "server_idle", "json", "full"])]
    articles: bool,
    /// Write the configuration of a local proxy that keeps connections to the HTTP destinations of
    /// this ledger, for a program that cannot; CLIENT is nginx or haproxy
    #[arg(long, value_name = "DIR", requires = "client", conflicts_with_all = ["server_idle", "json", "full"])]
    pool_for: Option<PathBuf>,
    /// The address at which that proxy accepts plain HTTP; a destination of TLS has a port above it
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081")]
    pool_listen: SocketAddr,
    /// How long the server keeps idle connections (`intact check` measures it)
    #[arg(long, value_name = "TIME", value_parser = super::bench::time)]
    server_idle: Option<Duration>,
    /// Print the whole page [default: at most 40 lines for one client, and the names of what is
    /// left out]
    #[arg(long)]
    full: bool,
    /// Print JSON instead of the page, or write it to FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "-")]
    json: Option<JsonTarget>,
}

/// Looks up and prints.
pub(crate) fn run(config: &Config<Args>) -> Result<ExitCode, Failed> {
    let args = &config.options;
    if args.server_idle.is_some_and(|idle| idle.is_zero()) {
        refuse!("--server-idle 0s: a server that closes at once cannot be reused");
    }
    if let (Some(folder), Some(name)) = (&args.pool_for, &args.client) {
        let egress = Egress::named(name).map_err(Failed::usage)?;
        let text = egress.configuration(&destinations(folder)?, args.pool_listen);
        console::print_written(&text.map_err(Failed::usage)?);
        return Ok(ExitCode::from(exit::FINE));
    }
    let catalogue = Catalogue::embedded().map_err(anyhow::Error::from)?;
    if args.articles {
        print(&documents::fix_articles(&catalogue), Length::Full);
        return Ok(ExitCode::from(exit::FINE));
    }
    let found = match &args.client {
        Some(name) => catalogue
            .find(name)
            .map_err(|error| Failed::usage(anyhow::anyhow!("{error}{}", elsewhere(&error))))?,
        None => intact_fix::Found {
            clients: catalogue.clients.iter().collect(),
            hops: catalogue.hops.hops.iter().collect(),
            library: None,
            version: None,
        },
    };
    // the text of an error finds the clients that show it
    if let Some(topic) = args.client.as_deref().and_then(guide::titled) {
        console::note(&explained(topic));
    }
    let question = FixRequest {
        server_idle: args.server_idle,
        version: found.version,
    };
    let to = args.json.as_ref();
    json::deliver(to, || {
        intact_report::json::fix(&catalogue, &found, args.server_idle)
    })?;
    if json::takes_output(to) {
        return Ok(ExitCode::from(exit::FINE));
    }
    let one = |client: &Client| documents::fix_client(&catalogue, client, question);
    if let Some(library) = found.library {
        print(&documents::fix_library(library), Length::Full);
        return Ok(ExitCode::from(exit::FINE));
    }
    let pages = match (&args.client, &found.clients[..], &found.hops[..]) {
        (Some(_), [client], []) => vec![one(client)],
        (Some(_), [], [hop]) => vec![documents::fix_hop(&catalogue, hop, found.version)],
        (Some(_), clients, []) if args.server_idle.is_some() => {
            clients.iter().map(|client| one(client)).collect()
        }
        (None, clients, _) if !args.full => vec![documents::fix_overview(&catalogue, clients)],
        (_, clients, hops) => vec![documents::fix_list(&catalogue, clients, hops)],
    };
    let length = match args.full {
        true => Length::Full,
        false => Length::SCREEN,
    };
    for page in &pages {
        print(page, length);
    }
    Ok(ExitCode::from(exit::FINE))
}

/// The HTTP destinations of a ledger. A later row of a connection knows more.
fn destinations(folder: &Path) -> Result<Vec<Origin>, Failed> {
    let reader = Reader::open(folder).map_err(Failed::unreadable)?;
    let mut origins = BTreeMap::new();
    for row in reader.events().map_err(Failed::unreadable)? {
        if let Row::Opened(connection) | Row::Revised(connection) = row {
            origins.insert(connection.id, connection.origin);
        }
    }
    let origins: BTreeSet<Origin> = origins.into_values().flatten().collect();
    let is_http = |one: &Origin| one.scheme != Scheme::Tcp;
    Ok(origins.into_iter().filter(is_http).collect())
}

/// Where else words are that no client, proxy or server has.
fn elsewhere(error: &FindError) -> String {
    let FindError::Unknown { name, .. } = error else {
        return String::new();
    };
    match guide::about(name).first() {
        Some(topic) => format!("; {}", explained(topic)),
        None => "; `intact help guide` has pages by what you see".to_owned(),
    }
}

/// What names a page of the guide.
fn explained(topic: &str) -> String {
    format!("`intact help {topic}`: {}", guide::title(topic))
}
