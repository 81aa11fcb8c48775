//! Tasks that were running when their program was lost: found in the log, continued, and reported immediately.

use std::{collections::BTreeMap, sync::Arc};

use adjutant_agent::{
    DriveContext, DriveStart, Failure, MemberRun, Middleware, NextDrive, Record, RunResult, Stamped,
};
use adjutant_llm::{Entry, Origin, ThreadId, Usage, UserMessage};
use adjutant_tool::ToolError;
use async_trait::async_trait;
use futures_util::StreamExt;
use serde::Deserialize;

use super::{
    Background,
    ear::Ear,
    follow::{self, end},
    launch::{Launched, Mark},
    task::{BackgroundTask, NewTask},
};
use crate::{
    child_run::{AgentEnd, TaskState, with_task},
    text::chain,
};

/// The largest number of tasks that are named to the agent.
const MAX_NAMED: usize = 20;

/// Continues the tasks of a resumed run.
pub(super) struct Revive(pub(super) Background);

/// The tasks of the open run in the log.
#[derive(Default)]
struct FoundTasks(BTreeMap<ThreadId, FoundTask>);

/// A task in the log.
struct FoundTask {
    launched: Launched,
    /// A message reports its end.
    told: bool,
    /// Its end is in the log.
    ended: bool,
}

#[async_trait]
impl Middleware for Revive {
    fn name(&self) -> &str {
        "background"
    }

    async fn on_start(&self, cx: &DriveStart) {
        // Always looked for: another program may have had the session since this one did.
        if !cx.resumes {
            return;
        }
        let found = match FoundTasks::read(cx).await {
            Ok(found) => found,
            Err(error) => {
                tracing::warn!(
                    "the background tasks of {} cannot be found again: {error}",
                    cx.log
                );
                return;
            }
        };
        let (mut goes_on, mut any) = (Vec::new(), false);
        for (thread, found) in found.0 {
            if self
                .0
                .table
                .find(&cx.log, &cx.who.thread, &thread)
                .is_some()
            {
                continue;
            }
            let is_at_work = !cx.is_answered(&thread, 0);
            any |= !found.told;
            if let Some(task) = self.revive(cx, found, is_at_work).await {
                goes_on.push(task);
            }
        }
        if any && let Err(error) = cx.tell(news(&goes_on)) {
            tracing::warn!("nobody is told of the background tasks that go on: {error}");
        }
    }

    async fn drive(&self, cx: DriveContext, next: NextDrive<'_>) -> Result<RunResult, Failure> {
        next.run(cx).await
    }
}

impl Revive {
    /// Lists a task again; returns it if it continues, and ends it otherwise.
    async fn revive(
        &self,
        cx: &DriveStart,
        found: FoundTask,
        is_at_work: bool,
    ) -> Option<Arc<BackgroundTask>> {
        let FoundTask {
            launched,
            told,
            ended,
        } = found;
        let table = &self.0.table;
        let line = cx.line(&launched.thread);
        let ear = match (ended, told) {
            (true, _) => Ear::Nobody,
            (false, true) => Ear::Told(line),
            (false, false) => Ear::Run(line),
        };
        let task = table.adopt(NewTask {
            session: cx.log.clone(),
            by: cx.who.thread.clone(),
            number: launched.number,
            agent: Arc::clone(&launched.agent),
            thread: launched.thread.clone(),
            task: Arc::clone(&launched.task),
            kept: false,
        })?;
        let run = match self.open(cx, &launched).await {
            Ok(run) => run,
            Err(error) => {
                let text = format!("it is lost: {}", chain(&error));
                end(
                    table,
                    &task,
                    &ear,
                    AgentEnd {
                        state: TaskState::Failed,
                        text,
                        usage: Usage::default(),
                    },
                );
                return None;
            }
        };
        let following = follow::follow(
            Arc::clone(table),
            Arc::clone(&task),
            MemberRun::Child(run),
            ear,
        );
        if is_at_work {
            tokio::spawn(following);
            return Some(task);
        }
        // Its answer is in the log, so nothing is waited for.
        following.await;
        None
    }

    async fn open(
        &self,
        cx: &DriveStart,
        launched: &Launched,
    ) -> Result<adjutant_agent::ChildRun, ToolError> {
        let known = self.0.launchable(&launched.agent);
        let gone = || {
            ToolError::failed(format!(
                "no agent {:?} can be launched any more",
                &*launched.agent
            ))
        };
        let agent = known.ok_or_else(gone)?;
        let agent = launched
            .max_turns
            .map_or(agent.clone(), |turns| agent.cap_turns(turns));
        let agent = with_task(agent, &launched.prompt);
        cx.spawn()
            .reopen(&launched.thread, agent.into(), 0)
            .await?
            .stream(&*launched.prompt)
    }
}

impl FoundTasks {
    async fn read(cx: &DriveStart) -> Result<Self, adjutant_agent::JournalError> {
        let (mut found, mut records) = (Self::default(), cx.records());
        while let Some(stamped) = records.next().await {
            found.take(&*stamped?, &cx.who.thread);
        }
        Ok(found)
    }

    fn take(&mut self, stamped: &Stamped, by: &ThreadId) {
        if stamped.thread != *by {
            return;
        }
        match &stamped.record {
            // The tasks of a run end with it.
            Record::Began { .. } => self.0.clear(),
            Record::App { kind, data, .. } if &**kind == "background.launched" => {
                if let Ok(launched) = Launched::deserialize(data)
                    && !launched.kept
                {
                    let thread = launched.thread.clone();
                    self.0.insert(
                        thread,
                        FoundTask {
                            launched,
                            told: false,
                            ended: false,
                        },
                    );
                }
            }
            Record::App { kind, data, .. } if &**kind == "background.ended" => {
                let thread = data["thread"].as_str().map(ThreadId::from);
                if let Some(task) = thread.and_then(|thread| self.0.get_mut(&thread)) {
                    (task.ended, task.told) = (true, true);
                }
            }
            Record::Queued {
                content: Entry::User(message),
                ..
            } => {
                if let Origin::Peer { from } = &message.origin
                    && let Some(task) = self.0.get_mut(from)
                {
                    task.told = true;
                }
            }
            Record::Returned { result, .. } => {
                if let Some(Mark::Settled { task_id }) = Mark::from_details(&result.details) {
                    self.0.retain(|_, task| task.launched.task_id != task_id);
                }
            }
            _ => {}
        }
    }
}

/// The message about the restart of the program and the continuing tasks.
fn news(goes_on: &[Arc<BackgroundTask>]) -> UserMessage {
    let named: Vec<_> = goes_on
        .iter()
        .take(MAX_NAMED)
        .map(|task| format!("{} ({})", task.id, task.agent))
        .collect();
    let more = goes_on.len().saturating_sub(MAX_NAMED);
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    let named = if named.is_empty() {
        "none".to_owned()
    } else {
        named.join(", ")
    };
    let said = format!(
        "The program was lost and has begun again. Background tasks that go on: {named}{more}. What others came to, or why \
         they are lost, is told in messages."
    );
    UserMessage {
        origin: Origin::Reminder {
            by: "background".into(),
        },
        ..UserMessage::text(said)
    }
}
