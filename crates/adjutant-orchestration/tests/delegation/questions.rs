//! Interactive delegation: agents ask, are answered, and do not wait for ever.

use std::{sync::Arc, time::Duration};

use adjutant_agent::{Agent, EventKind, LogId, kv::MemoryKvStore};
use adjutant_llm::{CallResult, FixedWorld, Script};
use adjutant_orchestration::{
    Delegation, Profile, Registry,
    board::{Board, NewTask, TaskStatus},
};
use adjutant_tool::{Replay, ToolSpec, tool_fn};
use serde_json::{Value, json};

use super::desk::{Asked, boss_with, calls, delegates, register, reports, says, task, tools};

fn asks(question: &str) -> Script {
    calls("ask_parent", json!({ "question": question }))
}

fn answers(list: &[(&str, &str, &str)]) -> Script {
    let one = |(delegation, question, answer): &(&str, &str, &str)| json!({ "delegation_id": delegation, "question_id": question, "answer": answer });
    calls(
        "answer_questions",
        json!({ "answers": list.iter().map(one).collect::<Vec<_>>() }),
    )
}

fn interactive(agent: &str) -> Value {
    let mut task = task(agent, "Fix it.");
    task["mode"] = json!("interactive");
    task
}

fn boss(registry: &Registry, script: impl IntoIterator<Item = Script>) -> Agent {
    boss_with(
        Delegation::new(registry.clone()).max_depth(1).interactive(),
        script,
    )
    .1
}

/// What the calls of a run of this agent came to, in order.
async fn came_to(agent: &Agent) -> Vec<Value> {
    let result = agent.run("Go.").await.expect("the run finishes");
    let texts = result.calls.iter().map(|call| call.result.text());
    texts
        .map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text)))
        .collect()
}

/// An entry whose instances ask so often, and then report the last answer.
fn curious(registry: &Registry, profile: Profile, times: usize) -> Asked {
    register(registry, profile, move |_| {
        let report = Script::from_fn(|request| {
            let said = request
                .entries
                .iter()
                .last()
                .map(|it| format!("{:?}", it.entry))
                .unwrap_or_default();
            reports(if said.contains("Blue") {
                "Painted it blue."
            } else {
                "Painted it."
            })
        });
        (0..times)
            .map(|_| asks("Which colour?"))
            .chain([report])
            .collect()
    })
}

fn question(delegation: &str, agent: &str, number: usize) -> Value {
    let question = json!({ "question_id": format!("q-{number}"), "question": "Which colour?" });
    json!({ "delegation_id": delegation, "agent": agent, "questions": [question] })
}

fn done(agent: &str, said: &str) -> Value {
    json!({ "agent": agent, "result": said, "completion": { "status": "completed", "summary": said } })
}

#[tokio::test]
async fn agent_goes_on_when_its_question_is_answered() {
    let registry = Registry::new();
    let asked = curious(&registry, Profile::new("painter", ""), 2);
    let script = [
        delegates([interactive("painter")]),
        answers(&[("d-1", "q-1", "Red, or not?")]),
        answers(&[("d-1", "q-2", "Blue.")]),
        says("Done."),
    ];
    let expected = [
        json!([question("d-1", "painter-fix-1", 1)]),
        json!([question("d-1", "painter-fix-1", 2)]),
        json!([done("painter-fix-1", "Painted it blue.")]),
    ];
    assert_eq!(came_to(&boss(&registry, script)).await, expected);
    assert_eq!(tools(&asked.requests()[0]), ["task_complete", "ask_parent"]);
    assert!(
        asked.requests()[0]
            .system
            .contains("<interaction_protocol>")
    );
}

#[tokio::test]
async fn call_returns_when_each_agent_is_done_or_asks() {
    let registry = Registry::new();
    curious(&registry, Profile::new("painter", ""), 1);
    let quiet = register(&registry, Profile::new("quiet", ""), |_| {
        vec![reports("Swept.")]
    });
    let script = [
        delegates([
            interactive("painter"),
            task("quiet", "Sweep it."),
            interactive("painter"),
        ]),
        answers(&[("d-3", "q-1", "Blue."), ("d-1", "q-1", "Green.")]),
        says("Done."),
    ];
    let results = came_to(&boss(&registry, script)).await;
    let first = json!([
        question("d-1", "painter-fix-1", 1),
        done("quiet-sweep-1", "Swept."),
        question("d-3", "painter-fix-2", 1),
    ]);
    let second = json!([
        done("painter-fix-2", "Painted it blue."),
        done("painter-fix-1", "Painted it.")
    ]);
    assert_eq!(results, [first, second]);
    assert_eq!(
        tools(&quiet.requests()[0]),
        ["task_complete"],
        "it was not said that it may ask"
    );
}

#[tokio::test]
async fn nothing_is_answered_when_one_of_the_ids_is_wrong() {
    let registry = Registry::new();
    curious(&registry, Profile::new("painter", ""), 1);
    let script = [
        delegates([interactive("painter"), interactive("painter")]),
        answers(&[("d-1", "q-1", "Red."), ("d-9", "q-1", "Red.")]),
        answers(&[("d-1", "q-1", "Red."), ("d-2", "q-9", "Red.")]),
        answers(&[("d-1", "q-1", "Red."), ("d-1", "q-1", "Red.")]),
        answers(&[("d-1", "q-1", "Blue."), ("d-2", "q-1", "Blue.")]),
        answers(&[("d-1", "q-1", "Blue.")]),
        says("Done."),
    ];
    let results = came_to(&boss(&registry, script)).await;
    assert_eq!(
        results[1],
        "nothing was answered: there is no delegation \"d-9\""
    );
    assert_eq!(
        results[2],
        "nothing was answered: there is no open question \"q-9\" of d-2"
    );
    assert_eq!(
        results[3],
        "nothing was answered: there is no open question \"q-1\" of d-1"
    );
    let both = json!([
        done("painter-fix-1", "Painted it blue."),
        done("painter-fix-2", "Painted it blue.")
    ]);
    assert_eq!(
        (&results[4], results[5].is_string()),
        (&both, true),
        "what was told is closed: {results:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn agent_is_stopped_when_its_question_is_not_answered_in_time() {
    let registry = Registry::new();
    curious(&registry, Profile::new("painter", ""), 1);
    let board = Board::new(Arc::new(MemoryKvStore::default())).world(FixedWorld::at_ms(1_000));
    let id = board
        .create(NewTask::new("Paint"))
        .await
        .expect("memory does not fail")
        .id;
    let mut order = interactive("painter");
    order["task_id"] = json!(id);
    let script = [
        delegates([order]),
        calls("nap", json!({})),
        answers(&[("d-1", "q-1", "Late.")]),
        says("Done."),
    ];
    let delegation = Delegation::new(registry)
        .max_depth(1)
        .interactive()
        .board(board.clone());
    let nap = ToolSpec {
        replay: Replay::Once,
        ..ToolSpec::new("nap", "Sleeps.", json!({ "type": "object" }))
    };
    let nap = tool_fn(nap, |_, _| async {
        tokio::time::sleep(Duration::from_secs(301)).await;
        Ok(CallResult::ok("Slept."))
    });
    let results = came_to(&boss_with(delegation, script).1.tool(nap)).await;
    let said = "timed out: its question was not answered in time";
    assert_eq!(
        results[2],
        json!([{ "agent": "painter-fix-1", "error": said }])
    );
    let task = board.get(&id).await.expect("it is there");
    assert_eq!(
        (task.status, task.result.as_deref()),
        (TaskStatus::Failed, Some(said))
    );
}

#[tokio::test(start_paused = true)]
async fn agents_end_with_the_run_when_nobody_answers() {
    let registry = Registry::new();
    curious(&registry, Profile::new("painter", ""), 1);
    let agent = boss(
        &registry,
        [delegates([interactive("painter")]), says("Never mind.")],
    );
    let mut running = agent.run("Go.").stream().expect("the session is free");
    let mut seen = Vec::new();
    while let Some(event) = running.next().await {
        match &event.kind {
            EventKind::ChildEnded { outcome, .. } => seen.push(outcome.kind()),
            EventKind::RunFinished { result } if event.who.depth == 0 => {
                seen.push(result.outcome.kind())
            }
            _ => {}
        }
    }
    assert_eq!(seen, ["cancelled", "finished"]);
}

#[tokio::test(start_paused = true)]
async fn others_work_when_an_agent_of_their_entry_waits_for_an_answer() {
    let registry = Registry::new();
    curious(&registry, Profile::new("painter", "").max_concurrency(1), 1);
    let script = [
        delegates([interactive("painter"), interactive("painter")]),
        answers(&[("d-1", "q-1", "Blue."), ("d-2", "q-1", "Blue.")]),
        says("Done."),
    ];
    let results = tokio::time::timeout(Duration::from_secs(60), async {
        came_to(&boss(&registry, script)).await
    });
    let results = results.await.expect("nobody waits for the other");
    assert_eq!(results[0][1], question("d-2", "painter-fix-2", 1));
    assert_eq!(results[1][1], done("painter-fix-2", "Painted it blue."));
}

#[tokio::test]
async fn nobody_may_ask_when_the_delegation_is_not_interactive() {
    let registry = Registry::new();
    let asked = curious(&registry, Profile::new("painter", ""), 0);
    let delegation = Delegation::new(registry.clone()).max_depth(1);
    let (model, agent) = boss_with(
        delegation,
        [delegates([task("painter", "Fix it.")]), says("Done.")],
    );
    agent.run("Go.").await.expect("the run finishes");
    assert_eq!(tools(&model.requests()[0]), ["list_agents", "delegate"]);
    assert!(
        !model.requests()[0].tools[1]
            .schema
            .to_string()
            .contains("interactive")
    );
    assert_eq!(tools(&asked.requests()[0]), ["task_complete"]);
}

#[tokio::test(start_paused = true)]
async fn questions_are_those_of_their_session_when_one_agent_delegates_in_two() {
    let registry = Registry::new();
    curious(&registry, Profile::new("painter", ""), 1);
    let script = [
        delegates([interactive("painter")]),
        says("Never mind."),
        answers(&[("d-1", "q-1", "Blue.")]),
        says("Done."),
    ];
    let agent = boss(&registry, script);
    let [one, two] = ["one", "two"].map(|log| agent.session(LogId(log.into())));
    assert_eq!(
        came_to(&one).await,
        [json!([question("d-1", "painter-fix-1", 1)])]
    );
    assert_eq!(
        came_to(&two).await,
        ["nothing was answered: there is no delegation \"d-1\""]
    );
}
