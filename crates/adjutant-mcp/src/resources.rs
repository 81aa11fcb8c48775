//! The resources of a server, as two tools of its set: one lists them, one reads one. Both look, within bounds.

use std::sync::{Arc, Weak};

use adjutant_llm::CallResult;
use adjutant_tool::{
    Bound, CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolHints, ToolSpec, Toolset,
};
use async_trait::async_trait;
use rmcp::{
    model::{
        CallToolResult, ClientRequest, ContentBlock, EmbeddedResource,
        ListResourceTemplatesRequest, ListResourcesRequest, PaginatedRequestParams,
        ReadResourceRequest, ReadResourceRequestParams, ServerResult,
    },
    service::ServiceError,
};
use serde_json::{Value, json};

use crate::{
    catalogue,
    connection::{Connect, Connection, chain, short},
    content::{self, floor},
    plan::Plan,
};

/// The names of the two, behind the prefix.
const LIST: &str = "list_resources";
const READ: &str = "read_resource";
/// The largest number of resources in a listing, and of bytes of their descriptions.
const MAX_LISTED: usize = 200;
const MAX_LIST: usize = 64 << 10;
/// The largest number of bytes of an address, and of a cursor.
const MAX_URI: usize = 2_048;

/// A set of tools plus the two tools for resources, if the server has resources; its own tools with these names take
/// precedence.
pub(crate) fn with(
    set: Toolset,
    connection: &Connection,
    plan: &Plan,
    server: &Weak<dyn Connect>,
) -> Toolset {
    let has_some = connection
        .peer
        .peer_info()
        .is_some_and(|info| info.capabilities.resources.is_some());
    if !has_some {
        return set;
    }
    let is_wanted = |name: &str| {
        plan.config
            .tools
            .as_ref()
            .is_none_or(|tools| tools.iter().any(|it| **it == *name))
    };
    let mut tools: Vec<Bound> = set.iter().cloned().collect();
    for kind in [Kind::List, Kind::Read] {
        let tool = ResourceTool {
            server: server.clone(),
            kind,
            spec: kind.spec(plan),
        };
        if is_wanted(kind.name())
            && tools
                .iter()
                .all(|known| known.spec().name() != tool.spec.name())
        {
            tools.push(Bound::new(tool));
        }
    }
    Toolset::new(tools).warn(set.warnings().iter().cloned())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    List,
    Read,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::List => LIST,
            Self::Read => READ,
        }
    }

    fn spec(self, plan: &Plan) -> ToolSpec {
        let text = json!({ "type": "string", "maxLength": MAX_URI });
        let (what, schema) = match self {
            Self::List => (
                format!(
                    "Lists the resources that the server {} has to read, and the forms of more.",
                    plan.name
                ),
                json!({ "type": "object", "properties": { "cursor": text }, "additionalProperties": false }),
            ),
            Self::Read => (
                format!(
                    "Reads a resource of the server {}, by its address.",
                    plan.name
                ),
                json!({ "type": "object", "properties": { "uri": text }, "required": ["uri"], "additionalProperties": false }),
            ),
        };
        let mut spec = ToolSpec::new(catalogue::name(&plan.prefix, self.name()), what, schema);
        // Only a trusted server's reads count as pure; reading twice is harmless.
        spec.replay = if plan.config.trusted {
            Replay::Pure
        } else {
            Replay::Idempotent
        };
        spec.hints = ToolHints {
            reads_only: Some(true),
            ..ToolHints::default()
        };
        spec
    }
}

struct ResourceTool {
    server: Weak<dyn Connect>,
    kind: Kind,
    spec: ToolSpec,
}

#[async_trait]
impl ErasedTool for ResourceTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn rewrites(&self) -> bool {
        false
    }

    async fn call(&self, args: Value, cx: CallContext) -> Result<CallResult, ToolError> {
        let server = self
            .server
            .upgrade()
            .ok_or_else(|| ToolError::failed("the server of this tool was let go of"))?;
        let connection = Arc::clone(&server).connection().await;
        let connection = connection
            .map_err(|error| ToolError::failed(error.message.clone()).with_source(error))?;
        let text = |name: &str| args[name].as_str().map(str::to_owned);
        let work = async {
            match self.kind {
                Kind::List => list(&connection, &cx, text("cursor")).await,
                Kind::Read => read(&connection, &cx, text("uri").unwrap_or_default()).await,
            }
        };
        let done = tokio::select! {
            done = work => done,
            () = cx.cancel.cancelled() => return Err(ToolError::new(ToolErrorKind::Cancelled, "it was cancelled")),
        };
        let plan = server.plan();
        done.map(|result| plan.redact_result(result))
            .map_err(|error| ToolError::failed(plan.redact(short(&chain(&error)).to_owned())))
    }
}

/// The resources from a place on, and at the beginning the forms of more.
async fn list(
    connection: &Connection,
    cx: &CallContext,
    cursor: Option<String>,
) -> Result<CallResult, ServiceError> {
    let is_first = cursor.is_none();
    let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
    let request = ListResourcesRequest {
        method: Default::default(),
        params,
        extensions: Default::default(),
    };
    let ServerResult::ListResourcesResult(page) = connection
        .request_for(cx, ClientRequest::ListResourcesRequest(request))
        .await?
    else {
        return Err(ServiceError::UnexpectedResponse);
    };
    let mut lines: Vec<String> = Vec::new();
    for it in page.resources.iter().take(MAX_LISTED) {
        lines.push(line(
            &it.uri,
            &it.name,
            it.mime_type.as_deref(),
            it.description.as_deref(),
        ));
    }
    let more = page.resources.len().saturating_sub(MAX_LISTED);
    if more > 0 {
        lines.push(format!("[{more} more are left out]"));
    }
    lines.extend(
        page.next_cursor
            .map(|cursor| format!("[more: cursor {:?}]", floor(&cursor, MAX_URI))),
    );
    if is_first {
        let request = ListResourceTemplatesRequest::default();
        let templates = connection
            .request_for(cx, ClientRequest::ListResourceTemplatesRequest(request))
            .await;
        // A server without templates may answer with an error.
        if let Ok(ServerResult::ListResourceTemplatesResult(templates)) = templates {
            for it in templates.resource_templates.iter().take(MAX_LISTED) {
                let what = line(
                    &it.uri_template,
                    &it.name,
                    it.mime_type.as_deref(),
                    it.description.as_deref(),
                );
                lines.push(format!("form: {what}"));
            }
        }
    }
    if lines.is_empty() {
        lines.push("there are none".to_owned());
    }
    let text = lines.join("\n");
    let cut = if text.len() > MAX_LIST {
        "\n[the rest is left out: it is too long]"
    } else {
        ""
    };
    Ok(CallResult::ok(format!("{}{cut}", floor(&text, MAX_LIST))))
}

fn line(uri: &str, name: &str, media_type: Option<&str>, about: Option<&str>) -> String {
    let one = |text: &str, most: usize| {
        floor(text, most)
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ")
    };
    let kind = media_type
        .map(|kind| format!(", {}", one(kind, 128)))
        .unwrap_or_default();
    let about = about
        .map(|about| format!(": {}", one(about, 512)))
        .unwrap_or_default();
    format!("{} ({}{kind}){about}", one(uri, MAX_URI), one(name, 256))
}

/// A resource, as parts of a result.
async fn read(
    connection: &Connection,
    cx: &CallContext,
    uri: String,
) -> Result<CallResult, ServiceError> {
    let request = ReadResourceRequest::new(ReadResourceRequestParams::new(uri));
    match connection
        .request_for(cx, ClientRequest::ReadResourceRequest(request))
        .await?
    {
        ServerResult::ReadResourceResult(found) => {
            let parts = found
                .contents
                .into_iter()
                .map(|part| ContentBlock::Resource(EmbeddedResource::new(part)));
            Ok(content::result(
                CallToolResult::success(parts.collect()),
                None,
            ))
        }
        ServerResult::InputRequiredResult(_) => {
            let text = "the server needs an answer before it returns this resource, which is supported only for its tools";
            Ok(CallResult {
                status: adjutant_llm::Status::Failed,
                ..CallResult::ok(text)
            })
        }
        _ => Err(ServiceError::UnexpectedResponse),
    }
}

/// A server's description of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerAbout {
    /// Its own name and version.
    pub name: Arc<str>,
    /// Its version.
    pub version: Arc<str>,
    /// The revision of the protocol that is spoken with it.
    pub revision: Arc<str>,
    /// True if it has resources.
    pub has_resources: bool,
    /// True if it has prompts.
    pub has_prompts: bool,
}

impl ServerAbout {
    pub(crate) fn from_connection(connection: &Connection) -> Self {
        let info = connection.peer.peer_info();
        let can = info.as_ref().map(|info| &info.capabilities);
        let named = info.as_ref().and_then(|info| info.server_info.as_ref());
        Self {
            name: named.map_or("", |it| floor(&it.name, 256)).into(),
            version: named.map_or("", |it| floor(&it.version, 64)).into(),
            revision: info
                .as_ref()
                .map_or_else(String::new, |info| info.protocol_version.to_string())
                .into(),
            has_resources: can.is_some_and(|can| can.resources.is_some()),
            has_prompts: can.is_some_and(|can| can.prompts.is_some()),
        }
    }
}
