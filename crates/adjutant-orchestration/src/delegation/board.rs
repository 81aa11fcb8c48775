//! A delegation on a board: tasks are claimed for their agents, held while they work, and ended.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;

use super::{Delegation, TaskDriver, TaskEnd, driver::Lost, plan::Again};
use crate::{
    Completion, Error, ErrorKind,
    board::{Board, Finish, Task, TaskId, TaskStatus},
};

/// The lease of a claimed task; while its agent works, it is renewed three times as often.
const LEASE: Duration = Duration::from_secs(120);

impl Delegation {
    /// Sets the board whose tasks are delegated by their ids; they are claimed in the names of the instances.
    ///
    /// If several programs delegate tasks of the board, the registry of each needs a unique word, set with
    /// [`worker`](crate::Registry::worker): the board treats instances with equal names as the same one, and a task
    /// could be done twice.
    #[must_use]
    pub fn board(self, board: Board) -> Self {
        self.driven_by(Arc::new(board))
    }
}

#[async_trait]
impl TaskDriver for Board {
    async fn claim(
        &self,
        task: &str,
        agent: &str,
        by: &str,
        again: Again,
    ) -> Result<Vec<String>, Error> {
        let id = TaskId(task.into());
        let claimed = match Board::claim(self, &id, agent, LEASE).await {
            Err(error) => recover_claim(self, &id, agent, by, again, error).await?,
            Ok(claimed) => claimed,
        };
        Ok(claimed
            .acceptance_criteria
            .iter()
            .map(|criterion| criterion.to_string())
            .collect())
    }

    async fn hand_on(&self, task: &str, to: &str) -> Result<(), Error> {
        let id = TaskId(task.into());
        match self.reassign(&id, to).await {
            Err(error)
                if error.kind() == ErrorKind::Conflict && is_ended_by(self, &id, to).await =>
            {
                return Ok(());
            }
            reassigned => reassigned.map(drop)?,
        }
        Board::claim(self, &id, to, LEASE).await.map(drop)
    }

    async fn end(&self, task: &str, agent: &str, end: TaskEnd) -> Result<(), Error> {
        let id = TaskId(task.into());
        let completion = match end {
            TaskEnd::Failed(completion) => {
                let reason = Finish::failure(completion.text());
                return self
                    .finish(&id, agent, with_caveats(reason, &completion))
                    .await
                    .map(drop);
            }
            TaskEnd::Completed(completion) => completion,
        };
        let finish = with_evidence(
            Finish::success(completion.text()),
            &self.get(&id).await?,
            &completion,
        );
        match self
            .finish(&id, agent, with_caveats(finish, &completion))
            .await
        {
            // It must not stay in progress; its reason is visible on the board.
            Err(error) if error.kind() == ErrorKind::Invalid => {
                self.finish(
                    &id,
                    agent,
                    Finish::failure(format!("reported as done, but {error}")),
                )
                .await?;
                Err(error)
            }
            // The agent has already reported it, in other words.
            Err(error)
                if error.kind() == ErrorKind::Conflict
                    && is_completed_by(self, &id, agent).await =>
            {
                Ok(())
            }
            ended => ended.map(drop),
        }
    }

    async fn hold(&self, task: &str, agent: &str) -> Lost {
        let id = TaskId(task.into());
        let beats = async {
            loop {
                tokio::time::sleep(LEASE / 3).await;
                match self.heartbeat(&id, agent, LEASE).await {
                    Err(error)
                        if matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Missing) => {}
                    // The key-value store may be there again before the lease runs out.
                    _ => continue,
                }
                match self.get(&id).await {
                    Ok(task) if task.status == TaskStatus::Cancelled => return Lost::Cancelled,
                    // The agent may have ended it itself, with tools of the board.
                    Ok(task) if task.status.is_terminal() => {}
                    Ok(_) => return Lost::Taken,
                    Err(error) if error.kind() == ErrorKind::Missing => return Lost::Cancelled,
                    Err(_) => {}
                }
            }
        };
        tokio::select! {
            biased;
            () = self.cancelled(&id) => Lost::Cancelled,
            lost = beats => lost,
        }
    }
}

/// A task that could not be claimed: it is one's own all the same if one may have ended it before a crash, or if who delegates had it.
async fn recover_claim(
    board: &Board,
    id: &TaskId,
    agent: &str,
    by: &str,
    again: Again,
    error: Error,
) -> Result<Task, Error> {
    match error.kind() {
        ErrorKind::Conflict if again == Again::Maybe && is_ended_by(board, id, agent).await => {
            board.get(id).await
        }
        ErrorKind::Taken if board.get(id).await?.assignee.as_deref() == Some(by) => {
            board.reassign(id, agent).await?;
            board.claim(id, agent, LEASE).await
        }
        _ => Err(error),
    }
}

async fn is_completed_by(board: &Board, id: &TaskId, agent: &str) -> bool {
    let task = board.get(id).await;
    task.is_ok_and(|task| {
        task.status == TaskStatus::Completed && task.assignee.as_deref() == Some(agent)
    })
}

async fn is_ended_by(board: &Board, id: &TaskId, agent: &str) -> bool {
    let is_ended = |task: &Task| matches!(task.status, TaskStatus::Completed | TaskStatus::Failed);
    board
        .get(id)
        .await
        .is_ok_and(|task| is_ended(&task) && task.assignee.as_deref() == Some(agent))
}

/// The agent's evidence for each criterion: the first line of its tests that names it.
fn with_evidence(finish: Finish, task: &Task, completion: &Completion) -> Finish {
    task.acceptance_criteria
        .iter()
        .fold(finish, |finish, criterion| {
            let named = |line: &&String| {
                line.to_lowercase()
                    .contains(&criterion.trim().to_lowercase())
            };
            match completion.tests_run.iter().find(named) {
                Some(proof) => finish.evidence(Arc::clone(criterion), proof.as_str()),
                None => finish,
            }
        })
}

fn with_caveats(finish: Finish, completion: &Completion) -> Finish {
    match completion
        .caveats
        .as_deref()
        .filter(|text| !text.trim().is_empty())
    {
        Some(caveats) => finish.caveats(caveats),
        None => finish,
    }
}
