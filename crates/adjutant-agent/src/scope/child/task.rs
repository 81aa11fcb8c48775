//! One answer of a child, on a separate task: from the hook before it to the record of its end.

use std::sync::Arc;

use adjutant_core::{CancelBy, Error, Failure, Outcome, Pause, Record, RunResult, Tally};
use adjutant_llm::{Cause, Entry};
use adjutant_tool::{ToolError, ToolErrorKind};
use tokio::sync::oneshot;

use super::ChildCore;
use crate::{
    begin::Begin,
    budget::ConcurrencyPermit,
    hooks::Verdict,
    inbox::{Inbox, Stopper},
    mailbox::Mailbox,
    points::{SubagentStarted, SubagentStopped},
    scope::{CallScope, ChildDrive},
};

/// The end of a child, for a caller that waits for it.
pub(in crate::scope) type ChildEnd = Result<RunResult, ToolError>;

/// One answer of a child.
pub(super) struct ChildTask {
    pub(super) core: Arc<ChildCore>,
    pub(super) number: u64,
    /// The position of this prompt among the prompts of its key, counted from 1 since the body was entered.
    pub(super) ordinal: usize,
    pub(super) prompts: Vec<Entry>,
    pub(super) claim: Box<dyn ChildDrive>,
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) permit: Option<ConcurrencyPermit>,
}

/// A guard that undoes the start of a task when the task ends, whichever way.
struct AtWork {
    core: Arc<ChildCore>,
    number: u64,
    _permit: Option<ConcurrencyPermit>,
}

/// The end of a drive.
enum Driven {
    Ended(Box<ChildEnd>),
    /// It waits for the outside.
    Parked(Vec<Arc<Pause>>),
}

impl Driven {
    fn from_end(ended: ChildEnd) -> Self {
        Driven::Ended(Box::new(ended))
    }
}

impl ChildTask {
    pub(super) async fn perform(self, heard: oneshot::Sender<ChildEnd>) {
        let Self {
            core,
            number,
            ordinal,
            prompts,
            claim,
            mailbox,
            inbox,
            permit,
        } = self;
        let at_work = AtWork {
            core: Arc::clone(&core),
            number,
            _permit: permit,
        };
        let known = {
            let mut threads = core.scope().writer.threads();
            threads
                .entry(core.thread())
                .results
                .get(ordinal - 1)
                .cloned()
        };
        let driven = match known {
            Some((result, tally)) => {
                drop(claim);
                tell_end(&core, ordinal, &result, tally);
                Driven::from_end(to_child_end(result))
            }
            None => drive(&core, ordinal, prompts, claim, &mailbox, &inbox).await,
        };
        match driven {
            Driven::Ended(ended) => {
                // Before the waiter is notified: the child can be prompted again immediately.
                drop(at_work);
                // The waiter may be gone.
                let _ = heard.send(*ended);
            }
            Driven::Parked(pauses) => {
                core.scope().park(Arc::clone(&core), heard, pauses);
                drop(at_work);
            }
        }
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        self.core.session().take_back();
        self.core.scope().first().dismiss(self.core.thread());
        self.core.scope().leave(self.number);
    }
}

async fn drive(
    core: &Arc<ChildCore>,
    ordinal: usize,
    prompts: Vec<Entry>,
    mut claim: Box<dyn ChildDrive>,
    mailbox: &Arc<Mailbox>,
    inbox: &Arc<Inbox>,
) -> Driven {
    let scope = core.scope();
    let _share = scope.writer.share();
    let mut answers = claim.answers(&scope.answers);
    if answers.is_some() && is_given_up(core, ordinal) {
        claim = match give_up(core, claim).await {
            Ok(claim) => claim,
            Err(error) => return Driven::from_end(Err(fail_child(core, error).await)),
        };
        answers = None;
    }
    let again = answers.is_some();
    if let Err(error) = begin(core, &mut *claim, &prompts, again).await {
        return Driven::from_end(Err(error));
    }
    core.within().set_tally(claim.tally());
    let begin = match answers {
        Some(answers) => Begin::resume(answers),
        None => Begin::run(prompts, core.limits().clone()),
    };
    let result = match go(core, claim, begin, mailbox, inbox).await {
        Ok(result) => result,
        Err(error) => return Driven::from_end(Err(fail_child(core, error).await)),
    };
    let Outcome::Paused { pauses } = &result.outcome else {
        return Driven::from_end(finish(core, ordinal, result).await);
    };
    if scope.resumable {
        return Driven::Parked(pauses.clone());
    }
    let asked: Vec<&str> = pauses.iter().map(|pause| &*pause.id.0).collect();
    let message = format!(
        "nobody can be asked what the agent waits for: {}",
        asked.join(", ")
    );
    close(core, ordinal, mailbox, inbox).await;
    Driven::from_end(Err(ToolError::new(ToolErrorKind::Unattended, message)))
}

/// True if the prompter knows how the open run ended: the run above was closed, and reported its end.
fn is_given_up(core: &ChildCore, ordinal: usize) -> bool {
    core.scope()
        .writer
        .threads()
        .entry(core.thread())
        .results
        .len()
        + 1
        < ordinal
}

/// Closes a run that was left open, so that another one can begin.
async fn give_up(
    core: &Arc<ChildCore>,
    mut claim: Box<dyn ChildDrive>,
) -> Result<Box<dyn ChildDrive>, Error> {
    claim.lend(core.scope().writer.clone());
    let (mailbox, inbox) = (Arc::new(Mailbox::closed()), Arc::new(Inbox::default()));
    let result = claim
        .perform(Arc::clone(core.setup()), Begin::Cancel, mailbox, inbox)
        .await;
    core.session().take_back();
    let tally = core.within().tally();
    core.scope()
        .writer
        .threads()
        .entry(core.thread())
        .results
        .push((result?, tally));
    Arc::clone(core.session()).claim()
}

/// Records the start of a child and calls the hooks before it.
async fn begin(
    core: &Arc<ChildCore>,
    claim: &mut dyn ChildDrive,
    prompts: &[Entry],
    again: bool,
) -> Result<(), ToolError> {
    let scope = core.scope();
    let cancelled = || ToolError::new(ToolErrorKind::Cancelled, "cancelled: the call was stopped");
    if !again {
        tokio::select! {
            biased;
            () = scope.cancel().cancelled() => return Err(cancelled()),
            started = run_start_hook(core, prompts) => started?,
        }
    }
    let fresh = {
        let mut threads = scope.writer.threads();
        !std::mem::replace(&mut threads.entry(core.thread()).opened, true)
    };
    if fresh {
        let (call, key, thread) = (scope.call, Arc::clone(core.key()), core.thread().clone());
        scope
            .note(Record::ChildOpened {
                call,
                key,
                thread,
                who: Arc::clone(&core.setup().who),
            })
            .await?;
    }
    if let Some(entries) = core.take_seed().filter(|entries| !entries.is_empty()) {
        claim
            .seed(core.setup(), scope.writer.clone(), entries)
            .await
            .map_err(|error| child_lost_error(&error))?;
    }
    claim.lend(scope.writer.clone());
    Ok(())
}

async fn run_start_hook(core: &Arc<ChildCore>, prompts: &[Entry]) -> Result<(), ToolError> {
    let (hooks, cx) = core.scope().hooks();
    if !hooks.hears::<SubagentStarted>() {
        return Ok(());
    }
    let point = SubagentStarted::new(Arc::clone(&core.setup().who), prompts.into());
    match core.scope().feed.pass(&cx, point).await {
        Verdict::Pass(_) => Ok(()),
        Verdict::Deny(reason) => {
            let call = Some(core.scope().call);
            let message = format!("the agent may not begin: {reason}");
            core.scope().tell(Record::Denied {
                point: "subagent_started".into(),
                reason,
                call,
            });
            Err(ToolError::new(ToolErrorKind::Denied, message))
        }
    }
}

/// Performs one drive; cancelling the call cancels it.
async fn go(
    core: &Arc<ChildCore>,
    claim: Box<dyn ChildDrive>,
    begin: Begin,
    mailbox: &Arc<Mailbox>,
    inbox: &Arc<Inbox>,
) -> Result<RunResult, Error> {
    let mut work = claim.perform(
        Arc::clone(core.setup()),
        begin,
        Arc::clone(mailbox),
        Arc::clone(inbox),
    );
    let performed = tokio::select! {
        biased;
        performed = &mut work => performed,
        () = core.scope().cancel().cancelled() => {
            Stopper { inbox: Arc::clone(inbox) }.stop(CancelBy::Parent);
            work.await
        }
    };
    core.session().take_back();
    performed
}

/// Ends a run that waits for the outside, because the call cannot wait with it.
async fn close(core: &Arc<ChildCore>, ordinal: usize, mailbox: &Arc<Mailbox>, inbox: &Arc<Inbox>) {
    let Ok(mut claim) = Arc::clone(core.session()).claim() else {
        return;
    };
    claim.lend(core.scope().writer.clone());
    Stopper {
        inbox: Arc::clone(inbox),
    }
    .stop(CancelBy::Parent);
    let begin = Begin::resume(Vec::new());
    if let Ok(result) = go(core, claim, begin, mailbox, inbox).await {
        // Its end is recorded; the caller receives the reason.
        let _ = finish(core, ordinal, result).await;
    }
}

/// Follows the end of a run: calls the hook after it, and writes its record.
async fn finish(core: &Arc<ChildCore>, ordinal: usize, result: RunResult) -> ChildEnd {
    notify_stopped(core.scope(), core, Ok(&result)).await;
    let tally = core.within().tally();
    core.scope()
        .writer
        .threads()
        .entry(core.thread())
        .results
        .push((result.clone(), tally));
    tell_end(core, ordinal, &result, tally);
    to_child_end(result)
}

/// The log failed during a run.
async fn fail_child(core: &Arc<ChildCore>, error: Error) -> ToolError {
    let outcome = Outcome::Failed {
        failure: Failure::Log {
            message: error.to_string().into(),
        },
    };
    notify_stopped(core.scope(), core, Err(outcome)).await;
    child_lost_error(&error)
}

/// Notifies observers that a child has stopped.
pub(in crate::scope) async fn notify_stopped(
    scope: &CallScope,
    core: &Arc<ChildCore>,
    result: Result<&RunResult, Outcome>,
) {
    let (hooks, cx) = scope.hooks();
    if hooks.hears::<SubagentStopped>() {
        let who = &core.setup().who;
        let result = match result {
            Ok(result) => result.clone(),
            Err(outcome) => RunResult {
                total_usage: core.within().tally().usage,
                ..RunResult::never(who, outcome)
            },
        };
        // An observer changes nothing.
        let _ = scope
            .feed
            .pass(&cx, SubagentStopped::new(Arc::clone(who), Arc::new(result)))
            .await;
    }
}

/// Records the end of a run on the thread of the call, once.
fn tell_end(core: &ChildCore, ordinal: usize, result: &RunResult, tally: Tally) {
    let scope = core.scope();
    {
        let mut threads = scope.writer.threads();
        let told = &mut threads.entry(core.thread()).told;
        if *told >= ordinal {
            return;
        }
        *told = ordinal;
    }
    scope.tell(Record::ChildEnded {
        call: scope.call,
        thread: core.thread().clone(),
        outcome: result.outcome.clone(),
        usage: result.total_usage,
        cost: result.total_cost,
        requests: tally.requests,
        tool_calls: tally.tool_calls,
    });
}

fn to_child_end(result: RunResult) -> ChildEnd {
    Error::check_result(result).map_err(|error| child_failed("the agent failed", error))
}

fn child_lost_error(error: &Error) -> ToolError {
    child_failed("the agent could not continue", error.clone())
}

/// Converts an error of an agent for the model that called it: the event, and then its cause.
pub(crate) fn child_failed(what: &str, error: Error) -> ToolError {
    let failed = ToolError::failed(format!("{what}: {error}"));
    match Cause::behind(error) {
        Some(cause) => failed.with_source(cause),
        None => failed,
    }
}
