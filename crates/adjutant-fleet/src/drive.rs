//! One stretch of work on a session that is due: until its run parks or ends.

use std::sync::Arc;

use adjutant_agent::{
    Agent, ChildLink, ChildRole, Continue, DueLog, DueWork, Error, JournalError, JournalErrorKind,
    LogId, LogInfo, Outcome, Owner, Post, PostNo, RunBuilder, Work,
};
use adjutant_tool::Cancel;

use crate::{children, status::Ended};

/// Drives a session that was taken for this owner until its run parks or ends; for engines that take sessions by other means
/// than a [`Fleet`](crate::Fleet).
///
/// Cancel: the run is cancelled; fence the log before, so that nothing of that is recorded.
pub async fn drive(journal: &Arc<dyn DueWork>, agent: Agent, due: DueLog, owner: &Owner) -> Ended {
    let DueLog {
        info,
        newest_post,
        log,
        ..
    } = due;
    let name = info.log.clone();
    let agent = agent
        .journal(Arc::clone(journal) as Arc<dyn adjutant_agent::Journal>)
        .session(name.clone());
    let agent = agent.with_owner(owner.clone());
    let opened = agent.log().open().await;
    // The session has it now, or never will.
    drop(log);
    let worked = match opened {
        Ok(()) => work(&**journal, &agent, &info, owner).await,
        Err(error) => Err(error),
    };
    match worked {
        Ok(Some(Outcome::Paused { .. })) => Ended::Parked,
        Ok(Some(Outcome::Failed { .. })) => {
            // Posts that it did not process wait for the next post: it would fail on them repeatedly.
            pass_over(&**journal, &name, newest_post).await;
            Ended::Finished
        }
        Ok(Some(_)) => Ended::Finished,
        Ok(None) => Ended::Nothing,
        // Another owner has it: nothing is lost, and nothing is left to do.
        Err(error) if is_taken(&error) => Ended::Nothing,
        // The post is not an answer, or not a prompt: it waits for one.
        Err(Error::Answers(_) | Error::Prompt(_)) => {
            pass_over(&**journal, &name, newest_post).await;
            Ended::Nothing
        }
        // The storage may be there again soon: the session stays due.
        Err(error)
            if error
                .journal_error()
                .is_some_and(JournalError::is_retryable) =>
        {
            tracing::warn!(%error, log = %name, "a session could not be worked on now");
            Ended::Failed(first_line(&error).into())
        }
        Err(error) => {
            tracing::warn!(%error, log = %name, "a session could not be worked on, and is set aside");
            set_aside(journal, &info, &first_line(&error)).await
        }
    }
}

async fn pass_over(journal: &dyn DueWork, log: &LogId, upto: PostNo) {
    if let Err(error) = journal.pass_over(log, upto).await {
        tracing::warn!(%error, %log, "posts to a session could not be passed over");
    }
}

/// Sets a session aside and reports that to its parent.
pub(crate) async fn set_aside(journal: &Arc<dyn DueWork>, info: &LogInfo, why: &str) -> Ended {
    let log = &info.log;
    let is_child = ChildRole::from_info(info).is_some();
    let done = async {
        // Before, to repair a crash in between; and after, for a parent that did not wait yet at the first report.
        if is_child {
            children::give_up(&**journal, log, why).await?;
        }
        journal.set_aside(log, why).await?;
        if is_child {
            children::give_up(&**journal, log, why).await
        } else {
            Ok(())
        }
    };
    if let Err(error) = done.await {
        tracing::warn!(%error, %log, "a session could not be set aside");
    }
    Ended::Aside(why.into())
}

/// Continues the open run, or starts one with the posts or the order; `None` if there was no run to perform.
async fn work(
    journal: &dyn DueWork,
    agent: &Agent,
    info: &LogInfo,
    owner: &Owner,
) -> Result<Option<Outcome>, Error> {
    let (log, is_child) = (&info.log, ChildRole::from_info(info).is_some());
    let as_told = |run: RunBuilder| if is_child { run.keep_queued() } else { run };
    let mut worked = if agent.log().has_open_run() {
        let has_children = agent
            .log()
            .pauses()
            .iter()
            .any(|pause| ChildLink::from_pause(pause).is_some());
        if has_children && children::is_stopped(journal, log).await? {
            // First, to repair a crash in between: the run processes the stop request when it continues.
            children::stop_all(journal, log).await?;
        }
        as_told(agent.resume(Vec::new())).await
    } else if info.work != Some(Work::Open) {
        let posted = journal.read_posts(log, PostNo(0)).await?;
        if !posted
            .iter()
            .any(|posted| matches!(posted.post, Post::Message { .. }))
        {
            // There is a run to continue, but no request to do so.
            return Err(Error::Prompt("there is no message"));
        }
        as_told(agent.run(Continue)).await
    } else if children::report(journal, log).await?.is_some() {
        // It has ended, and its parent has no report.
        return children::tell(journal, log, owner)
            .await
            .map(|()| None)
            .map_err(Error::from);
    } else {
        let order = children::read_order(journal, log).await?;
        let order =
            order.ok_or_else(|| Error::Answers("the session is due, and holds no run".into()))?;
        let stop = Cancel::new();
        if children::is_stopped(journal, log).await? {
            stop.cancel();
        }
        as_told(
            agent
                .clone()
                .cap(order.caps)
                .run(order.prompts)
                .cancel(stop),
        )
        .await
    };
    let mut is_answered = false;
    loop {
        let pauses = match &worked {
            Ok(result) => result.pauses().to_vec(),
            Err(Error::Answers(_)) if !is_answered => agent.log().pauses(),
            Err(_) => break,
        };
        // A child that ended before its parent waited is checked here: its post was not processed. A parked run is
        // not due because of it, so no other worker would check soon.
        let answers = children::patiently(|| children::answers(journal, &pauses)).await?;
        if answers.is_empty() {
            break;
        }
        is_answered = true;
        worked = as_told(agent.resume(answers)).await;
    }
    let Some(outcome) = worked
        .as_ref()
        .map_or_else(Error::result, Some)
        .map(|result| result.outcome.clone())
    else {
        return worked.map(|result| Some(result.outcome));
    };
    if !matches!(outcome, Outcome::Paused { .. } | Outcome::Finished { .. }) {
        children::stop_all(journal, log).await?;
    }
    if is_child && !matches!(outcome, Outcome::Paused { .. }) {
        // Its parent gets the failure, if there is one.
        children::tell(journal, log, owner).await?;
    }
    // A failed run has ended: the log contains the reason.
    Ok(Some(outcome))
}

fn is_taken(error: &Error) -> bool {
    matches!(error, Error::Journal(error)
        if matches!(error.kind, JournalErrorKind::Owned | JournalErrorKind::Fenced | JournalErrorKind::Missing))
}

/// An error in one line, with its causes.
fn first_line(error: &Error) -> String {
    adjutant_agent::chain(error)
        .lines()
        .next()
        .unwrap_or_default()
        .chars()
        .take(500)
        .collect()
}
