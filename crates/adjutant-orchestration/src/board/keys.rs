//! The keys of a board, and the changes of a key-value store that a change of a task is.

use adjutant_agent::kv::{Change, When};
use serde_json::Value;

use super::{
    Task, TaskId, TaskStatus, VersionedTask,
    task::{decode, encode},
};
use crate::Error;

/// Before the id of each task.
pub(super) const TASKS: &str = "task/";
/// The prefix for the order of each claimable task.
pub(super) const READY: &str = "ready/";
/// Before the end of each lease and the id of its task.
pub(super) const LEASES: &str = "lease/";
/// The prefix for the id of each completed task whose dependents were not all notified yet.
pub(super) const SETTLING: &str = "settle/";
/// Written whenever a task becomes ready: as long as its version stays, no new one can be there.
pub(super) const QUEUE: &str = "queue";
/// Written whenever a dependency is added to a task that is there.
pub(super) const GRAPH: &str = "graph";

pub(super) fn task(id: &TaskId) -> String {
    format!("{TASKS}{id}")
}

pub(super) fn settling(id: &TaskId) -> String {
    format!("{SETTLING}{id}")
}

/// The prefix for the ids of a task's dependents.
pub(super) fn dependents(of: &TaskId) -> String {
    format!("after/{of}/")
}

/// Before the order of each task that is reserved for an agent.
pub(super) fn reservation_prefix(agent: &str) -> String {
    format!("own/{}/", agent.replace('%', "%25").replace('/', "%2f"))
}

/// The name that a task was created by at most once.
pub(super) fn once(key: &str) -> String {
    format!("key/{key}")
}

/// Highest priority first, then oldest.
fn order(task: &Task) -> String {
    // The highest priority has the lowest number.
    let rank = i64::from(i32::MAX) - i64::from(task.priority);
    format!("{rank:08x}/{:016x}/{}", task.created_ms, task.id)
}

/// The id at the end of a key.
pub(super) fn last(key: &str) -> TaskId {
    TaskId::from(key.rsplit('/').next().unwrap_or_default())
}

/// Returns the end of a lease, by its key.
pub(super) fn end_of(key: &str) -> Option<u64> {
    let (until, _) = key.strip_prefix(LEASES)?.split_once('/')?;
    u64::from_str_radix(until, 16).ok()
}

/// Returns the place of a task in an index: among the ready ones, among the claimed ones, or none.
pub(super) fn place(task: &Task) -> Option<String> {
    match (task.status, &task.lease, &task.assignee) {
        (TaskStatus::InProgress, Some(lease), _) => {
            Some(format!("{LEASES}{:016x}/{}", lease.until_ms, task.id))
        }
        (TaskStatus::Pending, ..) if task.waits => None,
        (TaskStatus::Pending, _, None) => Some(format!("{READY}{}", order(task))),
        (TaskStatus::Pending, _, Some(agent)) => {
            Some(format!("{}{}", reservation_prefix(agent), order(task)))
        }
        _ => None,
    }
}

/// A key without a value to speak of.
pub(super) fn mark(key: impl Into<String>) -> Change {
    Change::put(key.into(), Value::Bool(true))
}

/// The changes that put a new task.
pub(super) fn create(new: &Task) -> Result<Vec<Change>, Error> {
    let mut changes = vec![Change {
        when: When::Absent,
        ..Change::put(task(&new.id), encode(new)?)
    }];
    changes.extend(new.key.as_ref().map(|key| {
        let id = Value::String(new.id.to_string());
        Change {
            when: When::Absent,
            ..Change::put(once(key), id)
        }
    }));
    changes.extend(
        new.dependencies
            .iter()
            .map(|on| mark(format!("{}{}", dependents(on), new.id))),
    );
    changes.extend(build_index_changes(None, place(new)));
    Ok(changes)
}

/// The changes that replace the version that was read.
pub(super) fn replace(before: &VersionedTask, after: &Task) -> Result<Vec<Change>, Error> {
    let mut changes = vec![Change {
        when: When::Is(before.version),
        ..Change::put(task(&after.id), encode(after)?)
    }];
    changes.extend(build_index_changes(place(&before.task), place(after)));
    let is_completed =
        after.status == TaskStatus::Completed && before.task.status != TaskStatus::Completed;
    changes.extend((is_completed && after.dependents > 0).then(|| mark(settling(&after.id))));
    Ok(changes)
}

/// The changes that remove a task.
pub(super) fn remove(before: &VersionedTask) -> Vec<Change> {
    let VersionedTask { task: old, version } = before;
    let mut changes = vec![Change {
        when: When::Is(*version),
        ..Change::remove(task(&old.id))
    }];
    changes.extend(old.key.as_ref().map(|key| Change::remove(once(key))));
    changes.extend(
        old.dependencies
            .iter()
            .map(|on| Change::remove(format!("{}{}", dependents(on), old.id))),
    );
    changes.extend(build_index_changes(place(old), None));
    changes
}

/// The changes of an index.
fn build_index_changes(from: Option<String>, to: Option<String>) -> Vec<Change> {
    if from == to {
        return Vec::new();
    }
    let is_ready = to.as_ref().is_some_and(|to| !to.starts_with(LEASES));
    let moved = from.map(Change::remove).into_iter().chain(to.map(mark));
    moved.chain(is_ready.then(|| mark(QUEUE))).collect()
}

/// The id of the task that was created by this name, as it is kept.
pub(super) fn decode_task_id(value: &Value) -> TaskId {
    TaskId::from(value.as_str().unwrap_or_default())
}

/// A task that is kept, with its version.
pub(super) fn decode_task(item: &adjutant_agent::kv::Item) -> Result<VersionedTask, Error> {
    Ok(VersionedTask {
        task: decode(&item.value)?,
        version: item.version,
    })
}
