//! The permissions that a manifest requests: listed in full, and trusted once for each content by the user who runs it.

mod content;
#[cfg(feature = "mcp")]
mod pins;
mod reach;
mod store;
mod wants;

#[cfg(feature = "mcp")]
pub(crate) use pins::Pins;
pub(crate) use reach::{Reach, reach};
pub use store::TrustStore;

use crate::{
    error::{Error, ErrorKind},
    wants::Wants,
};

/// The manifests whose requested permissions are granted.
///
/// Code that loads a manifest trusts it: engines and backends check nothing by default. The content of a bundle, and
/// every manifest that the command is called with, is untrusted until the user trusts it.
#[derive(Debug, Clone, Default)]
pub enum Trust {
    /// No manifests, except those that request nothing.
    #[default]
    Nothing,
    /// All manifests; the caller has checked their requests.
    All,
    /// Manifests whose content is in this store.
    Store(TrustStore),
}

impl Trust {
    /// Admits a manifest that requests nothing or is trusted.
    ///
    /// # Errors
    /// `Untrusted`, with the requested permissions; `Storage` if the store cannot be read.
    pub fn admit(&self, wants: &Wants) -> Result<(), Error> {
        let is_trusted = match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Store(store) => wants.is_empty() || store.holds(wants.digest())?,
        };
        if is_trusted || wants.is_empty() {
            return Ok(());
        }
        let text = format!(
            "nobody trusts what the agent {} wants: {}",
            wants.name(),
            wants.summary()
        );
        Err(Error::new(ErrorKind::Untrusted, text).with_wants(wants.clone()))
    }
}
