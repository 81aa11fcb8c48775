//! What must be true when every worker has come to its end.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use adjutant::{
    agent::{Journal, LogId, Record, Run, Seq, kv::KvStore},
    orchestration::board::{Board, ListedTask, TaskQuery, TaskStatus},
};
use futures_util::StreamExt;

use super::{
    Drill, Survived,
    plan::{USED, is_hopeless},
};

/// Holds board, logs and payments to what was promised.
///
/// # Errors
/// The first promise that was broken, in words.
pub(super) async fn check(
    journal: &Arc<dyn Journal>,
    kv: &Arc<dyn KvStore>,
    drill: &Drill,
    kills: u32,
) -> Result<Survived, String> {
    let board = Board::new(Arc::clone(kv));
    let page = board
        .list(&TaskQuery::new().limit(drill.tasks + 1))
        .await
        .map_err(|error| error.to_string())?;
    if page.tasks.len() != drill.tasks {
        return Err(format!("the board has {} tasks", page.tasks.len()));
    }
    let mut survived = Survived {
        kills,
        ..Survived::default()
    };
    for (number, ListedTask { task, .. }) in page.tasks.iter().enumerate() {
        let expected = if is_hopeless(number) {
            TaskStatus::Failed
        } else {
            TaskStatus::Completed
        };
        if task.status != expected
            || task.lease.is_some()
            || &*task.title != format!("task {number}").as_str()
        {
            return Err(format!(
                "{} stands as {:?}, with the lease {:?}",
                task.title, task.status, task.lease
            ));
        }
        survived.tokens += used(journal, &task.id.0).await?;
        survived.completed += usize::from(task.status == TaskStatus::Completed);
        survived.failed += usize::from(task.status == TaskStatus::Failed);
        survived.again += usize::from(task.attempts > 1);
    }
    let replies = survived.tokens / USED.total();
    if replies != 2 * drill.tasks as u64 || !survived.tokens.is_multiple_of(USED.total()) {
        return Err(format!(
            "the logs tell of {} tokens, which are not two replies for each task",
            survived.tokens
        ));
    }
    payments(&drill.files)?;
    Ok(survived)
}

/// What the replies of a session used, which is what its run counts.
async fn used(journal: &Arc<dyn Journal>, session: &str) -> Result<u64, String> {
    let (mut run, mut replies, mut who) = (Run::default(), 0, None);
    let mut records = journal.read(&LogId::from(session), Seq(0));
    while let Some(stamped) = records.next().await {
        let stamped = stamped.map_err(|error| format!("a log cannot be read: {error}"))?;
        if let Record::Replied { reply, .. } = &stamped.record {
            replies += reply.usage.total();
        }
        run.apply(&stamped)
            .map_err(|error| format!("a log does not fold: {error}"))?;
        who.get_or_insert_with(|| {
            Arc::new(adjutant::tools::Identity::root(
                stamped.thread.clone(),
                session,
                "worker",
            ))
        });
    }
    let counted = who
        .and_then(|who| run.result(&who))
        .map(|result| result.total_usage.total());
    if counted == Some(replies) && !run.is_open() {
        Ok(replies)
    } else {
        Err(format!(
            "{session} counts {counted:?}, its replies {replies}"
        ))
    }
}

/// What may happen once happened once at most.
fn payments(files: &Path) -> Result<(), String> {
    let text =
        std::fs::read_to_string(files.join("payments")).map_err(|error| error.to_string())?;
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    text.lines()
        .for_each(|line| *counts.entry(line).or_default() += 1);
    match counts.iter().find(|(_, count)| **count > 1) {
        Some((task, count)) => Err(format!("task {task} was paid for {count} times")),
        None => Ok(()),
    }
}
