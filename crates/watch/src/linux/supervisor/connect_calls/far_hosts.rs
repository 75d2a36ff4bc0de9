//! Which hosts respond too late to hold a non-blocking connect for: a program with one event loop
//! does nothing else while it is held. Must not be asked about blocking connects, which wait
//! anyway.

use super::call::HOLD;
use std::collections::HashSet;
use std::net::IpAddr;
use std::time::Duration;

/// Hosts that are remembered; then all are forgotten.
const MAX_HOSTS: usize = 4_096;

/// The hosts whose last response to a SYN came later than a connect is held.
#[derive(Default)]
pub(super) struct FarHosts(HashSet<IpAddr>);

impl FarHosts {
    /// Whether a connect to this host need not be held.
    pub(super) fn contains(&self, host: IpAddr) -> bool {
        self.0.contains(&host)
    }

    /// This host has responded, or has not yet, after this time.
    pub(super) fn took(&mut self, host: IpAddr, time: Duration) {
        if time < HOLD {
            self.0.remove(&host);
            return;
        }
        if self.0.len() >= MAX_HOSTS {
            self.0.clear();
        }
        self.0.insert(host);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_far_by_its_last_response() {
        let mut hosts = FarHosts::default();
        let host = IpAddr::from([192, 0, 2, 1]);
        assert!(!hosts.contains(host));
        hosts.took(host, HOLD);
        assert!(hosts.contains(host) && !hosts.contains(IpAddr::from([192, 0, 2, 2])));
        hosts.took(host, HOLD / 2);
        assert!(!hosts.contains(host));
        for last in 0..=MAX_HOSTS as u32 {
            hosts.took(IpAddr::from(last.to_be_bytes()), HOLD);
        }
        assert_eq!(hosts.0.len(), 1);
    }
}
