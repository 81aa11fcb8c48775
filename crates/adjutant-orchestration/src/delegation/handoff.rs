//! Handoff between peers: an agent passes its task to a more suitable one.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use adjutant_agent::{
    Agent, RunLine, RunResult, Verdict, points,
    sections::{SectionKind, section_text},
};
use adjutant_llm::{CallResult, Terminate};
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, tool_fn};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{agents::is_self, brief::MAX_CONTEXT_CHARS};
use crate::{Registry, text::cut_chars};

/// The name of the tool.
const HANDOFF: &str = "handoff";
/// The largest number of characters of a reason.
const MAX_REASON_CHARS: usize = 500;
/// Its section of the prompt.
const PROTOCOL: &str = "\
If another agent is clearly better suited to the whole rest of your task, call `handoff` instead of doing it badly. Your \
own work ends with that; the other one gets your task and what you write for it, and reports in your place.";

/// A handoff of a task, recorded in the result of the call, so that a crash loses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Handoff {
    /// The entry that takes over.
    pub(super) target: String,
    /// The name of the instance that takes over.
    pub(super) instance: String,
    pub(super) reason: String,
    pub(super) context: String,
}

/// What the model says.
#[derive(Deserialize)]
struct Args {
    target_agent: String,
    reason: String,
    context: String,
}

/// Lets an agent hand its task on.
pub(super) fn install(agent: Agent, registry: &Registry) -> Agent {
    agent
        .tool(tool(registry))
        .section(section_text(SectionKind::HandoffProtocol, PROTOCOL))
}

impl Handoff {
    /// The handoff at the end of this run; the first one counts.
    pub(super) fn from_run(result: &RunResult) -> Option<Self> {
        let said = result
            .calls
            .iter()
            .filter(|call| call.name.as_str() == HANDOFF && !call.result.is_error());
        said.into_iter()
            .find_map(|call| serde_json::from_value(call.result.details.clone()).ok())
    }

    /// The text for the agent that takes over.
    pub(super) fn text(&self, from: &str) -> String {
        format!(
            "{from} has handed this task on to you.\nReason: {}\n\n{}",
            self.reason, self.context
        )
    }
}

fn tool(registry: &Registry) -> impl ErasedTool + 'static {
    let (registry, is_done) = (registry.clone(), Arc::new(AtomicBool::new(false)));
    tool_fn(spec(), move |args: Value, cx: CallContext| {
        let (registry, is_done) = (registry.clone(), Arc::clone(&is_done));
        async move {
            let handoff = hand_on(&registry, args, &cx)?;
            if is_done.load(Ordering::SeqCst) {
                let message = "Ignored: you have handed the task on already.";
                return Ok(CallResult {
                    terminate: Terminate::Now,
                    ..CallResult::ok(message)
                });
            }
            ask(&handoff, &cx).await?;
            is_done.store(true, Ordering::SeqCst);
            let said = format!("The task goes to {}.", handoff.target);
            Ok(CallResult {
                details: json!(handoff),
                terminate: Terminate::Now,
                ..CallResult::ok(said)
            })
        }
    })
}

/// Asks the hooks of the agent, and of its parents, for permission.
async fn ask(handoff: &Handoff, cx: &CallContext) -> Result<(), ToolError> {
    let from = Arc::clone(&cx.who);
    let point = points::Handoff::new(
        from,
        handoff.target.as_str().into(),
        handoff.reason.as_str().into(),
    );
    match RunLine::from_context(cx)?.pass(point).await {
        Verdict::Deny(reason) => {
            let message =
                format!("the task may not be handed on: {reason}; go on with it yourself");
            Err(ToolError::new(ToolErrorKind::Denied, message))
        }
        _ => Ok(()),
    }
}

fn hand_on(registry: &Registry, args: Value, cx: &CallContext) -> Result<Handoff, ToolError> {
    let args: Args = serde_json::from_value(args).map_err(|error| {
        ToolError::new(ToolErrorKind::InvalidArguments, "this is no handoff").with_source(error)
    })?;
    let (who, target) = (&cx.who, args.target_agent.trim());
    let refuse = |message: String| Err(ToolError::new(ToolErrorKind::InvalidArguments, message));
    if is_self(&who.config_name, target) {
        return refuse(format!("a task cannot be handed on to oneself: {target:?}"));
    }
    if registry.get(target).is_none() {
        return refuse(format!(
            "there is no agent of this name: {target:?}; it can go to {}",
            names(registry, who)
        ));
    }
    Ok(Handoff {
        target: target.to_owned(),
        instance: registry.instance_name(target, who.task.as_deref().unwrap_or_default()),
        reason: cut_chars(&args.reason, MAX_REASON_CHARS).into_owned(),
        context: cut_chars(&args.context, MAX_CONTEXT_CHARS).into_owned(),
    })
}

fn names(registry: &Registry, who: &adjutant_tool::Identity) -> String {
    let others = registry
        .list()
        .into_iter()
        .filter(|profile| !is_self(&who.config_name, &profile.name));
    let names: Vec<_> = others
        .take(20)
        .map(|profile| profile.name.to_string())
        .collect();
    if names.is_empty() {
        "nobody".to_owned()
    } else {
        names.join(", ")
    }
}

fn spec() -> ToolSpec {
    let text = |about: &str| json!({ "type": "string", "minLength": 1, "description": about });
    let schema = json!({
        "type": "object",
        "properties": {
            "target_agent": text("The agent that is to take over."),
            "reason": text("Why it is better suited, in a sentence."),
            "context": text("What it must know: what is done, what is found, what is open."),
        },
        "required": ["target_agent", "reason", "context"],
        "additionalProperties": false,
    });
    let about = "Hands your task on to another agent and ends your work; the other one reports in your place.";
    ToolSpec {
        replay: Replay::Idempotent,
        sequential: true,
        ..ToolSpec::new(HANDOFF, about, schema)
    }
}
