//! The prompts of a server: messages that a user can send by name.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_llm::{Content, hidden::is_hidden};
use rmcp::{
    model::{
        CallToolResult, ClientRequest, ContentBlock, GetPromptRequest, GetPromptRequestParams,
        ListPromptsRequest, PaginatedRequestParams, Role, ServerResult,
    },
    service::ServiceError,
};
use serde_json::Value;
use tokio::time::timeout;

use crate::{
    connection::{Connect, chain, short},
    content::{self, floor},
    error::{Error, ErrorKind},
    resources::ServerAbout,
    server::McpServer,
};

/// The most prompts of a server, and the most pages of its list.
const MAX_PROMPTS: usize = 500;
const MAX_PAGES: usize = 20;
/// The largest number of bytes of a name and of its description.
const MAX_NAME: usize = 128;
const MAX_ABOUT: usize = 1_024;
/// The most arguments of a prompt.
const MAX_ARGUMENTS: usize = 64;

/// A prompt of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerPrompt {
    /// Its name.
    pub name: Arc<str>,
    /// Its purpose.
    pub description: Arc<str>,
    /// Its arguments: name, purpose, and whether one must be there.
    pub arguments: Vec<(Arc<str>, Arc<str>, bool)>,
}

impl McpServer {
    /// Returns the server's description of itself; the server is started if necessary.
    ///
    /// # Errors
    /// Why it does not answer, as [`McpServer::ready`], but as soon as two beginnings have failed one after the other.
    pub async fn about(&self) -> Result<ServerAbout, Error> {
        self.reader_connection()
            .await
            .map(|connection| ServerAbout::from_connection(&connection))
    }

    /// The prompts of the server, at most 500; empty if it has none. Prompts with names of several lines are omitted.
    ///
    /// # Errors
    /// Why they cannot be had.
    pub async fn prompts(&self) -> Result<Vec<ServerPrompt>, Error> {
        let (mut prompts, mut cursor) = (Vec::new(), None::<String>);
        if !self.about().await?.has_prompts {
            return Ok(prompts);
        }
        for _ in 0..MAX_PAGES {
            let params = cursor
                .take()
                .map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
            let request = ListPromptsRequest {
                method: Default::default(),
                params,
                extensions: Default::default(),
            };
            let ServerResult::ListPromptsResult(page) =
                self.ask(ClientRequest::ListPromptsRequest(request)).await?
            else {
                return Err(self.odd("prompts/list"));
            };
            let is_name = |name: &str| {
                !name.is_empty() && name.len() <= MAX_NAME && !name.contains(is_hidden)
            };
            for it in page
                .prompts
                .into_iter()
                .filter(|it| is_name(&it.name))
                .take(MAX_PROMPTS - prompts.len())
            {
                let about = |text: Option<String>| {
                    Arc::<str>::from(floor(&text.unwrap_or_default(), MAX_ABOUT))
                };
                let arguments = it
                    .arguments
                    .unwrap_or_default()
                    .into_iter()
                    .filter(|it| is_name(&it.name));
                let arguments = arguments.take(MAX_ARGUMENTS).map(|it| {
                    (
                        it.name.as_str().into(),
                        about(it.description),
                        it.required == Some(true),
                    )
                });
                let arguments = arguments.collect();
                prompts.push(ServerPrompt {
                    name: it.name.as_str().into(),
                    description: about(it.description),
                    arguments,
                });
            }
            match page.next_cursor {
                Some(next) if prompts.len() < MAX_PROMPTS => cursor = Some(next),
                _ => break,
            }
        }
        Ok(prompts)
    }

    /// Returns a prompt as the content of a user message, with the limits of tool results.
    ///
    /// # Errors
    /// Why it cannot be had: the server refuses its arguments, needs an answer first, or does not answer.
    pub async fn prompt(
        &self,
        name: &str,
        arguments: BTreeMap<String, String>,
    ) -> Result<Vec<Content>, Error> {
        let arguments = arguments
            .into_iter()
            .map(|(name, value)| (name, Value::from(value)))
            .collect();
        let params = GetPromptRequestParams::new(name).with_arguments(arguments);
        let request = ClientRequest::GetPromptRequest(GetPromptRequest::new(params));
        match self.ask(request).await? {
            ServerResult::GetPromptResult(said) => {
                let parts = said.messages.into_iter().map(|message| {
                    match (message.role, message.content) {
                        // The assistant has not sent this: it is an example of an answer.
                        (Role::Assistant, ContentBlock::Text(text)) => {
                            ContentBlock::text(format!("[answer]\n{}", text.text))
                        }
                        (_, content) => content,
                    }
                });
                let result = content::result(CallToolResult::success(parts.collect()), None);
                Ok(self.shared.plan.redact_result(result).content)
            }
            ServerResult::InputRequiredResult(_) => Err(self.shared.plan.error(
                ErrorKind::Protocol,
                "needs an answer before it returns this prompt",
            )),
            _ => Err(self.odd("prompts/get")),
        }
    }

    async fn ask(&self, request: ClientRequest) -> Result<ServerResult, Error> {
        let (plan, connection) = (
            &self.shared.plan,
            Arc::clone(&self.shared).connection().await?,
        );
        let limit = plan.config.start_limit;
        match timeout(limit, connection.request(request)).await {
            Ok(answer) => answer.map_err(|error| match &error {
                ServiceError::McpError(data) => plan.error(
                    ErrorKind::Invalid,
                    &format!("refused: {}", short(&data.message)),
                ),
                _ => plan.error(
                    ErrorKind::Unavailable,
                    &format!("did not answer: {}", short(&chain(&error))),
                ),
            }),
            Err(_) => Err(plan.error(
                ErrorKind::TimedOut,
                &format!("did not answer within {limit:?}"),
            )),
        }
    }

    fn odd(&self, what: &str) -> Error {
        self.shared.plan.error(
            ErrorKind::Protocol,
            &format!("answered {what} with something else"),
        )
    }
}
