//! What must hold of a tree: of its log, its streams, its bounds, what was reported, and the board.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use adjutant_agent::{CancelBy, Event, EventKind, Outcome, Record, Run, RunResult, Stamped};
use adjutant_llm::{CallId, Entry, ThreadId};
use adjutant_orchestration::board::{TaskId, TaskQuery, TaskStatus};
use adjutant_tool::Identity;
use serde_json::Value;

use super::{
    plan::{LEAD, NAMES, NOBODY, Plan},
    stage::{STRANGER, Stage},
};

/// A log, folded.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// The state of each thread.
    runs: BTreeMap<ThreadId, Run>,
    /// Who is who under the lead, and by which call each was opened.
    opened: BTreeMap<ThreadId, (Arc<Identity>, (ThreadId, CallId))>,
    /// How many agents were at work under the lead at a time, at most.
    crowd: usize,
}

/// One call of `delegate`.
#[derive(Debug)]
struct Delegated {
    by: ThreadId,
    /// The entry that delegates.
    own: String,
    call: CallId,
    orders: Vec<Value>,
    /// One for each order, if the call as a whole was let through.
    reports: Option<Vec<Value>>,
    text: String,
}

/// The log is contiguous and folds, by its bytes; every child ends once and before its call has its result; nothing
/// stays open.
pub(crate) fn log(records: &[Arc<Stamped>]) -> Tree {
    let mut tree = Tree::default();
    let (mut open, mut working) = (BTreeSet::new(), BTreeSet::new());
    for (at, stamped) in (1..).zip(records) {
        assert_eq!(stamped.seq.0, at, "a gap in the log");
        let read: Stamped = serde_json::from_slice(stamped.bytes().expect("a record is JSON"))
            .expect("it reads back");
        assert_eq!(&read, &**stamped);
        let by = &stamped.thread;
        tree.runs
            .entry(by.clone())
            .or_default()
            .apply(&read)
            .expect("the log folds");
        match &stamped.record {
            Record::Began { .. } if by.as_str() != "main" => {
                assert!(working.insert(by.clone()), "{by} began twice")
            }
            Record::Ended { .. } if by.as_str() != "main" => {
                assert!(working.remove(by), "{by} ended twice")
            }
            Record::ChildOpened {
                call, thread, who, ..
            } => {
                let call = (by.clone(), *call);
                let before = tree
                    .opened
                    .insert(thread.clone(), (Arc::clone(who), call.clone()));
                assert!(before.is_none(), "{thread} was opened twice");
                open.insert((call, thread.clone()));
            }
            Record::ChildEnded {
                call,
                thread,
                outcome,
                ..
            } => {
                assert!(
                    open.remove(&((by.clone(), *call), thread.clone())),
                    "{thread} ended twice, or never opened"
                );
                // What a call does not open again after a crash is given up, as it is.
                let is_given_up = matches!(
                    outcome,
                    Outcome::Cancelled {
                        by: CancelBy::Parent
                    }
                );
                assert!(
                    is_given_up || !working.contains(thread),
                    "{thread} works on"
                );
            }
            Record::Returned { call, .. } => {
                let call = (by.clone(), *call);
                assert!(
                    open.iter().all(|(of, _)| *of != call),
                    "a child outlives its call: {open:?}"
                );
            }
            _ => {}
        }
        tree.crowd = tree.crowd.max(working.len());
    }
    assert!(
        open.is_empty() && working.is_empty(),
        "something stays open: {open:?} {working:?}"
    );
    for (thread, run) in &tree.runs {
        assert!(!run.is_open(), "{thread} stays open");
    }
    tree
}

/// No tree is deeper, larger or dearer than it may be, nor is any part of it.
pub(crate) fn bounds(plan: &Plan, tree: &Tree, records: &[Arc<Stamped>]) {
    let deepest = plan.depth.min(plan.bounds.depth.unwrap_or(u16::MAX));
    let mut used: BTreeMap<&ThreadId, (u64, u64)> = BTreeMap::new();
    for stamped in records {
        let Record::Replied { reply, .. } = &stamped.record else {
            continue;
        };
        let mut thread = Some(&stamped.thread);
        used.entry(&stamped.thread).or_default().1 += 1;
        while let Some(of) = thread {
            used.entry(of).or_default().0 += reply.usage.total();
            thread = tree.opened.get(of).map(|(_, (parent, _))| parent);
        }
    }
    let total = used
        .iter()
        .find(|(thread, _)| thread.as_str() == "main")
        .map_or(0, |(_, used)| used.0);
    assert!(
        total <= plan.bounds.tokens.unwrap_or(u64::MAX),
        "{total} tokens"
    );
    assert!(
        tree.crowd <= plan.bounds.agents.map_or(usize::MAX, |most| most as usize),
        "{} at work",
        tree.crowd
    );
    for (thread, (who, _)) in &tree.opened {
        assert!(who.depth <= deepest, "{who:?}");
        let role = plan.role(&who.config_name).expect("it is registered");
        let (tokens, requests) = used.get(thread).copied().unwrap_or_default();
        assert!(
            tokens <= role.tokens.unwrap_or(u64::MAX),
            "{tokens} tokens: {who:?}"
        );
        assert!(
            requests <= u64::from(role.turns.unwrap_or(u32::MAX)),
            "{requests} turns: {who:?}"
        );
        // Whoever stands above lets no more levels stand below than it may have.
        let mut above = tree.opened.get(thread).map(|(_, (parent, _))| parent);
        while let Some((over, (parent, _))) = above.and_then(|above| tree.opened.get(above)) {
            let levels = plan
                .role(&over.config_name)
                .expect("it is registered")
                .depth;
            assert!(who.depth - over.depth <= levels, "{who:?} under {over:?}");
            above = Some(parent);
        }
    }
}

/// No more of an entry spoke at a time than may, and no more was spent, by lost programs too.
pub(crate) fn crowds(plan: &Plan, stage: &Stage) {
    let seen = stage.busy.seen();
    for (name, most) in &seen.most {
        let may = plan
            .role(name)
            .and_then(|role| role.concurrency)
            .unwrap_or(u32::MAX);
        assert!(*most <= may, "{most} of {name} at a time");
    }
    assert!(
        seen.tokens <= plan.bounds.tokens.unwrap_or(u64::MAX),
        "{} tokens with those that were lost",
        seen.tokens
    );
}

/// Every agent begins once and ends once, all in one stream, and the lead is the last.
pub(crate) fn streams(events: &[Event], tree: &Tree) {
    assert!(events.is_sorted_by_key(|event| event.seq));
    let mut threads = BTreeMap::<&ThreadId, Vec<&EventKind>>::new();
    for event in events {
        threads
            .entry(&event.who.thread)
            .or_default()
            .push(&event.kind);
    }
    for (thread, kinds) in &threads {
        let begins = kinds
            .iter()
            .filter(|kind| matches!(kind, EventKind::RunStarted))
            .count();
        let ends = kinds
            .iter()
            .filter(|kind| matches!(kind, EventKind::RunFinished { .. }))
            .count();
        assert_eq!((begins, ends), (1, 1), "{thread}: {kinds:?}");
        assert!(
            matches!(kinds.first(), Some(EventKind::RunStarted)),
            "{thread}: {:?}",
            kinds.first()
        );
        assert!(
            matches!(kinds.last(), Some(EventKind::RunFinished { .. })),
            "{thread}: {:?}",
            kinds.last()
        );
    }
    assert!(
        events.last().is_some_and(|event| event.who.depth == 0),
        "the lead ends last"
    );
    let ran: BTreeSet<&ThreadId> = threads.into_keys().collect();
    assert_eq!(
        ran,
        tree.runs.keys().collect(),
        "the stream shows who is in the log"
    );
}

/// What the result says was used is what all replies used, each once.
pub(crate) fn usage(result: &RunResult, records: &[Arc<Stamped>]) {
    let used = records.iter().map(|stamped| match &stamped.record {
        Record::Replied { reply, .. } => reply.usage.total(),
        Record::Retracted { usage, .. } => usage.total(),
        _ => 0,
    });
    assert_eq!(
        result.total_usage.total(),
        used.sum::<u64>(),
        "usage is the sum, once"
    );
}

fn delegated(tree: &Tree) -> Vec<Delegated> {
    let mut all = Vec::new();
    for (thread, run) in &tree.runs {
        let own = tree
            .opened
            .get(thread)
            .map_or(LEAD, |(who, _)| &*who.config_name);
        for entry in run.history().iter() {
            let Entry::Turn(turn) = &entry.entry else {
                continue;
            };
            let calls: Vec<_> = turn.reply().calls().collect();
            assert_eq!(
                calls.len(),
                turn.results().len(),
                "one result for each call"
            );
            for (call, result) in calls.into_iter().zip(turn.results()) {
                if call.name.as_str() != "delegate" {
                    continue;
                }
                let args: Value = serde_json::from_str(&call.args).expect("the model speaks JSON");
                let reports = (!result.is_error())
                    .then(|| result.details.as_array().cloned())
                    .flatten();
                let (by, own, call) = (thread.clone(), own.to_owned(), call.id);
                let orders = args["tasks"].as_array().cloned().unwrap_or_default();
                all.push(Delegated {
                    by,
                    own,
                    call,
                    orders,
                    reports,
                    text: result.text(),
                });
            }
        }
    }
    all
}

/// Each call has one report for each order, in the order of these; a call that holds oneself has none, and opens nobody.
pub(crate) fn reports(plan: &Plan, tree: &Tree, tasks: &[TaskId]) {
    for call in delegated(tree) {
        let named = |order: &Value| {
            order["agent"]
                .as_str()
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        let opened = tree
            .opened
            .values()
            .filter(|(_, of)| *of == (call.by.clone(), call.call))
            .count();
        let is_own = call
            .orders
            .iter()
            .any(|order| named(order).eq_ignore_ascii_case(&call.own));
        assert!(
            !is_own || (call.reports.is_none() && opened == 0),
            "{call:?}"
        );
        let Some(reports) = &call.reports else {
            continue;
        };
        assert_eq!(reports.len(), call.orders.len(), "{call:?}");
        for (order, report) in call.orders.iter().zip(reports) {
            let (named, agent) = (named(order), report["agent"].as_str().unwrap_or_default());
            let error = report["error"].as_str();
            if named == NOBODY {
                assert!(
                    agent == NOBODY && error.is_some_and(|it| it.starts_with("there is no agent")),
                    "{report}"
                );
                continue;
            }
            let may_hand_on = plan.handoffs > 0 || plan.roles.iter().any(|role| role.handoffs > 0);
            let is_of = |name: &str| agent.starts_with(&format!("{name}-"));
            assert!(
                is_of(&named) || (may_hand_on && NAMES.into_iter().any(is_of)),
                "{order} is answered by {report}"
            );
            assert!(
                error.is_some() != report["result"].is_string(),
                "one of the two: {report}"
            );
            let is_on_board = |id: &Value| tasks.iter().any(|task| *id == task.to_string());
            if !tasks.is_empty() && order["task_id"].is_string() && !is_on_board(&order["task_id"])
            {
                assert!(
                    error.is_some_and(|it| it.starts_with("the task cannot be claimed: ")),
                    "{report}"
                );
            }
        }
    }
}

/// What came of every call of `delegate`, but for the numbers of the instances.
pub(crate) fn said(tree: &Tree) -> Vec<String> {
    let strip = |text: String| {
        text.chars()
            .filter(|c| !c.is_ascii_digit())
            .collect::<String>()
    };
    delegated(tree)
        .into_iter()
        .map(|call| format!("{} {}: {}", call.by, call.call, strip(call.text)))
        .collect()
}

/// Nobody of the tree holds a task.
pub(crate) async fn left_nothing(stage: &Stage) {
    for task in stage.tasks() {
        let task = stage.board().get(task).await.expect("it is there");
        let is_stuck =
            task.status == TaskStatus::InProgress && task.assignee.as_deref() != Some(STRANGER);
        assert!(!is_stuck, "a task is stuck: {task:?}");
    }
}

/// Every task is where it can go on or has ended, and none was completed twice.
pub(crate) async fn board(stage: &Stage, tree: &Tree) {
    left_nothing(stage).await;
    stage
        .clock
        .pass(Duration::from_secs(3_600).as_millis() as u64);
    let board = stage.board();
    board.tend().await.expect("memory does not fail");
    let all = board
        .list(&TaskQuery::new())
        .await
        .expect("memory does not fail")
        .tasks;
    assert_eq!(all.len(), stage.tasks().len());
    let calls = delegated(tree);
    for listed in all {
        let task = listed.task;
        assert!(
            task.status == TaskStatus::Pending || task.status.is_terminal(),
            "{task:?}"
        );
        let is_done = |(order, report): &(&Value, &Value)| {
            let is_it = order["task_id"] == task.id.to_string();
            let is_failed = report["completion"]["status"] == "failed";
            is_it && report["error"].is_null() && report["warning"].is_null() && !is_failed
        };
        let reports = calls
            .iter()
            .flat_map(|call| call.orders.iter().zip(call.reports.iter().flatten()));
        let done: Vec<_> = reports.filter(is_done).collect();
        let by_stranger =
            task.status == TaskStatus::Completed && task.result.as_deref() == Some(STRANGER);
        assert!(
            done.len() + usize::from(by_stranger) <= 1,
            "{task:?} was completed twice: {done:?}"
        );
        if let [(_, report)] = done[..] {
            assert_eq!(
                (task.status, task.assignee.as_deref()),
                (TaskStatus::Completed, report["agent"].as_str())
            );
        }
    }
}
