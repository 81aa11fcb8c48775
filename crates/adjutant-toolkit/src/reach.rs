//! The HTTP client for web pages and for external MCP and A2A servers: one client, one TLS configuration, and the
//! permitted addresses of a name. Models are called by the driver of `adjutant-providers`.

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

/// The timeout for connecting.
const CONNECT: Duration = Duration::from_secs(10);

/// A client that follows no redirects, repeats no request, and keeps no connections, because connections belong to the
/// runtime that created them.
///
/// # Errors
/// If TLS cannot be initialized.
pub fn builder() -> Result<ClientBuilder, Cause> {
    static TLS: OnceLock<Result<ClientConfig, Cause>> = OnceLock::new();
    let tls = || {
        // A program may have installed another provider for all of its TLS.
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
        // A server may close an idle connection without notice, and requests are not repeated.
        .pool_max_idle_per_host(0)
        .user_agent(concat!("adjutant/", env!("CARGO_PKG_VERSION")));
    Ok(builder)
}

/// Ignores the proxies of the environment if a server is on this machine.
pub fn direct(builder: ClientBuilder, server: &Url) -> ClientBuilder {
    let host = server.host_str().unwrap_or_default();
    let is_here = match host.trim_matches(['[', ']']).parse::<IpAddr>() {
        Ok(address) => address.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".localhost"),
    };
    if is_here { builder.no_proxy() } else { builder }
}

/// Resolves names to public addresses only. The connection uses the returned addresses.
#[derive(Debug, Clone)]
pub struct PublicOnly {
    /// The hosts that may have any address; `*.` and a parent domain matches all names below it.
    pub allowed: Arc<[String]>,
    /// The hint for an address that is not public.
    pub hint: &'static str,
}

/// The error for a host whose address is not public.
#[derive(Debug, thiserror::Error)]
#[error("`{host}` is at {address}, an address that is not public; hint: {hint}")]
pub struct PrivateAddress {
    host: String,
    address: IpAddr,
    hint: &'static str,
}

impl PublicOnly {
    /// Fails if the address is not public, unless the host may have any address.
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
            // One private address makes the name invalid: a name with both kinds may be an attempt to get the private
            // one used.
            found.iter().try_for_each(|at| this.judge(host, at.ip()))?;
            Ok(Box::new(found.into_iter()) as Addrs)
        })
    }
}
