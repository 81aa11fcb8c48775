//! Credentials: environment variables that a model or a store needs. They are never printed, stored or passed to tools.

use std::{collections::BTreeMap, fmt, path::Path};

use crate::{Error, ErrorKind, Resolved, manifest};

/// Credentials, by the names of their variables.
#[derive(Clone, Default)]
pub struct Credentials {
    values: BTreeMap<String, String>,
}

/// The variable that names the directory with the tokens of servers.
pub(crate) const MCP_TOKENS: &str = "ADJUTANT_MCP_TOKENS";

/// Returns the directory with the tokens of `adjutant mcp login`: the variable's, or one in the user's state directory.
pub(crate) fn tokens_folder(lookup: impl Fn(&str) -> Option<String>) -> Option<String> {
    let of = |name: &str| lookup(name).filter(|path| Path::new(path).is_absolute());
    let state = || of("XDG_STATE_HOME").or_else(|| Some(format!("{}/.local/state", of("HOME")?)));
    of(MCP_TOKENS).or_else(|| Some(format!("{}/adjutant/mcp", state()?)))
}

impl Credentials {
    /// Returns no credentials.
    pub fn none() -> Self {
        Self::default()
    }

    /// Returns the credentials that an agent needs and that are set; missing ones are reported on use.
    ///
    /// The needs are derived from the manifest only, never from the list in a file next to it.
    pub fn from_lookup(resolved: &Resolved, lookup: impl Fn(&str) -> Option<String>) -> Self {
        let needs = manifest::needs(&resolved.manifest);
        let found = needs
            .into_iter()
            .filter_map(|name| Some((lookup(&name)?, name)));
        let found = found.map(|(value, name)| (name, value));
        let mut values: BTreeMap<String, String> = found
            .filter(|(_, value)| !value.trim().is_empty())
            .collect();
        if resolved
            .manifest
            .mcp
            .servers
            .values()
            .any(|server| server.url.is_some())
        {
            values.extend(tokens_folder(&lookup).map(|folder| (MCP_TOKENS.to_owned(), folder)));
        }
        Self { values }
    }

    /// Adds a credential.
    #[must_use]
    pub fn with(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.values.insert(name.into(), value.into());
        self
    }

    /// Returns a value.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    /// Returns a required value.
    ///
    /// # Errors
    /// `Model` if it is missing; the message names the variable.
    pub fn require(&self, name: &str) -> Result<&str, Error> {
        self.get(name)
            .ok_or_else(|| Error::new(ErrorKind::Model, format!("the variable {name} is not set")))
    }

    /// Returns all of them, for the environment of the process that needs them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.values
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Debug for Credentials {
    /// Prints only the names.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.values.keys()).finish()
    }
}
