//! Makes a variant of a configuration ready to run: the effect of each axis. Must not send
//! anything.

use crate::config::{Coalesce, Config, ConfigError, RowPolicy};
use crate::endpoint::{by_scheme, names};
use crate::engine::Pauses;
use crate::response_cache::ResponseCache;
use crate::targets::RequestWriter;
use crate::variant_plan::{ConnectionLife, VariantPlan};
use intact_client::tls::{self, Settings, Trust};
use intact_client::{Detail, Plan, Proxy, SocketSettings};
use intact_experiment::{AxisValues, CacheUse, Period, TlsChoice};
use intact_ledger::{Protocol, Scheme};
use std::sync::Arc;
use std::time::Duration;

impl Config {
    /// Makes one variant ready to run.
    pub(crate) fn variant_plan(
        &self,
        variant: u32,
        choice: &AxisValues,
        trust: &Trust,
        kernel_stamps: bool,
    ) -> Result<VariantPlan, ConfigError> {
        let address = by_scheme(&self.address()?, choice.tls, &self.target)?;
        let secure = address.scheme == Scheme::Https;
        let (endpoint, proxy) =
            self.endpoint(&address, secure || choice.http == Protocol::Http2)?;
        let through_proxy = self.proxy.is_some() && proxy == Proxy::Transparent;
        let tls = if secure {
            let settings = Settings {
                version: match choice.tls {
                    TlsChoice::Version(version) => Some(version),
                    TlsChoice::Any | TlsChoice::None => None,
                },
                protocol: choice.http,
                resume: choice.resume,
                certificate: self.credentials.certificate.clone(),
            };
            let client = tls::Client::new(&address.host, &settings, trust)?;
            Some(match choice.early_data {
                Some(true) => client.allowing_early_requests(),
                _ => client,
            })
        } else {
            None
        };
        let writer = RequestWriter {
            source: self.targets.as_ref().map_or("", |one| &one.source),
            config: &Config {
                targets: None,
                ..self.clone()
            },
            choice,
            target: &self.address()?,
            address: &address,
            is_absolute: through_proxy,
        };
        let targets = self.targets.iter().flat_map(|one| &one.requests);
        let targets = targets.map(|one| writer.write(one).map(Arc::new));
        let targets = targets.collect::<Result<Arc<[_]>, _>>()?;
        let request = match targets.first() {
            Some(first) => first.clone(),
            None => Arc::new(self.request(&address, choice, through_proxy)?),
        };
        let connection = &choice.connection;
        let nanos = |time: Duration| time.as_nanos() as u64;
        let plan_stamps = kernel_stamps && self.unix_socket.is_none();
        let plan = Plan {
            origin: address.origin(),
            names: names(choice.dns, &endpoint)?,
            endpoint,
            proxy,
            tls,
            protocol: choice.http,
            stamps: plan_stamps,
            socket: SocketSettings {
                fast_open: connection.fast_open == Some(true),
                congestion: connection.congestion.as_deref().map(Arc::from),
                keepalive: connection.tcp_keepalive.and_then(Period::time),
            },
            local_address: matches!(self.keep, RowPolicy::Ledger(_)),
            header_table: connection.header_table,
        };
        Ok(VariantPlan {
            variant,
            plan: Arc::new(plan),
            request,
            targets,
            cache: match connection.cache {
                Some(CacheUse::Revalidate) => Some(Arc::new(ResponseCache::default())),
                Some(CacheUse::Off) | None => None,
            },
            detail: match connection.cache {
                Some(_) => Detail::Fields,
                None => Detail::Outcome,
            },
            keepalive: choice.keepalive,
            life: ConnectionLife {
                requests: connection.most_requests().map(|most| most.get().into()),
                age: connection.max_age.and_then(Period::time).map(nanos),
                pause: connection.idle.map(nanos),
                ping: connection.ping.and_then(Period::time),
            },
            concurrency: choice.connections() as usize,
            streams: choice.streams_each() as usize,
            timeout: self.timeout.as_nanos() as u64,
            open_loop: choice.open_loop,
            // without the kernel's stamps the wait would be in the latency
            gather: match self.coalesce {
                _ if !plan_stamps => None,
                Coalesce::Auto if choice.streams_each() > 1 => Some(Pauses::Long),
                // a pause would delay the start of requests that are due
                Coalesce::Auto if choice.open_loop.is_some() => None,
                Coalesce::Auto => Some(Pauses::Short),
                Coalesce::Always => Some(Pauses::Long),
                Coalesce::Never => None,
            },
        })
    }
}
