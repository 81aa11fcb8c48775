//! The fixed configuration of a server.

use std::sync::Arc;

use adjutant_llm::{CallResult, Status};
use adjutant_tool::ToolError;

use crate::{
    config::{ServerConfig, Transport},
    error::{Error, ErrorKind},
};

/// The fixed configuration of a server.
pub(crate) struct Plan {
    pub(crate) name: Arc<str>,
    /// The prefix of its tools' names.
    pub(crate) prefix: Arc<str>,
    pub(crate) config: ServerConfig,
    /// The credentials that the server was given, in all forms that its answers may repeat, the longest first.
    pub(crate) secrets: Vec<String>,
}

/// The text that takes the place of a credential.
const REDACTED: &str = "[redacted]";
/// The smallest number of bytes of a credential: a shorter one would take out parts of words.
const MIN_SECRET: usize = 8;
/// Parts of the names of variables and headers that hold credentials.
const SECRET_NAMES: [&str; 9] = [
    "key",
    "token",
    "secret",
    "password",
    "passwd",
    "authorization",
    "cookie",
    "credential",
    "auth",
];

/// The credentials among the variables and the headers of a server, in all forms.
pub(crate) fn secrets(config: &ServerConfig) -> Vec<String> {
    let values = match &config.transport {
        Transport::Stdio(config) => &config.env,
        Transport::Http(config) => &config.headers,
        Transport::Stream(_) => return Vec::new(),
    };
    let is_secret = |name: &str| {
        let name = name.to_ascii_lowercase();
        SECRET_NAMES.iter().any(|part| name.contains(part))
    };
    let named = values.iter().filter(|(name, _)| is_secret(name));
    // `Bearer` before a token is no secret.
    let last = named.filter_map(|(_, value)| value.split_whitespace().last());
    let forms = last
        .filter(|value| value.len() >= MIN_SECRET)
        .flat_map(adjutant_llm::secret::forms);
    let mut all: Vec<String> = forms.filter(|form| form.len() >= MIN_SECRET).collect();
    all.sort_by_key(|form| std::cmp::Reverse(form.len()));
    all.dedup();
    all
}

impl Plan {
    /// Words about this server, without its credentials.
    pub(crate) fn says(&self, what: &str) -> String {
        self.redact(format!("MCP server {:?}: {what}", &*self.name))
    }

    /// The text without the credentials that the server was given.
    pub(crate) fn redact(&self, text: String) -> String {
        self.secrets
            .iter()
            .fold(text, |text, secret| match text.contains(&**secret) {
                true => text.replace(&**secret, REDACTED),
                false => text,
            })
    }

    /// The result without the credentials that the server was given.
    pub(crate) fn redact_result(&self, result: CallResult) -> CallResult {
        if self.secrets.is_empty() {
            return result;
        }
        let Ok(text) = serde_json::to_string(&result) else {
            return result;
        };
        if !self.secrets.iter().any(|secret| text.contains(&**secret)) {
            return result;
        }
        match serde_json::from_str(&self.redact(text)) {
            Ok(redacted) => redacted,
            Err(_) => CallResult::new(
                Status::Failed,
                self.says("its answer repeats a credential and is left out"),
            ),
        }
    }

    /// A failure of this server.
    pub(crate) fn error(&self, kind: ErrorKind, what: &str) -> Error {
        Error::new(kind, self.says(what))
    }

    /// A failure of a call that is the server's own fault.
    pub(crate) fn fault(&self, what: &str) -> ToolError {
        ToolError::failed(self.says(what))
    }
}

#[cfg(test)]
mod tests {
    use adjutant_toolkit::Sandbox;
    use serde_json::json;

    use super::*;
    use crate::config::{HttpConfig, StdioConfig};

    const KEY: &str = "sk-0123456789abcdef/+x";

    fn plan(transport: impl Into<Transport>) -> Plan {
        let config = ServerConfig::new(transport.into());
        Plan {
            name: "docs".into(),
            prefix: "docs_".into(),
            secrets: secrets(&config),
            config,
        }
    }

    #[test]
    fn credentials_that_a_server_repeats_are_taken_out_of_its_results() {
        let mut program = StdioConfig::new("server", Sandbox::refusing("a test"));
        let variables = [
            ("API_KEY", KEY),
            ("MODE", "production-mode"),
            ("TOKEN", "short"),
        ];
        program.env = variables
            .map(|(name, value)| (name.into(), value.into()))
            .into();
        let mut address = HttpConfig::new("https://a.example");
        address.headers = [("Authorization".into(), format!("Bearer {KEY}").into())].into();
        let escaped = KEY.replace('/', "%2F").replace('+', "%2B");
        for plan in [plan(program), plan(address)] {
            for text in [
                KEY.to_owned(),
                format!("it is \"{KEY}\" here"),
                escaped.clone(),
                format!("{KEY}{KEY}"),
            ] {
                let result = CallResult {
                    details: json!({ "deep": [text.clone()], text.clone(): 1 }),
                    ..CallResult::ok(text.as_str())
                };
                let shown = serde_json::to_string(&plan.redact_result(result)).expect("it is JSON");
                assert!(!shown.contains("0123456789"), "{shown}");
                assert!(shown.contains(REDACTED), "{shown}");
                assert!(!plan.says(&text).contains("0123456789"));
            }
            let plain = CallResult::ok("production-mode short");
            assert_eq!(plan.redact_result(plain.clone()), plain);
        }
    }
}
