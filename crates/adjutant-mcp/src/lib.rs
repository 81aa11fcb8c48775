//! The Model Context Protocol, both sides: the tools of any server in an agent, and any agent as a server.

#![doc = include_str!("../README.md")]

mod catalogue;
mod config;
mod connection;
mod content;
mod error;
mod handler;
mod http;
mod input;
mod input_schema;
mod login;
mod oauth;
mod plan;
mod prompts;
mod reach;
mod redirect;
mod resources;
mod sample;
#[cfg(feature = "server")]
#[expect(
    deprecated,
    reason = "clients of the older revisions log, and are asked for models and roots"
)]
mod serve;
mod server;
mod stdio;
mod step;
mod tokens;
mod tool;

#[doc(hidden)]
pub use config::StreamConfig;
pub use config::{Access, HttpConfig, Revision, ServerConfig, StartCheck, StdioConfig, Transport};
pub use error::{Error, ErrorKind};
pub use login::{Login, LoginOptions};
pub use prompts::ServerPrompt;
pub use resources::ServerAbout;
#[cfg(feature = "server")]
pub use serve::{HttpOptions, McpHost, ServedResource};
pub use server::McpServer;
pub use tokens::Tokens;
