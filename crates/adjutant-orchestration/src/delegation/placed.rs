//! A delegated task in its own session, on any worker with capacity: its call waits for it, and the run can park in
//! the meantime.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use adjutant_agent::{
    Caps, ChildLink, ChildOrder, ChildReport, ChildRole, Digest, Loan, LogId, PauseId, Placement,
    RunLine, RunResult, Verdict,
    points::{SubagentStarted, SubagentStopped},
};
use adjutant_llm::{CallId, Entry, ThreadId};
use adjutant_tool::{Answer, Ask, AskKind, CallContext, Identity, Noted, ToolError, ToolErrorKind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{plan::run_durably, task_run::TaskRun};

/// The delay before a silent child is checked; it doubles each time.
const FIRST_LOOK: Duration = Duration::from_secs(10 * 60);
/// The largest number of checks: a week in total.
const MAX_LOOKS: u32 = 10;
/// The number of digits of a digest in the name of a session.
const MAX_DIGITS: usize = 16;

/// Lends the remaining budget to a number of tasks, until the log confirms that they have it: the pauses of the call
/// contain it.
pub(super) async fn lend(
    cx: &CallContext,
    tasks: usize,
    loan: &Mutex<Option<Loan>>,
) -> Result<Caps, ToolError> {
    let lent = RunLine::from_context(cx)?.lend(u32::try_from(tasks).unwrap_or(u32::MAX))?;
    let caps = lent.caps;
    *loan.lock().unwrap_or_else(PoisonError::into_inner) = Some(lent);
    Ok(caps)
}

impl TaskRun<'_> {
    /// Runs the agent in its own session.
    pub(super) async fn elsewhere(
        &self,
        placement: &Arc<dyn Placement>,
    ) -> Result<RunResult, ToolError> {
        let (cx, key) = (&self.task.cx, format!("placed.{}", self.key()));
        let line = RunLine::from_context(cx)?;
        let link = run_durably(cx, &key, |_| async {
            let caps = self.task.lent.clone().transpose()?.unwrap_or_default();
            placement.begin(self.order(&line, &key, caps).await?).await
        });
        let link = link.await?;
        let ChildReport { result, tally } = self.report(&**placement, &link, &key).await?;
        let spent = format!("{key}.spent");
        if !matches!(cx.backend.begin(&spent).await?, Noted::Done(_)) {
            line.spent(tally);
            cx.backend.finish(&spent, Value::Null).await?;
        }
        let (child, ended) = (
            Arc::new(self.identity(&link.child)),
            Arc::new(result.clone()),
        );
        // Observed only.
        line.pass(SubagentStopped::new(child, ended)).await;
        Ok(result)
    }

    /// The order for the agent, if the hooks of those above let it begin.
    async fn order(&self, line: &RunLine, key: &str, caps: Caps) -> Result<ChildOrder, ToolError> {
        let (cx, turn) = (&self.task.cx, self.turn);
        let profile = self.task.shared.registry.get(&turn.config);
        let profile = profile.ok_or_else(|| {
            ToolError::failed(format!("there is no agent {:?} any more", turn.config))
        })?;
        let outside = || ToolError::failed("tasks are delegated only within a call of a run");
        let parent = cx.get::<LogId>().ok_or_else(outside)?;
        let call: CallId = cx.who.call.ok_or_else(outside)?;
        let pause = PauseId(format!("{}/{call}/{}", cx.who.thread, look(key, 0)).into());
        let digest = Digest::compute(format!("{parent}\n{pause}").as_bytes()).to_string();
        let session = LogId::from(format!("{}-{}", turn.instance, &digest[..MAX_DIGITS]));
        let prompts: Vec<Entry> = self
            .brief()
            .messages()
            .into_iter()
            .map(Entry::User)
            .collect();
        let begins =
            SubagentStarted::new(Arc::new(self.identity(&session)), prompts.as_slice().into());
        if let Verdict::Deny(reason) = line.pass(begins).await {
            return Err(ToolError::new(
                ToolErrorKind::Denied,
                format!("the agent may not begin: {reason}"),
            ));
        }
        let (agent, name) = (Arc::clone(&profile.name), turn.instance.as_str().into());
        let role = ChildRole {
            agent,
            name,
            levels: self.task.place.below(&profile),
        };
        Ok(ChildOrder {
            session,
            role,
            prompts,
            caps,
            parent: (*parent).clone(),
            pause,
        })
    }

    /// Waits for its result. A crash loses neither the child nor the wait.
    async fn report(
        &self,
        placement: &dyn Placement,
        link: &ChildLink,
        key: &str,
    ) -> Result<ChildReport, ToolError> {
        let cx = &self.task.cx;
        for n in 0..MAX_LOOKS {
            let mut ask = Ask::new(
                AskKind::External,
                format!("{}, at work in {}", self.turn.instance, link.child),
            );
            ask.data = json!(link);
            match cx
                .pause(&look(key, n), ask.within(FIRST_LOOK * 2_u32.pow(n)))
                .await
            {
                Ok(Answer::Return { result }) => {
                    let unread = |error| {
                        ToolError::failed("what came of the agent cannot be read")
                            .with_source(error)
                    };
                    return ChildReport::deserialize(&result.details).map_err(unread);
                }
                Ok(Answer::Decline { message }) => {
                    let why = message.as_deref().unwrap_or("nobody says why");
                    return Err(ToolError::failed(format!(
                        "the agent did not come to an end: {why}"
                    )));
                }
                // The driver of the parent checks as soon as it waits again.
                Ok(_) => {}
                Err(error) if error.kind == ToolErrorKind::Unattended => {
                    placement.stop(&link.child).await?;
                    let why = "an unattended run cannot wait for an agent on another worker";
                    return Err(ToolError::new(ToolErrorKind::Unattended, why));
                }
                // If the run ends, its driver stops its children; otherwise the call is entered again.
                Err(error) => return Err(error),
            }
        }
        placement.stop(&link.child).await?;
        Err(ToolError::new(
            ToolErrorKind::TimedOut,
            "timed out: the agent did not come to an end within a week",
        ))
    }

    fn identity(&self, session: &LogId) -> Identity {
        let (who, name) = (&self.task.cx.who, &*self.turn.instance);
        let mut child = Identity::root(ThreadId::from(&*session.0), &*session.0, name);
        child.config_name = self.turn.config.as_str().into();
        child.path = format!("{}>{name}", who.path).into();
        child.parent = Some(who.thread.clone());
        child.depth = who.depth.saturating_add(1);
        child.call = who.call;
        child
    }
}

/// The key of a wait for a child.
fn look(key: &str, n: u32) -> String {
    format!("{key}.{n}")
}
