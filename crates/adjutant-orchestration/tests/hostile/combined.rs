//! A lead that delegates, works in the background and has a team, in one turn: cut, dropped and stopped everywhere.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use adjutant_agent::{
    Agent, CancelBy, Event, EventKind, Flush, Journal, LogId, MemoryJournal, Owner, Record, Seq,
    Stamped, kv::MemoryKvStore,
};
use adjutant_llm::{Entry, FixedWorld, Request};
use adjutant_orchestration::{
    Background, BackgroundOptions, Delegation, Profile, Registry,
    board::{Board, NewTask, TaskStatus},
    team::Team,
};
use futures_util::StreamExt;
use serde_json::json;

use super::super::{
    delegation::desk::{deciding, task},
    fan_out::desk::{calls, calls_all, says},
};

/// One program.
struct Program {
    agent: Agent,
    journal: MemoryJournal,
    board: Board,
}

fn turns(request: &Request) -> usize {
    request
        .entries
        .iter()
        .filter(|it| matches!(it.entry, Entry::Turn(_)))
        .count()
}

fn log() -> LogId {
    LogId("log".into())
}

async fn program() -> Program {
    let board = Board::new(Arc::new(MemoryKvStore::default())).world(FixedWorld::at_ms(1_000));
    let id = board
        .create(NewTask::new("Fix it"))
        .await
        .expect("memory does not fail")
        .id;
    let registry = Registry::new();
    let done = || {
        calls(
            "task_complete",
            json!({"status": "completed", "summary": "One."}),
        )
    };
    registry.register(Profile::new("one", ""), move || deciding(move |_| done()));
    registry.register(Profile::new("two", ""), || deciding(|_| says("Two.")));
    let background = Background::new(BackgroundOptions::new());
    let background = background.agent("helper", "", deciding(|_| says("Helped.")).name("helper"));
    let member = deciding(|request: &Request| match turns(request) {
        0 => calls("send_message", json!({"to": "lead", "content": "Hello."})),
        _ => says("Member."),
    });
    let team = Team::new("crew").template("a", member);
    let boss = deciding(move |request: &Request| match turns(request) {
        0 => {
            let mut orders = [task("one", "Fix it."), task("two", "Look.")];
            orders[0]["task_id"] = json!(id);
            calls_all(&[
                ("launch_task", json!({"agent": "helper", "task": "Help."})),
                ("spawn_teammate", json!({"name": "a", "task": "Talk."})),
                ("delegate", json!({"tasks": orders})),
            ])
        }
        1 => calls_all(&[
            (
                "get_task",
                json!({"task_id": "task-1", "wait": true, "timeout_ms": 60_000}),
            ),
            ("wait_for_team", json!({"timeout_s": 60})),
        ]),
        2 => calls("read_messages", json!({})),
        _ => says("Done."),
    });
    let boss = team.install(background.install(boss.name("boss")));
    let boss = Delegation::new(registry)
        .max_depth(1)
        .board(board.clone())
        .install(boss);
    let journal = MemoryJournal::default();
    let agent = boss
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone())
        .session(log())
        .take_over();
    Program {
        agent: agent.calls(|calls| calls.grace = Duration::from_secs(2)),
        journal,
        board,
    }
}

async fn records(journal: &MemoryJournal) -> Vec<Arc<Stamped>> {
    journal
        .read(&log(), Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await
}

/// What all threads used, by the log.
fn spent(log: &[Arc<Stamped>]) -> u64 {
    let usages = log.iter().map(|it| match &it.record {
        Record::Replied { reply, .. } => reply.usage.total(),
        _ => 0,
    });
    usages.sum()
}

/// The children of which the log does not tell as many ends as they began runs.
fn untold(log: &[Arc<Stamped>]) -> Vec<String> {
    let mut ends: BTreeMap<String, i64> = BTreeMap::new();
    for it in log {
        match &it.record {
            // Who never began, because of a crash, is told all the same: once.
            Record::ChildOpened { thread, .. } if !has_begun(log, thread.as_str()) => {
                *ends.entry(thread.to_string()).or_default() -= 1;
            }
            Record::Began { .. } if it.thread.as_str() != "main" => {
                *ends.entry(it.thread.to_string()).or_default() -= 1;
            }
            Record::ChildEnded { thread, .. } => *ends.entry(thread.to_string()).or_default() += 1,
            _ => {}
        }
    }
    ends.into_iter()
        .filter(|(_, ends)| *ends != 0)
        .map(|(thread, ends)| format!("{thread}: {ends}"))
        .collect()
}

/// Whether a child has begun to work.
fn has_begun(log: &[Arc<Stamped>], thread: &str) -> bool {
    log.iter()
        .any(|it| it.thread.as_str() == thread && matches!(it.record, Record::Began { .. }))
}

/// What is wrong with the order of events.
fn disorder(events: &[Event]) -> Vec<String> {
    let (mut begun, mut ended, mut wrong) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    for event in events {
        let thread = event.who.thread.to_string();
        if ended.contains(&thread) {
            wrong.push(format!("{thread} after its end: {:?}", event.kind));
        }
        match &event.kind {
            EventKind::RunStarted if !begun.insert(thread.clone()) => {
                wrong.push(format!("{thread} twice"))
            }
            EventKind::RunFinished { .. } => drop(ended.insert(thread)),
            _ => {}
        }
    }
    if begun != ended {
        wrong.push(format!("{begun:?} {ended:?}"));
    }
    wrong
}

#[tokio::test(start_paused = true)]
async fn every_child_is_seen_once_and_before_its_lead_when_everything_runs_at_once() {
    let whole = program().await;
    let events: Vec<Event> = whole
        .agent
        .run("Go.")
        .stream()
        .expect("the session is free")
        .collect()
        .await;
    let Some(EventKind::RunFinished { result }) = events.last().map(|it| &it.kind) else {
        unreachable!("it ends")
    };
    assert_eq!(disorder(&events), Vec::<String>::new());
    assert_eq!(
        (
            result.text().as_str(),
            &*events.last().expect("one").who.name
        ),
        ("Done.", "boss")
    );
    let log = records(&whole.journal).await;
    assert_eq!(
        (result.total_usage.total(), untold(&log)),
        (spent(&log), vec![])
    );
}

#[tokio::test(start_paused = true)]
async fn run_closes_and_use_adds_up_wherever_a_crash_cut_everything() {
    let whole = program().await;
    whole.agent.run("Go.").await.expect("the run finishes");
    let log = records(&whole.journal).await;
    assert!(log.len() > 60, "{}", log.len());
    for cut in 1..log.len() {
        let again = program().await;
        let mut half = again
            .journal
            .own(&self::log(), &Owner::default())
            .await
            .expect("the log is free");
        half.append(&log[..cut], Flush::Now)
            .await
            .expect("memory does not fail");
        drop(half);
        let resumed =
            tokio::time::timeout(Duration::from_secs(100_000), again.agent.resume(Vec::new()));
        let result = resumed
            .await
            .unwrap_or_else(|_| panic!("cut at {cut}: hangs"));
        let result = result.unwrap_or_else(|error| panic!("cut at {cut}: {error:?}"));
        assert_eq!(result.text(), "Done.", "cut at {cut}: {:?}", result.outcome);
        let now = records(&again.journal).await;
        assert_eq!(result.total_usage.total(), spent(&now), "cut at {cut}");
        assert_eq!(untold(&now), Vec::<String>::new(), "cut at {cut}");
        let reader = program()
            .await
            .agent
            .journal(again.journal.clone())
            .session(self::log())
            .take_over();
        reader.log().open().await.expect("the log is read");
        assert_eq!(json_of(&reader), json_of(&again.agent), "cut at {cut}");
        assert!(!reader.log().has_open_run(), "cut at {cut}");
    }
}

fn json_of(agent: &Agent) -> Vec<String> {
    agent
        .log()
        .transcript()
        .iter()
        .map(|it| json!(it.entry).to_string())
        .collect()
}

/// Stops a run after so many events, in one way or the other; whether it had ended by then.
async fn stopped_after(program: &Program, reads: usize, drops: bool) -> bool {
    let mut running = program
        .agent
        .run("Go.")
        .stream()
        .expect("the session is free");
    let mut ended = false;
    for _ in 0..reads {
        ended = running.next().await.is_none();
        if ended {
            break;
        }
    }
    if !drops {
        let mut rest = Vec::new();
        running.stopper().stop(CancelBy::User);
        let reads = async {
            while let Some(event) = running.next().await {
                rest.push(event);
            }
        };
        tokio::time::timeout(Duration::from_secs(100), reads)
            .await
            .expect("it ends soon");
    }
    ended
}

#[tokio::test(start_paused = true)]
async fn nothing_is_stuck_wherever_everything_is_stopped_or_dropped() {
    for drops in [false, true] {
        let mut ended = false;
        for reads in 0.. {
            if ended {
                break;
            }
            let program = program().await;
            ended = stopped_after(&program, reads, drops).await;
            tokio::time::sleep(Duration::from_secs(60)).await;
            let again =
                tokio::time::timeout(Duration::from_secs(100_000), program.agent.run("Again."));
            let result = again
                .await
                .unwrap_or_else(|_| panic!("after {reads}, {drops}: hangs"));
            let result = result.unwrap_or_else(|error| panic!("after {reads}, {drops}: {error:?}"));
            assert!(
                result.is_finished(),
                "after {reads}, {drops}: {:?}",
                result.outcome
            );
            let log = records(&program.journal).await;
            assert_eq!(untold(&log), Vec::<String>::new(), "after {reads}, {drops}");
            let tasks = program
                .board
                .list(&adjutant_orchestration::board::TaskQuery::default())
                .await;
            let stuck = tasks
                .expect("memory does not fail")
                .tasks
                .iter()
                .any(|it| it.task.status == TaskStatus::InProgress);
            assert!(!stuck, "after {reads}, {drops}");
        }
    }
}
