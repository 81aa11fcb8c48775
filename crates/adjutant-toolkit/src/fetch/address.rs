//! Names that are asked for, and the addresses that they may lead to.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use crate::{public::is_public, rules::fits_host};

/// Resolves names to addresses that everybody has, and to no others; what it gives is what is connected to.
#[derive(Debug, Clone)]
pub(super) struct PublicOnly {
    /// The hosts that may have any address.
    pub(super) allowed: Arc<[String]>,
}

/// A host that has an address which is not everybody's.
#[derive(Debug, thiserror::Error)]
#[error("`{host}` is at {address}, an address that is not public")]
pub(super) struct PrivateAddress {
    pub(super) host: String,
    pub(super) address: IpAddr,
}

impl PublicOnly {
    /// True if a host may have any address.
    pub(super) fn allows(&self, host: &str) -> bool {
        self.allowed.iter().any(|pattern| fits_host(pattern, host))
    }

    /// Fails if a host that may not has an address that is not everybody's.
    pub(super) fn judge(&self, host: &str, address: IpAddr) -> Result<(), PrivateAddress> {
        match is_public(address) || self.allows(host) {
            true => Ok(()),
            false => Err(PrivateAddress { host: host.to_owned(), address }),
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
