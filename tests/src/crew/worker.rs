//! A worker: claims tasks, lets an agent do each in a session of its own, and says what came of it.

use std::{
    error::Error,
    fs::{File, OpenOptions},
    io::Write,
    path::Path,
    sync::Arc,
    time::Duration,
};

use adjutant::{
    Agent, Replay, RunResult,
    agent::{ErrorKind, Journal, JournalErrorKind, LogId},
    llm::{CallResult, Entry, ModelInfo},
    orchestration::board::{Board, Finish, Task, TaskQuery, TaskStatus},
    providers::Anthropic,
    tools::{CallContext, ToolError, ToolSpec, tool_fn},
};
use serde_json::{Value, json};

use super::plan::HOPELESS;
use crate::kill::Place;

type Failure = Box<dyn Error + Send + Sync>;

/// How long a task belongs to a worker that says nothing; short, because the others wait for the tasks of dead ones.
const LEASE: Duration = Duration::from_millis(400);
/// How long a worker waits when nothing is ready.
const PATIENCE: Duration = Duration::from_millis(20);

/// Works until every task of the board has ended.
///
/// # Errors
/// Whatever keeps it from that.
pub async fn worker(place: &Place, name: &str, address: &str, files: &Path) -> Result<(), Failure> {
    let (journal, kv) = place.open_both().await?;
    let board = Board::new(kv);
    let payments = Arc::new(
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(files.join("payments"))?,
    );
    loop {
        match board.claim_next(name, LEASE).await {
            Ok(Some(task)) => {
                let agent = agent(&journal, address, &payments, &task);
                tokio::select! {
                    done = work(&board, name, &task, &agent) => done?,
                    () = beat(&board, name, &task) => {}
                }
            }
            Ok(None) if is_over(&board).await? => return Ok(()),
            Ok(None) => tokio::time::sleep(PATIENCE).await,
            Err(error) if error.is_retryable() => tokio::time::sleep(PATIENCE).await,
            Err(error) => return Err(error.into()),
        }
    }
}

async fn is_over(board: &Board) -> Result<bool, Failure> {
    for status in [TaskStatus::Pending, TaskStatus::InProgress] {
        if !board
            .list(&TaskQuery::new().status(status).limit(1))
            .await?
            .tasks
            .is_empty()
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Says that the worker is alive, until it has lost the task.
async fn beat(board: &Board, name: &str, task: &Task) {
    loop {
        tokio::time::sleep(LEASE / 4).await;
        match board.heartbeat(&task.id, name, LEASE).await {
            Ok(_) => {}
            Err(error) if error.kind() == adjutant::orchestration::ErrorKind::Store => {}
            Err(_) => return,
        }
    }
}

/// Does a task and says what came of it; that it was lost meanwhile is no failure.
async fn work(board: &Board, name: &str, task: &Task, agent: &Agent) -> Result<(), Failure> {
    open(agent).await?;
    let answer = match answered(agent) {
        Some(answer) => answer,
        None if agent.log().has_open_run() => agent.resume(Vec::new()).await?.text(),
        None => RunResult::text(&agent.run(format!("Please do {}", task.title)).await?),
    };
    let finish = if answer == HOPELESS {
        Finish::failure(answer)
    } else {
        Finish::success(answer)
    };
    match board.finish(&task.id, name, finish).await {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == adjutant::orchestration::ErrorKind::Conflict => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// The answer, if the session has one.
fn answered(agent: &Agent) -> Option<String> {
    match &agent.log().transcript().last()?.entry {
        Entry::Turn(turn) if turn.results().is_empty() => {
            Some(turn.reply().text()).filter(|text| !text.is_empty())
        }
        _ => None,
    }
}

/// Opens the session; the log of a dead process waits for the end of its lease.
async fn open(agent: &Agent) -> Result<(), Failure> {
    loop {
        let Err(error) = agent.log().open().await else {
            return Ok(());
        };
        let owned = error
            .journal_error()
            .filter(|error| error.kind == JournalErrorKind::Owned);
        match owned.map(|error| error.retry_after().unwrap_or(PATIENCE)) {
            Some(left) if error.kind() == ErrorKind::Journal => tokio::time::sleep(left).await,
            _ => return Err(error.into()),
        }
    }
}

/// The agent of a task, in the session of the task.
fn agent(journal: &Arc<dyn Journal>, address: &str, payments: &Arc<File>, task: &Task) -> Agent {
    let model = Anthropic::new(
        ModelInfo::new("anthropic/claude-sonnet-4-5"),
        "not-a-real-key",
    )
    .base_url(address);
    let schema = json!({"type": "object", "properties": {"task": {"type": "integer"}}, "required": ["task"]});
    let spec = ToolSpec {
        replay: Replay::Once,
        ..ToolSpec::new("pay", "Pays for a task.", schema)
    };
    let payments = Arc::clone(payments);
    let pay = tool_fn(spec, move |args: Value, _: CallContext| {
        let payments = Arc::clone(&payments);
        async move {
            let paid = (&*payments).write_all(format!("{}\n", args["task"]).as_bytes());
            paid.map_err(|error| ToolError::failed(error.to_string()))?;
            tokio::time::sleep(Duration::from_millis(1)).await;
            Ok(CallResult::ok("paid"))
        }
    });
    Agent::new(model)
        .journal(Arc::clone(journal))
        .session(LogId::from(task.id.0.as_ref()))
        .tool(pay)
}
