//! The end of a member's work: its meaning, and its notifications.

use std::{fmt::Write, pin::pin, sync::Arc, time::Duration};

use adjutant_agent::{
    Child, ChildRun, Outcome, RunLine, RunResult, Spend,
    points::{TeammateCompleted, TeammateFailed, TeammateLeft},
};
use adjutant_tool::{ToolError, ToolErrorKind};
use serde_json::json;
use tokio::time::timeout;

use super::{
    MemberStatus, MessageKind,
    member::{GRACE, MemberJob},
    post::MAX_CONTENT,
    roster::Roster,
    texts,
};
use crate::text;

/// The end of a member's work, for its team.
struct MemberEnd {
    status: MemberStatus,
    text: Arc<str>,
    result: Option<Arc<RunResult>>,
}

impl Roster {
    /// Waits until a member ends, or stops it when its time is over.
    pub(super) async fn look_after(
        &self,
        job: MemberJob,
        child: Arc<Child>,
        run: ChildRun,
        limit: Option<Duration>,
    ) {
        let mut finish = pin!(run.finish());
        let ended = match limit {
            None => Ok(finish.await),
            Some(limit) => match timeout(limit, &mut finish).await {
                Ok(ended) => Ok(ended),
                Err(_) => {
                    child.cancel();
                    let ended = timeout(GRACE, finish).await;
                    Err((
                        limit,
                        ended.unwrap_or_else(|_| Err(ToolError::failed("it does not end"))),
                    ))
                }
            },
        };
        let stopping = self
            .state()
            .members
            .get(&job.name)
            .is_some_and(|it| it.work == job.work && it.stopping);
        let ended = MemberEnd::from_result(ended, stopping);
        self.has_ended(&job, &child, ended).await;
    }

    /// The member has ended its task: the lead is notified, and then the others.
    async fn has_ended(&self, job: &MemberJob, child: &Child, ended: MemberEnd) {
        let Some(left) = self.begin_end(job, &ended) else {
            return;
        };
        let (name, text) = (&job.name, &ended.text);
        if let Some(kind) = ended.status.message_kind() {
            let mut content = format!(
                "{name:?} {}: {}",
                ended.status.words(),
                texts::clip(text, MAX_CONTENT / 2)
            );
            if !left.is_empty() {
                // Writing to a string does not fail.
                let _ = write!(content, "\nIt has not read {}.", texts::names(&left));
            }
            self.notify(name, kind, &content).await;
        }
        self.note_end(job, &ended);
        // The run may be over by now: hooks are notified nevertheless.
        if let Some(line) = &job.line {
            self.tell(line, child, ended).await;
        }
    }

    /// The end is written to the log before it is published; `None` if the member works on something else by now.
    ///
    /// Returns its unread messages.
    fn begin_end(&self, job: &MemberJob, ended: &MemberEnd) -> Option<Vec<Arc<str>>> {
        let mut state = self.state();
        if let Some(result) = &ended.result {
            let cost = result.total_cost.unwrap_or_default();
            state.spent.insert(
                job.work,
                Spend {
                    cost,
                    tokens: result.total_usage.total(),
                    ..Spend::default()
                },
            );
        }
        state
            .members
            .get_mut(&job.name)
            .filter(|member| member.work == job.work)?
            .ending = true;
        let unread = state
            .unread_of(&job.name)
            .map(|it| format!("{} of {}", texts::message_id(it.number), it.from));
        let left: Vec<Arc<str>> = unread.map(Arc::from).collect();
        if let Some(line) = &job.line {
            let kind = match ended.status {
                MemberStatus::Completed => "team.completed",
                MemberStatus::Failed => "team.failed",
                _ => "team.left",
            };
            let event = json!({
                "team": self.plan.name, "name": job.name, "status": ended.status, "text": texts::clip_event_text(&ended.text),
                "unread": left,
            });
            line.app(kind, 1, event);
        }
        Some(left)
    }

    /// Publishes the end.
    fn note_end(&self, job: &MemberJob, ended: &MemberEnd) {
        let now_ms = self.now_ms();
        if let Some(member) = self
            .state()
            .members
            .get_mut(&job.name)
            .filter(|member| member.work == job.work)
        {
            (member.status, member.since_ms, member.result) =
                (ended.status, now_ms, Arc::clone(&ended.text));
            member.ending = false;
        }
        self.bump();
    }

    async fn tell(&self, line: &RunLine, child: &Child, ended: MemberEnd) {
        let (team, who) = (
            Arc::clone(&self.plan.name),
            Arc::new(child.identity().clone()),
        );
        // They are only notified.
        match (ended.status, ended.result) {
            (MemberStatus::Completed, Some(result)) => {
                let _ = line.pass(TeammateCompleted::new(team, who, result)).await;
            }
            (MemberStatus::Failed, _) => {
                let _ = line.pass(TeammateFailed::new(team, who, ended.text)).await;
            }
            _ => {
                let _ = line.pass(TeammateLeft::new(team, who, ended.text)).await;
            }
        }
    }
}

impl MemberStatus {
    /// The kind of the message to the lead about an end; `None` if the lead is not notified.
    pub(super) fn message_kind(self) -> Option<MessageKind> {
        match self {
            Self::Completed => Some(MessageKind::Completed),
            Self::Failed => Some(MessageKind::Failed),
            Self::Stopped => Some(MessageKind::Stopped),
            Self::TimedOut => Some(MessageKind::TimedOut),
            Self::Left | Self::Active => None,
        }
    }
}

impl MemberEnd {
    /// Returns the meaning of the end of a run; an error holds the time that the run was given.
    fn from_result(
        ended: Result<Result<RunResult, ToolError>, (Duration, Result<RunResult, ToolError>)>,
        stopping: bool,
    ) -> Self {
        let (late, ended) = match ended {
            Ok(ended) => (None, ended),
            Err((limit, ended)) => (Some(limit), ended),
        };
        let new = |status, text: String, result| Self {
            status,
            text: text.into(),
            result,
        };
        let said = |result: &RunResult| match result.text() {
            text if text.is_empty() => String::new(),
            text => format!("; its last reply: {text}"),
        };
        match (ended, late) {
            (Ok(result), _) if result.is_finished() => {
                let result = Arc::new(result);
                new(MemberStatus::Completed, result.text(), Some(result))
            }
            (ended, Some(limit)) => {
                let (said, result) = ended
                    .map(|result| (said(&result), Some(Arc::new(result))))
                    .unwrap_or_default();
                new(
                    MemberStatus::TimedOut,
                    format!("it was not done within {limit:?}{said}"),
                    result,
                )
            }
            (Ok(result), None) => {
                let (status, how) = match &result.outcome {
                    Outcome::Limit { limit } => (
                        MemberStatus::Failed,
                        format!("it reached its limit of {limit}"),
                    ),
                    Outcome::Cancelled { .. } if stopping => {
                        (MemberStatus::Stopped, "the lead stopped it".to_owned())
                    }
                    Outcome::Cancelled { by } => {
                        (MemberStatus::Left, format!("it was stopped by {by}"))
                    }
                    other => (MemberStatus::Failed, format!("it ended: {}", other.kind())),
                };
                let text = format!("{how}{}", said(&result));
                new(status, text, Some(Arc::new(result)))
            }
            (Err(_), None) if stopping => new(
                MemberStatus::Stopped,
                "the lead stopped it".to_owned(),
                None,
            ),
            (Err(error), None) => {
                let left = error.kind == ToolErrorKind::Cancelled;
                new(
                    if left {
                        MemberStatus::Left
                    } else {
                        MemberStatus::Failed
                    },
                    text::chain(&error),
                    None,
                )
            }
        }
    }
}
