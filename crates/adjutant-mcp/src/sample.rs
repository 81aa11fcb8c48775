//! The answer of a model that a server asks for: a person is asked first, unless the server is trusted, and the agent's own
//! model answers under the budget of its run.

#![expect(deprecated, reason = "servers of both revisions still ask for a model's answers")]

use std::sync::Arc;

use adjutant_llm::{Block, Content, Entry, FinishReason, ModelId, Options, Reply, Request, Turn};
use adjutant_tool::{Answer, Ask, CallContext, Sampler, ToolError, ToolErrorKind};
use rmcp::model::{ContentBlock, CreateMessageRequestParams, Role, SamplingMessageContentBlock};
use serde_json::{Value, json};

use crate::{
    content,
    input::refused,
    server::Plan,
    step::{Again, step},
};

/// The most messages of a request.
const MAX_MESSAGES: usize = 64;
/// The number of bytes of a request that the person is shown who is asked about it.
const MAX_SHOWN: usize = 4 << 10;

/// Asks the model of the agent that calls; gives its answer in the form of the protocol.
///
/// # Errors
/// `Denied` if a person does not want that, `Failed` if there is no model here, and those of the model.
pub(crate) async fn ask(
    cx: &CallContext,
    key: &str,
    params: &CreateMessageRequestParams,
    plan: &Plan,
) -> Result<Value, ToolError> {
    let sampler = cx.get::<dyn Sampler>();
    let sampler = sampler.ok_or_else(|| refused(plan, "asks for the answer of a model, and none answers here"))?;
    let request = request(params).map_err(|why| refused(plan, why))?;
    if !plan.config.trusted {
        let shown = shown(params);
        let prompt = format!("{} wants to ask the model, at this run's cost:\n{shown}", plan.name);
        let data = json!({"mcp": {"server": &*plan.name, "mode": "sampling"}});
        match cx.pause(&format!("{key}-allowed"), Ask { data, ..Ask::approval(prompt) }).await? {
            Answer::Approve { .. } => {}
            _ => return Err(ToolError::new(ToolErrorKind::Denied, "the server may not ask the model")),
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
        Ok(json!({"role": "assistant", "model": reply.model.as_str(), "stopReason": stop, "content": content}))
    };
    step(cx, key, Again::Never, ask).await
}

/// # Errors
/// What cannot be asked of it.
fn request(params: &CreateMessageRequestParams) -> Result<Request, &'static str> {
    if params.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
        return Err("asks for the answer of a model with tools, which it was not told of");
    }
    if params.messages.len() > MAX_MESSAGES {
        return Err("asks the model with more than 64 messages");
    }
    let mut request = Request::new().system(params.system_prompt.clone().unwrap_or_default()).options(Options {
        max_output_tokens: Some(u64::from(params.max_tokens)),
        temperature: params.temperature.map(f64::from),
        stop: params.stop_sequences.iter().flatten().map(|stop| stop.as_str().into()).collect(),
        ..Options::default()
    });
    for message in &params.messages {
        let parts = message.content.iter().map(part).collect::<Result<Vec<_>, _>>()?;
        request.entries.push(match message.role {
            Role::User => Entry::User(parts.into()),
            Role::Assistant => {
                let mut reply = Reply::new(ModelId::from("mcp/server"), FinishReason::End);
                let texts = parts.iter().filter_map(Content::as_text);
                reply.blocks = texts.map(|text| Arc::new(Block::text(text))).collect();
                let open = Turn::open(Arc::new(reply));
                Entry::Turn(open.close().map_err(|_| "asks the model about calls of tools")?)
            }
        });
    }
    Ok(request)
}

fn part(block: &SamplingMessageContentBlock) -> Result<Content, &'static str> {
    let block = match block {
        SamplingMessageContentBlock::Text(text) => ContentBlock::Text(text.clone()),
        SamplingMessageContentBlock::Image(image) => ContentBlock::Image(image.clone()),
        SamplingMessageContentBlock::Audio(audio) => ContentBlock::Audio(audio.clone()),
        _ => return Err("asks the model about calls of tools"),
    };
    Ok(content::part(block))
}

/// What a person is shown of a request.
fn shown(params: &CreateMessageRequestParams) -> String {
    let system = params.system_prompt.iter().map(|system| format!("system: {system}\n"));
    let messages = params.messages.iter().map(|message| {
        let texts = message.content.iter().map(|part| part.as_text().map_or("[media]", |text| &text.text));
        let role = if message.role == Role::User { "user" } else { "model" };
        format!("{role}: {}\n", texts.collect::<Vec<_>>().join("\n"))
    });
    let all: String = system.chain(messages).collect();
    content::floor(&all, MAX_SHOWN).to_owned()
}
