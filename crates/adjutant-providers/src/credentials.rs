//! Keys, and where they come from. A key is never printed.

use std::{fmt, sync::Arc};

/// The secret that a provider knows a caller by; or none, for servers that ask for none.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Key(Option<Arc<str>>);

/// A provider whose key stands in the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Provider {
    pub(crate) name: &'static str,
    /// The variable that holds the key.
    pub(crate) key: &'static str,
    /// The variable that holds another base URL.
    pub(crate) base_url: &'static str,
    /// The model that is taken when only a key is there.
    pub(crate) default_model: &'static str,
}

/// The providers with keys, in the order in which their keys are looked for.
///
/// Source: the environment variables of both vendors' own clients, 2026-08.
pub(crate) const PROVIDERS: [Provider; 2] = [
    Provider {
        name: "anthropic",
        key: "ANTHROPIC_API_KEY",
        base_url: "ANTHROPIC_BASE_URL",
        default_model: "claude-sonnet-5",
    },
    Provider { name: "openai", key: "OPENAI_API_KEY", base_url: "OPENAI_BASE_URL", default_model: "gpt-5.4" },
];

/// Where a credential was looked for, and whether it was there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Credential {
    /// The provider.
    pub provider: &'static str,
    /// The environment variable.
    pub variable: &'static str,
    /// Whether it holds anything but white space.
    pub present: bool,
}

impl Key {
    /// A key; white space around it is dropped, and blank text is no key.
    pub fn new(secret: &str) -> Self {
        let secret = secret.trim();
        Self((!secret.is_empty()).then(|| secret.into()))
    }

    /// No key.
    pub fn none() -> Self {
        Self(None)
    }

    /// The secret itself.
    pub(crate) fn expose(&self) -> Option<&str> {
        self.0.as_deref()
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
        f.write_str(if self.0.is_some() { "Key(redacted)" } else { "Key(none)" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_prints_no_secret_when_there_is_one() {
        assert_eq!(format!("{:?} {:?}", Key::new(" sk-1 \n"), Key::from("  ")), "Key(redacted) Key(none)");
        assert_eq!(Key::from(" sk-1\n".to_owned()).expose(), Some("sk-1"));
    }
}
