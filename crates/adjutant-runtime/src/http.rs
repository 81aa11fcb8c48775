//! The HTTP API of an agent on loopback: its server and its client.
//!
//! `docs/http.md` documents the routes, [`OPENAPI`] describes them for programs.

mod a2a;
mod client;
mod error;
mod forms;
mod frames;
mod guard;
mod news;
mod page;
mod report;
mod routes;
mod server;
mod simple;
mod sse;
mod streams;

pub use self::{
    client::{Client, ItemStream, StatusStream},
    error::status_of,
    page::PageFile,
    report::AgentReport,
    server::{Server, ServerOptions},
};
pub(crate) use self::{
    error::{Problem, line, name_of},
    page::{export, with_page},
    routes::{InSession, Plane, Whom, add_agent_routes, asked, guarded, places},
    server::{Door, new_token},
    sse::{END, frame, respond},
};

/// The maximum number of bytes of a request.
pub const MAX_REQUEST_BYTES: usize = 8 * 1024 * 1024;

/// The description of the routes: OpenAPI 3.1.
pub const OPENAPI: &str = include_str!("../openapi.json");
