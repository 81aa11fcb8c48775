//! How external servers are reached, both pages and MCP and A2A servers: one client, one TLS, and the permitted
//! addresses of a name. Models are called by the driver of `adjutant-providers`.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
    time::Duration,
};

use adjutant_llm::Cause;
use reqwest::{
    Client, ClientBuilder, Url,
    dns::{Addrs, Name, Resolve, Resolving},
    redirect::Policy,
};
use rustls::{ClientConfig, crypto::CryptoProvider};
use rustls_platform_verifier::BuilderVerifierExt as _;

use crate::{public::is_public, rules::fits_host};

/// The time to connect.
const CONNECT: Duration = Duration::from_secs(10);

/// A client that follows nothing, sends nothing twice and keeps no connection: those belong to the runtime that made them.
///
/// # Errors
/// If there is no TLS.
pub fn builder() -> Result<ClientBuilder, Cause> {
    static TLS: OnceLock<Result<ClientConfig, Cause>> = OnceLock::new();
    let tls = || {
        // A program may have chosen another provider for all of its TLS.
        let chosen = CryptoProvider::get_default().cloned();
        let crypto = chosen.unwrap_or_else(|| Arc::new(rustls::crypto::ring::default_provider()));
        let config =
            ClientConfig::builder_with_provider(crypto).with_safe_default_protocol_versions();
        let config = config.and_then(|config| config.with_platform_verifier());
        config
            .map(|config| config.with_no_client_auth())
            .map_err(Cause::from)
    };
    let builder = Client::builder()
        .tls_backend_preconfigured(TLS.get_or_init(tls).clone()?)
        .http1_only()
        .tcp_nodelay(true)
        .connect_timeout(CONNECT)
        .redirect(Policy::none())
        .retry(reqwest::retry::never())
        .referer(false)
        // A server may close an answered connection without notice, and requests are not repeated.
        .pool_max_idle_per_host(0)
        .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")));
    Ok(builder)
}

/// Without the environment's proxy where a server is on this machine.
pub fn direct(builder: ClientBuilder, server: &Url) -> ClientBuilder {
    let host = server.host_str().unwrap_or_default();
    let is_here = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    };
    if is_here { builder.no_proxy() } else { builder }
}

/// Resolves names to public addresses only; the connection uses the returned addresses.
#[derive(Debug, Clone)]
pub struct PublicOnly {
    /// The hosts that may have any address, or `*.` and a parent domain.
    pub allowed: Arc<[String]>,
    /// The hint for an address that is not public.
    pub hint: &'static str,
}

/// A host that has an address which is not everybody's.
#[derive(Debug, thiserror::Error)]
#[error("`{host}` is at {address}, an address that is not public; hint: {hint}")]
pub struct PrivateAddress {
    host: String,
    address: IpAddr,
    hint: &'static str,
}

impl PublicOnly {
    /// Fails if a host that may not has an address that is not everybody's.
    ///
    /// # Errors
    /// The location of the error.
    pub fn judge(&self, host: &str, address: IpAddr) -> Result<(), PrivateAddress> {
        match is_public(address) || self.allowed.iter().any(|pattern| fits_host(pattern, host)) {
            true => Ok(()),
            false => Err(PrivateAddress {
                host: host.to_owned(),
                address,
                hint: self.hint,
            }),
        }
    }
}

impl Resolve for PublicOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let this = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            // One bad address spoils the name: who gives both kinds tries out which one is taken.
            found.iter().try_for_each(|at| this.judge(host, at.ip()))?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
