//! Questions: an agent with a task asks the delegating agent, which answers when it is able to.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use adjutant_agent::LogId;
use adjutant_llm::ThreadId;
use adjutant_tool::{CallContext, ToolError, ToolErrorKind};
use serde::{Deserialize, Serialize};
use tokio::sync::{oneshot, watch};

use super::report::TaskReport;

/// The time limit for an answer.
pub(super) const PATIENCE: Duration = Duration::from_secs(300);
/// The number of remembered delegations of one agent; the oldest finished ones are dropped first.
const MAX_PENDING: usize = 256;
/// The number of remembered agents without open delegations.
const MAX_OWNERS: usize = 1_000;
/// The largest number of open questions of one agent.
const MAX_QUESTIONS: usize = 16;

/// The delegations that continue while their agents do something else.
#[derive(Default)]
pub(super) struct PendingDelegations {
    of: Mutex<BTreeMap<Owner, OpenDelegation>>,
}

/// The delegating agent: an agent in a session.
type Owner = (LogId, ThreadId);

#[derive(Default)]
struct OpenDelegation {
    number: u64,
    lines: Vec<Arc<QuestionLine>>,
}

/// The line between one delegated task and who delegated it.
pub(super) struct QuestionLine {
    /// Its name: `d-1`.
    pub(super) id: String,
    state: Mutex<State>,
    /// Counts what happens on it.
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    agent: String,
    number: u64,
    questions: Vec<WaitingQuestion>,
    report: Option<TaskReport>,
    is_expired: bool,
}

struct WaitingQuestion {
    question: Question,
    answer: oneshot::Sender<String>,
}

/// A question that waits for its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Question {
    pub(super) question_id: String,
    pub(super) question: String,
}

/// An answer from the model.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Reply {
    pub(super) delegation_id: String,
    pub(super) question_id: String,
    pub(super) answer: String,
}

/// The state of a delegated task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum DelegationStanding {
    /// Its agent waits for answers.
    Asks {
        delegation_id: String,
        agent: String,
        questions: Vec<Question>,
    },
    /// It is over.
    Over(TaskReport),
}

impl PendingDelegations {
    /// A line for a new delegated task.
    pub(super) fn open(&self, cx: &CallContext) -> Arc<QuestionLine> {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if of.len() >= MAX_OWNERS {
            of.retain(|_, open| open.lines.iter().any(|line| line.state().report.is_none()));
        }
        let open = of.entry(owner(cx)).or_default();
        if open.lines.len() >= MAX_PENDING
            && let Some(at) = open
                .lines
                .iter()
                .position(|line| line.state().report.is_some())
        {
            open.lines.remove(at);
        }
        open.number += 1;
        let id = format!("d-{}", open.number);
        let line = Arc::new(QuestionLine {
            id,
            state: Mutex::default(),
            changed: watch::Sender::new(0),
        });
        open.lines.push(Arc::clone(&line));
        line
    }

    /// The lines that these answers are for, each once, in order; nothing is sent if one of them cannot be.
    pub(super) fn check(
        &self,
        cx: &CallContext,
        replies: &[Reply],
    ) -> Result<Vec<Arc<QuestionLine>>, ToolError> {
        let lines = {
            let of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
            of.get(&owner(cx))
                .map(|open| open.lines.clone())
                .unwrap_or_default()
        };
        let mut found: Vec<Arc<QuestionLine>> = Vec::new();
        for (at, reply) in replies.iter().enumerate() {
            let line = lines.iter().find(|line| line.id == reply.delegation_id);
            let line =
                line.ok_or_else(|| unknown(&format!("delegation {:?}", reply.delegation_id)))?;
            let twice = replies[..at].iter().any(|other| {
                (&other.delegation_id, &other.question_id)
                    == (&reply.delegation_id, &reply.question_id)
            });
            if twice || !line.may_answer(&reply.question_id) {
                return Err(unknown(&format!(
                    "open question {:?} of {}",
                    reply.question_id, reply.delegation_id
                )));
            }
            if !found.iter().any(|known| Arc::ptr_eq(known, line)) {
                found.push(Arc::clone(line));
            }
        }
        Ok(found)
    }

    /// A delegated task has ended and was reported.
    pub(super) fn close(&self, cx: &CallContext, line: &Arc<QuestionLine>) {
        let mut of = self.of.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = of.get_mut(&owner(cx)) {
            open.lines.retain(|known| !Arc::ptr_eq(known, line));
        }
    }
}

impl QuestionLine {
    /// Sends a question, and waits for the answer.
    pub(super) async fn ask(&self, agent: &str, question: String) -> Result<String, ToolError> {
        let (answer, answered) = oneshot::channel();
        {
            let mut state = self.state();
            if state.questions.len() >= MAX_QUESTIONS {
                let message =
                    format!("{MAX_QUESTIONS} questions wait already: wait for their answers");
                return Err(ToolError::failed(message));
            }
            state.number += 1;
            state.agent = agent.to_owned();
            let question = Question {
                question_id: format!("q-{}", state.number),
                question,
            };
            state.questions.push(WaitingQuestion { question, answer });
        }
        self.tell();
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err(ToolError::new(
                ToolErrorKind::Cancelled,
                "nobody answers any more",
            )),
            Err(_) => {
                self.state().is_expired = true;
                self.tell();
                Err(ToolError::new(
                    ToolErrorKind::TimedOut,
                    "nobody answered in time",
                ))
            }
        }
    }

    /// Gives an answer; one to a task that is over is dropped.
    pub(super) fn answer(&self, question: &str, answer: String) {
        let waiting = {
            let mut state = self.state();
            let at = state
                .questions
                .iter()
                .position(|waiting| waiting.question.question_id == question);
            at.map(|at| state.questions.remove(at))
        };
        if let Some(waiting) = waiting {
            // The asking agent may have been stopped in the meantime.
            let _ = waiting.answer.send(answer);
        }
    }

    /// The task is over.
    pub(super) fn finish(&self, report: TaskReport) {
        let mut state = self.state();
        state.questions.clear();
        state.report = Some(report);
        drop(state);
        self.tell();
    }

    /// Waits until an answer is overdue.
    pub(super) async fn wait_for_expiry(&self) {
        self.until(|state| state.is_expired.then_some(())).await;
    }

    /// Waits until the agent asks, or the task has ended.
    pub(super) async fn wait_for_standing(&self) -> DelegationStanding {
        self.until(|state| match &state.report {
            Some(report) => Some(DelegationStanding::Over(report.clone())),
            None if state.is_expired => None,
            None => {
                // The asking agent may have been stopped in the meantime.
                let waits = state
                    .questions
                    .iter()
                    .filter(|waiting| !waiting.answer.is_closed());
                let questions: Vec<Question> =
                    waits.map(|waiting| waiting.question.clone()).collect();
                let (delegation_id, agent) = (self.id.clone(), state.agent.clone());
                (!questions.is_empty()).then_some(DelegationStanding::Asks {
                    delegation_id,
                    agent,
                    questions,
                })
            }
        })
        .await
    }

    /// True if a question waits for an answer; for an ended task any question can be answered, to get its result.
    fn may_answer(&self, question: &str) -> bool {
        let state = self.state();
        state.report.is_some()
            || state.is_expired
            || state
                .questions
                .iter()
                .any(|waiting| waiting.question.question_id == question)
    }

    async fn until<T>(&self, look: impl Fn(&State) -> Option<T>) -> T {
        let mut changed = self.changed.subscribe();
        loop {
            if let Some(found) = look(&self.state()) {
                return found;
            }
            // The sender is in `self`, so that it cannot be gone.
            let _ = changed.changed().await;
        }
    }

    fn tell(&self) {
        self.changed
            .send_modify(|count| *count = count.wrapping_add(1));
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn owner(cx: &CallContext) -> Owner {
    // The same agent may work in several sessions at a time; outside of a run, agents differ by their ids.
    let log = cx.get::<LogId>().map(|log| LogId::clone(&log));
    (
        log.unwrap_or_else(|| LogId(Arc::clone(&cx.who.agent_id))),
        cx.who.thread.clone(),
    )
}

fn unknown(what: &str) -> ToolError {
    ToolError::new(
        ToolErrorKind::InvalidArguments,
        format!("nothing was answered: there is no {what}"),
    )
}
