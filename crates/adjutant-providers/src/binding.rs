//! The hosts that the keys of known vendors belong to. Data and one comparison; the caller chooses the model.

use reqwest::Url;

use crate::{
    place,
    provider::{Origin, Provider},
};

/// A known vendor's key on its way to a host that is not the vendor's.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Detour {
    /// The environment variable that holds the key.
    pub variable: String,
    /// The host of the address, with its port if that is not the default.
    pub host: String,
    /// The origin of this detour.
    pub origin: Origin,
}

/// True if a key may be sent to an address: no known vendor owns the key, or the address is at the vendor's own host.
///
/// `address` returns the value of a base URL variable, for vendors without a common address.
pub(crate) fn belongs(variable: &str, url: &str, address: impl Fn(&str) -> Option<String>) -> bool {
    let is_own = |owner: &Provider| match &*owner.base_url {
        "" => address(&owner.base_url_variable),
        base_url => place::fill(base_url, &address).ok().map(String::from),
    };
    let mut owners = Provider::all()
        .filter(|it| it.key_variables.iter().any(|own| own == variable))
        .peekable();
    owners.peek().is_none()
        || owners.any(|owner| is_own(&owner).is_some_and(|own| is_same_host(&own, url)))
}

/// The host of an address and its port, for messages. Never its user or its path, which may hold secrets.
pub(crate) fn host(url: &str) -> String {
    let parsed = Url::parse(url.trim()).ok();
    let host = parsed
        .as_ref()
        .and_then(|url| Some((url.host_str()?, url.port())));
    match host {
        Some((host, Some(port))) => format!("{host}:{port}"),
        Some((host, None)) => host.to_owned(),
        None => "an address that cannot be read".to_owned(),
    }
}

/// True if both addresses have the same URL origin: a key that leaves without encryption has left for another place.
fn is_same_host(one: &str, other: &str) -> bool {
    let origin = |url: &str| Some(Url::parse(url.trim()).ok()?.origin()).filter(|it| it.is_tuple());
    origin(one).is_some_and(|it| origin(other) == Some(it))
}

impl Provider {
    /// True if it adds nothing to what is known: the host of a known provider, only that provider's keys, and no
    /// headers.
    pub fn is_usual(&self) -> bool {
        let has = |own: &Provider| {
            let keys = self
                .key_variables
                .iter()
                .all(|it| own.key_variables.contains(it));
            keys && [own.base_url_variable.as_str(), ""].contains(&self.base_url_variable.as_str())
        };
        self.headers.is_empty()
            && self.key_command.is_none()
            && Self::all().any(|own| is_same_host(&own.base_url, &self.base_url) && has(&own))
    }
}
