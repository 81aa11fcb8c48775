//! Crashes: a delegate call that is entered again goes on where it was.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use adjutant_agent::{
    Agent, Flush, Journal, LogId, MemoryJournal, Owner, Record, Seq, Stamped, kv::MemoryKvStore,
};
use adjutant_llm::{FixedWorld, Request, Script};
use adjutant_orchestration::{
    Delegation, Profile, Registry,
    board::{Board, Finish, NewTask, TaskId, TaskStatus},
};
use futures_util::StreamExt;
use serde_json::{Value, json};

use super::desk::{calls, deciding, delegates, reports, results, says, task};

/// One program: a boss that delegates to `one`, which hands on to `two`, and to `three`; how often each was asked.
struct Program {
    agent: Agent,
    journal: MemoryJournal,
    asked: [Arc<AtomicUsize>; 3],
}

fn counted(
    registry: &Registry,
    name: &'static str,
    decide: fn(&Request) -> Script,
) -> Arc<AtomicUsize> {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    registry.register(Profile::new(name, ""), move || {
        let count = Arc::clone(&count);
        deciding(move |request: &Request| {
            count.fetch_add(1, Ordering::SeqCst);
            decide(request)
        })
    });
    asked
}

fn program(board: &Board, ids: &[TaskId]) -> Program {
    let ids: Arc<[TaskId]> = ids.into();
    let registry = Registry::new();
    let hands_on = |_: &Request| {
        calls(
            "handoff",
            json!({ "target_agent": "two", "reason": "r", "context": "Half is done." }),
        )
    };
    let asked = [
        counted(&registry, "one", hands_on),
        counted(&registry, "two", |_| reports("Two.")),
        counted(&registry, "three", |_| says("Three.")),
    ];
    let boss = deciding(move |request: &Request| match request.entries.len() {
        1 => {
            let mut tasks = [task("one", "Fix it."), task("three", "Test it.")];
            tasks
                .iter_mut()
                .zip(ids.iter())
                .for_each(|(task, id)| task["task_id"] = json!(id));
            delegates(tasks)
        }
        _ => says("Done."),
    });
    let journal = MemoryJournal::default();
    let boss = Delegation::new(registry)
        .max_depth(1)
        .max_handoffs(1)
        .board(board.clone())
        .install(boss.name("boss"));
    let agent = boss
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone())
        .session(LogId("log".into()));
    Program {
        agent: agent.take_over(),
        journal,
        asked,
    }
}

async fn records(journal: &MemoryJournal) -> Vec<Arc<Stamped>> {
    journal
        .read(&LogId("log".into()), Seq(0))
        .map(|it| it.expect("memory does not fail"))
        .collect()
        .await
}

/// What is in a log of the children: the instances that were opened, and the threads that ended.
fn children(log: &[Arc<Stamped>]) -> (Vec<String>, Vec<String>) {
    let opened = log.iter().filter_map(|it| match &it.record {
        Record::ChildOpened { who, .. } => Some(who.name.to_string()),
        _ => None,
    });
    let ended = log
        .iter()
        .filter(|it| matches!(it.record, Record::Ended { .. }) && it.thread.as_str() != "main");
    (
        opened.collect(),
        ended.map(|it| it.thread.to_string()).collect(),
    )
}

/// A board at a crash that left this log: a task whose claim is noted may have come to its end, which is not noted.
async fn board(log: &[Arc<Stamped>]) -> (Board, Vec<TaskId>) {
    let board = Board::new(Arc::new(MemoryKvStore::default())).world(FixedWorld::at_ms(1_000));
    let mut ids = Vec::new();
    for (at, name) in ["Fix it", "Test it"].into_iter().enumerate() {
        let id = board
            .create(NewTask::new(name))
            .await
            .expect("memory does not fail")
            .id;
        let noted = log.iter().filter(|it| {
            json!(it.record)
                .to_string()
                .contains(&format!("\"claim.{at}\""))
        });
        if noted.count() == 2 {
            let (agent, said) = [("two-fix-1", "Two."), ("three-test-1", "Three.")][at];
            board
                .claim(&id, agent, Duration::from_secs(60))
                .await
                .expect("it is free");
            board
                .finish(&id, agent, Finish::success(said))
                .await
                .expect("it is claimed");
        }
        ids.push(id);
    }
    (board, ids)
}

fn expected() -> Vec<Value> {
    vec![json!([
        { "agent": "two-fix-1", "result": "Two.", "completion": { "status": "completed", "summary": "Two." } },
        { "agent": "three-test-1", "result": "Three." },
    ])]
}

#[tokio::test(start_paused = true)]
async fn finished_agents_are_not_started_again_when_the_call_is_entered_again() {
    let (board, ids) = board(&[]).await;
    let whole = program(&board, &ids);
    let result = whole.agent.run("Go.").await.expect("the run finishes");
    assert_eq!(results(&result), expected());
    let log = records(&whole.journal).await;
    let mut finished = 0;
    for cut in 1..log.len() {
        let (board, _) = self::board(&log[..cut]).await;
        let again = program(&board, &ids);
        let owner = Owner::default();
        let mut half = again
            .journal
            .own(&LogId("log".into()), &owner)
            .await
            .expect("the log is free");
        half.append(&log[..cut], Flush::Now)
            .await
            .expect("memory does not fail");
        drop(half);
        let (_, ended) = children(&log[..cut]);
        let result = again
            .agent
            .resume(Vec::new())
            .await
            .expect("the run finishes");
        assert_eq!(
            (results(&result), result.text().as_str()),
            (expected(), "Done."),
            "cut at {cut}"
        );
        for id in &ids {
            assert_eq!(
                board.get(id).await.expect("it is there").status,
                TaskStatus::Completed,
                "cut at {cut}"
            );
        }
        let (opened, all) = children(&records(&again.journal).await);
        let mut names = opened.clone();
        names.sort();
        assert_eq!(
            names,
            ["one-fix-1", "three-test-1", "two-fix-1"],
            "cut at {cut}"
        );
        assert_eq!(all.len(), 3, "cut at {cut}: each ends once: {all:?}");
        for (key, asked) in ["/0", "/0.1", "/1"].into_iter().zip(&again.asked) {
            let known = ended.iter().any(|thread| thread.ends_with(key));
            finished += usize::from(known);
            assert!(
                !known || asked.load(Ordering::SeqCst) == 0,
                "cut at {cut}: {key} is started again"
            );
        }
    }
    assert!(finished > 20, "the cuts missed the agents: {finished}");
}

/// A boss that delegates to one that asks, and answers what it is asked.
fn asking_program() -> (Agent, MemoryJournal) {
    let registry = Registry::new();
    registry.register(Profile::new("painter", ""), || {
        deciding(|request: &Request| match request.entries.len() {
            2 => calls("ask_parent", json!({ "question": "Which colour?" })),
            _ => reports("Painted."),
        })
    });
    let boss = deciding(|request: &Request| {
        let mut order = task("painter", "Paint it.");
        order["mode"] = json!("interactive");
        let last = request
            .entries
            .iter()
            .last()
            .map(|it| format!("{:?}", it.entry))
            .unwrap_or_default();
        match request.entries.len() {
            1 => delegates([order]),
            _ if last.contains("question_id") && last.contains("Which colour?") => {
                let answer =
                    json!({ "delegation_id": "d-1", "question_id": "q-1", "answer": "Blue." });
                calls("answer_questions", json!({ "answers": [answer] }))
            }
            _ => says("Done."),
        }
    });
    let journal = MemoryJournal::default();
    let boss = Delegation::new(registry)
        .max_depth(1)
        .interactive()
        .install(boss.name("boss"));
    let agent = boss
        .world(FixedWorld::at_ms(1_000))
        .journal(journal.clone())
        .session(LogId("log".into()));
    (agent.take_over(), journal)
}

#[tokio::test(start_paused = true)]
async fn agent_asks_again_when_the_call_that_delegated_is_entered_again() {
    let (agent, journal) = asking_program();
    let result = agent.run("Go.").await.expect("the run finishes");
    let painted = |result: &adjutant_agent::RunResult| {
        result
            .calls
            .iter()
            .any(|it| it.result.text().contains("Painted."))
    };
    assert!(painted(&result) && result.text() == "Done.", "{result:?}");
    let log = records(&journal).await;
    let returned = log.iter().position(|it| {
        matches!(it.record, Record::Returned { .. }) && it.thread.as_str() == "main"
    });
    let returned = returned.expect("the call that delegated returns");
    for cut in 1..log.len() {
        let (agent, journal) = asking_program();
        let mut half = journal
            .own(&LogId("log".into()), &Owner::default())
            .await
            .expect("the log is free");
        half.append(&log[..cut], Flush::Now)
            .await
            .expect("memory does not fail");
        drop(half);
        let result = agent.resume(Vec::new()).await.expect("the run finishes");
        assert_eq!(result.text(), "Done.", "cut at {cut}");
        assert!(
            cut > returned || painted(&result),
            "cut at {cut}: {:?}",
            result.calls
        );
    }
}
