//! The answers of a host to the requests of the protocol.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use adjutant_agent::LogId;
use adjutant_tool::{Bound, ToolSpec, Toolbox, Toolset};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CacheScope, CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestParams,
        CompleteResult, CompletionInfo, ContentBlock, GetPromptRequestParams, GetPromptResponse,
        ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        LoggingLevel, PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, Reference, Resource, ResourceTemplate,
        ResourceUpdatedNotificationParam, ServerConfig, SetLevelRequestParams,
        SubscribeRequestParams, SubscriptionFilter, Tool, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    sync::broadcast::{Receiver, error::RecvError},
    task::JoinHandle,
};

use super::{
    Offer, ServedAgent,
    call::{Call, Came, Over},
    content,
};

/// The number of resources that one client may watch.
const MANY_WATCHED: usize = 1_000;
/// The time that a client may go by a list without asking again, in milliseconds.
const FRESH_MS: u64 = 60_000;

type Context = RequestContext<RoleServer>;

/// The host towards one client before 2026-07-28, or towards one request since.
pub(super) struct Handler {
    host: Arc<Offer>,
    level: Mutex<Option<LoggingLevel>>,
    watched: Arc<Mutex<HashSet<String>>>,
    following: OnceLock<Following>,
}

/// The task that notifies a client of changes; it ends with the client's connection.
struct Following(JoinHandle<()>);

/// The arguments of an agent.
#[derive(Deserialize)]
struct AgentArgs {
    prompt: String,
    session: Option<Arc<str>>,
}

impl Handler {
    pub(super) fn new(host: Arc<Offer>) -> Self {
        Self {
            host,
            level: Mutex::default(),
            watched: Arc::default(),
            following: OnceLock::new(),
        }
    }

    async fn resolve(&self, toolbox: Option<&Arc<dyn Toolbox>>) -> Result<Toolset, ErrorData> {
        let Some(toolbox) = toolbox else {
            return Ok(Toolset::default());
        };
        let failed =
            |error| ErrorData::internal_error(format!("the tools cannot be listed: {error}"), None);
        toolbox.resolve(&self.host.who).await.map_err(failed)
    }

    async fn prompt_of(&self, name: &str) -> Result<Bound, ErrorData> {
        let set = self.resolve(self.host.prompts.as_ref()).await?;
        set.get(name)
            .cloned()
            .ok_or_else(|| unknown("prompt", name))
    }

    fn level(&self) -> Option<LoggingLevel> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        self.host.info()
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListToolsResult, ErrorData> {
        only_page(page)?;
        let set = self.resolve(self.host.tools.as_ref()).await?;
        let agents = self
            .host
            .agents
            .iter()
            .map(|(name, agent)| agent_tool(name, agent));
        let tools = set
            .iter()
            .map(Bound::spec)
            .filter(|spec| !self.host.agents.contains_key(spec.name().as_str()));
        let tools = tools.map(content::tool).chain(agents).collect();
        let list = ListToolsResult::with_all_items(tools);
        Ok(list
            .with_ttl_ms(FRESH_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        cx: Context,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams {
            name,
            arguments,
            input_responses,
            request_state,
            ..
        } = asked;
        let (what, host) = (format!("tools/call {name}"), &self.host);
        let call = Call {
            host,
            cx: &cx,
            what,
            responses: input_responses,
            state: request_state,
            level: self.level(),
        };
        let args = Value::Object(arguments.unwrap_or_default());
        if let Some(served) = self.host.agents.get(&*name) {
            let wrong =
                |why: String| Ok(CallToolResult::error(vec![ContentBlock::text(why)]).into());
            let AgentArgs { prompt, session } = match serde_json::from_value(args) {
                Ok(args) => args,
                Err(error) => return wrong(format!("the arguments do not fit: {error}")),
            };
            if prompt.trim().is_empty() {
                return wrong("`prompt` is blank: say what to do".to_owned());
            }
            if session
                .as_ref()
                .is_some_and(|session| !session.starts_with("mcp-"))
            {
                return wrong("`session` is none that was given out here".to_owned());
            }
            return Ok(
                match call
                    .agent(served.agent.clone(), session.map(LogId), prompt)
                    .await?
                {
                    Came::Asks(asks) => asks.into(),
                    Came::Over(over) => answer(over).into(),
                },
            );
        }
        let set = self.resolve(self.host.tools.as_ref()).await?;
        let tool = set.get(&name).ok_or_else(|| unknown("tool", &name))?;
        Ok(match call.tool(tool, args.to_string()).await? {
            Came::Asks(asks) => asks.into(),
            Came::Over(Over {
                call: Some(result), ..
            }) => content::result(&result, tool.spec().output_schema.is_some()).into(),
            Came::Over(over) => CallToolResult::error(vec![ContentBlock::text(why(&over))]).into(),
        })
    }

    async fn list_prompts(
        &self,
        page: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListPromptsResult, ErrorData> {
        only_page(page)?;
        let set = self.resolve(self.host.prompts.as_ref()).await?;
        let list = ListPromptsResult::with_all_items(
            set.iter().map(|it| content::prompt(it.spec())).collect(),
        );
        Ok(list
            .with_ttl_ms(FRESH_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn get_prompt(
        &self,
        asked: GetPromptRequestParams,
        cx: Context,
    ) -> Result<GetPromptResponse, ErrorData> {
        let GetPromptRequestParams {
            name,
            arguments,
            input_responses,
            request_state,
            ..
        } = asked;
        let tool = self.prompt_of(&name).await?;
        let (what, host) = (format!("prompts/get {name}"), &self.host);
        let call = Call {
            host,
            cx: &cx,
            what,
            responses: input_responses,
            state: request_state,
            level: self.level(),
        };
        match call
            .tool(
                &tool,
                Value::Object(arguments.unwrap_or_default()).to_string(),
            )
            .await?
        {
            Came::Asks(asks) => Ok(asks.into()),
            Came::Over(Over {
                call: Some(result), ..
            }) if !result.is_error() => Ok(content::messages(&result, tool.spec()).into()),
            Came::Over(Over {
                call: Some(result), ..
            }) => Err(ErrorData::invalid_params(result.text(), None)),
            Came::Over(over) => Err(ErrorData::internal_error(why(&over), None)),
        }
    }

    async fn complete(
        &self,
        asked: CompleteRequestParams,
        _: Context,
    ) -> Result<CompleteResult, ErrorData> {
        let values = match &asked.r#ref {
            Reference::Prompt(prompt) => {
                let tool = self.prompt_of(&prompt.name).await?;
                choices(tool.spec(), &asked.argument.name, &asked.argument.value)
            }
            _ => Vec::new(),
        };
        let info = CompletionInfo::with_all_values(values)
            .map_err(|why| ErrorData::internal_error(why, None))?;
        Ok(CompleteResult::new(info))
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourcesResult, ErrorData> {
        only_page(page)?;
        let single = self
            .host
            .resources
            .iter()
            .filter(|it| !it.is_family())
            .map(|it| {
                let mut told = Resource::new(&*it.uri, &*it.name);
                told.description = it.description.as_deref().map(str::to_owned);
                told.mime_type = it.media_type.as_deref().map(str::to_owned);
                told
            });
        let list = ListResourcesResult::with_all_items(single.collect());
        Ok(list
            .with_ttl_ms(FRESH_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn list_resource_templates(
        &self,
        page: Option<PaginatedRequestParams>,
        _: Context,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        only_page(page)?;
        let families = self
            .host
            .resources
            .iter()
            .filter(|it| it.is_family())
            .map(|it| {
                let mut told = ResourceTemplate::new(&*it.uri, &*it.name);
                told.description = it.description.as_deref().map(str::to_owned);
                told.mime_type = it.media_type.as_deref().map(str::to_owned);
                told
            });
        let list = ListResourceTemplatesResult::with_all_items(families.collect());
        Ok(list
            .with_ttl_ms(FRESH_MS)
            .with_cache_scope(CacheScope::Private))
    }

    async fn read_resource(
        &self,
        asked: ReadResourceRequestParams,
        _: Context,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let uri = asked.uri;
        let missing =
            || ErrorData::resource_not_found("no such resource", Some(json!({ "uri": uri })));
        let resource = self
            .host
            .resources
            .iter()
            .find(|it| it.is_at(&uri))
            .ok_or_else(missing)?;
        let failed =
            |error| ErrorData::internal_error(format!("{uri} cannot be read: {error}"), None);
        let content = resource.read(&uri).await.map_err(failed)?;
        let contents = content::resource(&uri, &content).ok_or_else(|| {
            ErrorData::internal_error(format!("{uri} has another location"), None)
        })?;
        let contents = match &resource.media_type {
            Some(kind) => contents.with_mime_type(&**kind),
            None => contents,
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn set_level(&self, asked: SetLevelRequestParams, _: Context) -> Result<(), ErrorData> {
        *self.level.lock().unwrap_or_else(PoisonError::into_inner) = Some(asked.level);
        Ok(())
    }

    async fn subscribe(&self, asked: SubscribeRequestParams, cx: Context) -> Result<(), ErrorData> {
        if !self.host.resources.iter().any(|it| it.is_at(&asked.uri)) {
            return Err(ErrorData::resource_not_found(
                "no such resource",
                Some(json!({ "uri": asked.uri })),
            ));
        }
        {
            let mut watched = self.watched.lock().unwrap_or_else(PoisonError::into_inner);
            if watched.len() >= MANY_WATCHED {
                return Err(ErrorData::invalid_request(
                    "too many resources are watched",
                    None,
                ));
            }
            watched.insert(asked.uri);
        }
        self.following.get_or_init(|| {
            let (mut changes, watched) = (self.host.changes.subscribe(), Arc::clone(&self.watched));
            Following(tokio::spawn(async move {
                while let Some(uri) = next_change(&mut changes).await {
                    let is_watched = watched
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .contains(&*uri);
                    let told = ResourceUpdatedNotificationParam::new(&*uri);
                    if is_watched && cx.peer.notify_resource_updated(told).await.is_err() {
                        return;
                    }
                }
            }))
        });
        Ok(())
    }

    async fn unsubscribe(
        &self,
        asked: UnsubscribeRequestParams,
        _: Context,
    ) -> Result<(), ErrorData> {
        self.watched
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&asked.uri);
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        wanted: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        let uris = wanted.resource_subscriptions.iter().flatten();
        let known = uris
            .filter(|uri| self.host.resources.iter().any(|it| it.is_at(uri)))
            .take(MANY_WATCHED);
        let mut accepted = SubscriptionFilter::new();
        accepted.resource_subscriptions = Some(known.cloned().collect());
        (!self.host.resources.is_empty()).then_some(accepted)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.host.changes.subscribe();
        loop {
            let uri = tokio::select! {
                uri = next_change(&mut changes) => uri,
                () = subscription.cancelled() => None,
            };
            let Some(uri) = uri else { return Ok(()) };
            let is_watched = subscription
                .accepted()
                .resource_subscriptions
                .iter()
                .flatten()
                .any(|it| **it == *uri);
            if is_watched
                && subscription
                    .sink()
                    .notify_resource_updated(&*uri)
                    .await
                    .is_err()
            {
                return Ok(());
            }
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The next changed resource; `None` when there will be no more. Changes that a slow reader missed are not reported.
async fn next_change(changes: &mut Receiver<Arc<str>>) -> Option<Arc<str>> {
    loop {
        match changes.recv().await {
            Ok(uri) => return Some(uri),
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => return None,
        }
    }
}

/// There is only one page.
fn only_page(page: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match page.and_then(|page| page.cursor) {
        Some(_) => Err(ErrorData::invalid_params("there is no such page", None)),
        None => Ok(()),
    }
}

fn unknown(what: &str, name: &str) -> ErrorData {
    let name: String = name.chars().take(100).collect();
    ErrorData::invalid_params(format!("there is no {what} called {name:?}"), None)
}

/// The values of an argument that its schema names and that begin with a text.
fn choices(spec: &ToolSpec, argument: &str, begun: &str) -> Vec<String> {
    let values = spec.decl.schema["properties"][argument]["enum"]
        .as_array()
        .into_iter()
        .flatten();
    let values = values
        .filter_map(Value::as_str)
        .filter(|value| value.starts_with(begun));
    values
        .take(CompletionInfo::MAX_VALUES)
        .map(str::to_owned)
        .collect()
}

/// An agent in the form for clients.
fn agent_tool(name: &str, agent: &ServedAgent) -> Tool {
    let text = |said: &str| json!({ "type": "string", "description": said });
    let takes = json!({
        "type": "object",
        "properties": {
            "prompt": text("What to do, or what to say next."),
            "session": text("The session to go on with, from an earlier result; a new one without it."),
        },
        "required": ["prompt"],
        "additionalProperties": false,
    });
    let gives = json!({
        "type": "object",
        "properties": { "answer": text("The answer."), "session": text("The session, to go on with.") },
        "required": ["answer", "session"],
    });
    let spec = ToolSpec::new(name, Arc::clone(&agent.description), takes);
    content::tool(&ToolSpec {
        output_schema: Some(Arc::new(gives)),
        ..spec
    })
}

/// The answer of an agent.
fn answer(over: Over) -> CallToolResult {
    let session = &over.session.0;
    if over.failure.is_some() {
        return CallToolResult::error(vec![ContentBlock::text(format!(
            "{}; its session is {session}",
            why(&over)
        ))]);
    }
    let mut told = CallToolResult::success(vec![ContentBlock::text(&*over.text)]);
    told.structured_content = Some(json!({ "answer": over.text, "session": session }));
    told
}

fn why(over: &Over) -> String {
    let failure = over.failure.as_deref().unwrap_or("it came to nothing");
    if over.text.is_empty() {
        failure.to_owned()
    } else {
        format!("{failure}; its last reply: {}", over.text)
    }
}
