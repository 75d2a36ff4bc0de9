//! TLS 1.0 and 1.1, offered and not spoken.

use super::{Bench, Ended};
use crate::caller::Halt;
use crate::old_tls;
use ledger::TlsVersion;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::IpAddr;

pub(super) fn probe(bench: &mut Bench<'_>) -> Result<(), Ended> {
    let Some(peer) = bench.peer.filter(|_| bench.plans.is_secure()) else {
        return Ok(());
    };
    let host = bench.plans.address.host.clone();
    let name = host.parse::<IpAddr>().is_err().then_some(&*host);
    for version in [TlsVersion::Tls10, TlsVersion::Tls11] {
        if bench.caller.observer.stopped() {
            return Err(Halt::Stopped.into());
        }
        let offered = old_tls::offer(peer, name, version, random());
        bench.card.old_tls.push(offered);
    }
    Ok(())
}

/// Random enough for a hello that leads to no session.
fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    for part in bytes.chunks_exact_mut(8) {
        part.copy_from_slice(&RandomState::new().build_hasher().finish().to_be_bytes());
    }
    bytes
}
