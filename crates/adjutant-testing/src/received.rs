//! A request as it came over the wire.

use std::fmt;

use bytes::Bytes;
use serde_json::Value;

/// Headers whose values `Debug` does not show.
const SECRET: [&str; 4] = [
    "authorization",
    "x-api-key",
    "x-goog-api-key",
    "proxy-authorization",
];

/// A request as it came over the wire.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Received {
    /// The method, for example `POST`.
    pub method: String,
    /// The path with its query.
    pub path: String,
    /// The headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Bytes,
}

impl Received {
    /// The value of the first header of this name, in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(it, _)| it == name)
            .map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` if it is invalid.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// The path without its query.
    pub(crate) fn route(&self) -> &str {
        self.path
            .split_once('?')
            .map_or(self.path.as_str(), |(route, _)| route)
    }

    /// True if the query has this parameter, written as `name=value`.
    pub(crate) fn queries(&self, parameter: &str) -> bool {
        self.path
            .split_once('?')
            .is_some_and(|(_, query)| query.split('&').any(|it| it == parameter))
    }

    pub(crate) fn wants_close(&self) -> bool {
        self.header("connection")
            .is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

impl fmt::Debug for Received {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |(name, value): &(String, String)| {
            let value = if SECRET.contains(&name.as_str()) {
                "<redacted>"
            } else {
                value
            };
            (name.clone(), value.to_owned())
        };
        f.debug_struct("Received")
            .field("method", &self.method)
            .field("path", &self.path)
            .field(
                "headers",
                &self.headers.iter().map(shown).collect::<Vec<_>>(),
            )
            .field("body", &String::from_utf8_lossy(&self.body))
            .finish()
    }
}
