//! The things that somebody else's manifest may do: listed in full, and trusted once for each content by the person who
//! runs it.

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

/// Whose manifests may do what they want.
///
/// Code that loads a manifest vouches for it: engines and backends ask nobody, unless they are told to. What comes in a
/// bundle, and whatever the command is pointed at, is somebody else's until it is trusted.
#[derive(Debug, Clone, Default)]
pub enum Trust {
    /// Nobody's: only what wants nothing is let through.
    #[default]
    Nothing,
    /// All: whoever says so has seen what they want.
    All,
    /// Those whose content stands in this store.
    Store(TrustStore),
}

impl Trust {
    /// Lets through what wants nothing, or is trusted.
    ///
    /// # Errors
    /// `Untrusted`, with all that is wanted; `Storage` if the store cannot be read.
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
