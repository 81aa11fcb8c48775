//! One stretch of work on a session that is due: until its run parks or ends.

use std::sync::Arc;

use adjutant_agent::{
    Agent, Continue, DueLog, DueWork, Error, JournalError, JournalErrorKind, Outcome, Owner, RunResult,
};

use crate::status::Ended;

/// Drives a session that was taken for this owner until its run parks or ends; for engines that take sessions by other means
/// than a [`Fleet`](crate::Fleet).
///
/// Cancel: the run is cancelled; fence the log before, so that nothing of that is recorded.
pub async fn drive(journal: &Arc<dyn DueWork>, agent: Agent, due: DueLog, owner: &Owner) -> Ended {
    let DueLog { info, newest_post, log } = due;
    let name = info.log.clone();
    let agent = agent.journal(Arc::clone(journal) as Arc<dyn adjutant_agent::Journal>).session(name.clone());
    let agent = agent.owned_by(owner.clone());
    let opened = agent.log().open().await;
    // The session has it now, or never will.
    drop(log);
    let worked = match opened {
        Ok(()) => work(&agent).await,
        Err(error) => Err(error),
    };
    match worked {
        Ok(result) if matches!(result.outcome, Outcome::Paused { .. }) => Ended::Parked,
        Ok(_) => Ended::Finished,
        // Another owner has it: nothing is lost, and nothing is left to do.
        Err(error) if is_taken(&error) => Ended::Nothing,
        // What was posted is no answer, or no prompt: it waits for what is.
        Err(Error::Answers(_) | Error::Prompt(_)) => {
            if let Err(error) = journal.pass_over(&name, newest_post).await {
                tracing::warn!(%error, log = %name, "posts to a session could not be passed over");
            }
            Ended::Nothing
        }
        // The storage may be there again soon: the session stays due.
        Err(error) if error.journal_error().is_some_and(JournalError::is_retryable) => {
            tracing::warn!(%error, log = %name, "a session could not be worked on now");
            Ended::Failed(first_line(&error).into())
        }
        Err(error) => {
            tracing::warn!(%error, log = %name, "a session could not be worked on, and is set aside");
            set_aside(journal, &name, &first_line(&error)).await
        }
    }
}

/// Sets a session aside.
pub(crate) async fn set_aside(journal: &Arc<dyn DueWork>, log: &adjutant_agent::LogId, why: &str) -> Ended {
    if let Err(error) = journal.set_aside(log, why).await {
        tracing::warn!(%error, %log, "a session could not be set aside");
    }
    Ended::Aside(why.into())
}

/// Goes on with the run that is open, or begins one with what was posted.
async fn work(agent: &Agent) -> Result<RunResult, Error> {
    match agent.log().has_open_run() {
        true => agent.resume(Vec::new()).await,
        false => agent.run(Continue).await,
    }
}

fn is_taken(error: &Error) -> bool {
    matches!(error, Error::Journal(error)
        if matches!(error.kind, JournalErrorKind::Owned | JournalErrorKind::Fenced | JournalErrorKind::Missing))
}

/// An error in one line, with its causes.
fn first_line(error: &Error) -> String {
    adjutant_agent::chain(error).lines().next().unwrap_or_default().chars().take(500).collect()
}
