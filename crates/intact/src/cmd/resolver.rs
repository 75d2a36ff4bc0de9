//! `--resolver ADDRESS`: programs look names up at another name server.

use crate::console;
use crate::exit::Failed;
use intact_link::LinkError;
use std::net::{IpAddr, SocketAddr};

/// The port that every resolver asks: resolv.conf names none.
const PORT: u16 = 53;

/// Reads the address of a name server.
pub(crate) fn address(word: &str) -> Result<IpAddr, String> {
    let with_port = || word.parse::<SocketAddr>().ok();
    match (word.parse(), with_port()) {
        (Ok(address), _) => Ok(address),
        (_, Some(address)) if address.port() == PORT => Ok(address.ip()),
        (_, Some(address)) => Err(format!(
            "resolv.conf names no port, so programs ask port 53, not {}: `intact serve --dns=127.0.0.9` listens there (any address of 127.0.0.0/8 will do)",
            address.port()
        )),
        _ => Err("not the address of a name server, such as 127.0.0.9".to_owned()),
    }
}

/// Makes the programs that this process starts look names up there. Before the first thread is
/// started.
pub(crate) fn enter(resolver: Option<IpAddr>) -> Result<(), Failed> {
    let Some(resolver) = resolver else {
        return Ok(());
    };
    let visible = intact_link::use_resolver(resolver).map_err(|error| {
        let error = match error {
            LinkError::Platform => anyhow::anyhow!("--resolver needs Linux"),
            error => anyhow::Error::from(error).context("--resolver"),
        };
        Failed::forbidden(error)
    })?;
    for path in visible {
        console::note(&format!(
            "intact: --resolver: {path} cannot be hidden, so names may still be resolved elsewhere"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_server_has_an_address_and_no_port_of_its_own() {
        let here = IpAddr::from([127, 0, 0, 9]);
        assert_eq!(address("127.0.0.9"), Ok(here));
        assert_eq!(address("127.0.0.9:53"), Ok(here));
        assert!(address("127.0.0.9:5353").unwrap_err().contains("not 5353"));
        assert!(address("localhost").is_err());
    }
}
