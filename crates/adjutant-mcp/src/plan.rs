//! The fixed configuration of a server.

use std::sync::Arc;

use adjutant_tool::ToolError;

use crate::{
    config::ServerConfig,
    error::{Error, ErrorKind},
};

/// The fixed configuration of a server.
pub(crate) struct Plan {
    pub(crate) name: Arc<str>,
    /// The prefix of its tools' names.
    pub(crate) prefix: Arc<str>,
    pub(crate) config: ServerConfig,
}

impl Plan {
    /// Words about this server.
    pub(crate) fn says(&self, what: &str) -> String {
        format!("MCP server {:?}: {what}", &*self.name)
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
