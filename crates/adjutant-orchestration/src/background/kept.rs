//! Tasks that outlive their run: first agents, each in its own log, found again from the session's records.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use adjutant_agent::{
    Agent, Journal, JournalErrorKind, LogId, MemberRun, Record, RecordStream, Seq, Stamped,
};
use adjutant_llm::{Entry, Origin, ThreadId, Usage};
use adjutant_tool::ToolError;
use futures_util::StreamExt;
use serde::Deserialize;

use super::{
    Background, TaskSnapshot,
    ear::Ear,
    follow,
    launch::Launched,
    task::{BackgroundTask, NewTask},
    task_table::TaskTable,
};
use crate::{
    Error, ErrorKind,
    child_run::{AgentEnd, TaskState, with_task},
};

/// The state of a kept task's log.
pub(super) enum Stands {
    /// Nothing has started.
    Fresh,
    /// It was left in the middle.
    Open,
    Ended(AgentEnd),
}

/// The log of a kept task, by the session and the thread of its call.
pub(super) fn log_of(
    session: &LogId,
    by: &ThreadId,
    call: adjutant_llm::CallId,
) -> Result<LogId, ToolError> {
    let log = LogId(format!("{session}/{by}/{call}").into());
    log.check()
        .map_err(|error| ToolError::failed("the task cannot be kept").with_source(error))?;
    Ok(log)
}

/// Starts a kept task, or continues it; an ended one is marked as ended.
pub(super) fn begin(
    table: &Arc<TaskTable>,
    task: &Arc<BackgroundTask>,
    stands: Stands,
    agent: Agent,
    prompt: &str,
    ear: Ear,
) -> Result<(), Error> {
    let could_not = |error| {
        Error::new(ErrorKind::Agent, format!("{} could not begin", task.id)).with_source(error)
    };
    let run = match stands {
        Stands::Fresh => agent.run(prompt).stream().map_err(could_not)?,
        Stands::Open => agent.resume(Vec::new()).stream().map_err(could_not)?,
        Stands::Ended(ended) => {
            follow::end(table, task, &ear, ended);
            return Ok(());
        }
    };
    tokio::spawn(follow::follow(
        Arc::clone(table),
        Arc::clone(task),
        MemberRun::Root(run),
        ear,
    ));
    Ok(())
}

/// Continues the kept tasks of a session that this program does not know, and returns all known ones.
pub(super) async fn resume(
    background: &Background,
    session: &Agent,
) -> Result<Vec<TaskSnapshot>, Error> {
    let table = &background.table;
    let no_journal = || {
        Error::new(
            ErrorKind::Invalid,
            "no task is kept here: there is no journal for it",
        )
    };
    let journal = table.journal().ok_or_else(no_journal)?;
    let could_not =
        |error| Error::new(ErrorKind::Agent, "the session could not be opened").with_source(error);
    session.log().open().await.map_err(could_not)?;
    let log = session.session_id();
    let told = find_reported_tasks(session);
    for (by, launched) in find_unfinished(&*journal, log).await? {
        if table.get(log, &by, &launched.task_id).is_ok() {
            continue;
        }
        // No await between listing it and managing it.
        let own = LogId(launched.thread.as_str().into());
        let stands = stands(&*journal, &own).await?;
        let found = table.adopt(NewTask {
            session: log.clone(),
            by,
            number: launched.number,
            agent: Arc::clone(&launched.agent),
            thread: launched.thread.clone(),
            task: launched.task,
            kept: true,
        });
        let Some(task) = found else { continue };
        let Some(known) = background.agents.get(&launched.agent) else {
            let text = format!("no agent {:?} can be launched any more", launched.agent);
            follow::settle(
                table,
                &task,
                AgentEnd {
                    state: TaskState::Failed,
                    text,
                    usage: Usage::default(),
                },
            );
            continue;
        };
        let agent = launched.max_turns.map_or(known.agent.clone(), |turns| {
            known.agent.clone().cap_turns(turns)
        });
        let ear = if told.contains(&launched.thread) {
            Ear::Nobody
        } else {
            Ear::Session(session.clone())
        };
        let agent = with_task(agent, &launched.prompt)
            .journal(Arc::clone(&journal))
            .session(own);
        begin(table, &task, stands, agent, &launched.prompt, ear)
            .inspect_err(|_| table.unlist(&task))?;
    }
    Ok(table
        .snapshot()
        .into_iter()
        .filter(|task| task.session == *log)
        .collect())
}

/// The tasks whose end is already part of the conversation.
fn find_reported_tasks(session: &Agent) -> BTreeSet<ThreadId> {
    let transcript = session.log().transcript();
    let origins = transcript.iter().filter_map(|stored| match &stored.entry {
        Entry::User(message) => Some(message.origin.clone()),
        _ => None,
    });
    let from = origins.filter_map(|origin| match origin {
        Origin::Peer { from } => Some(from),
        _ => None,
    });
    from.collect()
}

/// The kept tasks of a session with unread results, by thread of the agent that launched them.
async fn find_unfinished(
    journal: &dyn Journal,
    log: &LogId,
) -> Result<Vec<(ThreadId, Launched)>, Error> {
    let mut found: BTreeMap<(ThreadId, u64), Launched> = BTreeMap::new();
    let mut records = journal.read(log, Seq(0));
    while let Some(stamped) = read(&mut records, log).await? {
        let Record::App { kind, data, .. } = &stamped.record else {
            continue;
        };
        match &**kind {
            "background.launched" => {
                if let Ok(launched) = Launched::deserialize(data)
                    && launched.kept
                {
                    found.insert((stamped.thread.clone(), launched.number), launched);
                }
            }
            "background.read" => found.retain(|_, launched| data["task_id"] != *launched.task_id),
            _ => {}
        }
    }
    Ok(found
        .into_iter()
        .map(|((by, _), launched)| (by, launched))
        .collect())
}

/// Reads the state of a kept task's log.
pub(super) async fn stands(journal: &dyn Journal, log: &LogId) -> Result<Stands, Error> {
    let mut records = journal.read(log, Seq(0));
    let (mut stands, mut usage) = (Stands::Fresh, Usage::default());
    while let Some(stamped) = read(&mut records, log).await? {
        if stamped.thread.as_str() != "main" {
            continue;
        }
        match &stamped.record {
            Record::Began { .. } => stands = Stands::Open,
            Record::Replied { reply, .. } => usage += reply.usage,
            Record::ChildEnded { usage: spent, .. } => usage += *spent,
            Record::Ended { outcome, .. } => {
                stands = Stands::Ended(AgentEnd::from_outcome(outcome, usage))
            }
            _ => {}
        }
    }
    Ok(stands)
}

/// The next record of a log; a log that is not there has none.
async fn read(records: &mut RecordStream, log: &LogId) -> Result<Option<Arc<Stamped>>, Error> {
    match records.next().await {
        Some(Err(error)) if error.kind == JournalErrorKind::Missing => Ok(None),
        next => next.transpose().map_err(|error| unread(log, error)),
    }
}

fn unread(log: &LogId, error: adjutant_agent::JournalError) -> Error {
    Error::new(ErrorKind::Store, format!("the log {log} could not be read")).with_source(error)
}
