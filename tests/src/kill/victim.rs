//! The process that is killed: an agent with tools of every replay class, a small window and an answer of a form, which
//! goes on where its log ends.

use std::{
    error::Error,
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
    time::Duration,
};

use adjutant::{
    Agent, EventKind, Outcome, Replay, Running,
    agent::{ErrorKind, JournalErrorKind, Limits, LogId, Output},
    llm::{CallResult, Format, ModelInfo, Structured},
    providers::Anthropic,
    tools::{CallContext, ToolError, ToolErrorKind, ToolSpec, tool_fn},
};
use serde_json::{Value, json};

use super::Place;

type Failure = Box<dyn Error + Send + Sync>;

/// How many tokens the model's window has, and how many its reply.
const WINDOW: u64 = 4_000;
const OUTPUT: u64 = 500;
/// How long each tool works.
const WORK: Duration = Duration::from_millis(1);
/// After how many pieces of text the reader says how far it has read.
const ACKNOWLEDGED_AFTER: usize = 9;

/// Runs the agent to its end, or as far as it comes, and gives its answer.
///
/// # Errors
/// Whatever keeps it from its answer.
pub async fn victim(
    place: &Place,
    session: &str,
    address: &str,
    files: &Path,
) -> Result<String, Failure> {
    // The thirty steps are several windows long, and the answer must fit a schema.
    let info = ModelInfo::new("anthropic/claude-sonnet-4-5");
    let info = ModelInfo {
        context_window: WINDOW,
        max_output_tokens: OUTPUT,
        structured: Structured::Prompt,
        ..info
    };
    let model = Anthropic::new(info, "not-a-real-key").base_url(address);
    let schema = json!({"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]});
    let effects = Arc::new(append_to(&files.join("effects"))?);
    let agent = Agent::new(model)
        .output(Output::<Value>::from_format(Format::new("answer", schema))?)
        .journal(place.open().await?)
        .session(LogId::from(session))
        .limits(Limits {
            max_turns: Some(100),
            ..Limits::default()
        })
        .tool(tool("look", Replay::Pure, &effects))
        .tool(tool("set", Replay::Idempotent, &effects))
        .tool(tool("pay", Replay::Once, &effects))
        .tool(travel(&effects));
    open(&agent).await?;
    let running = if agent.log().transcript().is_empty() {
        agent.run("Go thirty steps.").stream()?
    } else if let Some(answer) = ended(&agent) {
        return Ok(answer);
    } else {
        agent.resume(Vec::new()).stream()?
    };
    follow(running, append_to(&files.join("acknowledged"))?).await
}

/// Opens the session; a log that a dead process has waits for the end of its lease.
pub(super) async fn open(agent: &Agent) -> Result<(), Failure> {
    loop {
        let Err(error) = agent.log().open().await else {
            return Ok(());
        };
        let left = error
            .journal_error()
            .filter(|error| error.kind == JournalErrorKind::Owned);
        match left.map(|error| error.retry_after().unwrap_or(WORK)) {
            Some(left) if error.kind() == ErrorKind::Journal => tokio::time::sleep(left).await,
            _ => return Err(error.into()),
        }
    }
}

/// The answer, if the session has ended.
pub(super) fn ended(agent: &Agent) -> Option<String> {
    if agent.log().has_open_run() {
        return None;
    }
    let transcript = agent.log().transcript();
    let last = transcript.last()?;
    match &last.entry {
        adjutant::llm::Entry::Turn(turn) if turn.reply().text().contains(super::ANSWER) => {
            Some(super::ANSWER.to_owned())
        }
        _ => None,
    }
}

/// Reads the events of the run, acknowledges what it read, and writes down what it acknowledged.
async fn follow(mut running: Running, mut acknowledged: File) -> Result<String, Failure> {
    let (mut text, mut turn, mut attempt, mut pieces) = (String::new(), 0, 0, 0);
    while let Some(event) = running.next().await {
        match &event.kind {
            EventKind::ReplyStarted {
                attempt: started, ..
            } => {
                (turn, attempt) = (event.turn.0, *started);
                text.clear();
            }
            EventKind::TextDelta { text: delta, .. } => {
                text.push_str(delta);
                pieces += 1;
                if pieces % ACKNOWLEDGED_AFTER == 0 {
                    running.acknowledge().await?;
                    let line = json!({"turn": turn, "attempt": attempt, "text": text});
                    acknowledged.write_all(format!("{line}\n").as_bytes())?;
                }
            }
            _ => {}
        }
    }
    let result = running.finish().await?;
    match &result.outcome {
        Outcome::Finished { .. } => match result
            .output
            .as_ref()
            .and_then(|value| value["answer"].as_str())
        {
            Some(answer) => Ok(answer.to_owned()),
            None => Err(format!("the run came to {:?}", result.output).into()),
        },
        outcome => Err(format!("the run ended otherwise: {outcome:?}").into()),
    }
}

/// A tool that writes down that it was run, and works a little before and after.
pub(super) fn tool(
    name: &'static str,
    replay: Replay,
    effects: &Arc<File>,
) -> impl adjutant::tools::ErasedTool + use<> {
    let effects = Arc::clone(effects);
    let spec = ToolSpec {
        replay,
        ..spec(name)
    };
    tool_fn(spec, move |args: Value, cx: CallContext| {
        let effects = Arc::clone(&effects);
        async move {
            tokio::time::sleep(WORK).await;
            note(&effects, name, &args, &cx)?;
            tokio::time::sleep(WORK).await;
            Ok(CallResult::ok(format!("{name} {}", args["step"])))
        }
    })
}

/// A tool of three steps, which are each done once.
fn travel(effects: &Arc<File>) -> impl adjutant::tools::ErasedTool + use<> {
    let effects = Arc::clone(effects);
    tool_fn(
        ToolSpec {
            replay: Replay::Resumable,
            ..spec("travel")
        },
        move |args: Value, cx: CallContext| {
            let effects = Arc::clone(&effects);
            async move {
                for leg in ["out", "there", "back"] {
                    let (effects, args, cx) = (&effects, &args, &cx);
                    let gone = cx.once(leg, || async move {
                        tokio::time::sleep(WORK).await;
                        note(effects, leg, args, cx)
                    });
                    match gone.await {
                        // Whether it was gone, nobody knows: it is not gone again.
                        Err(error) if error.kind == ToolErrorKind::OutcomeUnknown => {}
                        gone => gone?,
                    }
                }
                Ok(CallResult::ok(format!("travel {}", args["step"])))
            }
        },
    )
}

fn spec(name: &str) -> ToolSpec {
    let schema = json!({"type": "object", "properties": {"step": {"type": "integer"}}, "required": ["step"]});
    ToolSpec::new(name, "Goes a step.", schema)
}

/// One line, written at once: a process that is killed has written it or not.
fn note(mut effects: &File, what: &str, args: &Value, cx: &CallContext) -> Result<(), ToolError> {
    let call = cx.who.call.map(|call| call.to_string()).unwrap_or_default();
    let line = format!("{what} {} {call}\n", args["step"]);
    effects
        .write_all(line.as_bytes())
        .map_err(|error| ToolError::new(ToolErrorKind::Failed, error.to_string()))
}

pub(super) fn append_to(path: &Path) -> Result<File, Failure> {
    Ok(OpenOptions::new().create(true).append(true).open(path)?)
}
