//! Keys, and where they come from. A key is never printed.

use std::{fmt, pin::Pin, sync::Arc};

use adjutant_llm::Error;

/// The secret that a provider knows a caller by; or none, for servers that ask for none.
#[derive(Clone, Default)]
pub struct Key {
    secret: Option<Arc<str>>,
    resolver: Option<Resolver>,
}

/// Gives the secret of the next request.
type Resolver = Arc<dyn Fn() -> Resolving + Send + Sync>;
/// A secret on its way; none if the configured one should be kept.
pub(crate) type Resolving = Pin<Box<dyn Future<Output = Result<Option<String>, Error>> + Send>>;

/// Where a credential was looked for, and whether it was there.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credential {
    /// The provider.
    pub provider: String,
    /// The environment variable.
    pub variable: String,
    /// Whether it holds anything but white space.
    pub present: bool,
}

impl Key {
    /// A key; white space around it is dropped, and blank text is no key.
    pub fn new(secret: &str) -> Self {
        let secret = secret.trim();
        Self { secret: (!secret.is_empty()).then(|| secret.into()), resolver: None }
    }

    /// No key.
    pub fn none() -> Self {
        Self::default()
    }

    /// The value of an environment variable, read now; no key if it is unset or blank.
    pub fn from_env(variable: &str) -> Self {
        Self::new(&std::env::var(variable).unwrap_or_default())
    }

    /// Asks this before every request, for tokens that do not live long; `None` or blank text keeps the key at hand.
    ///
    /// The time it takes counts as waiting for the answer. Its error ends the request.
    #[must_use]
    pub fn resolve<F, R>(mut self, resolver: F) -> Self
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = Result<Option<String>, Error>> + Send + 'static,
    {
        self.resolver = Some(Arc::new(move || Box::pin(resolver())));
        self
    }

    /// The secret itself.
    pub(crate) fn expose(&self) -> Option<&Arc<str>> {
        self.secret.as_ref()
    }

    /// The secret of the next request, if it must be asked for.
    pub(crate) fn resolving(&self) -> Option<Resolving> {
        self.resolver.as_ref().map(|resolver| resolver())
    }
}

impl From<&str> for Key {
    fn from(secret: &str) -> Self {
        Self::new(secret)
    }
}

impl From<String> for Key {
    fn from(secret: String) -> Self {
        Self::new(&secret)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (&self.secret, &self.resolver) {
            (_, Some(_)) => "Key(resolved)",
            (Some(_), None) => "Key(redacted)",
            (None, None) => "Key(none)",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_no_secret_when_there_is_one() {
        assert_eq!(format!("{:?} {:?}", Key::new(" sk-1 \n"), Key::from("  ")), "Key(redacted) Key(none)");
        assert_eq!(Key::from(" sk-1\n".to_owned()).expose().map(|it| &**it), Some("sk-1"));
    }
}
