//! The tools with which agents of a team talk: send, read, wait, list. The lead and every member have them.

use std::{
    error::Error as _,
    sync::{Arc, Weak},
    time::Duration,
};

use adjutant_llm::CallResult;
use adjutant_tool::{
    CallContext, ErasedTool, Replay, ToolError, ToolErrorKind, ToolSpec, Tools, tool_fn,
};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};

use super::{
    LEAD, Message,
    drive::OpenRosters,
    post::{Sent, closed},
    roster::Roster,
    wait::Heard,
};
use crate::{Error, ErrorKind};

/// The longest time that a wait may take.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(3_600);
/// The longest time that a call that waits may take.
const MAX_CALL: Duration = Duration::from_secs(3_660);
/// The largest number of bytes of messages in a result; they are bounded before they become JSON.
const MAX_OUTPUT: usize = 512 * 1024;

/// The user of the tools.
#[derive(Clone)]
pub(super) enum Speaker {
    /// The lead of whichever run calls.
    Lead(Arc<OpenRosters>),
    /// A member.
    Member {
        roster: Weak<Roster>,
        name: Arc<str>,
        id: Arc<str>,
    },
}

#[derive(Debug, Deserialize)]
struct Letter {
    to: Arc<str>,
    content: Arc<str>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Wait {
    from: Option<Arc<str>>,
    timeout_s: u64,
}

#[derive(Debug, Deserialize)]
struct Nothing {}

impl Speaker {
    /// The roster of the call, and who calls.
    fn speak(&self, cx: &CallContext) -> Result<(Arc<Roster>, Arc<str>), ToolError> {
        match self {
            Self::Lead(open) => {
                let roster = open.roster_for(cx)?;
                roster.hear_line(cx)?;
                Ok((roster, LEAD.into()))
            }
            Self::Member { roster, name, id } => {
                let roster = roster.upgrade().ok_or_else(closed)?;
                let is_in = {
                    let state = roster.state();
                    state.is_active(name)
                        && state
                            .members
                            .get(name)
                            .is_some_and(|member| member.id == *id)
                };
                if !is_in {
                    return Err(Error::new(
                        ErrorKind::Closed,
                        "you do not work in the team any more",
                    )
                    .into());
                }
                Ok((roster, Arc::clone(name)))
            }
        }
    }
}

/// The tools of a member.
pub(super) fn member_tools(roster: &Roster, name: &Arc<str>, id: &Arc<str>) -> Tools {
    let speaker = Speaker::Member {
        roster: roster.me(),
        name: Arc::clone(name),
        id: Arc::clone(id),
    };
    add(Tools::new("team"), &speaker)
}

/// Adds the tools of a speaker.
pub(super) fn add(tools: Tools, speaker: &Speaker) -> Tools {
    tools
        .tool(tool(speaker, send_spec(), send))
        .tool(tool(speaker, read_spec(), read))
        .tool(tool(speaker, wait_spec(), wait))
        .tool(tool(speaker, list_spec(), list))
}

/// A tool with these arguments for an agent of the team.
pub(super) fn tool<A, F, Fut>(
    speaker: &Speaker,
    spec: ToolSpec,
    run: F,
) -> impl ErasedTool + 'static + use<A, F, Fut>
where
    A: DeserializeOwned + Send + 'static,
    F: Fn(Arc<Roster>, Arc<str>, A, CallContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<CallResult, ToolError>> + Send + 'static,
{
    let speaker = speaker.clone();
    tool_fn(spec, move |args: Value, cx: CallContext| {
        let invalid = |error: serde_json::Error| {
            ToolError::new(ToolErrorKind::InvalidArguments, error.to_string())
        };
        let args = serde_json::from_value::<A>(args).map_err(invalid);
        let work = args.and_then(|args| {
            let (roster, who) = speaker.speak(&cx)?;
            Ok(run(roster, who, args, cx))
        });
        async move {
            let ended = match work {
                Ok(work) => work.await,
                Err(error) => Err(error),
            };
            ended.map_err(dedup_error)
        }
    })
}

/// An error without a cause that repeats its text: the model reads both.
fn dedup_error(error: ToolError) -> ToolError {
    let cause = error
        .source()
        .and_then(|cause| cause.downcast_ref::<Error>());
    let twice =
        cause.is_some_and(|cause| *cause.message() == *error.message && cause.source().is_none());
    if twice {
        ToolError::new(error.kind, error.message)
    } else {
        error
    }
}

async fn send(
    roster: Arc<Roster>,
    who: Arc<str>,
    letter: Letter,
    _: CallContext,
) -> Result<CallResult, ToolError> {
    let Sent { id, to, not_to } = roster.say(&who, &letter.to, &letter.content).await?;
    let missed: Vec<&str> = not_to.values().map(Error::message).collect();
    let missed = if missed.is_empty() {
        String::new()
    } else {
        format!(" But {}.", missed.join("; "))
    };
    let details = json!({"id": id, "to": to, "not_to": not_to.keys().collect::<Vec<_>>()});
    Ok(CallResult {
        details,
        ..CallResult::ok(format!("Sent to {} as {id}.{missed}", to.join(", ")))
    })
}

async fn read(
    roster: Arc<Roster>,
    who: Arc<str>,
    _: Nothing,
    _: CallContext,
) -> Result<CallResult, ToolError> {
    let messages = roster.read(&who, None).await?;
    if messages.is_empty() {
        return Ok(CallResult::ok("No new messages."));
    }
    Ok(messages_result(&roster, &who, &messages))
}

async fn wait(
    roster: Arc<Roster>,
    who: Arc<str>,
    wait: Wait,
    cx: CallContext,
) -> Result<CallResult, ToolError> {
    if wait.from.as_ref().is_some_and(|from| *from == who) {
        return Err(Error::new(
            ErrorKind::Invalid,
            "an agent cannot send a message to itself",
        )
        .into());
    }
    let time = Duration::from_secs(wait.timeout_s).min(MAX_WAIT);
    Ok(
        match roster
            .hear(&who, wait.from.as_ref(), time, &cx.cancel)
            .await?
        {
            Heard::Messages(messages) => messages_result(&roster, &who, &messages),
            Heard::InVain(why) => CallResult::ok(format!("No message will come: {why}.")),
            Heard::Late => CallResult::ok(format!("No message came within {time:?}.")),
        },
    )
}

async fn list(
    roster: Arc<Roster>,
    _: Arc<str>,
    _: Nothing,
    _: CallContext,
) -> Result<CallResult, ToolError> {
    let lead = json!({"name": LEAD, "status": "lead"});
    let of = |member: &super::MemberReport| {
        let mut shown = json!({"name": member.name, "status": member.status, "task": member.task});
        if let (Some(shown), false) = (shown.as_object_mut(), member.result.is_empty()) {
            shown.insert("result".to_owned(), json!(member.result));
        }
        shown
    };
    let all: Vec<Value> = std::iter::once(lead)
        .chain(roster.report().members.iter().map(of))
        .collect();
    Ok(CallResult::ok(Value::from(all).to_string()))
}

/// Messages as JSON, and how many are left.
fn messages_result(roster: &Roster, who: &str, messages: &[Message]) -> CallResult {
    let ids: Vec<&str> = messages.iter().map(|message| &*message.id).collect();
    let left = roster.state().unread_of(who).count();
    let mut text = json!(messages).to_string();
    if left > 0 {
        text.push_str(&format!("\n{left} more are unread."));
    }
    CallResult {
        details: json!({"team": roster.plan.name, "read": ids}),
        ..CallResult::ok(text)
    }
}

fn send_spec() -> ToolSpec {
    let fields = json!({
        "to": text("The name of a member, \"lead\", or \"*\" for all others."),
        "content": text("What to say."),
    });
    spec(
        "send_message",
        "Sends a message to someone of your team.",
        fields,
        &["to", "content"],
    )
}

fn read_spec() -> ToolSpec {
    let about = "Gives the messages that were sent to you and that you have not read, oldest first. Each is given once.";
    let spec = spec("read_messages", about, json!({}), &[]);
    // Its messages count as read when its result is in the log.
    ToolSpec {
        max_output: Some(MAX_OUTPUT),
        replay: Replay::Idempotent,
        ..spec
    }
}

fn wait_spec() -> ToolSpec {
    let fields = json!({
        "from": text("Wait only for a message of this one."),
        "timeout_s": seconds("How many seconds to wait at most."),
    });
    let about =
        "Waits until a message for you is there, and gives it. Says so at once if none can come.";
    ToolSpec {
        max_output: Some(MAX_OUTPUT),
        ..waiting(spec("wait_for_message", about, fields, &["timeout_s"]))
    }
}

fn list_spec() -> ToolSpec {
    let about = "Lists who is in your team, what each works on, and what came of it.";
    ToolSpec {
        replay: Replay::Pure,
        ..spec("list_teammates", about, json!({}), &[])
    }
}

/// A waiting tool: other calls of its batch run before or after it.
pub(super) fn waiting(spec: ToolSpec) -> ToolSpec {
    ToolSpec {
        sequential: true,
        timeout: Some(MAX_CALL),
        replay: Replay::Idempotent,
        ..spec
    }
}

pub(super) fn spec(name: &str, about: &str, fields: Value, required: &[&str]) -> ToolSpec {
    let schema = json!({
        "type": "object", "properties": fields, "required": required, "additionalProperties": false,
    });
    ToolSpec::new(name, about, schema)
}

pub(super) fn text(about: &str) -> Value {
    json!({ "type": "string", "description": about })
}

pub(super) fn seconds(about: &str) -> Value {
    json!({ "type": "integer", "minimum": 1, "maximum": MAX_WAIT.as_secs(), "description": about })
}
