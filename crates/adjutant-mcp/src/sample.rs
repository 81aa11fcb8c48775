//! A model request of a server: a person must approve it, unless the server is trusted, and the agent's own model
//! answers within the budget of its run.

use std::sync::Arc;

use adjutant_llm::{Block, Content, Entry, FinishReason, ModelId, Options, Reply, Request, Turn};
use adjutant_tool::{Answer, Ask, CallContext, Sampler, ToolError, ToolErrorKind};
use rmcp::model::{ContentBlock, Role};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    content,
    plan::Plan,
    step::{Again, step},
};

/// The most messages of a request.
const MAX_MESSAGES: usize = 64;
/// The number of bytes of a request that are displayed for approval.
const MAX_SHOWN: usize = 4 << 10;

/// A model request of a server. The SDK's own type for it is deprecated.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    messages: Vec<AskedMessage>,
    system_prompt: Option<String>,
    max_tokens: u64,
    temperature: Option<f64>,
    stop_sequences: Option<Vec<String>>,
    tools: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct AskedMessage {
    role: Role,
    content: Parts,
}

/// Calls of tools are no such parts: they are refused with the request.
#[derive(Deserialize)]
#[serde(untagged)]
enum Parts {
    One(Box<ContentBlock>),
    Many(Vec<ContentBlock>),
}

impl Parts {
    fn all(&self) -> &[ContentBlock] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Many(parts) => parts,
        }
    }
}

/// Calls the model of the calling agent; returns its answer in the form of the protocol.
///
/// # Errors
/// `Denied` if a person refuses it, `Failed` if there is no model here, and the errors of the model.
pub(crate) async fn ask(
    cx: &CallContext,
    key: &str,
    params: Value,
    plan: &Plan,
) -> Result<Value, ToolError> {
    let read = |_| plan.fault("it sends an unsupported model request");
    let params: Asked = serde_json::from_value(params).map_err(read)?;
    let sampler = cx.get::<dyn Sampler>();
    let sampler = sampler
        .ok_or_else(|| plan.fault("it asks for the answer of a model, and none answers here"))?;
    let request = request(&params).map_err(|why| plan.fault(why))?;
    if !plan.config.trusted {
        let shown = format_request(&params);
        let prompt = format!(
            "{} wants to ask the model, at this run's cost:\n{shown}",
            plan.name
        );
        let data = json!({"mcp": {"server": &*plan.name, "mode": "sampling"}});
        match cx
            .pause(
                &format!("{key}-allowed"),
                Ask {
                    data,
                    ..Ask::approval(prompt)
                },
            )
            .await?
        {
            Answer::Approve { .. } => {}
            _ => {
                return Err(ToolError::new(
                    ToolErrorKind::Denied,
                    "the server may not ask the model",
                ));
            }
        }
    }
    let ask = async {
        let reply = sampler.sample(request).await?;
        let stop = match reply.stop {
            FinishReason::Sequence => "stopSequence",
            FinishReason::Length => "maxTokens",
            _ => "endTurn",
        };
        let content = json!({"type": "text", "text": reply.text()});
        Ok(
            json!({"role": "assistant", "model": reply.model.as_str(), "stopReason": stop, "content": content}),
        )
    };
    step(cx, key, Again::Never, ask).await
}

/// # Errors
/// The error names the unsupported part.
fn request(params: &Asked) -> Result<Request, &'static str> {
    if params.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err("it asks for the answer of a model with tools, which it was not told of");
    }
    if params.messages.len() > MAX_MESSAGES {
        return Err("its model request has more than 64 messages");
    }
    let mut request = Request::new()
        .system(params.system_prompt.clone().unwrap_or_default())
        .options(Options {
            max_output_tokens: Some(params.max_tokens),
            temperature: params.temperature,
            stop: params
                .stop_sequences
                .iter()
                .flatten()
                .map(|stop| stop.as_str().into())
                .collect(),
            ..Options::default()
        });
    for message in &params.messages {
        let parts: Vec<Content> = message
            .content
            .all()
            .iter()
            .cloned()
            .map(content::part)
            .collect();
        request.entries.push(match message.role {
            Role::User => Entry::User(parts.into()),
            Role::Assistant => {
                let mut reply = Reply::new(ModelId::from("mcp/server"), FinishReason::End);
                let texts = parts.iter().filter_map(Content::as_text);
                reply.blocks = texts.map(|text| Arc::new(Block::text(text))).collect();
                let open = Turn::open(Arc::new(reply));
                Entry::Turn(
                    open.close()
                        .map_err(|_| "its model request contains tool calls")?,
                )
            }
        });
    }
    Ok(request)
}

/// The text of a request that is displayed for approval.
fn format_request(params: &Asked) -> String {
    let system = params
        .system_prompt
        .iter()
        .map(|system| format!("system: {system}\n"));
    let messages = params.messages.iter().map(|message| {
        let texts = message.content.all().iter().map(|part| match part {
            ContentBlock::Text(text) => text.text.as_str(),
            _ => "[media]",
        });
        let role = if message.role == Role::User {
            "user"
        } else {
            "model"
        };
        format!("{role}: {}\n", texts.collect::<Vec<_>>().join("\n"))
    });
    let all: String = system.chain(messages).collect();
    content::floor(&all, MAX_SHOWN).to_owned()
}
