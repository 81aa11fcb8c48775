//! Interactive delegation: agents continue while the delegating agent answers their questions.

use std::{panic::AssertUnwindSafe, sync::Arc};

use adjutant_agent::{
    Agent,
    sections::{SectionKind, section_text},
};
use adjutant_llm::CallResult;
use adjutant_tool::{CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, tool_fn};
use futures_util::{FutureExt, future::join_all};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{
    DelegationLevel, DelegationShared, MAX_SHOWN_BYTES, TIMEOUT,
    brief::MAX_CONTEXT_CHARS,
    delegated_task::DelegatedTask,
    questions::{DelegationStanding, QuestionLine, Reply},
    report::{MAX_RESULT_CHARS, TaskReport},
};
use crate::{registry::Slot, text::cut_chars};

/// The largest number of answers in one call.
const MAX_ANSWERS: usize = 128;
/// The section of the prompt for an agent that can ask.
const ASKING: &str = "\
If you cannot go on without a decision or a fact that only the agent who gave you this task can know, call `ask_parent`. \
Ask for all that you need at once, and only for what you cannot find out yourself: an answer may take a while.";
/// The section of the prompt for an agent that can be asked.
const ANSWERING: &str = "\
Tasks that are delegated with `mode` `interactive` may come back with questions instead of results. Answer them with \
`answer_questions`, and soon: an agent that is not answered within five minutes is stopped.";

#[derive(Deserialize)]
struct Answers {
    answers: Vec<Reply>,
}

/// Lets an agent answer questions about the tasks that it delegated.
pub(super) fn install(
    agent: Agent,
    shared: &Arc<DelegationShared>,
    place: &DelegationLevel,
) -> Agent {
    let section = section_text(SectionKind::InteractiveDelegationProtocol, ANSWERING);
    agent.tool(answers(shared, place)).section(section)
}

/// Permits an agent to ask the delegating agent.
pub(super) fn let_ask(agent: Agent, line: &Arc<QuestionLine>, slot: &Slot) -> Agent {
    let (line, slot) = (Arc::clone(line), slot.clone());
    let ask = tool_fn(asking(), move |args: Value, cx: CallContext| {
        let (line, slot) = (Arc::clone(&line), slot.clone());
        async move {
            let question = args
                .get("question")
                .and_then(Value::as_str)
                .unwrap_or_default();
            if question.trim().is_empty() {
                return Err(ToolError::new(
                    ToolErrorKind::InvalidArguments,
                    "`question` is blank",
                ));
            }
            let away = slot.leave();
            let question = cut_chars(question, MAX_RESULT_CHARS).into_owned();
            let answer = tokio::select! {
                answer = line.ask(&cx.who.name, question) => answer?,
                () = cx.cancel.cancelled() => {
                    return Err(ToolError::new(ToolErrorKind::Cancelled, "stopped before there was an answer"));
                }
            };
            away.back().await;
            Ok(CallResult::ok(answer))
        }
    });
    agent
        .tool(ask)
        .section(section_text(SectionKind::InteractionProtocol, ASKING))
}

/// Performs delegated tasks that belong to the run; each is over, or waits for an answer, when this returns.
pub(super) async fn perform(
    cx: &CallContext,
    shared: &Arc<DelegationShared>,
    tasks: Vec<DelegatedTask>,
) -> Result<Value, ToolError> {
    let mut lines = Vec::with_capacity(tasks.len());
    for mut task in tasks {
        let line = shared.pending.open(cx);
        lines.push(Arc::clone(&line));
        task.line = Some(Arc::clone(&line));
        tokio::spawn(async move {
            let performed = AssertUnwindSafe(task.perform()).catch_unwind().await;
            let agent = &*task.order.agent;
            let report =
                performed.unwrap_or_else(|_| TaskReport::error(agent, "the delegation panicked"));
            task.learn(&report).await;
            line.finish(report);
        });
    }
    Ok(json!(settle(cx, shared, &lines).await?))
}

/// Waits until each is over or waits for an answer.
async fn settle(
    cx: &CallContext,
    shared: &DelegationShared,
    lines: &[Arc<QuestionLine>],
) -> Result<Vec<DelegationStanding>, ToolError> {
    let standings = tokio::select! {
        standings = join_all(lines.iter().map(|line| line.wait_for_standing())) => standings,
        () = cx.cancel.cancelled() => {
            let message = "stopped while agents were at work; they are stopped with the run";
            return Err(ToolError::new(ToolErrorKind::Cancelled, message));
        }
    };
    for (line, standing) in lines.iter().zip(&standings) {
        if matches!(standing, DelegationStanding::Over(_)) {
            shared.pending.close(cx, line);
        }
    }
    Ok(standings)
}

fn answers(shared: &Arc<DelegationShared>, place: &DelegationLevel) -> impl ErasedTool + 'static {
    let (shared, place) = (Arc::clone(shared), place.clone());
    tool_fn(answering(), move |args: Value, cx: CallContext| {
        let (shared, place) = (Arc::clone(&shared), place.clone());
        async move {
            let invalid = |error| {
                ToolError::new(
                    ToolErrorKind::InvalidArguments,
                    format!("no answers: {error}"),
                )
            };
            let Answers { answers } = serde_json::from_value(args).map_err(invalid)?;
            let lines = shared.pending.check(&cx, &answers)?;
            for Reply {
                delegation_id,
                question_id,
                answer,
            } in answers
            {
                if let Some(line) = lines.iter().find(|line| line.id == delegation_id) {
                    line.answer(
                        &question_id,
                        cut_chars(&answer, MAX_CONTEXT_CHARS).into_owned(),
                    );
                }
            }
            let standings = place.away(&cx, settle(&cx, &shared, &lines)).await?;
            let standings = json!(standings);
            let text = standings.to_string();
            Ok(CallResult {
                details: standings,
                ..CallResult::ok(text)
            })
        }
    })
}

fn asking() -> ToolSpec {
    let about = "Asks the agent that gave you your task, and waits for its answer.";
    let question =
        json!({ "type": "string", "minLength": 1, "description": "What you must know, and why." });
    let schema = json!({
        "type": "object", "properties": { "question": question }, "required": ["question"],
        "additionalProperties": false,
    });
    // Asked again after a crash; the wait has its own limit.
    ToolSpec {
        replay: Replay::Idempotent,
        timeout: Some(TIMEOUT),
        ..ToolSpec::new("ask_parent", about, schema)
    }
}

fn answering() -> ToolSpec {
    let text = |about: &str| json!({ "type": "string", "description": about });
    let answer = json!({
        "type": "object",
        "properties": {
            "delegation_id": text("The delegation that asks."),
            "question_id": text("The question."),
            "answer": text("The answer."),
        },
        "required": ["delegation_id", "question_id", "answer"],
        "additionalProperties": false,
    });
    let list = json!({ "type": "array", "minItems": 1, "maxItems": MAX_ANSWERS, "items": answer });
    let schema = json!({
        "type": "object", "properties": { "answers": list }, "required": ["answers"], "additionalProperties": false,
    });
    let about = "Answers questions of agents that you gave tasks, and waits until each of them is done or asks again.";
    ToolSpec {
        replay: Replay::Once,
        timeout: Some(TIMEOUT),
        max_output: Some(MAX_SHOWN_BYTES),
        ..ToolSpec::new("answer_questions", about, schema)
    }
}
